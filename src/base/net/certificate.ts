/**
 * X.509 v3 certificates and requests for them, with P-256 keys, written out in DER (RFC 5280 §4.1, RFC 2986):
 * no tools, no files.
 */
import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto'
import { isIP } from 'node:net'

export interface Certificate {
  /** PEM. */
  cert: string
  /** PKCS #8 PEM. */
  key: string
}

/** Who signs a certificate: an authority's name and key. */
export interface Issuer {
  commonName: string
  key: KeyObject
}

export interface Validity {
  from: Date
  to: Date
}

/** A self-signed certificate for DNS names and IPv4 addresses; the first is its subject. */
export function selfSignedCertificate(names: readonly string[], validity: Validity): Certificate {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const issuer = { commonName: names[0] ?? 'nobody', key: keys.privateKey }
  const cert = build(issuer.commonName, keys.publicKey, issuer, [altNames(names)], validity)
  return { cert, key: pemOf(keys.privateKey) }
}

/** A certificate that may sign others; signed by `issuer`, default by itself. */
export function authorityCertificate(commonName: string, validity: Validity, issuer?: Issuer): Certificate {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const extensions = [
    extension('551d13', true, sequence(BOOLEAN_TRUE)), // basicConstraints: cA
    extension('551d0f', true, tlv(0x03, Buffer.from([1, 0x06]))), // keyUsage: keyCertSign, cRLSign
    extension('551d0e', false, tlv(0x04, keyIdentifier(keys.publicKey))), // subjectKeyIdentifier
  ]
  const signer = issuer ?? { commonName, key: keys.privateKey }
  const cert = build(commonName, keys.publicKey, signer, extensions, validity)
  return { cert, key: pemOf(keys.privateKey) }
}

/** A certificate signed by `issuer`, of a server unless `more` has extensions that say something else. */
export function issuedCertificate(
  names: readonly string[],
  issuer: Issuer & { publicKey: KeyObject },
  validity: Validity,
  more: readonly Buffer[] = [],
): Certificate {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { cert: certifiedKey(names, keys.publicKey, issuer, validity, more), key: pemOf(keys.privateKey) }
}

/** The same for a key that another party holds; PEM. */
export function certifiedKey(
  names: readonly string[],
  publicKey: KeyObject,
  issuer: Issuer & { publicKey: KeyObject },
  validity: Validity,
  more: readonly Buffer[] = [],
): string {
  const authorityKey = extension('551d23', false, sequence(tlv(0x80, keyIdentifier(issuer.publicKey))))
  return build(names[0] ?? 'nobody', publicKey, issuer, [altNames(names), authorityKey, ...more], validity)
}

/** A request for a certificate with these names (RFC 2986 §4), in DER; the subject is empty, RFC 8555 §7.4. */
export function certificateRequest(
  names: readonly string[],
  keys: { publicKey: KeyObject; privateKey: KeyObject },
): Buffer {
  const wanted = sequence(
    tlv(0x06, Buffer.from('2a864886f70d01090e', 'hex')), // extensionRequest, RFC 2985 §5.4.2
    tlv(0x31, sequence(altNames(names))),
  )
  const body = sequence(
    tlv(0x02, Buffer.from([0])), // v1
    sequence(),
    keys.publicKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa0, wanted),
  )
  return signed(body, keys.privateKey)
}

/** The key of a certificate made here, to sign others with. */
export const signingKeyOf = ({ key }: Certificate): KeyObject => createPrivateKey(key)

function build(
  subject: string,
  publicKey: KeyObject,
  issuer: Issuer,
  extensions: Buffer[],
  { from, to }: Validity,
): string {
  const body = sequence(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))), // v3
    tlv(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_SHA256,
    nameOf(issuer.commonName),
    sequence(time(from), time(to)),
    nameOf(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa3, sequence(...extensions)),
  )
  const base64 = signed(body, issuer.key).toString('base64')
  // A full last line must not leave an empty line after it, which OpenSSL takes for the end.
  const lines = base64.match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

function signed(body: Buffer, key: KeyObject): Buffer {
  const signature = tlv(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', body, key)]))
  return sequence(body, ECDSA_SHA256, signature)
}

const pemOf = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString()

const BOOLEAN_TRUE = Buffer.from('0101ff', 'hex')
const ECDSA_SHA256 = sequence(tlv(0x06, Buffer.from('2a8648ce3d040302', 'hex')))

function altNames(names: readonly string[]): Buffer {
  const entries = names.map((name) =>
    isIP(name) === 4
      ? tlv(0x87, Buffer.from(name.split('.').map(Number)))
      : tlv(0x82, Buffer.from(name, 'ascii')),
  )
  return extension('551d11', false, sequence(...entries)) // subjectAltName
}

/** An extension of a certificate: its OID in DER, without tag and length. */
export function extension(oidHex: string, critical: boolean, value: Buffer): Buffer {
  const parts = [tlv(0x06, Buffer.from(oidHex, 'hex')), tlv(0x04, value)]
  if (critical) parts.splice(1, 0, BOOLEAN_TRUE)
  return sequence(...parts)
}

function keyIdentifier(key: KeyObject): Buffer {
  return createHash('sha1')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest()
}

/** One relative name: CN as UTF8String. */
function nameOf(commonName: string): Buffer {
  const attribute = sequence(tlv(0x06, Buffer.from('550403', 'hex')), tlv(0x0c, Buffer.from(commonName)))
  return sequence(tlv(0x31, attribute))
}

/** GeneralizedTime, seconds, UTC. */
function time(date: Date): Buffer {
  return tlv(0x18, Buffer.from(`${date.toISOString().replace(/[-:T]|\.\d+/g, '')}`))
}

export function sequence(...parts: Buffer[]): Buffer {
  return tlv(0x30, Buffer.concat(parts))
}

/** One value in DER; at most 65,535 bytes. */
export function tlv(tag: number, value: Buffer): Buffer {
  const { length } = value
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), value])
  if (length < 0x100) return Buffer.concat([Buffer.from([tag, 0x81, length]), value])
  return Buffer.concat([Buffer.from([tag, 0x82, length >> 8, length & 0xff]), value])
}
