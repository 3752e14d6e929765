import { type ApiClient, errorText, pathPart } from '../api-client.ts'
import type { DomainEntry } from '../entry.ts'
import {
  changed,
  existing,
  made,
  oneByOne,
  type Result,
  refused,
  skippedItems,
  type Writer,
} from './result.ts'

/** More selectors than any service publishes for a domain. */
const SELECTORS_TRIED_MAX = 100

interface DomainWriter {
  write: Writer<DomainEntry>
  has(name: string): Promise<boolean>
  /** Zone-file text of the domains made since the last call. */
  takeZones(): string[]
}

export function createDomainWriter(client: ApiClient, isDryRun: boolean): DomainWriter {
  let known: Promise<Set<string>> | null = null
  let zones: string[] = []

  async function loadNames(): Promise<Set<string>> {
    const names = new Set<string>()
    for await (const { name } of skippedItems<{ name: string }>(client, '/v4/domains'))
      names.add(name.toLowerCase())
    return names
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
    write: oneByOne(async (entry) => {
      const all = await names()
      if (all.has(entry.name)) return existing
      const result = isDryRun ? made : await makeDomain(entry)
      if (result.outcome !== 'refused') all.add(entry.name)
      return result
    }),
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
