import type { ApiClient } from '../api-client.ts'
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
