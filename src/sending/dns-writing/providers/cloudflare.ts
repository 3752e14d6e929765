/** Cloudflare: records with ids; one request makes all changes of a zone in one transaction. */
import { quotedText, type WritableType } from '../../../protocols/dns/presentation.ts'
import { type DnsProvider, ProviderFault, type SetChange } from '../provider.ts'
import { type Api, listIn, longestZone, numberIn, RECORDS_PER_NAME_MAX, setsOf, textIn } from './api.ts'

/** The life that means "automatic". */
const AUTOMATIC = 1

export const cloudflareWords = (body: unknown) =>
  listIn(body, 'errors')
    .map((error) => textIn(error, 'message'))
    .join('; ')

export function createCloudflare(api: Api): DnsProvider {
  return {
    zoneOf: longestZone(async (name) => {
      const [found] = listIn(await api('GET', `/zones?name=${encodeURIComponent(name)}`), 'result')
      return found ? { name, id: textIn(found, 'id'), ttlMin: null } : null
    }),
    async read(zone, name) {
      const query = `name=${encodeURIComponent(name)}&per_page=${RECORDS_PER_NAME_MAX}`
      const records = listIn(await api('GET', `/zones/${zone.id}/dns_records?${query}`), 'result')
      return setsOf(
        name,
        records
          .filter((record) => textIn(record, 'name').toLowerCase() === name)
          .map((record) => ({
            type: textIn(record, 'type'),
            data: dataOf(record),
            handle: textIn(record, 'id'),
            ttlSeconds: numberIn(record, 'ttl'),
          })),
      )
    },
    async write(zone, changes) {
      const batch = changes.map(({ change, current }) => {
        const ids = change.remove.map((value) => {
          const id = current?.handles[current.values.indexOf(value)]
          if (id === undefined) throw new ProviderFault('changed', 'Cloudflare no longer has a record.')
          return { id }
        })
        const records = change.add.map((value) => recordOf(change, value))
        // A record that is changed in place keeps its comment and its tags.
        const pairs = Math.min(ids.length, records.length)
        return {
          deletes: ids.slice(pairs),
          patches: ids.slice(0, pairs).map((id, at) => ({ ...id, ...records[at] })),
          posts: records.slice(pairs),
        }
      })
      await api('POST', `/zones/${zone.id}/dns_records/batch`, {
        deletes: batch.flatMap(({ deletes }) => deletes),
        patches: batch.flatMap(({ patches }) => patches),
        posts: batch.flatMap(({ posts }) => posts),
      })
    },
  }
}

/** Older records of texts have no quotes. */
function dataOf(record: Record<string, unknown>): string {
  const [type, content] = [textIn(record, 'type'), textIn(record, 'content')]
  if (type === 'MX') return `${textIn(record, 'priority')} ${content}`
  return type === 'TXT' && !content.startsWith('"') ? quotedText(content) : content
}

function recordOf({ name, type, ttlSeconds }: SetChange, value: string) {
  const [priority = '', host = ''] = value.split(' ')
  const content: Partial<Record<WritableType, object>> = {
    MX: { content: host, priority: Number(priority) },
    // What goes through Cloudflare's own hosts is not what was asked for.
    ...Object.fromEntries(['A', 'AAAA', 'CNAME'].map((one) => [one, { content: value, proxied: false }])),
  }
  return { name, type, ttl: ttlSeconds ?? AUTOMATIC, ...(content[type] ?? { content: value }) }
}
