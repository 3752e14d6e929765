/** Inbox placement over HTTP (validation.md section 6). */

import { present } from '../../base/process/errors.ts'
import { list, message, type Of, object } from '../../base/shape.ts'
import { formatRfc3339, parseDate } from '../../base/time/dates.ts'
import { invalidFormat } from '../../base/values.ts'
import type { Core } from '../../core.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  choiceParam,
  flagParam,
  givenParam,
  type InputOf,
  limitParam,
  otherParam,
  parsedParam,
  textParam,
  wordParam,
} from '../../platform/http/request/inputs.ts'
import { type Paging, pageUrl } from '../../platform/http/request/paging.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { PlacementSeedRow, PlacementTestRow, SeedListRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import type { SeedListFields, SeedLists } from './lists.ts'
import { chosenSeeds, type Seeds } from './seeds.ts'
import {
  ATTRIBUTE,
  FILTERS_ANSWER,
  type GoneList,
  RESULT_ANSWER,
  RESULT_DELETED,
  RESULTS,
  type ResultView,
  SEED_LIST,
  SEED_LISTS,
  SEED_PROVIDER,
  type SeedListView,
  SHARING_ANSWER,
  TEST_MESSAGE,
  TEST_STARTED,
} from './shapes.ts'
import {
  findLists,
  findTest,
  findTests,
  type Listing,
  newestTestOf,
  removeTestStatements,
  seedsOf,
  sharedTest,
  sharingStatement,
} from './store.ts'
import { runTest, type TestParts } from './tests.ts'
import { listView, type ResultList, sharingView, testView } from './view.ts'

interface PlacementRouteParts extends TestParts, Pick<Core, 'store' | 'clock'> {
  seeds: Seeds
  lists: SeedLists
  /** The public address, without a final slash. */
  baseUrl: string
  /** The operator's, whose the mailboxes are. */
  firstAccountId: string
}

const api = operationsOf({ tag: 'Inbox placement', auth: { area: 'validation' } })
/** Newest distinct values of an attribute. */
const VALUES_MAX = 1_000

const LIST_FIELDS = {
  sending_domains: parsedParam('Domains that send to the list', domainsOf, { repeated: true }),
  name: textParam('Shown name'),
  seed_filter: givenParam('Addresses of seeds, separated by commas; empty: all'),
  provider_filter: givenParam('Providers of seeds, separated by commas; empty: all'),
}
/** An item carries up to 100 seeds, and a result a list besides. */
const PAGE_PARAMS = {
  sort: choiceParam('Only created_at', ['created_at']),
  offset: parsedParam(
    'Items to leave out',
    (params) => params.integer(params.text('offset') === undefined ? 'cursor' : 'offset', { min: 0 }),
    { type: 'integer', default: 0 },
  ),
  cursor: otherParam('The same as offset'),
  limit: limitParam(100, 100),
  ascending: flagParam('Oldest first', { default: false }),
  time_after: wordParam('RFC 3339, RFC 2822 or Unix seconds', timeOf),
  time_before: wordParam('As time_after', timeOf),
}

/** Filters by place: name and meaning. */
const FILTERS = {
  seedlists: { name: 'Name of the list', time_after: 'Created after', time_before: 'Created before' },
  results: {
    sender: 'Address of the author',
    subject: 'The whole subject',
    provider: 'Provider of a seed',
    target_email: 'Address of the seed list',
    time_after: 'Created after',
    time_before: 'Created before',
  },
} as const
type Place = keyof typeof FILTERS

export function placementRoutes(parts: PlacementRouteParts): Operation[] {
  return [
    ...listOperations(parts),
    ...resultOperations(parts),
    ...sharingOperations(parts),
    ...describing(parts, 'seedlists', ['name', 'target_email']),
    ...describing(parts, 'results', ['sender', 'subject', 'provider']),
  ]
}

function listOperations(parts: PlacementRouteParts): Operation[] {
  const { lists, store, seeds, baseUrl } = parts
  const path = '/v4/inbox/seedlists/{seed_list}'
  return [
    api.get('/v4/inbox/providers', {
      id: 'listSeedProviders',
      summary: 'List the providers that have seeds',
      answers: { 200: object('All providers', { items: list('Providers', SEED_PROVIDER) }) },
      handler: async () => ({ items: providersOf(seeds) }),
    }),
    api.post('/v4/inbox/seedlists', {
      id: 'createSeedList',
      summary: 'Create a seed list',
      params: { ...LIST_FIELDS, remote_id: textParam('Id in another system') },
      answers: { 200: SEED_LIST },
      async handler({ input, caller }) {
        const { remote_id: remoteId, ...fields } = input()
        return viewOf(parts, await lists.create(caller.accountId, { ...fieldsOf(fields), remoteId }))
      },
    }),
    api.get('/v4/inbox/seedlists', {
      id: 'listSeedLists',
      summary: 'List seed lists',
      params: { ...PAGE_PARAMS, name: textParam('Only lists of this name') },
      answers: { 200: SEED_LISTS },
      async handler({ input, params, caller }) {
        const { name, ...page } = input()
        const listing = listingOf(page)
        const { rows, total } = await findLists(store, caller.accountId, { ...listing, name })
        const items: SeedListView[] = []
        for (const row of rows) items.push(await viewOf(parts, row))
        return { items, paging: pagingOf(baseUrl, '/v4/inbox/seedlists', params, listing, total), total }
      },
    }),
    api.get(path, {
      id: 'readSeedList',
      summary: 'Read a seed list by its id or address',
      answers: { 200: object('The list', { seedlist: SEED_LIST }) },
      handler: async ({ path: { seed_list }, caller }) => ({
        seedlist: await viewOf(parts, await lists.own(caller.accountId, seed_list)),
      }),
    }),
    api.put(path, {
      id: 'updateSeedList',
      summary: 'Change a seed list',
      params: { ...LIST_FIELDS, shuffle: otherParam('Without effect', { type: 'boolean' }) },
      answers: { 200: SEED_LIST },
      async handler({ path: { seed_list }, input, caller }) {
        const row = await lists.own(caller.accountId, seed_list)
        return viewOf(parts, await lists.change(row, fieldsOf(input())))
      },
    }),
    api.delete(path, {
      id: 'deleteSeedList',
      summary: 'Delete a seed list; its results stay',
      answers: { 200: message('seed list deleted', 'Deleted') },
      async handler({ path: { seed_list }, caller }) {
        await lists.remove(await lists.own(caller.accountId, seed_list))
        return { message: 'seed list deleted' }
      },
    }),
  ]
}

function resultOperations(parts: PlacementRouteParts): Operation[] {
  const { store, baseUrl } = parts
  const path = '/v4/inbox/results/{result}'
  return [
    api.post('/v4/inbox/tests', {
      id: 'runPlacementTest',
      summary: 'Send a message to the seeds of a list',
      body: TEST_MESSAGE,
      answers: { 200: TEST_STARTED, 404: 'seed list not found' },
      async handler({ params, caller, remoteAddress }) {
        const { id } = await runTest(parts, caller, params.json(), remoteAddress)
        return { result_id: id, links: { results: `${baseUrl}/v4/inbox/results/${id}` } }
      },
    }),
    api.get('/v4/inbox/results', {
      id: 'listPlacementResults',
      summary: 'List results',
      params: {
        ...PAGE_PARAMS,
        sender: textParam(FILTERS.results.sender),
        subject: textParam(FILTERS.results.subject),
        provider: textParam(FILTERS.results.provider),
        target_email: textParam(FILTERS.results.target_email),
      },
      answers: { 200: RESULTS },
      async handler({ input, params, caller }) {
        const { sender, subject, provider, target_email: targetEmail, ...page } = input()
        const listing = listingOf(page)
        const filter = { ...listing, sender, subject, provider, targetEmail }
        const { rows, total } = await findTests(store, caller.accountId, filter)
        const items = await resultItems(parts, rows)
        return { items, paging: pagingOf(baseUrl, '/v4/inbox/results', params, listing, total), total }
      },
    }),
    api.get(path, {
      id: 'readPlacementResult',
      summary: 'Read a result',
      params: { provider: textParam('Only seeds of this provider') },
      answers: { 200: RESULT_ANSWER },
      async handler({ path: { result }, input, caller }) {
        const row = await ownTest(store, caller.accountId, result)
        return { result: await resultOf(parts, row, input().provider) }
      },
    }),
    api.delete(path, {
      id: 'deletePlacementResult',
      summary: 'Delete a result',
      answers: { 200: RESULT_DELETED },
      async handler({ path: { result }, caller }) {
        const { id } = await ownTest(store, caller.accountId, result)
        await store.commit(removeTestStatements(id))
        return { Message: 'result deleted' }
      },
    }),
  ]
}

function sharingOperations(parts: PlacementRouteParts): Operation[] {
  const { store, clock, baseUrl } = parts
  const path = '/v4/inbox/sharing/{result}'
  return [
    api.get(path, {
      id: 'readPlacementSharing',
      summary: 'Read whether a result can be seen without a key',
      answers: { 200: SHARING_ANSWER },
      handler: async ({ path: { result }, caller }) => ({
        sharing: sharingView(await ownTest(store, caller.accountId, result), baseUrl),
      }),
    }),
    api.put(path, {
      id: 'updatePlacementSharing',
      summary: 'Let a result be seen without a key, for 30 days, or end that',
      params: { enabled: flagParam('Shared or not', { required: true }) },
      answers: { 200: SHARING_ANSWER },
      async handler({ path: { result }, input, caller }) {
        const { enabled } = input()
        const { id } = await ownTest(store, caller.accountId, result)
        await store.commit([sharingStatement(store, id, enabled, clock.now())])
        return { sharing: sharingView(await ownTest(store, caller.accountId, id), baseUrl) }
      },
    }),
    api.get('/v4/inbox/sharing/public/{share_id}', {
      id: 'readSharedPlacementResult',
      summary: 'Read a shared result',
      auth: 'public',
      answers: { 200: RESULT_ANSWER, 404: 'Not shared, or no longer' },
      async handler({ path: { share_id } }) {
        const row = present(await sharedTest(store, share_id, clock.now()), UNKNOWN_RESULT)
        return { result: await sharedView(parts, row) }
      },
    }),
  ]
}

/** The attributes and filters of lists or results. */
function describing(parts: PlacementRouteParts, place: Place, attributes: readonly string[]): Operation[] {
  const noun = place === 'seedlists' ? 'seed lists' : 'results'
  const name = place === 'seedlists' ? 'SeedList' : 'PlacementResult'
  return [
    api.get(`/v4/inbox/${place}/a`, {
      id: `list${name}Attributes`,
      summary: `List the attributes of ${noun}`,
      answers: { 200: ATTRIBUTE },
      handler: async () => ({ items: { attribute: 'attributes', values: attributes } }),
    }),
    api.get(`/v4/inbox/${place}/a/{attribute}`, {
      id: `list${name}Values`,
      summary: `List the values of an attribute of ${noun}`,
      answers: { 200: ATTRIBUTE },
      handler: async ({ path: { attribute }, caller }) => ({
        items: {
          attribute,
          values: attributes.includes(attribute)
            ? await valuesOf(parts.store, place, attribute, caller.accountId)
            : [],
        },
      }),
    }),
    api.get(`/v4/inbox/${place}/_filters`, {
      id: `list${name}Filters`,
      summary: `List the filters of ${noun}`,
      answers: { 200: FILTERS_ANSWER },
      handler: async () => ({
        supported_filters: {
          filters: Object.entries(FILTERS[place]).map(([parameter, description]) => ({
            parameter,
            description,
          })),
        },
      }),
    }),
  ]
}

async function valuesOf(store: Store, place: Place, attribute: string, accountId: string): Promise<string[]> {
  const isProvider = place === 'results' && attribute === 'provider'
  const table = place === 'seedlists' ? 'seed_lists' : 'placement_tests'
  const from = isProvider ? `${table} JOIN placement_seeds ON test_id = placement_tests.id` : table
  // All names are constants of this file.
  const rows = await store.read({
    sql: `SELECT DISTINCT ${attribute} AS value FROM ${from} WHERE account_id = ? ORDER BY value LIMIT ${VALUES_MAX}`,
    values: [accountId],
  })
  return rows.map(({ value }) => String(value))
}

const UNKNOWN_RESULT = 'inbox placement result not found'

async function ownTest(store: Store, accountId: string, id: string): Promise<PlacementTestRow> {
  return present(await findTest(store, accountId, id), UNKNOWN_RESULT)
}

async function viewOf({ store, seeds }: PlacementRouteParts, row: SeedListRow): Promise<SeedListView> {
  const test = await newestTestOf(store, row.id)
  const latest = test ? ((await seedsOf(store, [test.id])).get(test.id) ?? []) : []
  return listView(row, chosenSeeds(seeds, row.seed_filter, row.provider_filter), seeds, latest)
}

async function resultOf(
  parts: PlacementRouteParts,
  row: PlacementTestRow,
  provider: string | undefined,
): Promise<ResultView> {
  const { lists } = parts
  const list = (await lists.find(row.account_id, row.list_id)) ?? null
  const all = await visibleSeeds(parts, row)
  const shown = provider === undefined ? all : all.filter((seed) => seed.provider === provider.toLowerCase())
  return testView(row, shown, { row: list, view: list ? await viewOf(parts, list) : goneList(row) })
}

/**
 * Results of a page, one after another: their seeds without headers, their lists without seeds. A list of many results is
 * read once.
 */
async function resultItems(
  parts: PlacementRouteParts,
  rows: readonly PlacementTestRow[],
): Promise<ResultView[]> {
  const { lists } = parts
  const known = new Map<string, ResultList | null>()
  const items: ResultView[] = []
  for (const row of rows) {
    let list = known.get(row.list_id)
    if (list === undefined) {
      const found = await lists.find(row.account_id, row.list_id)
      list = found ? { row: found, view: { ...(await viewOf(parts, found)), Seeds: null } } : null
      known.set(row.list_id, list)
    }
    const seeds = await visibleSeeds(parts, row)
    items.push(testView(row, seeds, list ?? { row: null, view: goneList(row) }, 'without-headers'))
  }
  return items
}

/** Other accounts learn that a mailbox cannot be read, not where it is, who reads it and what its server says. */
async function visibleSeeds(
  { store, firstAccountId }: PlacementRouteParts,
  row: PlacementTestRow,
): Promise<PlacementSeedRow[]> {
  const seeds = (await seedsOf(store, [row.id])).get(row.id) ?? []
  if (row.account_id === firstAccountId) return seeds
  return seeds.map((seed) => ({ ...seed, problem: seed.problem && 'The mailbox cannot be read.' }))
}

/** What the holder of a link may see: the result; neither its account nor the list with the seeds of other tests. */
async function sharedView({ lists, store }: PlacementRouteParts, row: PlacementTestRow): Promise<ResultView> {
  const list = (await lists.find(row.account_id, row.list_id)) ?? null
  const seeds = (await seedsOf(store, [row.id])).get(row.id) ?? []
  return { ...testView(row, seeds, { row: list, view: goneList(row) }, 'shared'), AccountID: '' }
}

/** Stands for a list that was deleted or is not shown: clients read these dates. */
function goneList({ list_id, created_at }: PlacementTestRow): GoneList {
  const at = formatRfc3339(new Date(Number(created_at)))
  return { Id: list_id, kid: list_id, created_at: at, updated_at: at, last_result_at: at, Seeds: null }
}

function providersOf({ all, changedAt }: Seeds): Of<typeof SEED_PROVIDER>[] {
  const at = formatRfc3339(new Date(changedAt))
  const first = new Map(all.toReversed().map((seed) => [seed.provider, seed]))
  return [...first.values()].toReversed().map(({ provider, name, region }) => ({
    ...{ domain: provider, display_name: name, region },
    ...{ created_at: at, updated_at: at },
  }))
}

/** Undefined: not given; an empty text clears them. */
function domainsOf(params: Params, name: string): string[] | undefined {
  if (params.given(name) === undefined) return undefined
  const domains = params.texts(name).flatMap((text) => text.split(','))
  return domains.map((domain) => domain.trim()).filter(Boolean)
}

const fieldsOf = (given: InputOf<typeof LIST_FIELDS>): SeedListFields => ({
  sendingDomains: given.sending_domains,
  name: given.name,
  seedFilter: given.seed_filter,
  providerFilter: given.provider_filter,
})

const listingOf = (given: InputOf<typeof PAGE_PARAMS>): Listing => ({
  limit: given.limit,
  offset: given.offset ?? 0,
  ascending: given.ascending,
  from: given.time_after ?? 0,
  to: given.time_before ?? Number.MAX_SAFE_INTEGER,
})

/** The clients of this area write RFC 3339. */
function timeOf(text: string, name: string): number {
  const time = parseDate(text)?.getTime() ?? (/^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN)
  if (Number.isNaN(time)) throw invalidFormat(name, text)
  return time
}

/** Pages by number of items; every link is present. */
function pagingOf(baseUrl: string, path: string, params: Params, listing: Listing, total: number): Paging {
  const { limit, offset } = listing
  const carried = params.names().filter((name) => !['limit', 'offset', 'cursor'].includes(name))
  const link = (at: number) =>
    pageUrl(baseUrl, path, [
      ['limit', limit],
      ['offset', Math.max(0, at)],
      ...carried.map((name) => [name, params.given(name)] as const),
    ])
  const last = Math.floor(Math.max(0, total - 1) / limit) * limit
  return { previous: link(offset - limit), first: link(0), next: link(offset + limit), last: link(last) }
}
