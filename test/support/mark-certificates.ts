/** Mark certificates for tests, with a root of their own (RFC 3709, BIMI). */
import { createHash, createPublicKey, X509Certificate } from 'node:crypto'
import {
  authorityCertificate,
  extension,
  issuedCertificate,
  sequence,
  signingKeyOf,
  tlv,
} from '../../src/base/net/certificate.ts'

const DAY_MS = 86_400_000

export interface MarkOptions {
  names: readonly string[]
  /** As it is embedded: gzipped. */
  packedLogo: Buffer
  /** What the hash is of. */
  logo: Buffer
  from?: Date
  to?: Date
  /** Default: for BIMI. */
  usage?: 'bimi' | 'server'
}

const ia5 = (text: string) => tlv(0x16, Buffer.from(text, 'latin1'))
const oid = (hex: string) => tlv(0x06, Buffer.from(hex, 'hex'))

function logotype({ packedLogo, logo }: MarkOptions): Buffer {
  const hash = sequence(
    sequence(oid('608648016503040201')),
    tlv(0x04, createHash('sha256').update(logo).digest()),
  )
  const uri = ia5(`data:image/svg+xml;base64,${packedLogo.toString('base64')}`)
  const details = sequence(ia5('image/svg+xml'), sequence(hash), sequence(uri))
  const direct = tlv(0xa0, sequence(sequence(details)))
  return extension('2b0601050507010c', false, sequence(tlv(0xa2, direct)))
}

export function createMarkAuthority() {
  const now = Date.now()
  const years = { from: new Date(now - 1_000 * DAY_MS), to: new Date(now + 1_000 * DAY_MS) }
  const root = authorityCertificate('Test marks root', years)
  const rootKey = signingKeyOf(root)
  const middle = authorityCertificate('Test marks', years, { commonName: 'Test marks root', key: rootKey })
  const issuer = {
    commonName: 'Test marks',
    key: signingKeyOf(middle),
    publicKey: createPublicKey(middle.key),
  }
  return {
    root: new X509Certificate(root.cert),
    middle: middle.cert,
    /** PEM of the certificate alone. */
    issue(options: MarkOptions): string {
      const {
        names,
        from = new Date(now - DAY_MS),
        to = new Date(now + 30 * DAY_MS),
        usage = 'bimi',
      } = options
      const usages = extension(
        '551d25',
        false,
        sequence(oid(usage === 'bimi' ? '2b0601050507031f' : '2b06010505070301')),
      )
      return issuedCertificate(names, issuer, { from, to }, [usages, logotype(options)]).cert
    },
  }
}

/** A logo without faults. */
export const LOGO = Buffer.from(
  '<?xml version="1.0" encoding="UTF-8"?><svg xmlns="http://www.w3.org/2000/svg" version="1.2" baseProfile="tiny-ps" viewBox="0 0 64 64"><title>Shop</title><rect width="64" height="64" fill="#069"/></svg>',
)
