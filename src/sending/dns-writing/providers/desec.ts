/** deSEC: record sets; one request changes all sets of a zone, or none. */

import { isPlainObject } from '../../../base/values.ts'
import { normalizeName } from '../../../protocols/dns/names.ts'
import { dottedData } from '../../../protocols/dns/presentation.ts'
import type { DnsProvider, ToWrite } from '../provider.ts'
import { type Api, listIn, nameInZone, numberIn, setsOf, textIn } from './api.ts'

const TTL_SECONDS = 3600

/** Errors are texts by field, in a list for several sets. */
export function desecWords(body: unknown): string {
  if (typeof body === 'string') return body
  if (Array.isArray(body)) return [...new Set(body.map(desecWords))].filter(Boolean).join(' ')
  return isPlainObject(body) ? Object.values(body).map(desecWords).join(' ') : ''
}

export function createDesec(api: Api): DnsProvider {
  return {
    async zoneOf(name) {
      const [found] = listIn(await api('GET', `/domains/?owns_qname=${encodeURIComponent(name)}`))
      const zone = found && normalizeName(textIn(found, 'name'))
      return zone ? { name: zone, id: zone, ttlMin: numberIn(found, 'minimum_ttl') } : null
    },
    async read(zone, name) {
      const subname = encodeURIComponent(nameInZone(name, zone.name, ''))
      const sets = listIn(await api('GET', `/domains/${zone.id}/rrsets/?subname=${subname}`))
      return setsOf(
        name,
        sets.flatMap((set) => {
          const records = Array.isArray(set['records']) ? set['records'] : []
          const type = textIn(set, 'type')
          const ttlSeconds = numberIn(set, 'ttl')
          return records.map(String).map((data) => ({ type, data, handle: data, ttlSeconds }))
        }),
      )
    },
    async write(zone, changes) {
      const sets = changes.map(({ change, current }) => ({
        subname: nameInZone(change.name, zone.name, ''),
        type: change.type,
        ttl: change.ttlSeconds ?? TTL_SECONDS,
        records: textsAfter({ change, current }),
      }))
      // A set without records is removed.
      await api('PATCH', `/domains/${zone.id}/rrsets/`, sets)
    },
  }
}

/** The texts of the whole set after the change; those that stay are written as they were read. */
export function textsAfter({ change, current }: ToWrite): string[] {
  const stay = (current?.handles ?? []).filter((_, at) => !change.remove.includes(current?.values[at] ?? ''))
  return [...stay, ...change.add.map((value) => dottedData(change.type, value))]
}
