/**
 * Three nodes on one PostgreSQL come and go at random under load for ten minutes (DRILL_MINUTES): SIGTERM, SIGKILL, and
 * SIGSTOP for a while, longer or shorter than a node may be silent. At the end everything is exact:
 *
 * - every accepted message is delivered, and repeated at most where a node was killed or frozen, once for each connection;
 * - each message has one accepted event and each delivery one delivered event, and the counters say the same;
 * - each event was posted to its webhook, with its id in each repetition;
 * - a provider with a limited rate never got more in any minute than it allows, plus two per cent;
 * - of the domain of an account with a message limit, exactly so many messages were accepted, though more were sent;
 * - of the domain of an account with a rate limit, no more were accepted than one bucket gives in that time, plus two per cent,
 *   and not many fewer.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { DrillReport } from '../../scripts/drill.ts'
import type { DnsServer } from '../support/dns-server.ts'
import { judgeExact, settled } from '../support/exact-end.ts'
import { createReceiver, type Receiver } from '../support/http-receiver.ts'
import { createInternet } from '../support/internet.ts'
import { call } from '../support/nodes.ts'
import { startPostgres } from '../support/postgres.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import type { SinkMessage } from '../support/smtp-sink.ts'
import { onBehalf } from '../support/subaccounts.ts'

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
const WINDOW_MS = 60_000
/** Attempts of each node are spaced evenly: a window may begin and end with one of each. */
const WINDOW_EDGE = NODES

/** What the domain with a message limit may send; its clients reach it long before the end, on a busy machine too. */
const COUNTED_LIMIT = Math.round(RUN_MS / 1_000)
/** Recipients that the domain with a rate limit may have in a minute; its clients ask for several times as many. */
const RATED_PER_MINUTE = 60
const TENANT_CLIENTS = 6
/** Between two messages of a client of these domains. */
const TENANT_PAUSE_MS = 200
/** A node that is killed takes its lease with it, a twentieth of the bucket at the most (decision 64). */
const LEASE_PART = 1 / 20
/** Clients wait for nodes that are frozen or gone, and meanwhile do not ask for what the limit allows. */
const RATED_LEAST = 0.7

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
      SENDWRIGHT_RATE_LIMIT: '100000',
    }
    const places = Array.from({ length: NODES }, (_, number) => place(join(folder, `data${number}`), env))
    after(() => Promise.all(places.map(({ node }) => node?.end('SIGKILL'))))
    for (const { start } of places) await start()
    const { node: first } = places[0] as { node: ServiceProcess }
    const { domain } = first
    for (const id of ['accepted', 'delivered'])
      await call(first, 'POST', `/v3/domains/${domain}/webhooks`, { id, url: receiver.url })
    const counted = await openTenant(first, 'counted', internet.dns, receiver)
    const rated = await openTenant(first, 'rated', internet.dns, receiver)
    await call(first, 'PUT', `${SUBACCOUNTS}/${counted.accountId}/limit/custom/monthly`, {
      limit: String(COUNTED_LIMIT),
    })
    await call(first, 'PUT', `/sendwright/v1/accounts/${rated.accountId}/rate-limits/sending-recipients`, {
      count: String(RATED_PER_MINUTE),
    })

    const ledger = new Set<string>()
    const done: Done = { stops: 0, kills: 0, freezes: 0, exitCodes: new Set() }
    const until = performance.now() + RUN_MS
    const site = chooseSite(performance.now())
    const noting = setInterval(() => report.note(`${ledger.size} accepted, ${JSON.stringify(done)}`), 60_000)
    await Promise.all([
      ...places.map((own) => comeAndGo(own, until, done)),
      ...Array.from({ length: CLIENTS }, (_, number) => {
        const sender = { key: `u${number}`, domain, pauseMs: PAUSE_MS, refusals: new Map<number, number>() }
        return client(sender, places, site, ledger, until)
      }),
      ...[counted, rated].flatMap((tenant) =>
        Array.from({ length: TENANT_CLIENTS }, (_, number) => {
          const sender = { ...tenant, key: `${tenant.name}${number}`, pauseMs: TENANT_PAUSE_MS }
          return client(sender, places, () => 'plain', ledger, until)
        }),
      ),
    ]).finally(() => clearInterval(noting))

    const ranMs = performance.now() - until + RUN_MS
    const database = new pg.Client({ connectionString: cluster.url })
    await database.connect()
    after(() => database.end())
    await settled(database, receiver)
    report.figure('stopped, killed, frozen', `${done.stops}, ${done.kills}, ${done.freezes}`)
    report.figure('exit codes of stops', [...done.exitCodes].join(', '))
    const messages = [plain, limited].flatMap((sink) => sink.messages)
    const repeatedMax = (done.kills + done.freezes) * 2 * CONNECTIONS_MAX
    await judgeExact({ report, ledger, repeatedMax, messages, receiver, database })
    judgeRate(limited.messages, report)
    await judgeLimits({ counted, rated, database, report, kills: done.kills, ranMs })
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

/** An account with a domain of its own. */
interface Tenant {
  name: string
  accountId: string
  domain: string
  /** Calls that were not accepted, by status. */
  refusals: Map<number, number>
}

const SUBACCOUNTS = '/v5/accounts/subaccounts'

/** Its domain may send, and posts its events to the receiver. */
async function openTenant(
  node: ServiceProcess,
  name: string,
  dns: DnsServer,
  receiver: Receiver,
): Promise<Tenant> {
  const { subaccount } = (await call(node, 'POST', SUBACCOUNTS, { name })) as { subaccount: { id: string } }
  const domain = `${name}.tenant.example`
  const own = (method: string, path: string, fields?: Record<string, string>) =>
    call(node, method, path, fields, undefined, onBehalf(subaccount.id))
  await own('POST', '/v4/domains', { name: domain })
  const { sending_dns_records: records } = (await own('GET', `/v4/domains/${domain}`)) as {
    sending_dns_records: { record_type: string; name: string; value: string }[]
  }
  for (const { record_type: type, name: at, value } of records)
    if (type === 'TXT') dns.set(at, 'TXT', [value])
  await own('PUT', `/v4/domains/${domain}/verify`)
  for (const id of ['accepted', 'delivered'])
    await own('POST', `/v3/domains/${domain}/webhooks`, { id, url: receiver.url })
  return { name, domain, accountId: subaccount.id, refusals: new Map() }
}

interface Sender {
  /** Begins its recipients' addresses. */
  key: string
  domain: string
  accountId?: string
  pauseMs: number
  refusals: Map<number, number>
}

/** Sends to any node that is there. What was not answered with 200 is neither recorded nor sent again. */
async function client(
  { key, domain, accountId, pauseMs, refusals }: Sender,
  places: readonly Place[],
  chosen: () => 'limited' | 'plain',
  ledger: Set<string>,
  until: number,
): Promise<void> {
  for (let at = 0; performance.now() < until; at++) {
    const present = places.flatMap(({ node }) => node ?? [])
    const node = present[Math.floor(Math.random() * present.length)]
    if (node) {
      const to = `${key}-${at}@${chosen()}.example`
      const form = { from: `a@${domain}`, to, subject: 's', text: 'Hi.' }
      const id = await fetch(`${node.url}/v3/${domain}/messages`, {
        method: 'POST',
        headers: { authorization: AUTHORIZATION, ...(accountId !== undefined && onBehalf(accountId)) },
        body: new URLSearchParams(form),
        signal: AbortSignal.timeout(CALL_MAX_MS),
      })
        .then(async (answer) => {
          if (answer.status !== 200) refusals.set(answer.status, (refusals.get(answer.status) ?? 0) + 1)
          return answer.status === 200 ? ((await answer.json()) as { id: string }).id : null
        })
        .catch(() => null)
      if (id !== null) ledger.add(id)
    }
    await sleep(pauseMs)
  }
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

interface Limited {
  counted: Tenant
  rated: Tenant
  database: pg.Client
  report: DrillReport
  kills: number
  /** How long the clients have sent. */
  ranMs: number
}

async function judgeLimits({ counted, rated, database, report, kills, ranMs }: Limited): Promise<void> {
  const acceptedOf = async ({ accountId }: Tenant) => {
    const sql = `SELECT count(*) FROM events WHERE event = 'accepted' AND account_id = $1`
    return Number((await database.query(sql, [accountId])).rows[0].count)
  }
  const refused = ({ refusals }: Tenant, status: number) => refusals.get(status) ?? 0
  const ofCounted = await acceptedOf(counted)
  const { rows } = await database.query('SELECT used FROM message_limits WHERE account_id = $1', [
    counted.accountId,
  ])
  report.figure('message limit, accepted, and counted', `${COUNTED_LIMIT}, ${ofCounted}, ${rows[0].used}`)
  report.figure('... refused with 403', refused(counted, 403))
  assert.deepEqual([ofCounted, Number(rows[0].used)], [COUNTED_LIMIT, COUNTED_LIMIT])
  assert.ok(refused(counted, 403) > 0, 'more were sent than the message limit allows')

  const ofRated = await acceptedOf(rated)
  // A full bucket at the start, and what has flowed into it.
  const allowed = RATED_PER_MINUTE * (1 + ranMs / 60_000)
  const least = (RATED_PER_MINUTE * ranMs * RATED_LEAST) / 60_000 - kills * RATED_PER_MINUTE * LEASE_PART
  report.figure('rate limit: allowed, accepted', `${Math.round(allowed)}, ${ofRated}`)
  report.figure('... refused with 429', refused(rated, 429))
  assert.ok(ofRated <= allowed * 1.02, `${ofRated} accepted of ${allowed}`)
  assert.ok(ofRated >= least, `${ofRated} accepted, at least ${least}`)
  assert.ok(refused(rated, 429) > 0, 'more were sent than the rate limit allows')
}
