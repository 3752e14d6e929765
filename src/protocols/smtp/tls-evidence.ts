/**
 * What a TLS handshake proved about the peer. OpenSSL verifies the certificate's chain, this file its name; neither ends
 * the handshake: with `verify` off any certificate is accepted, and DANE has its own rules.
 */
import type { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type { TLSSocket } from 'node:tls'

export interface TlsEvidence {
  /** The peer's certificates as sent, its own first. */
  chain: X509Certificate[]
  /** Why the chain is not trusted (no trusted root, expired ...); null when it is. */
  chainError: string | null
  /** Why the certificate is not for the name we want; null when it is. */
  nameError: string | null
}

/** Longer than any public CA's chains; bounds the loop. */
const CHAIN_MAX = 10

export function gatherEvidence(socket: TLSSocket, serverName: string): TlsEvidence {
  const chain: X509Certificate[] = []
  let certificate = socket.getPeerX509Certificate()
  while (certificate !== undefined && chain.length < CHAIN_MAX) {
    chain.push(certificate)
    certificate = certificate.issuerCertificate
  }
  // The declared type says Error; what is stored is OpenSSL's code, such as CERT_HAS_EXPIRED.
  const chainError = socket.authorizationError as unknown
  return {
    chain,
    chainError: chainError === null || chainError === undefined ? null : String(chainError),
    nameError: checkName(chain[0], serverName),
  }
}

/** PKIX: both must hold (RFC 6125, 8461 §4.2). */
export function pkixError(evidence: TlsEvidence): string | null {
  return evidence.chainError ?? evidence.nameError
}

function checkName(certificate: X509Certificate | undefined, serverName: string): string | null {
  if (certificate === undefined) return 'the server sent no certificate'
  const name = serverName.replace(/\.$/, '')
  // Only subject alternative names count; a wildcard stands for one whole label (RFC 6125 §6.4.3-4).
  const match = isIP(name)
    ? certificate.checkIP(name)
    : certificate.checkHost(name, { subject: 'never', partialWildcards: false })
  return match === undefined ? `the certificate is not for "${name}"` : null
}
