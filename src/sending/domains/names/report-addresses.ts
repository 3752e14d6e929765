/** Where receivers send reports about a domain: addresses at the domain itself, so no other zone has to allow it. */

export const DMARC_REPORTS_LOCAL = 'dmarc-reports'
export const TLS_REPORTS_LOCAL = 'tls-reports'

/** RFC 9989 §4.7; for a domain whose mail comes here. */
export const dmarcAdvice = (domain: string) => `v=DMARC1; p=none; rua=mailto:${DMARC_REPORTS_LOCAL}@${domain}`

/** RFC 8460 §3, at `_smtp._tls.<domain>`. */
export const tlsReportAdvice = (domain: string) => `v=TLSRPTv1; rua=mailto:${TLS_REPORTS_LOCAL}@${domain}`
