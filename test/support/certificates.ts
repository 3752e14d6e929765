/**
 * A certificate authority for tests: P-256 keys, X.509 v3 written out in DER (RFC 5280 §4.1). No files, no tools.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { isIP } from 'node:net'

export interface Certificate {
  /** PEM. */
  cert: string
  /** PKCS #8 PEM. */
  key: string
}

export interface Authority extends Certificate {
  /** A server certificate for DNS names and IPv4 addresses; valid from yesterday for a month unless told otherwise. */
  issue(names: readonly string[], validity?: { from?: Date; to?: Date }): Certificate
}

const DAY_MS = 86_400_000

export function createAuthority(commonName = 'Test authority'): Authority {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const issuer = { commonName, key: keys.privateKey }
  const authorityOnly = [
    extension('551d13', true, sequence(BOOLEAN_TRUE)), // basicConstraints: cA
    extension('551d0f', true, tlv(0x03, Buffer.from([1, 0x06]))), // keyUsage: keyCertSign, cRLSign
    extension('551d0e', false, tlv(0x04, keyIdentifier(keys.publicKey))), // subjectKeyIdentifier
  ]
  return {
    ...build(commonName, keys, issuer, authorityOnly, {}),
    issue(names, validity = {}) {
      const leaf = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const altNames = names.map((name) =>
        isIP(name) === 4
          ? tlv(0x87, Buffer.from(name.split('.').map(Number)))
          : tlv(0x82, Buffer.from(name, 'ascii')),
      )
      const extensions = [
        extension('551d11', false, sequence(...altNames)), // subjectAltName
        extension('551d23', false, sequence(tlv(0x80, keyIdentifier(keys.publicKey)))), // authorityKeyIdentifier
      ]
      return build(names[0] ?? 'nobody', leaf, issuer, extensions, validity)
    },
  }
}

/** A certificate that vouches for itself. */
export function selfSigned(names: readonly string[]): Certificate {
  return createAuthority().issue(names)
}

function build(
  subject: string,
  keys: { publicKey: KeyObject; privateKey: KeyObject },
  issuer: { commonName: string; key: KeyObject },
  extensions: Buffer[],
  validity: { from?: Date; to?: Date },
): Certificate {
  const { from = new Date(Date.now() - DAY_MS), to = new Date(Date.now() + 30 * DAY_MS) } = validity
  const algorithm = sequence(tlv(0x06, Buffer.from('2a8648ce3d040302', 'hex'))) // ecdsa-with-SHA256
  const body = sequence(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))), // v3
    tlv(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    nameOf(issuer.commonName),
    sequence(time(from), time(to)),
    nameOf(subject),
    keys.publicKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa3, sequence(...extensions)),
  )
  const signature = tlv(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', body, issuer.key)]))
  const der = sequence(body, algorithm, signature)
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${der.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
    key: keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

const BOOLEAN_TRUE = Buffer.from('0101ff', 'hex')

function extension(oidHex: string, critical: boolean, value: Buffer): Buffer {
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

function sequence(...parts: Buffer[]): Buffer {
  return tlv(0x30, Buffer.concat(parts))
}

function tlv(tag: number, value: Buffer): Buffer {
  const { length } = value
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), value])
  if (length < 0x100) return Buffer.concat([Buffer.from([tag, 0x81, length]), value])
  return Buffer.concat([Buffer.from([tag, 0x82, length >> 8, length & 0xff]), value])
}
