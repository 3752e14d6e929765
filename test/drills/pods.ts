/**
 * Three pods on one PostgreSQL, each with one node, under load, while the node of one pod after the other is killed. No accepted
 * message is lost, a kill repeats at most what was past the final dot, every pod has exactly the events of its own
 * deliveries, and a second round without kills repeats none.
 *
 * SENDWRIGHT_TEST_CITUS=postgres://... names the coordinator of a Citus cluster in place of a plain PostgreSQL; its database
 * should be empty. Schemas are then distributed, and one of them is moved between the workers under load
 * (`citus_schema_move`). PODS_MESSAGES sets another number of messages for each round.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { DrillReport } from '../../scripts/drill.ts'
import { schemaOf } from '../../src/platform/store/pods/pod.ts'
import { judge, post } from '../support/crash-rig.ts'
import { startPostgres } from '../support/postgres.ts'
import { ownAddress } from '../support/service.ts'
import { authorizationOf, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

export const title =
  'Three pods on one PostgreSQL lose nothing and double nothing while their nodes are killed'

const CITUS = process.env['SENDWRIGHT_TEST_CITUS']
const MESSAGES = Number(process.env['PODS_MESSAGES'] ?? 20_000)
const PODS = ['a', 'b', 'c'] as const
const CLIENTS_PER_POD = 4
const CONNECTIONS_MAX = 10
const KILL_EVERY_MS = 5_000
const MOVE_EVERY_MS = 10_000
/** Without any delivery that ends. */
const STILL_MAX_MS = 300_000
const PAUSE_MS = 20

interface Pod {
  name: string
  folder: string
  node: ServiceProcess
  ledger: Set<string>
  /** Milliseconds of each accepted call. */
  callsMs: number[]
}

interface Rig {
  url: string
  database: pg.Client
  sink: Sink
  pods: Pod[]
  /** What the kills may have repeated. */
  repeatedMax: number
}

export async function run(report: DrillReport): Promise<void> {
  const cluster = CITUS ? null : await startPostgres({ settings: { fsync: 'on', synchronous_commit: 'on' } })
  const url = CITUS ?? (cluster?.url as string)
  const sink = await createSink({ host: ownAddress() })
  const database = new pg.Client({ connectionString: url })
  await database.connect()
  const rig: Rig = { url, database, sink, pods: [], repeatedMax: 0 }
  try {
    if (CITUS) {
      const { rows } = await database.query('SELECT current_database() AS name')
      // The tags of events are written by triggers.
      await database.query(`ALTER DATABASE "${rows[0].name}" SET citus.enable_unsafe_triggers = on`)
    }
    for (const name of PODS) {
      const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
      rig.pods.push({ name, folder, node: await start(rig, name, folder), ledger: new Set(), callsMs: [] })
    }
    await round(rig, report, 'quiet')
    await round(rig, report, 'kills')
    await round(rig, report, 'neighbour')
    await checkEvents(rig, report)
  } finally {
    for (const { node } of rig.pods) await node.end('SIGKILL')
    await database.end()
    await sink.close()
    await cluster?.stop()
    for (const { folder } of rig.pods) await rm(folder, { recursive: true, force: true })
  }
}

const start = ({ url, sink }: Pick<Rig, 'url' | 'sink'>, name: string, folder: string) => {
  const env = {
    SENDWRIGHT_DATA: folder,
    SENDWRIGHT_DATABASE_URL: url,
    SENDWRIGHT_POD: name,
    SENDWRIGHT_API_KEY: keyOf(name),
    SENDWRIGHT_SECRET: 'secret-of-all-pods-0123456789abcdef',
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_RELAY_CONNECTIONS: String(CONNECTIONS_MAX),
  }
  return startProcess(ownAddress(), env, { startMaxMs: Number.POSITIVE_INFINITY })
}

const keyOf = (pod: string) => `key-of-the-pod-${pod}-0123456789`

type Kind = 'quiet' | 'kills' | 'neighbour'

/**
 * `quiet`: each pod has its load. `kills`: nodes are killed in turn, and on Citus a schema moves. `neighbour`: the first pod has
 * four times the clients of the others.
 */
async function round(rig: Rig, report: DrillReport, kind: Kind): Promise<void> {
  const before = rig.pods.map(({ ledger }) => ledger.size)
  for (const pod of rig.pods) pod.callsMs = []
  const over = new AbortController()
  const disturbing = kind === 'kills' ? [killing(rig, over.signal), moving(rig, over.signal)] : []
  // Without its node a pod's clients would try for ever.
  for (const one of disturbing) one.catch(() => over.abort())
  const share = Math.ceil(MESSAGES / rig.pods.length)
  await Promise.all(
    rig.pods.map((pod, at) =>
      sendAll(pod, (before[at] as number) + share, kind === 'neighbour' && at === 0 ? 4 : 1, over.signal),
    ),
  )
  over.abort()
  const [kills = 0, moves = 0] = await Promise.all(disturbing)
  await drained(rig)
  const all = new Set(rig.pods.flatMap(({ ledger }) => [...ledger]))
  const { lost, repeated } = judge(all, rig.sink)
  const sent = all.size - before.reduce((sum, size) => sum + size, 0)
  report.figure(`${kind}, messages`, sent)
  if (kind === 'kills') report.figure('kills, killed nodes', kills)
  if (kind === 'kills' && CITUS) report.figure('kills, moves of a schema', moves)
  report.figure(`${kind}, lost and repeated since the start`, `${lost.length} and ${repeated.length}`)
  report.figure(`${kind}, p99 of calls by pod`, rig.pods.map(p99).join(', '), 'ms')
  assert.equal(lost.length, 0, `lost: ${lost.slice(0, 5)}`)
  // What was past the final dot and not answered for, on the connections of the killed one.
  rig.repeatedMax += kills * CONNECTIONS_MAX
  assert.ok(repeated.length <= rig.repeatedMax, `${repeated.length} repeated, at most ${rig.repeatedMax}`)
}

function p99({ callsMs }: Pod): string {
  const sorted = callsMs.toSorted((a, b) => a - b)
  return (sorted[Math.floor(sorted.length * 0.99)] ?? 0).toFixed(0)
}

/** Resolves to the number of killed nodes. */
async function killing(rig: Rig, signal: AbortSignal): Promise<number> {
  for (let kills = 0; ; kills++) {
    await sleep(KILL_EVERY_MS, null, { signal }).catch(() => {})
    if (signal.aborted) return kills
    const pod = rig.pods[kills % rig.pods.length] as Pod
    await pod.node.end('SIGKILL')
    pod.node = await start(rig, pod.name, pod.folder)
  }
}

/** On Citus moves the schema of the first pod to each of the workers in turn. Resolves to the number of moves. */
async function moving({ database }: Rig, signal: AbortSignal): Promise<number> {
  if (!CITUS) return 0
  const { rows: workers } = await database.query(
    "SELECT nodename, nodeport FROM pg_dist_node WHERE isactive AND shouldhaveshards AND noderole = 'primary' ORDER BY 1, 2",
  )
  for (let moves = 0; ; moves++) {
    await sleep(MOVE_EVERY_MS, null, { signal }).catch(() => {})
    if (signal.aborted) return moves
    const { nodename, nodeport } = workers[moves % workers.length]
    // Where it already is, Citus says so by an error.
    await database
      .query('SELECT citus_schema_move($1::regnamespace, $2, $3)', [schemaOf('a'), nodename, nodeport])
      .catch((error: Error) => {
        if (!/already|same/i.test(error.message)) throw error
      })
  }
}

/** Refused and broken calls are neither recorded nor repeated. */
async function sendAll(pod: Pod, target: number, factor: number, signal: AbortSignal): Promise<void> {
  const { ledger, callsMs } = pod
  let next = ledger.size
  const authorization = authorizationOf(keyOf(pod.name))
  const client = async () => {
    while (ledger.size < target && !signal.aborted) {
      const to = `user${next++}@${pod.name}.example.org`
      const from = performance.now()
      const answer = await post(pod.node, { to, subject: 'drill', text: 'Hi.' }, authorization)
      if ('id' in answer) {
        ledger.add(answer.id)
        callsMs.push(performance.now() - from)
      } else await sleep(PAUSE_MS)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS_PER_POD * factor }, client))
}

const count = async ({ database }: Rig, sql: string) => Number((await database.query(sql)).rows[0].count)

async function drained(rig: Rig): Promise<void> {
  for (const { name } of rig.pods) {
    const waiting = () =>
      count(
        rig,
        `SELECT count(*) FROM ${schemaOf(name)}.deliveries WHERE state IN ('scheduled', 'queued', 'sending')`,
      )
    let before = Number.POSITIVE_INFINITY
    let until = 0
    for (let left = await waiting(); left > 0; left = await waiting()) {
      if (left < before) until = performance.now() + STILL_MAX_MS
      else if (performance.now() > until) throw new Error(`${left} deliveries of pod ${name} wait for ever`)
      before = Math.min(left, before)
      await sleep(200)
    }
  }
}

/** Every pod has one event for each of its deliveries, and none of another pod. */
async function checkEvents(rig: Rig, report: DrillReport): Promise<void> {
  for (const { name, node } of rig.pods) {
    const schema = schemaOf(name)
    const events = await count(rig, `SELECT count(*) FROM ${schema}.events WHERE event = 'delivered'`)
    const deliveries = await count(rig, `SELECT count(*) FROM ${schema}.deliveries WHERE state = 'delivered'`)
    const foreign = await count(
      rig,
      `SELECT count(*) FROM ${schema}.events WHERE domain_name <> '${node.domain}'`,
    )
    report.figure(`pod ${name}, delivered events`, events)
    assert.deepEqual({ events, foreign }, { events: deliveries, foreign: 0 })
  }
}
