/**
 * R10: the database is away under three nodes that accept mail over HTTP and SMTP, on two PostgreSQL with synchronous
 * replication. AWAY_SECONDS sets another length for the first outage.
 *
 * 1. It is stopped for 60 seconds and started again.
 * 2. It is stopped for good, and its standby is promoted.
 * 3. The new primary freezes, as a machine does that lost its network: nothing is refused, nothing answered. A further
 *    standby is promoted, and the frozen one is ended before it wakes up.
 *
 * In each outage calls get 503 with Retry-After and SMTP clients 451; afterwards everything is accepted again within ten
 * seconds. At the end nothing that was accepted is missing.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { DrillReport } from '../../scripts/drill.ts'
import { judge } from '../support/crash-rig.ts'
import {
  answersBetween,
  INCOMING_ENV,
  type OutageClients,
  recoveryMs,
  severalHosts,
  startClients,
} from '../support/outage-rig.ts'
import { type PostgresCluster, startPostgres } from '../support/postgres.ts'
import { ownAddress } from '../support/service.ts'
import { type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'

export const title =
  'R10: PostgreSQL away for 60 s, and failing over: 503 and 451 meanwhile, nothing lost, back within 10 s'

const NODES = 3
const AWAY_MS = 1000 * Number(process.env['AWAY_SECONDS'] ?? 60)
/** Before somebody, or a program, promotes the standby. */
const NOTICED_AFTER_MS = 10_000
/** A call that was under way waits for six seconds, and for the attempts to find another server. */
const FROZEN_MS = 20_000
const BETWEEN_MS = 5_000
const RECOVERY_MAX_MS = 10_000
const DRAIN_MAX_MS = 60_000
const CLIENTS = { each: 2, pauseMs: 100 }
const SETTINGS = { fsync: 'on', synchronous_commit: 'on', wal_retrieve_retry_interval: '500ms' }
/** Of a call that was answered 503. A server that is frozen is waited for. */
const REFUSED = /^(HTTP: 503 Retry-After|submission: 451 .*|incoming: 451 .*)$/

export async function run(report: DrillReport): Promise<void> {
  const clusters = [await startPostgres({ settings: SETTINGS })]
  const sink = await createSink({ host: ownAddress() })
  const nodes: ServiceProcess[] = []
  const folders: string[] = []
  let clients: OutageClients | null = null
  try {
    const [first] = clusters as [PostgresCluster]
    const second = await first.startStandby()
    clusters.push(second)
    const url = severalHosts([first, second])
    for (let node = 0; node < NODES; node++) {
      folders.push(await mkdtemp(join(tmpdir(), 'sendwright-drill-')))
      nodes.push(
        await startProcess(ownAddress(), {
          ...INCOMING_ENV,
          SENDWRIGHT_DATA: folders[node] as string,
          SENDWRIGHT_DATABASE_URL: url,
          SENDWRIGHT_SECRET: 'secret-of-all-nodes-0123456789abcdef',
          SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
        }),
      )
    }
    clients = await startClients(nodes, CLIENTS)
    await sleep(BETWEEN_MS)

    const outage = async (
      name: string,
      breaks: () => Promise<void>,
      ms: number,
      mends: () => Promise<void>,
    ) => {
      report.note(name)
      const { answers } = clients as OutageClients
      await breaks()
      const from = performance.now()
      await sleep(ms)
      const to = performance.now()
      await mends()
      const back = performance.now()
      while (recoveryMs(answers, back, NODES) === null && performance.now() - back < 6 * RECOVERY_MAX_MS)
        await sleep(50)
      const recovered = recoveryMs(answers, back, NODES) ?? Number.POSITIVE_INFINITY
      const { counts, slowestMs } = answersBetween(answers, from, to)
      for (const [answer, count] of Object.entries(counts)) report.figure(`${name}, ${answer}`, count)
      report.figure(`${name}, slowest answer`, slowestMs / 1000, 's')
      report.figure(`${name}, accepted everywhere after`, recovered / 1000, 's')
      for (const answer of Object.keys(counts)) assert.match(answer, REFUSED, name)
      for (const kind of ['HTTP', 'submission', 'incoming'])
        assert.ok(
          Object.keys(counts).some((answer) => answer.startsWith(kind)),
          `${name}: no answer to ${kind}`,
        )
      assert.ok(recovered <= RECOVERY_MAX_MS, `${name}: back after ${recovered} ms`)
      await sleep(BETWEEN_MS)
    }
    await outage(
      'stopped and started',
      () => first.crash(),
      AWAY_MS,
      () => first.resume(),
    )
    await outage(
      'failed over',
      () => first.stop(),
      NOTICED_AFTER_MS,
      () => second.promote(),
    )
    await clients.pause()
    // The machine of the first primary is set up as a standby of the second.
    const third = await second.startStandby(Number(new URL(first.url).port))
    clusters.push(third)
    clients.go()
    await sleep(BETWEEN_MS)
    await outage(
      'frozen',
      async () => second.freeze(),
      FROZEN_MS,
      () => third.promote(),
    )
    await second.stop()

    await clients.stop()
    const database = new pg.Client({ connectionString: third.url })
    await database.connect()
    try {
      const count = async (sql: string) => Number((await database.query(sql)).rows[0].count)
      const waiting = `SELECT count(*) FROM deliveries WHERE state IN ('scheduled', 'queued', 'sending')`
      const until = performance.now() + DRAIN_MAX_MS
      while ((await count(waiting)) > 0) {
        assert.ok(performance.now() < until, `${await count(waiting)} deliveries are still waiting`)
        await sleep(200)
      }
      const { rows } = await database.query(`SELECT DISTINCT message_id FROM events WHERE event = 'stored'`)
      const stored = new Set(rows.map(({ message_id: id }) => `<${id.replace(/[<>]/g, '')}>`))
      const missing = [...clients.incoming].filter((id) => !stored.has(id))
      const { lost, repeated } = judge(clients.outgoing, sink)
      report.figure(
        'accepted, outgoing and incoming',
        `${clients.outgoing.size} and ${clients.incoming.size}`,
      )
      report.figure('lost, outgoing and incoming', `${lost.length} and ${missing.length}`)
      report.figure('repeated', repeated.length)
      assert.deepEqual({ lost, missing, repeated }, { lost: [], missing: [], repeated: [] })
      assert.equal(
        await count(`SELECT count(*) FROM events WHERE event = 'delivered'`),
        await count(`SELECT count(*) FROM deliveries WHERE state = 'delivered'`),
        'one event for each delivery',
      )
    } finally {
      await database.end()
    }
    for (const node of nodes) assert.doesNotMatch(node.output(), /is dead|for dead/)
  } finally {
    await clients?.stop()
    for (const node of nodes) await node.end('SIGKILL')
    await sink.close()
    for (const cluster of clusters) await cluster.stop()
    for (const folder of folders) await rm(folder, { recursive: true, force: true })
  }
}
