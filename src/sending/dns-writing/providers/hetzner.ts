/**
 * Hetzner Cloud DNS: record sets, each changed by a request of its own. A change is an action that runs on after the answer;
 * the next one waits for it.
 */
import { pause } from '../../../base/flow/pause.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { isPlainObject } from '../../../base/values.ts'
import { dottedData } from '../../../protocols/dns/presentation.ts'
import { type DnsProvider, ProviderFault, type ToWrite, type Zone } from '../provider.ts'
import { type Api, listIn, longestZone, nameInZone, numberIn, setsOf, textIn } from './api.ts'

const PER_PAGE_MAX = 50
const ACTION_LOOKS_MAX = 20
/** Longer each time: 20 seconds in all. */
const ACTION_LOOK_MS = 100

export const hetznerWords = (body: unknown): string => {
  const error = isPlainObject(body) && isPlainObject(body['error']) ? body['error'] : {}
  return textIn(error, 'message')
}

/** Another action on the zone still runs. */
export const isHetznerBusy = (status: number): boolean => status === 423

export function createHetzner(api: Api, clock: Clock, signal: AbortSignal): DnsProvider {
  const setPath = (zone: Zone, name: string, type: string) =>
    `/zones/${zone.id}/rrsets/${encodeURIComponent(nameInZone(name, zone.name, '@'))}/${type}`

  async function finished(answer: Record<string, unknown>): Promise<void> {
    let action = isPlainObject(answer['action']) ? answer['action'] : {}
    for (let looks = 0; textIn(action, 'status') === 'running' && looks < ACTION_LOOKS_MAX; looks++) {
      await pause(clock, ACTION_LOOK_MS * (looks + 1), signal)
      const next = await api('GET', `/actions/${textIn(action, 'id')}`)
      action = isPlainObject(next['action']) ? next['action'] : {}
    }
    if (textIn(action, 'status') !== 'error') return
    throw new ProviderFault('refused', `Hetzner could not make the change (${hetznerWords(action)}).`)
  }

  function writeSet(zone: Zone, { change, current }: ToWrite): Promise<Record<string, unknown>> {
    const { name, type, ttlSeconds: ttl } = change
    const records = [
      ...(current?.handles ?? [])
        .filter((_, at) => !change.remove.includes(current?.values[at] ?? ''))
        .map((record) => JSON.parse(record) as object),
      ...change.add.map((value) => ({ value: dottedData(type, value) })),
    ]
    if (records.length === 0) return api('DELETE', setPath(zone, name, type))
    if (current !== undefined)
      return api('POST', `${setPath(zone, name, type)}/actions/set_records`, { records })
    const made = { name: nameInZone(name, zone.name, '@'), type, records, ...(ttl !== null && { ttl }) }
    return api('POST', `/zones/${zone.id}/rrsets`, made)
  }

  return {
    zoneOf: longestZone(async (name) => {
      const [found] = listIn(await api('GET', `/zones?name=${encodeURIComponent(name)}`), 'zones')
      return found ? { name, id: textIn(found, 'id'), ttlMin: null } : null
    }),
    async read(zone, name) {
      const own = nameInZone(name, zone.name, '@')
      const query = `name=${encodeURIComponent(own)}&per_page=${PER_PAGE_MAX}`
      const sets = listIn(await api('GET', `/zones/${zone.id}/rrsets?${query}`), 'rrsets')
      return setsOf(
        name,
        sets
          .filter((set) => textIn(set, 'name') === own)
          .flatMap((set) => {
            const isProtected = isPlainObject(set['protection']) && set['protection']['change'] === true
            return listIn(set, 'records').map((record) => ({
              type: textIn(set, 'type'),
              data: textIn(record, 'value'),
              handle: JSON.stringify({ value: record['value'], comment: record['comment'] }),
              ttlSeconds: numberIn(set, 'ttl'),
              lock: isProtected ? 'it is protected from changes' : null,
            }))
          }),
      )
    },
    async write(zone, changes) {
      for (const each of changes) await finished(await writeSet(zone, each))
    },
  }
}
