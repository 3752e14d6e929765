/**
 * Three nodes on one PostgreSQL come and go at random under load for ten minutes (DRILL_MINUTES): SIGTERM, SIGKILL, and
 * SIGSTOP for a while, longer or shorter than a node may be silent. At the end everything is exact:
 *
 * - every accepted message is delivered, and repeated at most where a node was killed or frozen, once for each connection;
 * - each message has one accepted event and each delivery one delivered event, and the counters say the same;
 * - each event was posted to its webhook, with its id in each repetition;
 * - a provider with a limited rate never got more in any minute than it allows, plus two per cent.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { DrillReport } from '../../scripts/drill.ts'
import { SPLIT_NUMBERS, UNIT_NUMBERS } from '../../src/metrics/splits.ts'
import { judge } from '../support/crash-rig.ts'
import { createReceiver, type Receiver } from '../support/http-receiver.ts'
import { createInternet } from '../support/internet.ts'
import { call } from '../support/nodes.ts'
import { startPostgres } from '../support/postgres.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import type { Sink, SinkMessage } from '../support/smtp-sink.ts'

export const title =
  'Come and go: nodes are stopped, killed and frozen at random; events, counters, webhooks and limits stay exact'

const RUN_MS = 60_000 * Number(process.env['DRILL_MINUTES'] ?? 10)
const NODES = 3
const CLIENTS = 8
/** Between two messages of a client: some 40 messages a second. */
const PAUSE_MS = 200
/** A node that is frozen takes calls in and does not answer them. */
const CALL_MAX_MS = 5_000
const LIMIT_PER_SECOND = 5
/** That much more is sent to the provider with a limit than it takes, so that the limit binds from the start to the end. */
const LIMITED_AHEAD = 100
const CONNECTIONS_MAX = 10
/** Between two changes of one node. */
const STEADY_MS = [4_000, 20_000] as const
/** For as long a frozen node may be silent or not: it is dead after six seconds. */
const FROZEN_MS = [500, 15_000] as const
const GONE_MS = [0, 10_000] as const
const DRAIN_MAX_MS = 300_000
const WINDOW_MS = 60_000
/** Attempts of each node are spaced evenly: a window may begin and end with one of each. */
const WINDOW_EDGE = NODES

/** A place for a node, with its own data folder. */
interface Place {
  start(): Promise<void>
  node: ServiceProcess | null
}

interface Done {
  stops: number
  kills: number
  freezes: number
  exitCodes: Set<number | null>
}

export async function run(report: DrillReport): Promise<void> {
  const closers: (() => unknown)[] = []
  const after = (close: () => unknown) => void closers.push(close)
  try {
    const cluster = await startPostgres({ settings: { fsync: 'on', synchronous_commit: 'on' } })
    after(() => cluster.stop())
    const internet = await createInternet({ after } as Parameters<typeof createInternet>[0])
    const limited = await internet.site(['limited.example'])
    const plain = await internet.site(['plain.example'])
    const receiver = await createReceiver({ host: ownAddress() })
    after(() => receiver.close())
    const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
    after(() => rm(folder, { recursive: true, force: true }))
    const shaping = join(folder, 'shaping.json')
    await writeFile(shaping, shapingFile())
    const env = {
      ...internet.env,
      SENDWRIGHT_DATABASE_URL: cluster.url,
      SENDWRIGHT_SECRET: 'secret-of-all-nodes-0123456789abcdef',
      SENDWRIGHT_SHAPING: shaping,
    }
    const places = Array.from({ length: NODES }, (_, number) => place(join(folder, `data${number}`), env))
    after(() => Promise.all(places.map(({ node }) => node?.end('SIGKILL'))))
    for (const { start } of places) await start()
    const { node: first } = places[0] as { node: ServiceProcess }
    const { domain } = first
    for (const id of ['accepted', 'delivered'])
      await call(first, 'POST', `/v3/domains/${domain}/webhooks`, { id, url: receiver.url })

    const ledger = new Set<string>()
    const done: Done = { stops: 0, kills: 0, freezes: 0, exitCodes: new Set() }
    const until = performance.now() + RUN_MS
    const site = chooseSite(performance.now())
    const noting = setInterval(() => report.note(`${ledger.size} accepted, ${JSON.stringify(done)}`), 60_000)
    await Promise.all([
      ...places.map((own) => comeAndGo(own, until, done)),
      ...Array.from({ length: CLIENTS }, (_, number) => client(number, places, site, ledger, until)),
    ]).finally(() => clearInterval(noting))

    const database = new pg.Client({ connectionString: cluster.url })
    await database.connect()
    after(() => database.end())
    const count = async (sql: string) => Number((await database.query(sql)).rows[0].count)
    await settled(count, receiver)
    report.figure('stopped, killed, frozen', `${done.stops}, ${done.kills}, ${done.freezes}`)
    report.figure('exit codes of stops', [...done.exitCodes].join(', '))
    await judgeAll({ report, ledger, done, sinks: [plain, limited], receiver, database, count })
    judgeRate(limited.messages, report)
  } finally {
    for (const close of closers.reverse()) await close()
  }
}

function shapingFile(): string {
  const site = (name: string, more: object) => ({
    ...{ site: name, mx: [`mx.${name}.example`], connections: CONNECTIONS_MAX },
    ...more,
  })
  const providers = [site('plain', {}), site('limited', { rate: `${60 * LIMIT_PER_SECOND}/1m` })]
  return JSON.stringify({ version: 'come-and-go', providers })
}

function place(data: string, env: Record<string, string>): Place {
  const host = ownAddress()
  const own: Place = {
    node: null,
    async start() {
      own.node = await startProcess(host, { ...env, SENDWRIGHT_DATA: data })
    },
  }
  return own
}

const between = ([least, most]: readonly [number, number]) => least + Math.random() * (most - least)

async function comeAndGo(own: Place, until: number, done: Done): Promise<void> {
  for (;;) {
    await sleep(between(STEADY_MS))
    if (performance.now() >= until) return
    const node = own.node as ServiceProcess
    const chance = Math.random()
    if (chance < 1 / 3) {
      node.child.kill('SIGSTOP')
      await sleep(between(FROZEN_MS))
      node.child.kill('SIGCONT')
      done.freezes++
      continue
    }
    own.node = null
    if (chance < 2 / 3) {
      await node.end('SIGKILL')
      done.kills++
    } else {
      done.exitCodes.add(await node.end('SIGTERM'))
      done.stops++
    }
    await sleep(between(GONE_MS))
    await own.start()
  }
}

function chooseSite(begunAt: number): () => 'limited' | 'plain' {
  let limited = 0
  return () => {
    const taken = (LIMIT_PER_SECOND * (performance.now() - begunAt)) / 1000
    if (limited >= taken + LIMITED_AHEAD) return 'plain'
    limited++
    return 'limited'
  }
}

/** Sends to any node that is there. What was not answered with 200 is neither recorded nor sent again. */
async function client(
  number: number,
  places: readonly Place[],
  chosen: () => 'limited' | 'plain',
  ledger: Set<string>,
  until: number,
): Promise<void> {
  for (let at = number; performance.now() < until; at++) {
    const present = places.flatMap(({ node }) => node ?? [])
    const node = present[Math.floor(Math.random() * present.length)]
    if (node) {
      const { domain } = node
      const to = `u${number}-${at}@${chosen()}.example`
      const form = { from: `a@${domain}`, to, subject: 's', text: 'Hi.' }
      const id = await fetch(`${node.url}/v3/${domain}/messages`, {
        method: 'POST',
        headers: { authorization: AUTHORIZATION },
        body: new URLSearchParams(form),
        signal: AbortSignal.timeout(CALL_MAX_MS),
      })
        .then(async (answer) => (answer.status === 200 ? ((await answer.json()) as { id: string }).id : null))
        .catch(() => null)
      if (id !== null) ledger.add(id)
    }
    await sleep(PAUSE_MS)
  }
}

type Count = (sql: string) => Promise<number>

/** Nothing waits, neither mail nor posts nor events that are to be counted. */
async function settled(count: Count, receiver: Receiver): Promise<void> {
  const until = performance.now() + DRAIN_MAX_MS
  const waiting = async () => ({
    deliveries: await count(
      `SELECT count(*) FROM deliveries WHERE state IN ('scheduled', 'queued', 'sending')`,
    ),
    posts: await count('SELECT count(*) FROM outgoing_posts'),
    uncounted: await count(`SELECT count(*) FROM events, event_followers
      WHERE name = 'counters' AND (events.tx, events.seq) > (event_followers.tx, event_followers.seq)`),
  })
  for (let posted = -1; ; await sleep(1_000)) {
    const left = await waiting()
    const isStill = receiver.posts.length === posted
    posted = receiver.posts.length
    if (isStill && Object.values(left).every((number) => number === 0)) return
    assert.ok(performance.now() < until, `still waiting: ${JSON.stringify(left)}`)
  }
}

interface Judged {
  report: DrillReport
  ledger: ReadonlySet<string>
  done: Done
  sinks: readonly Sink[]
  receiver: Receiver
  database: pg.Client
  count: Count
}

async function judgeAll({ report, ledger, done, sinks, receiver, database, count }: Judged): Promise<void> {
  const messages = sinks.flatMap((sink) => sink.messages)
  const { lost, repeated } = judge(ledger, { messages } as Sink)
  const rows = await count('SELECT count(*) FROM messages')
  report.figure('accepted, and in the database', `${ledger.size} and ${rows}`)
  report.figure('lost, repeated', `${lost.length}, ${repeated.length}`)
  assert.deepEqual(lost, [])
  const most = (done.kills + done.freezes) * sinks.length * CONNECTIONS_MAX
  assert.ok(repeated.length <= most, `${repeated.length} repeated, at most ${most}`)

  const events = (await database.query(`SELECT id, event FROM events`)).rows as {
    id: string
    event: string
  }[]
  const of = (name: string) => events.filter(({ event }) => event === name)
  const [accepted, delivered] = [of('accepted'), of('delivered')]
  const kinds = [...new Set(events.map(({ event }) => event))].sort()
  report.figure('events: accepted, delivered', `${accepted.length}, ${delivered.length}`)
  assert.deepEqual(kinds, ['accepted', 'delivered'])
  assert.deepEqual([accepted.length, delivered.length], [rows, rows])

  const sums = (
    await database.query(
      `SELECT sum(accepted_outgoing) AS accepted, sum(delivered_smtp) AS delivered FROM figures
        JOIN figure_scopes ON figure_scopes.no = figures.scope
        WHERE domain_name = '' AND split = $1 AND unit = $2`,
      [SPLIT_NUMBERS.none, UNIT_NUMBERS.hour],
    )
  ).rows[0]
  report.figure('counters: accepted, delivered', `${sums.accepted}, ${sums.delivered}`)
  assert.deepEqual([Number(sums.accepted), Number(sums.delivered)], [rows, rows])

  const posts = receiver.posts.map(({ body }) => body['event-data'].id as string)
  const posted = new Set(posts)
  const unposted = events.filter(({ id }) => !posted.has(id))
  report.figure('events posted, posts repeated', `${posted.size}, ${posts.length - posted.size}`)
  assert.deepEqual(unposted, [], 'events that were not posted')
  assert.equal(posted.size, events.length, 'nothing else was posted')
}

/** In any window, and the busiest ten seconds for comparison. */
function judgeRate(messages: readonly SinkMessage[], report: DrillReport): void {
  const times = messages.map(({ receivedAt }) => receivedAt.getTime()).sort((a, b) => a - b)
  const busiest = (windowMs: number) => {
    let most = 0
    for (let from = 0, to = 0; from < times.length; from++) {
      while (to < times.length && (times[to] as number) < (times[from] as number) + windowMs) to++
      most = Math.max(most, to - from)
    }
    return most
  }
  const allowed = (LIMIT_PER_SECOND * WINDOW_MS) / 1000
  report.figure('limited: allowed in a minute', allowed, 'messages')
  report.figure('limited: busiest minute', busiest(WINDOW_MS), 'messages')
  report.figure('limited: busiest ten seconds', busiest(10_000), `of ${LIMIT_PER_SECOND * 10}`)
  assert.ok(busiest(WINDOW_MS) <= allowed * 1.02 + WINDOW_EDGE, 'the rate of the limited provider')
}
