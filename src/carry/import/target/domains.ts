import { type ApiClient, errorText, pathPart } from '../api-client.ts'
import type { DomainEntry } from '../entry.ts'
import { readOrFail } from './pages.ts'
import { changed, existing, made, type Result, refused } from './result.ts'

const DOMAINS_PER_PAGE = 1_000
/** More selectors than any service publishes for a domain. */
const SELECTORS_TRIED_MAX = 100

export interface DomainWriter {
  write(entries: readonly DomainEntry[]): Promise<Result[]>
  has(name: string): Promise<boolean>
  /** Zone-file text of the domains made since the last call. */
  takeZones(): string[]
}

export function createDomainWriter(client: ApiClient, isDryRun: boolean): DomainWriter {
  let known: Promise<Set<string>> | null = null
  let zones: string[] = []

  async function loadNames(): Promise<Set<string>> {
    const names = new Set<string>()
    for (let skip = 0; ; ) {
      const { items } = await readOrFail(client, `/v4/domains?limit=${DOMAINS_PER_PAGE}&skip=${skip}`)
      const found = items as { name: string }[]
      if (found.length === 0) return names
      for (const { name } of found) names.add(name.toLowerCase())
      skip += found.length
    }
  }

  const names = () => {
    known ??= loadNames()
    return known
  }

  async function makeDomain(entry: DomainEntry): Promise<Result> {
    const { name, settings, selectors, tracking } = entry
    const form = { name, dkim_selector: freeSelector(selectors) }
    const answer = await client.call('POST', '/v4/domains', { form })
    if (answer.status !== 200) return refused(errorText(answer))
    const path = pathPart(name)
    const faults: string[] = []
    const put = async (where: string, fields: Record<string, string>) => {
      const done = await client.call('PUT', where, { form: fields })
      if (done.status !== 200) faults.push(`${Object.keys(fields).join(', ')} not taken: ${errorText(done)}`)
    }
    for (const [field, value] of Object.entries(settings))
      await put(`/v4/domains/${path}`, { [field]: value })
    for (const [kind, fields] of Object.entries(tracking))
      await put(`/v3/domains/${path}/tracking/${kind}`, fields)
    const zone = await client.call('GET', `/sendwright/v1/domains/${path}/zone`)
    if (zone.status === 200) zones.push(zone.text)
    return faults.length === 0 ? made : changed(faults.join('; '))
  }

  return {
    async write(entries) {
      const results: Result[] = []
      for (const entry of entries) {
        const all = await names()
        if (all.has(entry.name)) {
          results.push(existing)
          continue
        }
        const result = isDryRun ? made : await makeDomain(entry)
        if (result.outcome !== 'refused') all.add(entry.name)
        results.push(result)
      }
      return results
    },
    has: async (name) => (await names()).has(name.toLowerCase()),
    takeZones() {
      const taken = zones
      zones = []
      return taken
    },
  }
}

/** A selector that the former service does not use: both keys are published while mail may leave from either. */
function freeSelector(selectors: readonly string[]): string {
  const used = new Set(selectors.map((selector) => selector.toLowerCase()))
  const numbers = Array.from({ length: SELECTORS_TRIED_MAX }, (_, index) => `k${index + 1}`)
  return numbers.find((selector) => !used.has(selector)) ?? 'sendwright'
}
