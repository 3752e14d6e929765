/** Figures equal a recount of the events, whatever is asked. */
// Both databases: figures are unpacked by functions of each database.
import assert from 'node:assert/strict'
import { DELIVERED, eventStatements, NOW_MS, testMessage } from '../../../../test/support/events.ts'
import { addDomain } from '../../../../test/support/figures.ts'
import { seededNumbers } from '../../../../test/support/random.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import { BadRequest } from '../../../base/process/errors.ts'
import { systemClock } from '../../../base/time/clock.ts'
import type { Statement, Store } from '../../../platform/store/store.ts'
import { acceptedEvent, deliveredEvent, type EventRecord, failedEvent } from '../../events/event.ts'
import {
  clickedEvent,
  complainedEvent,
  openedEvent,
  storedEvent,
  type Visit,
} from '../../events/later-events.ts'
import { COUNTERS, type Counter, type Counts, countersOf, noCounts, valuesOfEvent } from '../counters.ts'
import { createCounting } from '../counting.ts'
import {
  comparingRows,
  DIMENSIONS,
  type Dimension,
  type FigureOrder,
  type FigureQuery,
  type FigureRow,
  type FilterEntry,
  METRICS,
  numberOf,
} from '../figures.ts'
import { COMPARATORS } from '../filter.ts'
import { after, startOf, UNITS } from '../intervals.ts'
import { UNIQUE_FOR_MS } from '../unique-visits.ts'
import { createFigures } from './figure-reader.ts'
import { keepPacks } from './packing.ts'
import { removeOldCounters } from './removal.ts'
import { rollUp } from './roll-up.ts'
import { SPLIT_NUMBERS } from './splits.ts'

const DAY = 86_400_000
const DAYS = 80
const random = seededNumbers(66)
const below = (count: number) => Math.floor(random() * count)
const oneOf = <T>(values: readonly T[]): T => values[below(values.length)] as T
const someOf = <T>(values: readonly T[], most: number): T[] => {
  const left = [...values]
  return Array.from({ length: below(most + 1) }, () => left.splice(below(left.length), 1)[0] as T)
}

const OWNERS = [
  ['parent', 'a.example'],
  ['parent', 'b.example'],
  ['child', 'c.example'],
] as const
const TAGS = ['news', 'newsletter', 'May "26"', 'a,b']
const isRateLimit = (id: unknown) => id === 'slow-down'

function randomEvent(): EventRecord {
  const [accountId, domainName] = oneOf(OWNERS)
  const recipientDomain = oneOf(['gmail.com', 'one.example', 'two.example'])
  const to = { recipient: `${oneOf(['ann', 'bob'])}@${recipientDomain}`, recipientDomain }
  const about = testMessage(
    { tags: someOf(TAGS, 3) },
    { accountId, domainName, messageId: `${below(20)}@${domainName}` },
  )
  const at = NOW_MS - below(DAYS * DAY)
  const attempt = {
    ...DELIVERED,
    sendingIp: oneOf(['192.0.2.1', '192.0.2.2', null]),
    recipientProvider: oneOf(['Gmail', 'Apple']),
    status: { ...DELIVERED.status, 'attempt-no': 1 + below(3) },
  }
  const visit = {
    ip: '198.51.100.1',
    client: { 'device-type': oneOf(['desktop', 'mobile', 'unknown']), bot: oneOf(['', '', 'apple']) },
    geolocation: { country: oneOf(['DE', 'US', 'Unknown']) },
    recipientProvider: attempt.recipientProvider,
    deliveredAt: null,
  } as unknown as Visit
  const event = oneOf([
    () => acceptedEvent(about, to, at, null),
    () => deliveredEvent(about, to, attempt, at),
    () =>
      failedEvent(
        about,
        to,
        { ...attempt, severity: 'temporary', reason: 'espblock', ruleId: 'slow-down' },
        at,
      ),
    () =>
      failedEvent(
        about,
        to,
        { ...attempt, severity: 'permanent', reason: oneOf(['bounce', 'old', 'generic']) },
        at,
      ),
    () => openedEvent(about, to, visit, at),
    () => clickedEvent(about, to, { ...visit, url: 'https://example.org/' }, at),
    () => complainedEvent(about, to, attempt, at),
    () => storedEvent(about, at),
  ])()
  const envelope = event.payload['envelope'] as Record<string, unknown> | undefined
  if (envelope && below(2) === 0) envelope['i-ip-pool-id'] = 'pool-1'
  return event
}

interface Counted {
  counters: Counter[]
  at: number
  values: Omit<Record<Dimension, string>, 'time' | 'tag'>
  tags: string[]
}

/** The same from the events alone, in the order of their commit. */
function recounted(events: readonly EventRecord[]): Counted[] {
  const visits = new Map<string, number>()
  return events.map(({ event, recipient, messageId, timestampUs, payload, accountId, domainName }) => {
    const at = Math.floor(timestampUs / 1000)
    const counters = [...countersOf(event, payload, isRateLimit)]
    if (event === 'opened' || event === 'clicked') {
      const key = JSON.stringify([
        event,
        messageId,
        recipient,
        (payload['client-info'] as { bot: string }).bot,
      ])
      if (!(at < (visits.get(key) ?? Number.NEGATIVE_INFINITY) + UNIQUE_FOR_MS)) {
        visits.set(key, at)
        counters.push(`${event}_unique`)
      }
    }
    const { recipient_domain, provider, ip, pool, country, device, bot } = valuesOfEvent(
      event,
      recipient,
      payload,
    )
    return {
      counters,
      at,
      tags: (payload['tags'] as string[]).map((tag) => tag.toLowerCase()),
      values: {
        domain: domainName,
        subaccount: accountId,
        ip: ip || 'none',
        ip_pool: pool || 'none',
        recipient_domain: recipient_domain || 'none',
        recipient_provider: provider,
        country: country || 'Unknown',
        device: device || 'unknown',
        bot: bot || 'None',
      },
    }
  })
}

const fits = ({ comparator, values }: FilterEntry, value: string) => {
  const found = values.some((one) =>
    comparator.endsWith('contains')
      ? value.toLowerCase().includes(one.toLowerCase())
      : value.toLowerCase() === one.toLowerCase(),
  )
  return comparator === '=' || comparator === 'contains' ? found : !found
}

function expected(query: FigureQuery, events: readonly Counted[]): Map<string, Counts> {
  const found = new Map<string, Counts>()
  const { dimensions, filter, resolution, accountIds } = query
  const start = startOf(resolution, query.startMs)
  for (const { at, values, tags, counters } of events) {
    const isInside = at >= start && startOf(resolution, at) < query.endMs
    if (!isInside || !accountIds.includes(values.subaccount)) continue
    const byTag = filter.filter(({ attribute }) => attribute === 'tag')
    const others = filter.filter(({ attribute }) => attribute !== 'tag')
    if (!others.every((entry) => fits(entry, values[entry.attribute as 'domain']))) continue
    const isAny = ({ comparator }: FilterEntry) => comparator === '=' || comparator === 'contains'
    const counted = dimensions.includes('tag')
      ? tags.filter((tag) => byTag.every((entry) => fits(entry, tag)))
      : byTag.every((entry) => tags[isAny(entry) ? 'some' : 'every']((tag) => fits(entry, tag)))
        ? ['']
        : []
    for (const tag of counted) {
      const key = dimensions.map((name) =>
        name === 'tag' ? tag : name === 'time' ? String(startOf(resolution, at)) : values[name],
      )
      const counts = found.get(key.join('|')) ?? noCounts()
      for (const name of counters) counts[name]++
      found.set(key.join('|'), counts)
    }
  }
  const byAddress = dimensions.some((name) => name === 'ip' || name === 'ip_pool')
  for (const [key, counts] of found)
    if (byAddress && COUNTERS.every((name) => counts[name] === 0 || name.startsWith('accepted_')))
      found.delete(key)
  if (dimensions.length === 0 && found.size === 0) found.set('', noCounts())
  return found
}

const VALUES: Readonly<Record<FilterEntry['attribute'], readonly string[]>> = {
  domain: ['a.example', 'B.example', 'example'],
  subaccount: ['parent', 'child'],
  ip: ['192.0.2.1', '192.0', 'none'],
  ip_pool: ['pool-1', 'NONE'],
  tag: ['news', 'May "26"', 'b'],
  recipient_domain: ['gmail.com', 'ONE.example', 'none'],
  recipient_provider: ['Gmail', 'apple'],
  country: ['de', 'Unknown'],
  device: ['mobile', 'unknown'],
  bot: ['Apple', 'None'],
}

function randomQuery(): FigureQuery {
  const dimensions = someOf(DIMENSIONS, 3)
  const startMs = NOW_MS - below(DAYS * DAY)
  const filter = someOf(Object.keys(VALUES) as FilterEntry['attribute'][], 2).map((attribute) => ({
    attribute,
    comparator: oneOf(COMPARATORS),
    values: [oneOf(VALUES[attribute]), ...someOf(VALUES[attribute], 1)],
  }))
  return {
    accountIds: oneOf([['parent'], ['parent', 'child']]),
    startMs,
    endMs: startMs + 1 + below(NOW_MS + DAY - startMs),
    resolution: oneOf(UNITS),
    dimensions,
    filter,
  }
}

const plain = (query: Partial<FigureQuery>): FigureQuery => ({
  accountIds: ['parent', 'child'],
  startMs: NOW_MS - DAYS * DAY,
  endMs: after('day', NOW_MS),
  resolution: 'day',
  dimensions: [],
  filter: [],
  ...query,
})

async function check(store: Store, query: FigureQuery, events: readonly Counted[]): Promise<void> {
  const rows = await createFigures(store).read(query)
  const found = new Map(rows.map(({ values, counts }) => [values.join('|'), counts]))
  assert.equal(found.size, rows.length, 'no row twice')
  const sorted = (map: Map<string, Counts>) => [...map].sort(([a], [b]) => (a < b ? -1 : 1))
  assert.deepEqual(sorted(found), sorted(expected(query, events)), JSON.stringify(query))
  await checkPage(store, query, rows)
}

/** A random page is that of all rows in the order that is asked for. */
async function checkPage(store: Store, query: FigureQuery, rows: readonly FigureRow[]): Promise<void> {
  const { dimensions } = query
  const metric = oneOf(METRICS)
  const isByMetric = dimensions.length === 0 || below(3) > 0
  const by = isByMetric ? metric : oneOf(dimensions)
  const order: FigureOrder = { by, descending: below(2) === 0 }
  const metrics = isByMetric ? [...new Set([metric, oneOf(METRICS)])] : [metric]
  const paging = { order, skip: below(4), limit: 1 + below(10), withSum: below(2) === 0 }
  const page = await createFigures(store).page({ ...query, metrics }, paging)
  const text = JSON.stringify({ query, paging })
  const wanted = [...rows]
    .sort(comparingRows(dimensions, order))
    .slice(paging.skip, paging.skip + paging.limit)
  const shown = (row: { counts: Counts }) => metrics.map((name) => numberOf(name, row.counts))
  assert.equal(page.total, rows.length, text)
  assert.deepEqual(
    page.rows.map((row) => [row.values, shown(row)]),
    wanted.map((row) => [row.values, shown(row)]),
    text,
  )
  const sum = noCounts()
  for (const { counts } of rows) for (const name of COUNTERS) sum[name] += counts[name]
  if (paging.withSum) assert.deepEqual(shown({ counts: page.sum }), shown({ counts: sum }), text)
}

async function counted(store: Store, events: readonly EventRecord[]): Promise<Counted[]> {
  for (const [account, domain] of OWNERS) await addDomain(store, domain, account)
  const half = Math.ceil(events.length / 2)
  for (const [isSecond, part] of [events.slice(0, half), events.slice(half)].entries()) {
    // The first ones as while nodes of the release before packs run.
    await store.commit([{ sql: 'UPDATE figure_places SET until = ? WHERE unit = 4', values: [isSecond] }])
    await store.commit(eventStatements(part))
    await createCounting(store, systemClock, isRateLimit).follower.stepToEnd()
    // Many of the second half belong to days and months whose rows are made by then.
    await rollUp(store, NOW_MS - 20 * DAY)
  }
  return recounted(events)
}

eachStore('every dimension at every resolution, and random queries, equal a recount', async (store) => {
  const events = await counted(store, Array.from({ length: 300 }, randomEvent))
  for (const dimension of DIMENSIONS)
    for (const resolution of UNITS)
      for (const domain of [[], [{ attribute: 'domain', comparator: '=', values: ['a.example'] }] as const])
        await check(
          store,
          plain({
            dimensions: ['time', dimension].slice(dimension === 'time' ? 1 : 0) as Dimension[],
            resolution,
            filter: domain,
          }),
          events,
        )
  for (const dimensions of PAIRS) await check(store, plain({ dimensions }), events)
  for (let at = 0; at < 150; at++) await check(store, randomQuery(), events)
})

/** Dimensions that have rows of weeks, or that are made of other splits. */
const PAIRS: Dimension[][] = [
  ['domain', 'country'],
  ['domain', 'recipient_provider', 'ip'],
  ['tag', 'country'],
  ['tag', 'recipient_provider'],
  ['time', 'tag', 'country'],
]

eachStore('rows of longer units are complete, whatever is counted while they are made', async (store) => {
  const recent = Array.from({ length: 400 }, randomEvent).filter(
    ({ timestampUs }) => timestampUs > (NOW_MS - 12 * DAY) * 1000,
  )
  const [early, late] = [recent.slice(20), recent.slice(0, 20)]
  for (const [account, domain] of OWNERS) await addDomain(store, domain, account)
  const count = async (events: readonly EventRecord[]) => {
    await store.commit(eventStatements(events))
    await createCounting(store, systemClock, isRateLimit).follower.stepToEnd()
  }
  await count(early)
  // Some are counted between the reads and the writes; some writes are not done, as when the process is killed.
  const left = [...late]
  let commits = 0
  const disturbed: Store = {
    ...store,
    async commit(statements) {
      commits++
      if (commits % 23 === 0) throw new Error('killed')
      if (commits % 3 === 0 && left.length > 0) await count(left.splice(0, 1))
      return store.commit(statements)
    },
  }
  for (let tries = 0; tries < 200; tries++) {
    const done = await rollUp(disturbed, NOW_MS - 3 * DAY).then(
      () => true,
      (error) => {
        assert.match(error.message, /killed/)
        return false
      },
    )
    if (done) break
  }
  await count(left)
  const events = recounted([...early, ...late])
  for (const dimensions of [...PAIRS, ['time'], ['tag'], ['recipient_domain']] as Dimension[][])
    await check(store, plain({ dimensions }), events)
})

eachStore(
  'a day to which mail is added without end leaves its pairs to the rows of all values',
  async (store) => {
    for (const [account, domain] of OWNERS) await addDomain(store, domain, account)
    const events: EventRecord[] = []
    const add = async (at: number) => {
      const to = { recipient: 'ann@gmail.com', recipientDomain: 'gmail.com' }
      const about = testMessage({ tags: ['news'] }, { accountId: 'parent', domainName: 'a.example' })
      const event = acceptedEvent(about, to, at, null)
      events.push(event)
      await store.commit(eventStatements([event]))
      await createCounting(store, systemClock, isRateLimit).follower.stepToEnd()
    }
    const [first, second] = [startOf('day', NOW_MS - 5 * DAY), startOf('day', NOW_MS - 4 * DAY)]
    await add(first)
    await add(second)
    const disturbed: Store = {
      ...store,
      async commit(statements) {
        if (statements.some(({ sql }) => sql.includes('SET stored = stored'))) {
          const isFirst = statements.some(({ values }) => values[2] === first || values[1] === first)
          if (isFirst) await add(first)
        }
        return store.commit(statements)
      },
    }
    await rollUp(disturbed, NOW_MS)
    assert.ok(events.length > 3)
    const scopes = await store.db
      .selectFrom('figure_scopes')
      .selectAll()
      .where('account_id', '=', 'parent')
      .execute()
    const since = scopes.map((scope) => Number(scope.pairs_since)).filter((time) => time > 0)
    assert.deepEqual(since, [second])
    const reads: string[] = []
    const watching: Store = {
      ...store,
      read(statement) {
        reads.push(statement.sql)
        return store.read(statement)
      },
    }
    const query = plain({ dimensions: ['tag', 'country'], startMs: first })
    await check(watching, query, recounted(events))
    const splits = reads.flatMap((sql) => /f\.split = (\d)/g.exec(sql)?.[1] ?? [])
    assert.deepEqual([...new Set(splits)].sort(), ['5', '7'])
  },
)

eachStore('after the time of hours and days is over, longer units have the same counts', async (store) => {
  const events = await counted(store, Array.from({ length: 200 }, randomEvent))
  const combined: Dimension[] = ['tag', 'country', 'recipient_domain']
  const remove = async (days: number) => {
    await rollUp(store, NOW_MS + days * DAY)
    await removeOldCounters(store, NOW_MS + days * DAY)
    await keepPacks(store, NOW_MS + days * DAY)
    await keepPacks(store, NOW_MS + days * DAY)
  }
  await remove(0)
  const hours = await createFigures(store).read(
    plain({ resolution: 'hour', dimensions: ['time', 'tag', 'device'] }),
  )
  const oldest = Math.min(...hours.map(({ values }) => Number(values[0])))
  assert.ok(oldest >= startOf('day', NOW_MS - 60 * DAY), 'hours end after 60 days')
  const recent = startOf('day', NOW_MS - 59 * DAY)
  for (const dimensions of [
    combined,
    ['time', 'tag', 'device'],
    ['ip', 'domain'],
    ['domain', 'bot'],
  ] as Dimension[][]) {
    await check(store, plain({ dimensions }), events)
    await check(
      store,
      plain({ dimensions, resolution: 'month' }),
      events.filter(({ at }) => at >= startOf('month', NOW_MS - DAYS * DAY)),
    )
    await check(store, plain({ dimensions, resolution: 'hour', startMs: recent }), events)
  }
  await remove(500)
  for (const dimensions of [
    combined,
    ['time', 'tag', 'device'],
    ['time'],
    ['recipient_domain'],
  ] as Dimension[][])
    await check(store, plain({ dimensions, resolution: 'month', endMs: after('month', NOW_MS) }), events)
  assert.deepEqual(await createFigures(store).read(plain({ dimensions: ['time'] })), [])
})

eachStore('figures of more domains than one read covers are of each domain once', async (store) => {
  const names = Array.from({ length: 40 }, (_, at) => `d${at}.example`)
  for (const [at, name] of names.entries()) await addDomain(store, name, at % 2 === 0 ? 'parent' : 'child')
  const to = { recipient: 'ann@gmail.com', recipientDomain: 'gmail.com' }
  const about = (at: number) =>
    testMessage(
      { tags: ['news'] },
      { accountId: at % 2 === 0 ? 'parent' : 'child', domainName: names[at] as string },
    )
  await store.commit(
    eventStatements(names.flatMap((_, at) => [0, 1].map(() => acceptedEvent(about(at), to, NOW_MS, null)))),
  )
  await createCounting(store, systemClock, isRateLimit).follower.stepToEnd()
  await rollUp(store, NOW_MS + 2 * DAY)
  const reads: Statement[] = []
  const watching: Store = {
    ...store,
    read(statement) {
      reads.push(statement)
      return store.read(statement)
    },
  }
  const found = async (more: Partial<FigureQuery>) => {
    const dimensions: Dimension[] = ['domain', 'tag']
    const rows = await createFigures(watching).read(plain({ dimensions, ...more }))
    return rows.map(({ values, counts }) => `${values} ${counts.accepted_outgoing}`).sort()
  }
  assert.deepEqual(await found({}), names.map((name) => `${name},news 2`).sort())
  assert.ok(reads.filter(({ sql }) => sql.includes('s.no >= ?')).length >= 2)
  const filter = [{ attribute: 'domain', comparator: '=', values: ['D7.example', 'd8.example'] } as const]
  assert.deepEqual(await found({ filter }), ['d7.example,news 2', 'd8.example,news 2'])
  assert.deepEqual(await found({ filter, accountIds: ['child'] }), ['d7.example,news 2'])
})

eachStore('a query that reads or finds too much is refused', async (store) => {
  await counted(store, [randomEvent()])
  const columns =
    'scope, split, unit, start_at, tag, recipient_domain, provider, ip, pool, country, device, bot'
  await store.commit([
    {
      sql: `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n <= 100000)
        INSERT INTO figures (${columns}, stored)
        SELECT no, 4, 1, ${startOf('day', NOW_MS)}, '', 'd' || CAST(n AS TEXT), '', '', '', '', '', '', 1
        FROM figure_scopes, numbers WHERE domain_name = ''`,
      values: [],
    },
  ])
  const query = plain({ dimensions: ['recipient_domain'] })
  await assert.rejects(
    createFigures(store).read(query),
    (error) => error instanceof BadRequest && /^more than 100000 items: /.test(error.message),
  )
  const order = { by: 'recipient_domain', descending: true } as const
  const page = (skip: number) => createFigures(store).page(query, { order, skip, limit: 10, withSum: false })
  const { rows, total } = await page(0)
  assert.ok(total >= 100_001)
  assert.equal(rows.length, 10)
  await assert.rejects(
    page(100_000),
    (error) => error instanceof BadRequest && /^more than 100000 items: /.test(error.message),
  )
})

eachStore('a page of a whole account that would read too much is refused, not cut short', async (store) => {
  await counted(store, [randomEvent()])
  const insert = (
    split: number,
    unit: 0 | 1,
    column: 'recipient_domain' | 'provider',
    counter: Counter,
    count: number,
  ) => ({
    sql: `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})
      INSERT INTO figures (scope, split, unit, start_at, tag, ip, pool, country, device, bot,
        ${column === 'provider' ? 'recipient_domain, provider' : 'provider, recipient_domain'}, ${counter})
      SELECT no, ${split}, ${unit}, ${startOf('day', NOW_MS)}, '', '', '', '', '', '', '', 'x' || CAST(n AS TEXT), 1
      FROM figure_scopes, numbers WHERE domain_name = '' AND account_id = 'parent'`,
    values: [],
  })
  // The second ones have no address yet, so they are rows that are read and no item.
  await store.commit([
    insert(SPLIT_NUMBERS.recipient, 1, 'recipient_domain', 'stored', 50),
    insert(SPLIT_NUMBERS.path, 0, 'provider', 'accepted_outgoing', 50),
  ])
  for (const dimension of ['recipient_domain', 'ip'] as const) {
    const order = { by: dimension, descending: true } as const
    const query = plain({ accountIds: ['parent'], dimensions: [dimension] })
    const page = (rowsMax: number) =>
      createFigures(store, rowsMax).page(query, { order, skip: 0, limit: 10, withSum: true })
    const { rows, total } = await page(60)
    assert.equal(rows.length, Math.min(total, 10))
    assert.ok(dimension === 'ip' ? total <= 1 : total >= 50)
    await assert.rejects(
      page(49),
      (error) => error instanceof BadRequest && /^the query reads too many counters: /.test(error.message),
      dimension,
    )
  }
})
