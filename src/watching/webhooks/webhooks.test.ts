/** From an event's transaction to its POST: owners, nodes, restarts. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { createTestClock, type TestClock } from '../../../test/support/clock.ts'
import { eventStatements } from '../../../test/support/events.ts'
import { createReceiver, type Receiver } from '../../../test/support/http-receiver.ts'
import { eventually } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { newId, randomHex } from '../../base/ids.ts'
import { parseCidr } from '../../base/net/ip.ts'
import { systemClock } from '../../base/time/clock.ts'
import { createHttpClient } from '../../platform/posts/http-client.ts'
import { createPostQueue, type PostQueue } from '../../platform/posts/post-queue.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import type { Store } from '../../platform/store/store.ts'
import type { EventRecord } from '../events/event.ts'
import { createAccountWebhooks } from './account-webhooks.ts'
import { attemptStatement, createAttemptLog } from './attempts.ts'
import { createDomainWebhooks, type DomainName, removeDomainWebhooks } from './domain-webhooks.ts'
import { signToken } from './payload.ts'
import { createRegistry } from './registry.ts'
import { createWebhookKind, createWebhooks, WEBHOOK } from './webhooks.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const SCHEDULE = [5, 10, 15, 60, 120, 240].map((minutes) => minutes * MINUTE)
const LOOPBACK = [parseCidr('127.0.0.0/8')].flatMap((cidr) => cidr ?? [])
const log = pino({ level: 'silent' })
const sealer = createSealer('s'.repeat(32))

/** An account with its own signing key. */
async function addAccount(store: Store, key: string, parentId: string | null = null): Promise<string> {
  const id = randomHex(12)
  const sealed = sealer.seal('webhook-signing-key', key)
  const row = { id, parent_id: parentId, name: key, signing_key_sealed: sealed, created_at: 0 }
  await store.db.insertInto('accounts').values(row).execute()
  return id
}

/** The webhook parts of one process of the service. */
async function startNode(store: Store, clock: TestClock) {
  const registry = createRegistry(store, sealer, clock, log)
  await registry.start()
  const client = createHttpClient({ resolve: async () => [], allow: LOOPBACK, clock: systemClock })
  const common = { store, sealer, registry, clock, headerPrefix: 'X-Service-' }
  const kind = createWebhookKind({ ...common, scheduleMs: SCHEDULE, retryDelivered: true, isTracing: false })
  const queue: PostQueue = createPostQueue({
    tracing: undefined,
    isOff: false,
    store,
    client,
    clock,
    log,
    owner: newId(),
  })
  queue.addKind(WEBHOOK, kind)
  await queue.start()
  const webhooks = createWebhooks({ ...common, queue, client, storageUrl: 'https://storage.test' })
  return {
    registry,
    webhooks,
    domains: createDomainWebhooks(store, sealer, registry),
    accounts: createAccountWebhooks(store, sealer, registry, clock),
    async record(...events: EventRecord[]) {
      await store.commit([...eventStatements(events), ...webhooks.outboxStatements(events)])
    },
    async stop() {
      registry.stop()
      client.close()
      const stopped = queue.stop(1_000)
      await clock.advance(1_000)
      await stopped
    },
  }
}

function eventOf(domain: DomainName, clock: TestClock, more: Record<string, unknown> = {}): EventRecord {
  const id = newId(clock.now())
  const event = 'accepted' as const
  return {
    id,
    accountId: domain.accountId,
    domainName: domain.name,
    event,
    timestampUs: Math.floor(clock.now() * 1000),
    recipient: 'alice@example.org',
    messageId: 'm@example.com',
    payload: { event, id, tags: [], 'user-variables': {}, ...more },
  }
}

const waiting = async (store: Store, dueBefore?: number) => {
  let rows = store.db.selectFrom('outgoing_posts').select((eb) => eb.fn.countAll<number>().as('count'))
  if (dueBefore !== undefined) rows = rows.where('due_at', '<=', Math.floor(dueBefore))
  return Number((await rows.executeTakeFirstOrThrow()).count)
}

/** Advances the clock in small steps until no due row is left. */
async function settled(store: Store, clock: TestClock): Promise<void> {
  for (let look = 0; (await waiting(store, clock.now())) > 0; look++) {
    if (look > 2_000) throw new Error('rows that are due are not worked on')
    await clock.advance(1_000)
    await sleep(1)
  }
}

const idsOf = (receiver: Receiver) => receiver.posts.map(({ body }) => body['event-data'].id as string)

eachStore('down for 7 hours, crashed 10 times: every event arrives, under one id (R39)', async (store, t) => {
  const receiver = await createReceiver()
  await receiver.close()
  t.after(receiver.close)
  const domain = { accountId: await addAccount(store, 'key-a'), name: 'mg.example.com' }
  const recorded: string[] = []
  let clock = createTestClock()
  const upAgain = clock.now() + 7 * HOUR
  for (let life = 0; life < 10; life++) {
    const cut = lossy(store)
    const node = await startNode(cut, clock)
    if (life === 0) await node.domains.create(domain, 'accepted', [`${receiver.url}/hook`])
    const events = Array.from({ length: 5 }, () => eventOf(domain, clock))
    await node.record(...events)
    recorded.push(...events.map(({ id }) => id))
    await settled(store, clock)
    await clock.advance((7 * HOUR) / 12)
    // It crashes at an arbitrary point: its clock stops, and pending writes are lost.
    cut.lost = true
    clock = createTestClock(clock.now())
  }
  const node = await startNode(store, clock)
  t.after(() => node.stop())
  while (clock.now() < upAgain) {
    await clock.advance(10 * MINUTE)
    await settled(store, clock)
  }
  assert.equal(receiver.posts.length, 0)
  await receiver.listen()
  for (let step = 0; (await waiting(store)) > 0 && step < 200; step++) {
    await clock.advance(10 * MINUTE)
    await settled(store, clock)
  }
  assert.equal(recorded.length, 50)
  assert.deepEqual(new Set(idsOf(receiver)), new Set(recorded))
})

/** A store that can be cut off: later writes neither happen nor fail, as for a killed process. */
function lossy(store: Store): Store & { lost: boolean } {
  const cut = {
    ...store,
    lost: false,
    commit: (unit: Parameters<Store['commit']>[0]) =>
      cut.lost ? new Promise<never>(() => {}) : store.commit(unit),
  }
  return cut
}
eachStore(
  'a process that crashes between POST and record repeats the POST under the same id',
  async (store, t) => {
    const clock = createTestClock()
    const held: (() => void)[] = []
    const receiver = await createReceiver({ answer: (response) => held.push(() => response.end()) })
    t.after(receiver.close)
    const domain = { accountId: await addAccount(store, 'key-a'), name: 'mg.example.com' }
    const cut = lossy(store)
    const first = await startNode(cut, clock)
    await first.domains.create(domain, 'accepted', [receiver.url])
    const event = eventOf(domain, clock)
    await first.record(event)
    await eventually('the webhook is called', async () => {
      await clock.advance(10)
      return held.length > 0
    })
    cut.lost = true
    first.registry.stop()
    for (const release of held) release()
    receiver.answer = 200
    await clock.advance(HOUR) // its leases have expired
    const second = await startNode(store, clock)
    t.after(() => second.stop())
    await settled(store, clock)
    assert.deepEqual(idsOf(receiver), [event.id, event.id])
    const tokens = receiver.posts.map(({ body }) => body.signature.token)
    assert.notEqual(tokens[0], tokens[1])
  },
)

eachStore('a parent account gets the events of its subaccounts, signed by both', async (store, t) => {
  const clock = createTestClock()
  const receiver = await createReceiver()
  t.after(receiver.close)
  const parentId = await addAccount(store, 'key-parent')
  const childId = await addAccount(store, 'key-child', parentId)
  const strangerId = await addAccount(store, 'key-stranger')
  const child = { accountId: childId, name: 'child.example.com' }
  const node = await startNode(store, clock)
  t.after(() => node.stop())
  const webhook = (path: string) => ({
    url: `${receiver.url}${path}`,
    types: ['accepted' as const],
    description: '',
  })
  await node.accounts.create(parentId, webhook('/parent'))
  await node.accounts.create(parentId, webhook('/shared'))
  await node.domains.create(child, 'accepted', [`${receiver.url}/shared`])
  await node.accounts.create(strangerId, webhook('/stranger'))
  const event = eventOf(child, clock)
  await node.record(event)
  await settled(store, clock)
  assert.deepEqual(receiver.posts.map(({ path }) => path).sort(), ['/parent', '/shared'])
  for (const { body } of receiver.posts) {
    const own = body.signature
    const parent = body['parent-signature']
    assert.deepEqual(own, signToken('key-child', own.timestamp, own.token))
    assert.deepEqual(parent, signToken('key-parent', parent.timestamp, parent.token))
    assert.deepEqual(body['event-data'].account, { id: childId, 'parent-id': parentId })
  }
  // Each sees the attempts at its own URLs alone.
  const attempts = createAttemptLog(store, clock)
  const urls = async (accountId: string) =>
    (await attempts.list(accountId, {}, { kind: 'first' }, 10)).rows.map(({ url }) => url)
  assert.deepEqual(await urls(parentId), [`${receiver.url}/parent`])
  assert.deepEqual(await urls(childId), [`${receiver.url}/shared`])
})

eachStore(
  'a change on one node soon takes effect on another, and no row is lost meanwhile',
  async (store, t) => {
    const clock = createTestClock()
    const receiver = await createReceiver()
    t.after(receiver.close)
    const domain = { accountId: await addAccount(store, 'key-a'), name: 'mg.example.com' }
    const one = await startNode(store, clock)
    const other = await startNode(store, clock)
    t.after(async () => {
      await one.stop()
      await other.stop()
    })
    await one.domains.create(domain, 'accepted', [receiver.url])
    assert.equal(one.registry.targets(domain.accountId, domain.name, 'accepted').length, 1)
    // The other node's snapshot is older; before it returns null for this URL it queries the database.
    assert.equal(other.registry.targets(domain.accountId, domain.name, 'accepted').length, 0)
    const found = await other.registry.target(domain.accountId, domain.name, 'accepted', receiver.url)
    assert.equal(found?.url, receiver.url)
    await store.commit(removeDomainWebhooks(domain))
    await eventually('it is removed on the other', async () => {
      await clock.advance(100)
      return one.registry.targets(domain.accountId, domain.name, 'accepted').length === 0
    })
  },
)

eachStore('concurrent requests never exceed the limit of three URLs', async (store, t) => {
  const clock = createTestClock()
  const domain = { accountId: await addAccount(store, 'key-a'), name: 'mg.example.com' }
  const one = await startNode(store, clock)
  const other = await startNode(store, clock)
  t.after(async () => {
    await one.stop()
    await other.stop()
  })
  const results = await Promise.allSettled(
    Array.from({ length: 8 }, (_none, n) =>
      (n % 2 ? one : other).domains.addUrl(domain, `http://127.0.0.1/${n}`, ['clicked']),
    ),
  )
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 3)
  assert.equal((await one.domains.urls(domain, 'clicked')).length, 3)
})

eachStore('old and surplus attempts are removed; newer ones stay', async (store) => {
  const clock = createTestClock()
  const row = (createdAt: number) => ({
    id: newId(),
    account_id: 'a',
    domain_name: 'd',
    event_id: 'e',
    event_type: 'accepted',
    url: 'u',
    attempt: 1,
    status: 'ok' as const,
    status_code: 200,
    error: null,
    response: '',
    duration_ms: 1,
    next_attempt_at: null,
    created_at: Math.floor(createdAt),
    recipient: null,
    subject: null,
  })
  const day = 24 * HOUR
  const ages = [10, 5, 4, 2, 1, 0, 0, 0]
  for (const age of ages)
    await store.db
      .insertInto('webhook_attempts')
      .values(row(clock.now() - age * day))
      .execute()
  const left = async () =>
    (await store.db.selectFrom('webhook_attempts').select('created_at').orderBy('id').execute()).map(
      (attempt) => Math.round((clock.now() - attempt.created_at) / day),
    )
  await createAttemptLog(store, clock).prune()
  assert.deepEqual(await left(), [2, 1, 0, 0, 0])
  await createAttemptLog(store, clock, null, 3).prune()
  assert.deepEqual(await left(), [0, 0, 0])
})

eachStore(
  'a part is searched in so many attempts a page, by an index, and the next page goes on',
  async (store) => {
    const clock = createTestClock()
    const post = { account_id: 'a', url: 'u' } as never
    const outcome = {
      kind: 'answered' as const,
      ...{ status: 200, reason: 'OK', contentType: '', retryAfter: '' },
      ...{ body: Buffer.from(''), durationMs: 1 },
    } as const
    const attempt = { number: 1, outcome, refusal: null, status: 'ok', nextAttemptAt: null } as const
    const log = async (recipient: string, subject: string) => {
      const payload = { recipient, message: { headers: { subject } } }
      const event = { id: 'e', domainName: 'd', type: 'accepted', payload } as const
      await store.commit([attemptStatement(post, event, { ...attempt, at: clock.now() })])
      await clock.advance(10)
    }
    await log('Ann@Example.org', 'Your order')
    for (let n = 0; n < 25; n += 1) await log(`p${n}@example.net`, `Ünique ${n}\0`)
    const attempts = createAttemptLog(store, clock, null, undefined, 10)
    const found = async (search: string, page: Parameters<typeof attempts.list>[2], limit = 5) => {
      const { rows, stoppedAt } = await attempts.list('a', { search }, page, limit)
      return { recipients: rows.map(({ recipient }) => recipient), stoppedAt }
    }
    const pages: (string | null)[][] = []
    let stopped: string | null = null
    do {
      const page = await found('nn@EXAMPLE', stopped ? { kind: 'next', pivot: stopped } : { kind: 'first' })
      pages.push(page.recipients)
      stopped = page.stoppedAt
    } while (stopped !== null)
    assert.deepEqual(pages, [[], [], ['Ann@Example.org']])
    assert.deepEqual((await found('ique 24', { kind: 'first' })).recipients, ['p24@example.net'])
    assert.deepEqual(await found('example.net', { kind: 'first' }, 2), {
      recipients: ['p24@example.net', 'p23@example.net'],
      stoppedAt: null,
    })
    const back = await found('ORDER', { kind: 'last' })
    assert.deepEqual(back.recipients, ['Ann@Example.org'])
    assert.notEqual(back.stoppedAt, null)
    const word = store.kind === 'sqlite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN'
    const sql =
      "SELECT id FROM webhook_attempts WHERE account_id = 'a' AND id < 'z' ORDER BY id DESC LIMIT 1 OFFSET 9"
    const plan = JSON.stringify(await store.read({ sql: `${word} ${sql}`, values: [] }))
    assert.match(plan, /webhook_attempts_newest|webhook_attempts_pkey/)
  },
)
