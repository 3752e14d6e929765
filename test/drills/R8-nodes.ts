/**
 * R8, R9: processes on one PostgreSQL. First one, then three without a crash: each message is delivered exactly once, and
 * the CPU of nodes and database per message is reported. Then one of three is killed every five seconds and started again:
 * none is lost, and at most the open connections of the killed are repeated. At the end the events are as many as the
 * deliveries.
 *
 * PostgreSQL syncs to disk, as it must where its commits are promises. NODES_MESSAGES sets another number of messages.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { cpuSeconds } from '../../bench/support/processes.ts'
import type { DrillReport } from '../../scripts/drill.ts'
import { judge, post } from '../support/crash-rig.ts'
import { startPostgres } from '../support/postgres.ts'
import { ownAddress } from '../support/service.ts'
import { type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

export const title =
  'R8, R9: three nodes deliver each message once, and lose none when one is killed every 5 s'

const MESSAGES = Number(process.env['NODES_MESSAGES'] ?? 50_000)
const NODES = 3
const CLIENTS = 16
const CONNECTIONS_MAX = 30
const KILL_EVERY_MS = 5_000
const DRAIN_MAX_MS = 300_000
const PAUSE_MS = 20

interface Rig {
  nodes: ServiceProcess[]
  ledger: Set<string>
  sink: Sink
  /** Process id of PostgreSQL's first process. */
  postmaster: number
  restart(at: number): Promise<void>
  waiting(): Promise<number>
  events(): Promise<number>
  delivered(): Promise<number>
}

export async function run(report: DrillReport): Promise<void> {
  const cluster = await startPostgres({ settings: { fsync: 'on', synchronous_commit: 'on' } })
  const sink = await createSink({ host: ownAddress() })
  const database = new pg.Client({ connectionString: cluster.url })
  await database.connect()
  const folders = await Promise.all(
    Array.from({ length: NODES }, () => mkdtemp(join(tmpdir(), 'sendwright-drill-'))),
  )
  const start = (folder: string) =>
    startProcess(ownAddress(), {
      SENDWRIGHT_DATA: folder,
      SENDWRIGHT_DATABASE_URL: cluster.url,
      SENDWRIGHT_SECRET: 'secret-of-all-nodes-0123456789abcdef',
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
      SENDWRIGHT_RELAY_CONNECTIONS: String(CONNECTIONS_MAX),
    })
  const count = async (sql: string) => Number((await database.query(sql)).rows[0].count)
  const rig: Rig = {
    nodes: [],
    ledger: new Set(),
    sink,
    postmaster: parentOf(Number((await database.query('SELECT pg_backend_pid() AS pid')).rows[0].pid)),
    async restart(at) {
      await rig.nodes[at]?.end('SIGKILL')
      rig.nodes[at] = await start(folders[at] as string)
    },
    waiting: () => count(`SELECT count(*) FROM deliveries WHERE state IN ('scheduled', 'queued', 'sending')`),
    events: () => count(`SELECT count(*) FROM events WHERE event = 'delivered'`),
    delivered: () => count(`SELECT count(*) FROM deliveries WHERE state = 'delivered'`),
  }
  try {
    for (const count of [1, NODES]) {
      for (const folder of folders.slice(rig.nodes.length, count)) rig.nodes.push(await start(folder))
      await withoutCrash(rig, report)
    }
    await withKills(rig, report)
    report.figure('delivered events', await rig.events(), 'messages')
    assert.equal(await rig.events(), await rig.delivered(), 'one event for each delivery')
  } finally {
    for (const node of rig.nodes) await node.end('SIGKILL')
    await database.end()
    await sink.close()
    await cluster.stop()
    for (const folder of folders) await rm(folder, { recursive: true, force: true })
  }
}

async function withoutCrash(rig: Rig, report: DrillReport): Promise<void> {
  const { nodes, ledger, sink, postmaster } = rig
  const before = ledger.size
  const cpu = () =>
    [cpuSeconds(nodes.map(({ child }) => child.pid as number)), cpuSeconds([postmaster])] as const
  const [nodesBefore, databaseBefore] = cpu()
  await sendAll(rig, MESSAGES)
  await drained(rig)
  const [ofNodes, ofDatabase] = cpu()
  const sent = ledger.size - before
  const { lost, repeated } = judge(ledger, sink)
  const phase = nodes.length === 1 ? 'one node' : `${nodes.length} nodes`
  report.figure(`${phase}, messages`, sent)
  report.figure(`${phase}, lost and repeated`, `${lost.length} and ${repeated.length}`)
  report.figure(`${phase}, CPU of nodes`, perMessage(ofNodes - nodesBefore, sent), 'ms per message')
  report.figure(
    `${phase}, CPU of PostgreSQL`,
    perMessage(ofDatabase - databaseBefore, sent),
    'ms per message',
  )
  assert.deepEqual({ lost: lost.length, repeated: repeated.length }, { lost: 0, repeated: 0 })
}

const perMessage = (seconds: number, messages: number) => ((1000 * seconds) / messages).toFixed(3)

function parentOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  return Number(fields[1])
}

async function withKills(rig: Rig, report: DrillReport): Promise<void> {
  let sent = false
  let kills = 0
  const killing = (async () => {
    for (; !sent; kills++) {
      await sleep(KILL_EVERY_MS)
      await rig.restart(kills % NODES)
    }
  })()
  const before = rig.ledger.size
  await sendAll(rig, MESSAGES)
  sent = true
  await killing
  await drained(rig)
  const { lost, repeated } = judge(rig.ledger, rig.sink)
  report.figure('with kills', rig.ledger.size - before, 'messages')
  report.figure('kills', kills)
  report.figure('with kills, lost and repeated', `${lost.length} and ${repeated.length}`)
  assert.equal(lost.length, 0, `lost: ${lost.slice(0, 5)}`)
  // What was handed over and not answered for, of the killed one's share of the connections.
  const most = kills * Math.ceil(CONNECTIONS_MAX / NODES)
  assert.ok(repeated.length <= most, `${repeated.length} repeated, at most ${most}`)
}

/** From several clients, each to one node after the other; refused and broken calls are neither recorded nor repeated. */
async function sendAll(rig: Rig, count: number): Promise<void> {
  const target = rig.ledger.size + count
  let next = rig.ledger.size
  const client = async (number: number) => {
    for (let at = number; rig.ledger.size < target && next < 2 * target; at++) {
      const node = rig.nodes[at % rig.nodes.length] as ServiceProcess
      const answer = await post(node, { to: `user${next++}@example.org`, subject: 'drill', text: 'Hi.' })
      if ('id' in answer) rig.ledger.add(answer.id)
      else await sleep(PAUSE_MS)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)))
}

async function drained(rig: Rig): Promise<void> {
  const until = performance.now() + DRAIN_MAX_MS
  while ((await rig.waiting()) > 0) {
    if (performance.now() > until) throw new Error(`${await rig.waiting()} deliveries are still waiting`)
    await sleep(200)
  }
}
