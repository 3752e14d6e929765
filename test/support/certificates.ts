/** A certificate authority for tests. No files, no tools. */
import { createPublicKey } from 'node:crypto'
import {
  authorityCertificate,
  type Certificate,
  issuedCertificate,
  signingKeyOf,
} from '../../src/base/net/certificate.ts'

export interface Authority extends Certificate {
  /** A server certificate for DNS names and IPv4 addresses; valid from yesterday for a month by default. */
  issue(names: readonly string[], validity?: { from?: Date; to?: Date }): Certificate
}

const DAY_MS = 86_400_000
const month = () => ({ from: new Date(Date.now() - DAY_MS), to: new Date(Date.now() + 30 * DAY_MS) })

export function createAuthority(commonName = 'Test authority'): Authority {
  const own = authorityCertificate(commonName, month())
  const issuer = { commonName, key: signingKeyOf(own), publicKey: createPublicKey(own.key) }
  return {
    ...own,
    issue: (names, validity = {}) => issuedCertificate(names, issuer, { ...month(), ...validity }),
  }
}

/** A certificate of an unknown authority. */
export function selfSigned(names: readonly string[]): Certificate {
  return createAuthority().issue(names)
}
