/** Whom a DMARC record asks to send aggregate reports to, with the sizes that they take (RFC 9990 §3.5 and §4). Pure. */

export interface AggregateReceiver {
  /** As in the record. */
  uri: string
  /** The address, decoded. */
  address: string
  /** Host of the address, in lower case. */
  host: string
  /** Largest mail that the receiver takes (the obsolete `!10m` of RFC 7489 §6.2); null: not said. */
  bytesMax: number | null
}

/** Receivers of one report: anybody can publish any. */
const RECEIVERS_MAX = 3
const URI_LENGTH_MAX = 500
const UNITS: Readonly<Record<string, number>> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 }

const isRecord = (text: string) => /^v[ \t]*=[ \t]*DMARC1[ \t]*(?:;|$)/i.test(text)

/** Addresses of `rua` in their order, the first three of them; other URIs are left out (RFC 9990 §3.5). */
export const aggregateReceivers = (record: string): AggregateReceiver[] => firstReceivers(receiversIn(record))

/** All that the record names, however many. */
export const receiversIn = (record: string): AggregateReceiver[] =>
  (ruaOf(record)?.split(',') ?? []).flatMap((uri) => receiverOf(uri.trim()) ?? [])

/** The first three, each address once. */
export const firstReceivers = (receivers: readonly AggregateReceiver[]): AggregateReceiver[] =>
  [...new Map(receivers.map((one) => [one.address, one])).values()].slice(0, RECEIVERS_MAX)

/** Whether the record asks anybody to send reports. */
export const asksForReports = (record: string): boolean => aggregateReceivers(record).length > 0

/**
 * Whom to send to instead of a receiver in another domain, by the TXT records at `confirmingName` (RFC 9990 §4): the receiver
 * itself, the first three that the records name at the same host, or nobody.
 */
export function confirmedReceivers(
  receiver: AggregateReceiver,
  records: readonly string[],
): AggregateReceiver[] {
  const own = records.filter(isRecord)
  if (own.length === 0) return []
  if (own.every((text) => ruaOf(text) === undefined)) return [receiver]
  const named = own.flatMap(aggregateReceivers)
  // "MUST NOT generate a report to either the original or the override URI".
  return named.every(({ host }) => host === receiver.host) ? firstReceivers(named) : []
}

/** Null: too long for DNS. */
export function confirmingName(policyDomain: string, host: string): string | null {
  const name = `${policyDomain}._report._dmarc.${host}`
  return name.length <= 253 ? name : null
}

function receiverOf(uri: string): AggregateReceiver | null {
  const [, path, size, unit] = /^mailto:([^!?]{1,320})(?:\?[^!]*)?(?:!(\d{1,12})([kmgt]?))?$/i.exec(uri) ?? []
  if (path === undefined || uri.length > URI_LENGTH_MAX || /[^\x21-\x7e]/.test(uri)) return null
  const address = decoded(path)
  const host = /^[^\s@<>]+@([a-z0-9-]+(?:\.[a-z0-9-]+)+)$/i.exec(address)?.[1]
  if (host === undefined) return null
  const bytesMax = size === undefined ? null : Number(size) * (UNITS[(unit ?? '').toLowerCase()] ?? 1)
  return { uri, address, host: host.toLowerCase(), bytesMax }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}

/** Values are as written: sizes are no part of the URIs that `readDmarc` has. */
const ruaOf = (record: string) => /(?:^|;)[ \t]*rua[ \t]*=([^;]*)/i.exec(record)?.[1]
