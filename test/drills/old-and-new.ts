/**
 * Nodes of two programs on one PostgreSQL, as during an upgrade without a pause. A node of an older program works under load;
 * one of this program starts beside it and brings the schema up to date; both work for a minute (DRILL_SECONDS); then the older
 * one is stopped, is refused when it is started again, and this program goes on. Load is by HTTP and by SMTP, to both nodes.
 * No call fails before the older node is stopped, and at the end everything is delivered once, and events, counters and webhooks
 * are exact.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { DrillReport } from '../../scripts/drill.ts'
import { judgeExact, settled } from '../support/exact-end.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { call } from '../support/nodes.ts'
import { checkOut } from '../support/old-release.ts'
import { type OutageClients, startClients } from '../support/outage-rig.ts'
import { startPostgres } from '../support/postgres.ts'
import { ownAddress } from '../support/service.ts'
import { EndedAtStart, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'

export const title = 'Old and new: a node of an earlier program and one of this work side by side, exactly'

/**
 * The first program whose migrations only add (decision 117). Programs before it need not work on later schemas, and what this
 * one shows for the furthest distance holds for neighbours too. When a contraction removes something that it needs, name the
 * oldest program that does without.
 */
const OLD = process.env['OLD_PROGRAM'] ?? 'dfbeaf0b6a4f0f1e1e6ffaeb65a708856f17bc7e'
const BOTH_MS = 1_000 * Number(process.env['DRILL_SECONDS'] ?? 60)
const ALONE_MS = BOTH_MS / 4
/** Of each kind for each node; with the pause some 80 messages a second of both nodes. */
const CLIENTS = 4
const PAUSE_MS = 100
/** Places of the nodes in what the clients record. */
const OLDER = 0
const NEWER = 1

export async function run(report: DrillReport): Promise<void> {
  const closers: (() => unknown)[] = []
  try {
    const cluster = await startPostgres({ settings: { fsync: 'on', synchronous_commit: 'on' } })
    closers.push(() => cluster.stop())
    const sink = await createSink({ host: ownAddress() })
    closers.push(() => sink.close())
    const receiver = await createReceiver({ host: ownAddress() })
    closers.push(() => receiver.close())
    const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
    closers.push(() => rm(folder, { recursive: true, force: true }))
    const root = join(folder, 'old')
    checkOut(OLD, root)
    const envOf = (name: string) => ({
      SENDWRIGHT_DATA: join(folder, `data-${name}`),
      SENDWRIGHT_DATABASE_URL: cluster.url,
      SENDWRIGHT_SECRET: 'secret-of-all-nodes-0123456789abcdef',
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
      SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
      SENDWRIGHT_HOSTNAME: `${name}.example`,
    })
    const oldHost = ownAddress()
    const older = await startProcess(oldHost, envOf('older'), { root })
    closers.push(() => older.end('SIGKILL'))
    const database = new pg.Client({ connectionString: cluster.url })
    await database.connect()
    closers.push(() => database.end())
    const version = async () =>
      Number((await database.query('SELECT max(version) AS version FROM schema_versions')).rows[0].version)
    const schemaBefore = await version()
    for (const id of ['accepted', 'delivered'])
      await call(older, 'POST', `/v3/domains/${older.domain}/webhooks`, { id, url: receiver.url })
    const kinds = ['HTTP', 'submission'] as const

    const clients = await startClients([older], { each: CLIENTS, pauseMs: PAUSE_MS, kinds })
    await sleep(ALONE_MS)
    const newer = await startProcess(ownAddress(), envOf('newer'))
    closers.push(() => newer.end('SIGKILL'))
    clients.add(newer)
    report.figure('schema of the older and of this program', `${schemaBefore}, ${await version()}`)
    assert.ok((await version()) > schemaBefore, 'this program migrates')
    await sleep(BOTH_MS)
    const { nodes } = (await call(newer, 'GET', '/sendwright/v1/system')) as { nodes: unknown[] }
    assert.equal(nodes.length, 2)
    assert.deepEqual(refusals(clients), [], 'calls to both nodes')

    assert.equal(await older.end('SIGTERM'), 0)
    const again = await startProcess(oldHost, envOf('older'), { root }).catch((error: unknown) => error)
    assert.ok(again instanceof EndedAtStart)
    assert.match(again.message, /has schema version \d+, this program knows up to \d+/)
    await sleep(ALONE_MS)
    await clients.stop()
    assert.deepEqual(
      refusals(clients).filter(({ node }) => node === NEWER),
      [],
      'calls to the newer node',
    )

    await settled(database, receiver)
    report.figure('accepted by the older node', acceptedOf(clients, OLDER))
    report.figure('accepted by the newer node', acceptedOf(clients, NEWER))
    for (const name of ['older', 'newer']) {
      const delivered = sink.messages.filter(({ helo }) => helo === `${name}.example`).length
      report.figure(`delivered by the ${name} node`, delivered)
      assert.ok(delivered > 0, `the ${name} node delivers`)
    }
    const ledger = clients.outgoing
    await judgeExact({ report, ledger, repeatedMax: 0, messages: sink.messages, receiver, database })
  } finally {
    for (const close of closers.reverse()) await close()
  }
}

const refusals = ({ answers }: OutageClients) => answers.filter(({ accepted }) => !accepted)

function acceptedOf({ answers }: OutageClients, node: number): string {
  const accepted = answers.filter((answer) => answer.accepted && answer.node === node)
  const of = (kind: string) => accepted.filter((answer) => answer.kind === kind).length
  return `${of('HTTP')} by HTTP, ${of('submission')} by SMTP`
}
