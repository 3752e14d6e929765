/**
 * PgBouncer between the service and PostgreSQL (Debian's package `pgbouncer`).
 *
 * 1. Pooling by transactions or statements is refused at a start, by a sentence that says what to do.
 * 2. Two nodes through a pooler by sessions: mail over HTTP is accepted and delivered while the pooler is killed twice, the
 *    second time for AWAY_MS. Nothing is lost or repeated. PGBOUNCER_MESSAGES sets another number of messages.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { DrillReport } from '../../scripts/drill.ts'
import { judge, post } from '../support/crash-rig.ts'
import { hasPgBouncer, type PoolMode, startPgBouncer } from '../support/pgbouncer.ts'
import { startPostgres } from '../support/postgres.ts'
import { ownAddress } from '../support/service.ts'
import { EndedAtStart, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'

export const title =
  'PgBouncer: pooling by transactions is refused, by sessions nothing is lost, also when it is killed'

const MESSAGES = Number(process.env['PGBOUNCER_MESSAGES'] ?? 3_000)
const NODES = 2
const CLIENTS = 8
const AWAY_MS = 4_000
const AGAIN_MS = 100
const DRAIN_MAX_MS = 120_000
const SETTINGS = { fsync: 'on', synchronous_commit: 'on' }
const REFUSED =
  /Cannot use PostgreSQL through the pooler at 127\.\S+:6432, database "postgres": .*pool_mode = session/

export async function run(report: DrillReport): Promise<void> {
  assert.ok(hasPgBouncer(), 'pgbouncer is not installed')
  const cluster = await startPostgres({ settings: SETTINGS })
  const folders: string[] = []
  const start = async (env: Record<string, string>) => {
    const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
    folders.push(folder)
    const secret = 'secret-of-all-nodes-0123456789abcdef'
    return startProcess(ownAddress(), { SENDWRIGHT_DATA: folder, SENDWRIGHT_SECRET: secret, ...env })
  }
  try {
    for (const mode of ['transaction', 'statement'] as const)
      await refusal(
        mode,
        cluster.url,
        start,
        mode === 'transaction' ? REFUSED : /transaction blocks not allowed/,
      )
    report.figure('refused', 2, 'pool modes')
    await bySessions(cluster.url, start, report)
  } finally {
    await cluster.stop()
    for (const folder of folders) await rm(folder, { recursive: true })
  }
}

type Start = (env: Record<string, string>) => Promise<ServiceProcess>

async function refusal(mode: PoolMode, url: string, start: Start, sentence: RegExp): Promise<void> {
  const pooler = await startPgBouncer(url, mode)
  try {
    await assert.rejects(start({ SENDWRIGHT_DATABASE_URL: pooler.url }), (error: Error) => {
      assert.ok(error instanceof EndedAtStart, String(error))
      assert.match(error.message, sentence)
      return true
    })
  } finally {
    await pooler.close()
  }
}

async function bySessions(url: string, start: Start, report: DrillReport): Promise<void> {
  const pooler = await startPgBouncer(url, 'session')
  const sink = await createSink({ host: ownAddress() })
  const database = new pg.Client({ connectionString: url })
  await database.connect()
  const nodes: ServiceProcess[] = []
  try {
    for (let node = 0; node < NODES; node++)
      nodes.push(
        await start({
          SENDWRIGHT_DATABASE_URL: pooler.url,
          SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
        }),
      )
    const ledger = new Set<string>()
    let refused = 0
    let left = MESSAGES
    const client = async (at: number) => {
      while (left-- > 0) {
        for (;;) {
          const text = { to: `user${left}@example.net`, subject: 'Pooled', text: 'Hello.' }
          const answer = await post(nodes[at % NODES] as ServiceProcess, text)
          if ('id' in answer) {
            ledger.add(answer.id)
            break
          }
          assert.equal(answer.status, 503)
          refused++
          await sleep(AGAIN_MS)
        }
      }
    }
    const clients = Promise.all(Array.from({ length: CLIENTS }, (_, at) => client(at)))
    for (const [awayMs, share] of [
      [0, 1 / 3],
      [AWAY_MS, 2 / 3],
    ] as const) {
      while (ledger.size < MESSAGES * share) await sleep(AGAIN_MS)
      await pooler.kill()
      await sleep(awayMs)
      await pooler.start()
    }
    await clients
    const until = performance.now() + DRAIN_MAX_MS
    const waiting = `SELECT count(*) FROM deliveries WHERE state IN ('scheduled', 'queued', 'sending')`
    while (Number((await database.query(waiting)).rows[0].count) > 0 && performance.now() < until)
      await sleep(AGAIN_MS)
    const { lost, repeated } = judge(ledger, sink)
    const events = await database.query(`SELECT count(*) FROM events WHERE event = 'delivered'`)
    report.figure('accepted', ledger.size, 'messages')
    report.figure('refused with 503 meanwhile', refused)
    report.figure('lost', lost.length)
    report.figure('repeated', repeated.length)
    report.figure('events of a delivery', Number(events.rows[0].count))
    assert.deepEqual([lost, repeated], [[], []])
    for (const node of nodes) assert.equal(await node.end('SIGTERM'), 0)
  } finally {
    for (const node of nodes) await node.end('SIGKILL')
    await database.end()
    await sink.close()
    await pooler.close()
  }
}
