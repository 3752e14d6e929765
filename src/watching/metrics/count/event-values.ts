/** The values by which an event is counted (metrics-logs.md section 2). */
import { providerOfDomain } from '../../../mail/deliver/shaping/provider-names.ts'
import { type Payload, within } from './counters.ts'
import type { FigureValues } from './splits.ts'

/** All but the tags, of which an event has several. */
export type PlainValues = Omit<FigureValues, 'tag'>

/** Bots as section 2 names them; the empty name is a person. */
const BOTS: ReadonlyMap<unknown, string> = new Map([
  ['apple', 'Apple'],
  ['gmail', 'Gmail'],
  ['generic', 'Generic'],
])
const DEVICES: ReadonlySet<unknown> = new Set(['desktop', 'mobile', 'tablet', 'other'])

/** `payload`: null for a plain event, which was not attempted yet. */
export function valuesOfEvent(event: string, recipient: string | null, payload: Payload | null): PlainValues {
  const domain = recipient === null ? '' : recipient.slice(recipient.lastIndexOf('@') + 1).toLowerCase()
  // Accepted mail has no address yet.
  const envelope = payload === null || event === 'accepted' ? {} : within(payload, 'envelope')
  return {
    recipient_domain: domain,
    provider: textOf(payload?.['recipient-provider']) || providerOfDomain(domain),
    ip: textOf(envelope['sending-ip']).toLowerCase(),
    pool: textOf(envelope['i-ip-pool-id']),
    ...visitValues(event, payload),
  }
}

/** Openings and clicks have these, all other events are of nobody (section 2). */
function visitValues(
  event: string,
  payload: Payload | null,
): Pick<FigureValues, 'country' | 'device' | 'bot'> {
  if (payload === null || (event !== 'opened' && event !== 'clicked'))
    return { country: '', device: '', bot: '' }
  const client = within(payload, 'client-info')
  const country = textOf(within(payload, 'geolocation')['country']).toUpperCase()
  const device = client['device-type']
  return {
    country: /^[A-Z]{2}$/.test(country) ? country : '',
    device: DEVICES.has(device) ? (device as string) : '',
    bot: BOTS.get(client['bot']) ?? '',
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
