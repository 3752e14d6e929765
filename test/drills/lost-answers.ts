/**
 * Two nodes on one PostgreSQL, whose connections break after a commit was done and before its answer arrives: one commit of
 * twenty for a minute (DRILL_SECONDS), be it of new mail, claims, outcomes, counters or webhooks. Afterwards nothing waits, each
 * message in the database is delivered once, and events, counters and webhooks are exact.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { DrillReport } from '../../scripts/drill.ts'
import { judgeExact, settled } from '../support/exact-end.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { call } from '../support/nodes.ts'
import { startPostgres } from '../support/postgres.ts'
import { startPostgresRelay } from '../support/postgres-relay.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

export const title =
  'Lost answers: connections to PostgreSQL break between a commit and its answer; nothing stops, all is exact'

const RUN_MS = 1_000 * Number(process.env['DRILL_SECONDS'] ?? 60)
const CHANCE = 1 / 20
const NODES = 2
const CLIENTS_EACH = 4
const PAUSE_MS = 50
const CALL_MAX_MS = 10_000
/** Every so many messages one is due in some seconds: a poll claims it. */
const SCHEDULED_EVERY = 5
const SCHEDULED_IN_MS = 3_000

export async function run(report: DrillReport): Promise<void> {
  const closers: (() => unknown)[] = []
  const after = (close: () => unknown) => void closers.push(close)
  try {
    const cluster = await startPostgres()
    after(() => cluster.stop())
    const relay = await startPostgresRelay(cluster.url)
    after(() => relay.close())
    const sink = await createSink()
    after(() => sink.close())
    const receiver = await createReceiver({ host: ownAddress() })
    after(() => receiver.close())
    const nodes: ServiceProcess[] = []
    for (let number = 0; number < NODES; number++) {
      const node = await startProcess(ownAddress(), {
        SENDWRIGHT_DATA: await temporaryFolder({ after }),
        SENDWRIGHT_DATABASE_URL: relay.url,
        SENDWRIGHT_SECRET: 'secret-of-all-nodes-0123456789abcdef',
        SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
        SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
        SENDWRIGHT_RATE_LIMIT: '100000',
      })
      after(() => node.end('SIGKILL'))
      nodes.push(node)
    }
    const [first] = nodes as [ServiceProcess]
    for (const id of ['accepted', 'delivered'])
      await call(first, 'POST', `/v3/domains/${first.domain}/webhooks`, { id, url: receiver.url })

    const ledger = new Set<string>()
    const statuses = new Map<number, number>()
    const until = performance.now() + RUN_MS
    relay.cutCommits(CHANCE)
    await Promise.all(
      nodes.flatMap((node, at) =>
        Array.from({ length: CLIENTS_EACH }, (_, number) =>
          client(node, `n${at}-${number}`, { ledger, statuses, until }),
        ),
      ),
    )
    relay.cutCommits(0)
    report.figure('answers lost', relay.cuts)
    report.figure('answers to clients', JSON.stringify(Object.fromEntries(statuses)))
    const database = new pg.Client({ connectionString: cluster.url })
    await database.connect()
    after(() => database.end())
    await settled(database, receiver)
    // An outcome is written until it is there or another write of it was: no server sees a message twice.
    await judgeExact({ report, ledger, repeatedMax: 0, messages: sink.messages, receiver, database })
  } finally {
    for (const close of closers.reverse()) await close()
  }
}

interface Sent {
  ledger: Set<string>
  statuses: Map<number, number>
  until: number
}

async function client({ url, domain }: ServiceProcess, key: string, { ledger, statuses, until }: Sent) {
  for (let at = 0; performance.now() < until; at++) {
    const form = new URLSearchParams({
      from: `a@${domain}`,
      to: `${key}-${at}@example.org`,
      subject: 's',
      text: 'Hi.',
    })
    if (at % SCHEDULED_EVERY === 0)
      form.set('o:deliverytime', new Date(Date.now() + SCHEDULED_IN_MS).toUTCString())
    const answer = await fetch(`${url}/v3/${domain}/messages`, {
      method: 'POST',
      headers: { authorization: AUTHORIZATION },
      body: form,
      signal: AbortSignal.timeout(CALL_MAX_MS),
    }).catch(() => null)
    const status = answer?.status ?? 0
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    const body = (await answer?.json().catch(() => null)) as { id?: string } | null
    if (status === 200 && body?.id) ledger.add(body.id)
    await sleep(PAUSE_MS)
  }
}
