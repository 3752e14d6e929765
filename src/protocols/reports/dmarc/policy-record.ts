/** The parts of a DMARC record that reports are about, and whom it asks to send them to (RFC 9989 §4.7, RFC 9990 §3.5). */

const POLICIES = ['none', 'quarantine', 'reject'] as const
export type DmarcPolicy = (typeof POLICIES)[number]

export interface PublishedPolicy {
  p: DmarcPolicy
  sp: DmarcPolicy
  np: DmarcPolicy
  adkim: 'r' | 's'
  aspf: 'r' | 's'
  fo: string
  testing: boolean
}

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

/** With defaults for what the record does not say, or not rightly. */
export function publishedPolicy(record: string): PublishedPolicy {
  const tags = tagsOf(record)
  const word = (tag: string) => tags.get(tag)?.toLowerCase()
  const policyOf = (tag: string) => POLICIES.find((policy) => policy === word(tag))
  const p = policyOf('p') ?? 'none'
  const sp = policyOf('sp') ?? p
  const fo = word('fo') ?? ''
  return {
    ...{ p, sp, np: policyOf('np') ?? sp },
    adkim: word('adkim') === 's' ? 's' : 'r',
    aspf: word('aspf') === 's' ? 's' : 'r',
    fo: /^[01ds](?::[01ds]){0,3}$/.test(fo) ? fo : '0',
    testing: word('t') === 'y',
  }
}

/** Addresses of `rua` in their order, the first three of them; other URIs are left out (RFC 9990 §3.5). */
export function aggregateReceivers(record: string): AggregateReceiver[] {
  const uris = tagsOf(record).get('rua')?.split(',') ?? []
  const receivers = uris.flatMap((uri) => receiverOf(uri.trim()) ?? [])
  return [...new Map(receivers.map((one) => [one.address, one])).values()].slice(0, RECEIVERS_MAX)
}

/** Whether the record asks anybody to send reports. */
export const asksForReports = (record: string): boolean => aggregateReceivers(record).length > 0

/**
 * Whom to send to instead of a receiver in another domain, by the TXT records at `confirmingName` (RFC 9990 §4): the receiver
 * itself, those that the records name at the same host, or nobody.
 */
export function confirmedReceivers(
  receiver: AggregateReceiver,
  records: readonly string[],
): AggregateReceiver[] {
  const own = records.filter(isRecord)
  if (own.length === 0) return []
  const named = own.filter((text) => tagsOf(text).has('rua')).flatMap(aggregateReceivers)
  if (!own.some((text) => tagsOf(text).has('rua'))) return [receiver]
  // "MUST NOT generate a report to either the original or the override URI".
  return named.every(({ host }) => host === receiver.host) ? named : []
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

/** `a=b; c = d`; of equal tags the first counts. Values keep their blanks inside. */
function tagsOf(record: string): Map<string, string> {
  const tags = new Map<string, string>()
  for (const part of record.split(';')) {
    const at = part.indexOf('=')
    const tag = part.slice(0, Math.max(0, at)).trim().toLowerCase()
    if (tag !== '' && !tags.has(tag)) tags.set(tag, part.slice(at + 1).trim())
  }
  return tags
}
