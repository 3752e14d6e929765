/**
 * DANE for SMTP (RFC 7672): whether a server's certificates match the TLSA records of its host. Callers pass only
 * validated records. Usages 0 and 1 are not used in SMTP (§3.1.3); if no record is usable, TLS is still required, but
 * there is nothing to verify (§2.2).
 */
import { createHash, type X509Certificate } from 'node:crypto'
import type { TlsaData } from '../../../protocols/dns/packet.ts'
import type { TlsEvidence } from '../../../protocols/smtp/tls-evidence.ts'

const DANE_TA = 2
const DANE_EE = 3

/** The records that can be matched. */
export function usableRecords(records: readonly TlsaData[]): TlsaData[] {
  return records.filter(
    ({ usage, selector, matchingType }) =>
      (usage === DANE_TA || usage === DANE_EE) && selector <= 1 && matchingType <= 2,
  )
}

/** Null: the evidence matches one of the records; else why not. `now` in Unix milliseconds. */
export function judgeByTlsa(records: readonly TlsaData[], evidence: TlsEvidence, now: number): string | null {
  const [leaf] = evidence.chain
  if (!leaf) return 'the server sent no certificate'
  // Neither names nor dates matter for an end entity that DNS itself names (§3.1.1).
  if (records.some((record) => record.usage === DANE_EE && matches(record, leaf))) return null
  const anchors = records.filter(({ usage }) => usage === DANE_TA)
  const depth = evidence.chain.findIndex((certificate) =>
    anchors.some((anchor) => matches(anchor, certificate)),
  )
  if (depth < 0) return 'no certificate fits the TLSA records'
  return evidence.nameError ?? chainFault(evidence.chain.slice(0, depth + 1), now)
}

function matches({ selector, matchingType, certificate: wanted }: TlsaData, found: X509Certificate): boolean {
  const bytes = selector === 0 ? found.raw : found.publicKey.export({ type: 'spki', format: 'der' })
  if (matchingType === 0) return bytes.equals(wanted)
  return createHash(matchingType === 1 ? 'sha256' : 'sha512')
    .update(bytes)
    .digest()
    .equals(wanted)
}

/** Each certificate signed by the next one, up to the trust anchor, and all of them valid now. */
function chainFault(chain: readonly X509Certificate[], now: number): string | null {
  for (const [index, certificate] of chain.entries()) {
    if (now < Date.parse(certificate.validFrom) || now > Date.parse(certificate.validTo))
      return 'a certificate is not valid at this time'
    const issuer = chain[index + 1]
    if (issuer && !(certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)))
      return 'the certificates do not sign each other'
  }
  return null
}
