/** Where receivers send reports about a domain: addresses at the domain itself, so no other zone has to allow it. */

export const DMARC_REPORTS_LOCAL = 'dmarc-reports'
export const TLS_REPORTS_LOCAL = 'tls-reports'

/** RFC 9989 §4.7; for a domain whose mail comes here. */
export const dmarcAdvice = (domain: string) => `v=DMARC1; p=none; rua=mailto:${DMARC_REPORTS_LOCAL}@${domain}`

/** Where TLS reports about a domain may be posted, below the service's public address. */
export const TLS_REPORTS_PATH = '/sendwright/v1/tls-reports'

/** RFC 8460 §3, at `_smtp._tls.<domain>`: by mail, and over HTTPS where the service has it. */
export function tlsReportAdvice(domain: string, publicUrl: string): string {
  const posted = publicUrl.startsWith('https:') ? `,${publicUrl}${TLS_REPORTS_PATH}/${domain}` : ''
  return `v=TLSRPTv1; rua=mailto:${TLS_REPORTS_LOCAL}@${domain}${posted}`
}
