/**
 * Three pods on one PostgreSQL, each with one node, under load, while the node of one pod after the other is killed. No accepted
 * message is lost, a kill repeats at most what was past the final dot, every pod has exactly the events of its own
 * deliveries, and a round without kills repeats none.
 *
 * Then two of the pods have calls at a fixed pace, beside noise: at first from the third pod, then, as large, from a service with
 * a PostgreSQL of its own on the same machine, in turns. What sharing a database costs a neighbour is the difference: no session
 * may wait for a lock that one of another pod has, and the report has p99 of both.
 *
 * SENDWRIGHT_TEST_CITUS=postgres://... names the coordinator of a Citus cluster in place of a plain PostgreSQL (how to make one:
 * docs/scaling.md); its database should be empty. Schemas are then distributed, and one of them is moved between the workers under
 * load (`citus_schema_move`). With PODS_WORKER_KILL='command' the workers are killed in turn, too: the command gets host and port of a
 * worker, ends its server with SIGKILL, starts it again, and ends when that takes connections. PODS_MESSAGES sets another number
 * of messages for each of the two rounds, PODS_CALLS of calls of a pod beside each noise.
 */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import type { DrillReport } from '../../scripts/drill.ts'
import { SCHEMA_PREFIX, schemaOf } from '../../src/platform/store/pods/pod.ts'
import { judge, post } from '../support/crash-rig.ts'
import { startPostgres } from '../support/postgres.ts'
import { ownAddress } from '../support/service.ts'
import { authorizationOf, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

export const title =
  'Three pods on one PostgreSQL lose nothing and double nothing while their nodes are killed'

const CITUS = process.env['SENDWRIGHT_TEST_CITUS']
const WORKER_KILL = process.env['PODS_WORKER_KILL']
const MESSAGES = Number(process.env['PODS_MESSAGES'] ?? 20_000)
/** Of each quiet pod in one turn. */
const CALLS = Number(process.env['PODS_CALLS'] ?? 1_000)
const CALL_EVERY_MS = 50
const NOISE_TURNS = ['pod', 'stranger', 'stranger', 'pod', 'pod', 'stranger'] as const
const NOISE_CLIENTS = 4
const PODS = ['a', 'b', 'c'] as const
const CLIENTS_PER_POD = 4
const CONNECTIONS_MAX = 10
const KILL_EVERY_MS = 5_000
const MOVE_EVERY_MS = 10_000
const WORKER_KILL_EVERY_MS = 30_000
/** Without any delivery that ends. */
const STILL_MAX_MS = 300_000
const PAUSE_MS = 20
const LOOK_EVERY_MS = 100

interface Pod {
  name: string
  folder: string
  node: ServiceProcess
  ledger: Set<string>
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
    for (const name of PODS) {
      const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
      rig.pods.push({ name, folder, node: await start(rig, name, folder), ledger: new Set() })
    }
    await round(rig, report, 'quiet')
    await round(rig, report, 'kills')
    await noise(rig, report)
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

type Kind = 'quiet' | 'kills'

/** `kills`: nodes are killed in turn; on Citus a schema moves, and workers are killed. */
async function round(rig: Rig, report: DrillReport, kind: Kind): Promise<void> {
  const before = rig.pods.map(({ ledger }) => ledger.size)
  const over = new AbortController()
  const disturbing =
    kind === 'kills'
      ? [killing(rig, over.signal), moving(rig, report, over.signal), killingWorkers(rig, over.signal)]
      : []
  // Without its node a pod's clients would try for ever.
  for (const one of disturbing) one.catch(() => over.abort())
  const share = Math.ceil(MESSAGES / rig.pods.length)
  await Promise.all(
    rig.pods.map((pod, at) => sendAll(pod, CLIENTS_PER_POD, over.signal, (before[at] as number) + share)),
  )
  over.abort()
  const [kills = 0, moves = 0, workers = 0] = await Promise.all(disturbing)
  const sent = rig.pods.reduce((sum, { ledger }, at) => sum + ledger.size - (before[at] as number), 0)
  report.figure(`${kind}, messages`, sent)
  if (kind === 'kills') report.figure('kills, killed nodes', kills)
  if (kind === 'kills' && CITUS) report.figure('kills, moves of a schema', moves)
  if (kind === 'kills' && WORKER_KILL) report.figure('kills, killed workers', workers)
  // What was past the final dot and not answered for, on the connections of the killed node, or of all that lost a worker.
  rig.repeatedMax += (kills + workers * PODS.length) * CONNECTIONS_MAX
  await checkMessages(rig, report, kind)
}

async function checkMessages(rig: Rig, report: DrillReport, what: string): Promise<void> {
  await drained(rig)
  const all = new Set(rig.pods.flatMap(({ ledger }) => [...ledger]))
  const { lost, repeated } = judge(all, rig.sink)
  report.figure(`${what}, lost and repeated since the start`, `${lost.length} and ${repeated.length}`)
  assert.equal(lost.length, 0, `lost: ${lost.slice(0, 5)}`)
  assert.ok(repeated.length <= rig.repeatedMax, `${repeated.length} repeated, at most ${rig.repeatedMax}`)
}

async function noise(rig: Rig, report: DrillReport): Promise<void> {
  const [noisy, ...quiet] = rig.pods as [Pod, ...Pod[]]
  const cluster = await startPostgres({ settings: { fsync: 'on', synchronous_commit: 'on' } })
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const sink = await createSink({ host: ownAddress() })
  const stranger: Pod = {
    ...{ name: 'stranger', folder, ledger: new Set<string>() },
    node: await start({ url: cluster.url, sink }, 'stranger', folder),
  }
  const callsMs = { pod: quiet.map((): number[] => []), stranger: quiet.map((): number[] => []) }
  const messages = { pod: 0, stranger: 0 }
  try {
    for (const kind of NOISE_TURNS) {
      const source = kind === 'pod' ? noisy : stranger
      const over = new AbortController()
      const before = source.ledger.size
      const loud = sendAll(source, NOISE_CLIENTS * CLIENTS_PER_POD, over.signal)
      const watched = noWaits(rig, over.signal)
      watched.catch(() => over.abort())
      await Promise.all(quiet.map((pod, at) => sendPaced(pod, callsMs[kind][at] as number[], over.signal)))
      over.abort()
      await Promise.all([loud, watched])
      messages[kind] += source.ledger.size - before
    }
  } finally {
    await stranger.node.end('SIGKILL')
    await sink.close()
    await cluster.stop()
    await rm(folder, { recursive: true, force: true })
  }
  const names = { pod: 'beside a busy pod', stranger: 'beside a busy service with its own database' }
  for (const kind of ['pod', 'stranger'] as const) {
    report.figure(`${names[kind]}, messages of it`, messages[kind])
    const [p50s, p99s] = [0.5, 0.99].map((rank) => callsMs[kind].map((calls) => percentile(calls, rank)))
    report.figure(`${names[kind]}, p50 and p99 of calls by pod`, `${p50s} and ${p99s}`, 'ms')
  }
  await checkMessages(rig, report, 'noise')
}

/** A session's pod is that of a relation that it has locked, which it has while it waits for another's row. */
const WAITS = `WITH pods AS (
    SELECT DISTINCT pid, nspname FROM pg_locks JOIN pg_class ON pg_class.oid = relation
    JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE starts_with(nspname, '${SCHEMA_PREFIX}'))
  SELECT waiting.nspname AS waiting, blocking.nspname AS blocking, query FROM pg_stat_activity
  CROSS JOIN LATERAL unnest(pg_blocking_pids(pg_stat_activity.pid)) AS blocker
  JOIN pods AS waiting ON waiting.pid = pg_stat_activity.pid
  JOIN pods AS blocking ON blocking.pid = blocker
  WHERE wait_event_type = 'Lock' AND waiting.nspname <> blocking.nspname`

/** Rejects if a session waits for a lock of another pod's. */
async function noWaits({ database }: Rig, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const { rows } = await database.query(WAITS)
    assert.deepEqual(rows, [], 'a session waits for one of another pod')
    await sleep(LOOK_EVERY_MS)
  }
}

function percentile(callsMs: readonly number[], rank: number): string {
  const sorted = callsMs.toSorted((a, b) => a - b)
  return (sorted[Math.floor(sorted.length * rank)] ?? 0).toFixed(0)
}

/** Resolves to the number of killed nodes. */
async function killing(rig: Rig, signal: AbortSignal): Promise<number> {
  for (let kills = 0; ; kills++) {
    await sleep(KILL_EVERY_MS, null, { signal }).catch(() => {})
    if (signal.aborted) return kills
    const pod = rig.pods[kills % rig.pods.length] as Pod
    await pod.node.end('SIGKILL')
    pod.node = await startAgain(rig, pod)
  }
}

/** A node that finds no worker ends; whatever keeps services running starts it again. */
async function startAgain(rig: Rig, { name, folder }: Pod): Promise<ServiceProcess> {
  for (;;) {
    try {
      return await start(rig, name, folder)
    } catch (error) {
      if (!WORKER_KILL) throw error
    }
  }
}

const WORKERS = `SELECT groupid, nodename, nodeport FROM pg_dist_node
  WHERE isactive AND shouldhaveshards AND noderole = 'primary' ORDER BY nodename, nodeport`

const PLACE = `SELECT groupid FROM pg_dist_placement JOIN pg_dist_shard USING (shardid)
  JOIN pg_class ON pg_class.oid = logicalrelid WHERE relnamespace = $1::regnamespace LIMIT 1`

/** On Citus moves the schema of the first pod to another worker again and again. Resolves to the number of moves. */
async function moving({ database }: Rig, report: DrillReport, signal: AbortSignal): Promise<number> {
  if (!CITUS) return 0
  const schema = schemaOf('a')
  for (let moves = 0; ; ) {
    await sleep(MOVE_EVERY_MS, null, { signal }).catch(() => {})
    if (signal.aborted) return moves
    const { rows: workers } = await database.query(WORKERS)
    const { rows: places } = await database.query(PLACE, [schema])
    const { nodename, nodeport } = workers.find(({ groupid }) => groupid !== places[0].groupid)
    try {
      await database.query('SELECT citus_schema_move($1::regnamespace, $2::text, $3::int)', [
        schema,
        nodename,
        nodeport,
      ])
      moves++
    } catch (error) {
      // It has changed nothing: a worker was killed, or Citus has not removed yet what the last move left.
      report.note(`a move failed: ${(error as Error).message}`)
    }
  }
}

/** Kills the workers in turn. Resolves to the number of kills. */
async function killingWorkers({ database }: Rig, signal: AbortSignal): Promise<number> {
  if (!CITUS || !WORKER_KILL) return 0
  const { rows: workers } = await database.query(WORKERS)
  for (let kills = 0; ; kills++) {
    await sleep(WORKER_KILL_EVERY_MS, null, { signal }).catch(() => {})
    if (signal.aborted) return kills
    const { nodename, nodeport } = workers[kills % workers.length]
    await promisify(execFile)('sh', ['-c', `${WORKER_KILL} "$@"`, 'sh', nodename, String(nodeport)])
  }
}

/** From so many clients, until the pod has `target` messages. Refused and broken calls are neither recorded nor repeated. */
async function sendAll(
  pod: Pod,
  clients: number,
  signal: AbortSignal,
  target = Number.POSITIVE_INFINITY,
): Promise<void> {
  const client = async () => {
    while (pod.ledger.size < target && !signal.aborted) if (!(await sendOne(pod))) await sleep(PAUSE_MS)
  }
  await Promise.all(Array.from({ length: clients }, client))
}

/** A call begins at its time, however long the ones before it take. */
async function sendPaced(pod: Pod, callsMs: number[], signal: AbortSignal): Promise<void> {
  const calls: Promise<void>[] = []
  for (let call = 0; call < CALLS && !signal.aborted; call++) {
    const from = performance.now()
    calls.push(sendOne(pod).then((isTaken) => void (isTaken && callsMs.push(performance.now() - from))))
    await sleep(CALL_EVERY_MS)
  }
  await Promise.all(calls)
}

/** Whether it was accepted. */
async function sendOne({ name, node, ledger }: Pod): Promise<boolean> {
  const to = `user${ledger.size}@${name}.example.org`
  const answer = await post(node, { to, subject: 'drill', text: 'Hi.' }, authorizationOf(keyOf(name)))
  if ('id' in answer) ledger.add(answer.id)
  return 'id' in answer
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
