/** Pages of the events of one domain (events.md): filters, links, and the walk between them (walk.ts). */
import type { Of } from '../../../base/shape.ts'
import type { Store } from '../../../platform/store/store.ts'
import type { EVENT } from '../shapes.ts'
import { settledKeys, sinceKeys } from './event-keys.ts'
import { type Filter, parseFilter, passes } from './filter.ts'
import type { CommitPosition, Gap, PageRequest } from './page-request.ts'
import { planOf } from './plan.ts'
import {
  createSearches,
  inOrder,
  keyPage,
  readPage,
  settledPosition,
  type Walk,
  type WalkedPage,
} from './walk.ts'

export interface Page {
  items: Of<typeof EVENT>[]
  /** Requests of the four links. */
  links: Record<'first' | 'last' | 'next' | 'previous', PageRequest>
}

export type EventReader = ReturnType<typeof createEventReader>

/** Reads after which a search counts as long. */
const SHORT_SEARCH_READS = 4
/** `retentionMs`: older events are not shown, even if they are not deleted yet. */
export function createEventReader(store: Store, retentionMs: number) {
  const searching = createSearches(SHORT_SEARCH_READS)
  return {
    /** @throws the signal's reason when the client has disconnected */
    async page(request: PageRequest, nowMs: number, signal?: AbortSignal): Promise<Page> {
      const lowestUs = Math.floor((nowMs - retentionMs) * 1000)
      const settled = await settledPosition(store)
      return searching(signal, async (pause) => {
        const walk = walkOf(store, request, lowestUs, settled, pause)
        return pageOf(request, walk.start, await readPage(store, walk))
      })
    },
    /** Whether the account has any event under this domain name. */
    async hasEvents(accountId: string, domainName: string): Promise<boolean> {
      const row = await store.db
        .selectFrom('event_keys')
        .select('seq')
        .where('account_id', '=', accountId)
        .where('domain_name', '=', domainName)
        .limit(1)
        .executeTakeFirst()
      return row !== undefined
    },
  }
}

function walkOf(
  store: Store,
  request: PageRequest,
  lowestUs: number,
  settled: CommitPosition,
  pause: Walk['pause'],
): Walk {
  const { accountId, domainName, up } = request
  const filters = filtersOf(request)
  const start = request.start ?? settled
  const search = {
    scope: { accountIds: [accountId], domainNames: [domainName] },
    request,
    plan: planOf(filters, request),
    lowUs: Math.max(request.lowUs ?? 0, lowestUs),
    highUs: request.highUs ?? Number.MAX_SAFE_INTEGER,
    start,
  }
  const isEmpty = search.plan.branches.length === 0 || search.lowUs > search.highUs
  return {
    request,
    start,
    settled,
    pause,
    select: (rows) => rows.filter(({ row, payload }) => passes(filters, row.event, payload)),
    async keys(area, gap, size) {
      if (isEmpty) return { keys: [], rest: null, read: 0 }
      const keys =
        area === 'since'
          ? await sinceKeys(store, { ...search, domainName, settled, gap, size })
          : await settledKeys(store, search, gap, size)
      return keyPage(keys, area, up, size)
    },
  }
}

function filtersOf(request: PageRequest): Filter[] {
  return request.filters.map(([name, text]) => {
    const filter = parseFilter(name, text)
    if (!filter) throw new Error(`A page request holds a bad filter: ${name}`)
    return filter
  })
}

const pageOf = (request: PageRequest, start: CommitPosition, { found, low, high }: WalkedPage): Page => ({
  items: inOrder(found, request.ascending).map(({ payload }) => payload),
  links: linksOf(request, start, low, high),
})

function linksOf(
  request: PageRequest,
  start: CommitPosition,
  low: Gap | null,
  high: Gap | null,
): Page['links'] {
  const { ascending } = request
  const above: PageRequest = { ...request, gap: high, up: true, start: ascending ? start : null }
  const below: PageRequest = { ...request, gap: low, up: false, start: ascending ? start : null }
  const ends = { ...request, gap: null, start: null }
  return {
    first: { ...ends, up: ascending },
    last: { ...ends, up: !ascending },
    next: ascending ? above : below,
    previous: ascending ? below : above,
  }
}
