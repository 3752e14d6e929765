import { Lazy } from '../../../base/flow/cache.ts'
import { type ApiClient, ApiUnavailable, errorText } from '../api-client.ts'
import type { Entry } from '../entry.ts'

export type Outcome = 'made' | 'existing' | 'changed' | 'refused'

/** What became of an entry. `reason`: of a change or a refusal. */
export interface Result {
  outcome: Outcome
  reason: string
}

export const made: Result = { outcome: 'made', reason: '' }
export const existing: Result = { outcome: 'existing', reason: '' }
export const changed = (reason: string): Result => ({ outcome: 'changed', reason })
export const refused = (reason: string): Result => ({ outcome: 'refused', reason })

export interface WriterParts {
  client: ApiClient
  /** Nothing is changed; the results are those that would be. */
  isDryRun: boolean
  /** Domains of the service, and those that this run has made or would make; in lower case. */
  hasDomain(name: string): Promise<boolean>
}

/** Resolves to one result for each entry, in their order. */
export type Writer<E extends Entry> = (entries: readonly E[]) => Promise<Result[]>

export const oneByOne =
  <E extends Entry>(write: (entry: E) => Promise<Result>): Writer<E> =>
  async (entries) => {
    const results: Result[] = []
    for (const entry of entries) results.push(await write(entry))
    return results
  }

/** A service whose list does not end is no service. */
const PAGES_MAX = 100_000

/** @throws ApiUnavailable for anything but 200 */
export async function readOrFail(client: ApiClient, path: string): Promise<Record<string, unknown>> {
  const answer = await client.call('GET', path)
  if (answer.status === 200 && answer.body) return answer.body
  throw new ApiUnavailable(`${client.origin} refuses GET ${path}: ${answer.status} ${errorText(answer)}`)
}

const ITEMS_PER_PAGE = 1_000

/** All items of a list whose pages are asked for by the number of items before them. @throws ApiUnavailable */
export async function* skippedItems<T>(client: ApiClient, path: string): AsyncGenerator<T> {
  for (let skip = 0; ; ) {
    const { items } = await readOrFail(client, `${path}?limit=${ITEMS_PER_PAGE}&skip=${skip}`)
    const found = items as T[]
    if (found.length === 0) return
    yield* found
    skip += found.length
  }
}

/** All items of a list with linked pages; of the links only the query is used. @throws ApiUnavailable */
export async function* linkedItems(
  client: ApiClient,
  path: string,
  limit: number,
): AsyncGenerator<Record<string, unknown>> {
  let query = `?limit=${limit}`
  for (let page = 0; page < PAGES_MAX; page++) {
    const { items, paging } = await readOrFail(client, path + query)
    if (!Array.isArray(items) || items.length === 0) return
    yield* items as Record<string, unknown>[]
    query = new URL(String((paging as Record<string, unknown>)['next'])).search
  }
}

/** The keys of what the service has; read once. */
export const knownKeys = <T>(read: () => AsyncIterable<T>, keyOf: (item: T) => string) =>
  new Lazy(async () => {
    const keys = new Set<string>()
    for await (const item of read()) keys.add(keyOf(item))
    return keys
  })
