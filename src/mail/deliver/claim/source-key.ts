/**
 * The source key of a delivery: which set of addresses it leaves from (sending/ips/source-addresses.ts), and after a `|` what
 * it says of relays (sending/relays/choice.ts). Deliveries with the same key, sending domain and destination use one lane.
 *
 * - `#2`: of relays nothing
 * - `#2|=ses`: the message asked for the relay
 * - `#2|~7`: its share of relays with weights, of RELAY_SHARES
 * - `#2|~7!ses,m365`: and those relays have failed it lately
 */

export interface RelayRequest {
  /** The relay that the message asked for. */
  asked: string | null
  /** From 0 to RELAY_SHARES - 1. */
  share: number | null
  /** Relays that are not to be used. */
  without: readonly string[]
}

/** Weights count in twentieths: each share is a group of its own, which costs a search of an index when it is due. */
export const RELAY_SHARES = 20

/** Begins what a key says of relays; most say nothing. */
export const RELAY_MARK = '|'

const NO_REQUEST: RelayRequest = { asked: null, share: null, without: [] }
const RELAY_PART = /^(?:=([^!]+)|~(\d+))?(?:!(.+))?$/

/** The part that names addresses. */
export function addressPart(key: string): string {
  const at = key.indexOf(RELAY_MARK)
  return at === -1 ? key : key.slice(0, at)
}

export function relayRequestOf(key: string): RelayRequest {
  const at = key.indexOf(RELAY_MARK)
  const match = at === -1 ? null : RELAY_PART.exec(key.slice(at + 1))
  if (match === null) return NO_REQUEST
  const [, asked = null, share, without] = match
  return { asked, share: share === undefined ? null : Number(share), without: without?.split(',') ?? [] }
}

/** The key with another part about relays. */
export function withRelayRequest(key: string, { asked, share, without }: RelayRequest): string {
  const wanted = asked === null ? (share === null ? '' : `~${share}`) : `=${asked}`
  const failed = without.length === 0 ? '' : `!${without.join(',')}`
  return wanted + failed === '' ? addressPart(key) : addressPart(key) + RELAY_MARK + wanted + failed
}
