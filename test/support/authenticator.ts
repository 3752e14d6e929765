/** An authenticator of WebAuthn in software, with the client that asks it: what a browser would return. */
import { createHash, createSign, generateKeyPairSync, randomBytes } from 'node:crypto'

export interface Authenticator {
  credentialId: string
  /** Of signatures so far; set it back as a copy of the authenticator would. */
  counter: number
  /** RegistrationResponseJSON (WebAuthn §5.1) as text. */
  create(options: { challenge: string; rp: { id: string } }, wishes?: Wishes): string
  /** AuthenticationResponseJSON as text. */
  sign(options: { challenge: string; rpId: string }, wishes?: Wishes): string
}

interface Wishes {
  /** Default: as the authenticator is made. */
  origin?: string
  /** Default true. */
  isVerified?: boolean
  rpId?: string
  userHandle?: string
  /** Statement and format of the attestation, in CBOR. Default: none. */
  attestation?: { format: string; statement: Buffer }
}

const USER_PRESENT = 0x01
const USER_VERIFIED = 0x04
const ATTESTED = 0x40

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest()

/** Heads of CBOR (RFC 8949 §3) for lengths below 65,536. */
function head(major: number, length: number): Buffer {
  if (length < 24) return Buffer.of((major << 5) | length)
  return length < 256
    ? Buffer.of((major << 5) | 24, length)
    : Buffer.of((major << 5) | 25, length >> 8, length & 0xff)
}
const bytes = (data: Buffer) => Buffer.concat([head(2, data.length), data])
const text = (data: string) => Buffer.concat([head(3, data.length), Buffer.from(data)])
const integer = (value: number) => (value < 0 ? head(1, -1 - value) : head(0, value))

export function createAuthenticator(origin: string, type: 'none' | 'counting' = 'counting'): Authenticator {
  const id = randomBytes(32)
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  const key = Buffer.concat([
    ...[head(5, 5), integer(1), integer(2), integer(3), integer(-7), integer(-1), integer(1)],
    ...[integer(-2), bytes(Buffer.from(x, 'base64url')), integer(-3), bytes(Buffer.from(y, 'base64url'))],
  ])

  function dataOf(rpId: string, { isVerified = true }: Wishes, more: Buffer | null): Buffer {
    const flags = USER_PRESENT | (isVerified ? USER_VERIFIED : 0) | (more ? ATTESTED : 0)
    const count = Buffer.alloc(4)
    if (type === 'counting') self.counter += 1
    count.writeUInt32BE(self.counter)
    return Buffer.concat([sha256(rpId), Buffer.of(flags), count, ...(more ? [more] : [])])
  }
  const clientData = (kind: string, challenge: string, wishes: Wishes) =>
    Buffer.from(
      JSON.stringify({ type: kind, challenge, origin: wishes.origin ?? origin, crossOrigin: false }),
    )
  const named = (response: object) =>
    JSON.stringify({
      ...{ id: self.credentialId, rawId: self.credentialId, type: 'public-key' },
      ...{ response, clientExtensionResults: {} },
    })

  const self: Authenticator = {
    credentialId: id.toString('base64url'),
    counter: 0,
    create({ challenge, rp }, wishes = {}) {
      const attested = Buffer.concat([Buffer.alloc(16), Buffer.of(0, id.length), id, key])
      const { format, statement } = wishes.attestation ?? { format: 'none', statement: head(5, 0) }
      const object = Buffer.concat([
        ...[head(5, 3), text('fmt'), text(format), text('attStmt'), statement],
        ...[text('authData'), bytes(dataOf(wishes.rpId ?? rp.id, wishes, attested))],
      ])
      return named({
        clientDataJSON: clientData('webauthn.create', challenge, wishes).toString('base64url'),
        attestationObject: object.toString('base64url'),
        transports: ['internal', 'hybrid'],
      })
    },
    sign({ challenge, rpId }, wishes = {}) {
      const data = dataOf(wishes.rpId ?? rpId, wishes, null)
      const client = clientData('webauthn.get', challenge, wishes)
      const signature = createSign('sha256')
        .update(Buffer.concat([data, sha256(client)]))
        .sign(privateKey)
      return named({
        authenticatorData: data.toString('base64url'),
        clientDataJSON: client.toString('base64url'),
        signature: signature.toString('base64url'),
        ...(wishes.userHandle !== undefined && { userHandle: wishes.userHandle }),
      })
    },
  }
  return self
}
