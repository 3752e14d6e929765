/**
 * Metrics and logs of ten million events: what counting costs in CPU and space, and how long queries and pages take.
 *
 * 1. The events of `support/traffic.ts` are written as the service writes them, and indexed.
 * 2. They are counted a day at a time (`support/figure-bench.ts`); before that a sample is counted by the service's own
 *    follower as well, and both have to make the same rows.
 * 3. The follower's CPU is measured on events that arrive at the rate of a busy service.
 * 4. Every kind of query and of page is asked on the store, not over HTTP.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/base/time/clock.ts'
import { openPostgres } from '../../src/platform/store/postgres/postgres.ts'
import { openSqlite } from '../../src/platform/store/sqlite/sqlite.ts'
import type { Statement, Store } from '../../src/platform/store/store.ts'
import { indexEvents } from '../../src/watching/events/search/indexing.ts'
import { createCounting } from '../../src/watching/metrics/counting.ts'
import { eventStatement } from '../../test/support/events.ts'
import { addDomain } from '../../test/support/figures.ts'
import {
  askFigures,
  FINISHED_MS,
  FigureFill,
  type FigureTimes,
  hourSums,
  isRateLimit,
  retain,
  rowsOfFigures,
} from '../support/figure-bench.ts'
import { askLogs, type LogTimes } from '../support/log-bench.ts'
import type { Options } from '../support/options.ts'
import { cpuSeconds } from '../support/processes.ts'
import type { Section } from '../support/results.ts'
import { type Rig, withRig } from '../support/rig.ts'
import { type Database, startBenchPostgres } from '../support/service.ts'
import { formatNumber, percentile } from '../support/stats.ts'
import { fill } from '../support/stored-data.ts'
import { accountOf, DAY_MS, DOMAINS, domainName, END_MS, traffic } from '../support/traffic.ts'
import { ourName } from './e2e.ts'

const COUNT = 10_000_000
const COUNT_SHORT = 20_000
const SAMPLE = 20_000
/** Events that are counted first: the compiler takes a third of the time of the first 60,000. */
const WARM_UP = 60_000
const LOADED = 400_000
/** Events a second of a service under load: twice its messages. */
const LOADED_PER_SECOND = 3_400
const TIMES = 4
const FIGURES_MAX_MS = 150
const PAGE_MAX_MS = 50
const SPACE_MAX = 0.1

interface Measured {
  database: Database
  events: number
  rows: number
  megabytes: number
  /** Space of the events with their indexes. */
  eventMegabytes: number
  cpuPerEventUs: number
  figures: FigureTimes[]
  logs: LogTimes[]
}

export async function run(options: Options): Promise<Section> {
  const count = options.count ?? options.messages ?? (options.short ? COUNT_SHORT : COUNT)
  const measured: Measured[] = []
  for (const database of options.databases)
    measured.push(await withRig(options.folder, (rig) => measure(rig, database, count, options)))
  return {
    title: `Metrics and logs of ${formatNumber(count)} events`,
    notes: [
      '90 days, 1,000 domains of which 100 belong to 20 subaccounts, 2,000 tags, 20,000 recipient domains, 40 countries. Percentiles are those of the best of the runs: other work on the machine delays single queries.',
      'Figures are kept as in service: hours for 60 days, days and months longer. CPU of counting: 3,400 events a second over all domains.',
    ],
    bars: measured.flatMap((one) => barsOf(one).slice(0, options.countersOnly ? 1 : undefined)),
    tables: [sizes(measured), figureTable(measured), ...(options.countersOnly ? [] : [logTable(measured)])],
    raw: measured,
  }
}

function barsOf({ database, figures, logs, megabytes, eventMegabytes }: Measured): Section['bars'] {
  const [figure, page] = [figures, logs].map((list) =>
    percentile(
      list.map(({ p95 }) => p95),
      0.95,
    ),
  ) as [number, number]
  const share = megabytes / eventMegabytes
  return [
    {
      what: `a query of metrics, p95 over all kinds, ${ourName(database)}`,
      bar: `under ${FIGURES_MAX_MS} ms`,
      seen: `${formatNumber(figure)} ms`,
      held: figure < FIGURES_MAX_MS,
    },
    {
      what: `a page of logs, p95 over all kinds, ${ourName(database)}`,
      bar: `under ${PAGE_MAX_MS} ms`,
      seen: `${formatNumber(page)} ms`,
      held: page < PAGE_MAX_MS,
    },
    {
      what: `space of figures, share of that of the events, ${ourName(database)}`,
      bar: `under ${SPACE_MAX * 100} %`,
      seen: `${formatNumber(share * 100)} %`,
      held: share < SPACE_MAX,
    },
  ]
}

const sizes = (measured: readonly Measured[]) => ({
  head: ['System', 'Rows of figures', 'MB', 'MB of events', 'CPU µs per event counted'],
  rows: measured.map(({ database, rows, megabytes, eventMegabytes, cpuPerEventUs }) => [
    ourName(database),
    ...[rows, megabytes, eventMegabytes, cpuPerEventUs].map((value) => formatNumber(value)),
  ]),
})

const figureTable = (measured: readonly Measured[]) => ({
  head: ['System', 'Metrics by', 'Days', 'Items (-1: refused)', 'p50 ms', 'p95 ms'],
  rows: measured.flatMap(({ database, figures }) =>
    figures.map(({ name, days, rows, p50, p95 }) => [
      ourName(database),
      name,
      ...[String(days), String(rows), formatNumber(p50), formatNumber(p95)],
    ]),
  ),
})

const logTable = (measured: readonly Measured[]) => ({
  head: ['System', 'Logs', 'Of', 'Most items', 'p50 ms', 'p95 ms', 'Longest ms'],
  rows: measured.flatMap(({ database, logs }) =>
    logs.map(({ name, scope, items, p50, p95, longest }) => [
      ourName(database),
      ...[name, scope, String(items), formatNumber(p50), formatNumber(p95), formatNumber(longest)],
    ]),
  ),
})

/** A database of its own, with the bench's domains. */
async function withStore<T>(
  rig: Rig,
  database: Database,
  name: string,
  run: (store: Store, place: Place) => Promise<T>,
): Promise<T> {
  const postgres = database === 'postgres' ? await startBenchPostgres(rig) : null
  const place: Place = {
    dataFolder: join(rig.folder, name),
    databaseUrl: postgres?.url ?? null,
    serverPid: postgres?.pid ?? null,
  }
  mkdirSync(place.dataFolder)
  const store = await openPlace(place)
  for (let at = 0; at < DOMAINS; at++) await addDomain(store, domainName(at), accountOf(at))
  // It is filled directly, which needs the data folder's lock.
  await store.close()
  const open = await openPlace(place)
  try {
    return await run(open, place)
  } finally {
    await open.close()
  }
}

interface Place {
  dataFolder: string
  databaseUrl: string | null
  serverPid: number | null
}

const openPlace = ({ dataFolder, databaseUrl }: Place): Promise<Store> =>
  databaseUrl === null ? openSqlite(dataFolder) : openPostgres(databaseUrl)

async function measure(rig: Rig, database: Database, count: number, options: Options): Promise<Measured> {
  const { runs } = options
  await checkFill(rig, database)
  const cpuPerEventUs = await withStore(rig, database, 'loaded', countingCost)
  return withStore(rig, database, 'events', async (store, place) => {
    if (!options.countersOnly) {
      await fill(place, eventRows(count))
      await indexEvents(store)
    }
    const eventMegabytes = await megabytesOf(store)
    const figureFill = new FigureFill(store)
    for (const event of traffic(count)) await figureFill.add(event)
    await figureFill.finish()
    const rows = await rowsOfFigures(store)
    const megabytes = (await megabytesOf(store)) - eventMegabytes
    console.log(`  ${database}: ${formatNumber(rows)} rows of figures, ${formatNumber(megabytes)} MB`)
    const [figures, logs] = [
      await askFigures(store, { times: TIMES, runs }),
      options.countersOnly ? [] : await askLogs(store, { times: TIMES, runs }),
    ]
    return { database, events: count, rows, megabytes, eventMegabytes, cpuPerEventUs, figures, logs }
  })
}

/** @throws when the follower makes other rows than the faster way that fills the tables */
async function checkFill(rig: Rig, database: Database): Promise<void> {
  const followed = await withStore(rig, database, 'followed', async (store, place) => {
    await fill(place, eventRows(SAMPLE))
    await createCounting(store, systemClock, isRateLimit).follower.stepToEnd()
    await retain(store, FINISHED_MS)
    return hourSums(store)
  })
  const filled = await withStore(rig, database, 'filled', async (store) => {
    const figureFill = new FigureFill(store)
    for (const event of traffic(SAMPLE)) await figureFill.add(event)
    await figureFill.finish()
    return hourSums(store)
  })
  if (followed !== filled) throw new Error('the tables of figures are not filled as the service does it')
}

/** CPU µs of this process and the database server for each event. */
async function countingCost(store: Store, place: Place): Promise<number> {
  const rows = eventRows(COUNT, LOADED_PER_SECOND)
  const counting = createCounting(store, systemClock, isRateLimit)
  const { signal } = new AbortController()
  await fill(place, nextOf(rows, WARM_UP))
  await counting.run(signal)
  await fill(place, nextOf(rows, LOADED))
  const server = () => (place.serverPid === null ? 0 : cpuSeconds([place.serverPid]))
  const serverBefore = server()
  const before = process.cpuUsage()
  const counted = await counting.run(signal)
  if (counted !== LOADED) throw new Error(`${counted} events were counted`)
  const { user, system } = process.cpuUsage(before)
  return (user + system + (server() - serverBefore) * 1e6) / LOADED
}

/** Leaves the others to a later call. */
function* nextOf<T>(all: Generator<T>, count: number): Generator<T> {
  for (let left = count; left > 0; left--) yield all.next().value
}

/** `perSecond`: the events begin at one time and follow each other at this rate. */
function* eventRows(count: number, perSecond?: number): Generator<Statement> {
  let at = 0
  for (const event of traffic(count)) {
    if (perSecond !== undefined)
      event.timestampUs = (END_MS - DAY_MS) * 1000 + Math.floor((at / perSecond) * 1e6)
    at++
    yield eventStatement(event)
  }
}

/** Size of the whole database: events are stored in partitions, whose number changes. */
async function megabytesOf(store: Store): Promise<number> {
  const [size] = await store.read({
    sql:
      store.kind === 'sqlite'
        ? 'SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()'
        : 'SELECT pg_database_size(current_database()) AS bytes',
    values: [],
  })
  return Number(size?.['bytes']) / 1e6
}
