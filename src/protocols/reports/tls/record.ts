/** The record that asks for TLS reports, at `_smtp._tls` below a domain (RFC 8460 §3). */

/** Receivers of one report. */
const RECEIVERS_MAX = 3
const URI_LENGTH_MAX = 1_000

export interface ReportReceiver {
  kind: 'mailto' | 'https'
  /** As in the record, decoded. */
  uri: string
  /** The address, or the URL. */
  target: string
}

/**
 * The receivers that the TXT records name; none where there is no record, or more than one (RFC 8460 §3: then none counts).
 * Anybody can publish any receiver, so that their number is bounded.
 */
export function reportReceivers(records: readonly string[]): ReportReceiver[] {
  const own = records.filter((text) => /^v=TLSRPTv1[ \t]*(?:;|$)/.test(text))
  const [record] = own
  if (record === undefined || own.length > 1) return []
  const fields = record.split(';').map((field) => field.trim())
  const rua = fields.find((field) => /^rua[ \t]*=/i.test(field))
  const uris = rua === undefined ? [] : rua.slice(rua.indexOf('=') + 1).split(',')
  const receivers = uris.flatMap((uri) => receiverOf(uri.trim()) ?? [])
  return [...new Map(receivers.map((receiver) => [receiver.uri, receiver])).values()].slice(0, RECEIVERS_MAX)
}

/** Null for any other scheme, and for what is no URI. */
function receiverOf(uri: string): ReportReceiver | null {
  if (uri.length > URI_LENGTH_MAX || /[^\x21-\x7e]/.test(uri)) return null
  if (/^https:\/\//i.test(uri)) return URL.canParse(uri) ? { kind: 'https', uri, target: uri } : null
  if (!/^mailto:/i.test(uri)) return null
  const [path = ''] = uri.slice('mailto:'.length).split('?', 1)
  try {
    return { kind: 'mailto', uri, target: decodeURIComponent(path) }
  } catch {
    return null
  }
}
