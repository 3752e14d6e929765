/**
 * CPU of nodes and PostgreSQL per message, by the number of nodes, in three ways:
 *
 * - as many clients for each node, which send as fast as they can: nodes that are full. Where all share few processors,
 *   more nodes are slower nodes, with more units waiting to share a transaction;
 * - the same rate for each node, which all sustain: hardly anything waits, so each unit pays for its own transaction;
 * - one node's clients divided among all: more nodes than the load needs.
 *
 * From that follows what nodes with processors of their own do. The cases take turns, each on a database of its own; medians
 * are reported. CPU times are from /proc, so other work on the machine matters little.
 *
 * NODE_COST_NODES (default 3) is the most nodes, NODE_COST_MESSAGES (6,000) the messages of each node, a quarter of them
 * where it has a rate, NODE_COST_ROUNDS (3) the turns. NODE_COST_AGAINST=COMMIT measures the program of that commit as well, in
 * turns with this one.
 */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { ASK_LIMIT_MS, type System, startSink, untilDelivered } from '../../bench/support/flow.ts'
import { sendRequest, singleFields } from '../../bench/support/messages.ts'
import { cpuSeconds } from '../../bench/support/processes.ts'
import { type Rig, until, withRig } from '../../bench/support/rig.ts'
import { startBenchPostgres } from '../../bench/support/service.ts'
import { median } from '../../bench/support/stats.ts'
import { httpLoad } from '../../bench/support/systems.ts'
import type { DrillReport } from '../../scripts/drill.ts'
import { checkOut } from '../support/old-release.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, startProcess } from '../support/service-process.ts'

export const title = 'Node cost: the CPU of PostgreSQL per message does not grow with the number of nodes'

const NODES_MAX = Number(process.env['NODE_COST_NODES'] ?? 3)
const MESSAGES = Number(process.env['NODE_COST_MESSAGES'] ?? 6_000)
const ROUNDS = Number(process.env['NODE_COST_ROUNDS'] ?? 3)
const AGAINST = process.env['NODE_COST_AGAINST']
/** Of each node, before its CPU is counted: caches are filled and statements prepared. */
const WARM_UP = Number(process.env['NODE_COST_WARM_UP'] ?? 2_000)
const CLIENTS = 16
/** Messages a second of each node, low enough for three nodes on two processors. */
const RATE = 100
const NUMBERS_PER_NODE = 1_000_000
const SETTLE_LIMIT_MS = 120_000
const LOOK_EVERY_MS = 100
/** Two nodes with a processor each carry at least this many times what one does. */
const TWO_NODES_MIN = 1.5
/** What the CPU of PostgreSQL per message may differ between one node and several by: repetitions differ by as much. */
const GROWTH_MAX = 1.15

interface Case {
  program: string
  /** Of its sources; undefined: this program. */
  root: string | undefined
  nodes: number
  /** Of each node. */
  clients: number
  /** Messages a second of each node; null: as many as its clients can send, one after the other. */
  rate: number | null
}

/** Milliseconds of CPU per message, and transactions per message. */
interface Cost {
  nodes: number
  database: number
  transactions: number
}

export async function run(report: DrillReport): Promise<void> {
  await withRig(tmpdir(), async (rig) => {
    const programs: Pick<Case, 'program' | 'root'>[] = [{ program: 'this program', root: undefined }]
    if (AGAINST !== undefined) {
      const root = join(rig.folder, 'other')
      checkOut(AGAINST, root)
      programs.push({ program: AGAINST, root })
    }
    const counts = Array.from({ length: NODES_MAX }, (_, at) => at + 1)
    const full = counts.map((nodes) => ({ nodes, clients: CLIENTS, rate: null }))
    const paced = counts.map((nodes) => ({ nodes, clients: CLIENTS, rate: RATE }))
    const divided = full.slice(1).map((one) => ({ ...one, clients: Math.round(CLIENTS / one.nodes) }))
    const cases = [...full, ...paced, ...divided].flatMap((size) =>
      programs.map((program) => ({ ...program, ...size })),
    )
    const costs = new Map<Case, Cost[]>(cases.map((one) => [one, []]))
    for (let round = 1; round <= ROUNDS; round++)
      for (const one of round % 2 === 0 ? cases.toReversed() : cases) {
        const cost = await withRig(tmpdir(), (own) => measure(own, one))
        costs.get(one)?.push(cost)
        report.note(`${round}: ${nameOf(one)}: ${JSON.stringify(cost)}`)
      }
    for (const [one, seen] of costs) {
      report.figure(`${nameOf(one)}: CPU of nodes`, spread(seen, 'nodes'), 'ms per message')
      report.figure(`${nameOf(one)}: CPU of PostgreSQL`, spread(seen, 'database'), 'ms per message')
      report.figure(`${nameOf(one)}: transactions`, spread(seen, 'transactions'), 'per message')
    }
    const costOf = (nodes: number, rate: number | null, part: keyof Cost) => {
      const isIt = (one: Case) =>
        one.root === undefined && one.nodes === nodes && one.clients === CLIENTS && one.rate === rate
      const seen = [...costs].flatMap(([one, found]) => (isIt(one) ? found : []))
      return median(seen.map((cost) => cost[part]))
    }
    for (const nodes of counts.slice(1)) {
      const carried = (nodes * costOf(1, null, 'nodes')) / costOf(nodes, null, 'nodes')
      report.figure(`${nodes} nodes with a processor each carry`, carried, 'times the rate of one')
      assert.ok(
        carried >= (TWO_NODES_MIN * nodes) / 2,
        `${nodes} nodes carry ${carried} times the rate of one`,
      )
      for (const rate of [null, RATE]) {
        const growth = costOf(nodes, rate, 'database') / costOf(1, rate, 'database')
        const way = rate === null ? 'full' : 'at a steady rate'
        report.figure(`${nodes} nodes, ${way}: CPU of PostgreSQL per message`, growth, 'times that of one')
        assert.ok(growth <= GROWTH_MAX, `${nodes} nodes, ${way}: PostgreSQL takes ${growth} times the CPU`)
      }
    }
  })
}

const nameOf = ({ program, nodes, clients, rate }: Case) =>
  `${AGAINST === undefined ? '' : `${program}, `}${nodes} × ${rate === null ? `${clients} clients` : `${rate}/s`}`

function spread(costs: readonly Cost[], part: keyof Cost): string {
  const values = costs.map((cost) => cost[part])
  const [middle, least, most] = [median(values), Math.min(...values), Math.max(...values)]
  return `${middle.toFixed(3)} (${least.toFixed(3)} to ${most.toFixed(3)})`
}

async function measure(rig: Rig, { nodes: count, clients, rate, root }: Case): Promise<Cost> {
  const postgres = await startBenchPostgres(rig)
  const sink = await startSink(rig)
  const nodes: { pid: number; load: System['load'] }[] = []
  for (let number = 0; number < count; number++) {
    const host = ownAddress()
    const env = {
      SENDWRIGHT_DATA: join(rig.folder, `data-${number}`),
      SENDWRIGHT_DATABASE_URL: postgres.url,
      SENDWRIGHT_SECRET: 'secret-of-all-nodes-0123456789abcdef',
      SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}`,
    }
    const node = await startProcess(host, env, root === undefined ? {} : { root })
    rig.defer(`node ${number}`, () => node.end('SIGKILL'))
    const fields = singleFields(node.domain, { subject: 'drill', text: 'Hi.', html: null })
    const place = { host, port: 8080 }
    const request = sendRequest({ ...place, domain: node.domain, authorization: AUTHORIZATION }, fields)
    nodes.push({ pid: node.child.pid as number, load: httpLoad(rig, place, request, clients) })
  }
  const client = new pg.Client({ connectionString: postgres.url })
  await client.connect()
  rig.defer('the connection', () => client.end())
  const pace = rate === null ? {} : { perSecond: rate }
  let numbers = 0
  const send = async (each: number) => {
    await sink.ask({ kind: 'reset', refuse: [], record: null }, ASK_LIMIT_MS)
    numbers += NUMBERS_PER_NODE * count
    const loads = nodes.map(({ load }, at) =>
      load({ ...pace, count: each, firstNumber: numbers + at * NUMBERS_PER_NODE }),
    )
    for (const { failed, failure } of await Promise.all(loads)) assert.equal(failed, 0, String(failure))
    await untilDelivered(sink, each * count)
    await settled(client)
  }
  const spent = async () => ({
    nodes: 1000 * cpuSeconds(nodes.map(({ pid }) => pid)),
    database: 1000 * cpuSeconds([postgres.pid]),
    transactions: Number((await client.query(TRANSACTIONS)).rows[0].count),
  })
  const isPaced = rate !== null
  await send(isPaced ? WARM_UP / 4 : WARM_UP)
  const before = await spent()
  const messages = isPaced ? MESSAGES / 4 : MESSAGES
  await send(messages)
  const after = await spent()
  const each = (part: keyof Cost) => (after[part] - before[part]) / (messages * count)
  return { nodes: each('nodes'), database: each('database'), transactions: each('transactions') }
}

const TRANSACTIONS = 'SELECT sum(xact_commit) AS count FROM pg_stat_database'

/** Outcomes are written after the sink has replied. */
async function settled(client: pg.Client): Promise<void> {
  const sql = `SELECT 1 FROM deliveries WHERE state IN ('queued', 'sending') LIMIT 1`
  await until(
    'outcomes',
    SETTLE_LIMIT_MS,
    async () => (await client.query(sql)).rowCount === 0,
    LOOK_EVERY_MS,
  )
}
