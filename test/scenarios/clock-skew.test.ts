/** Processes over one PostgreSQL database whose clocks differ: none takes over what another one holds. */
// Slow: it sets the clocks of whole processes apart.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pino from 'pino'
import { newId } from '../../src/base/ids.ts'
import { createQueue } from '../../src/mail/deliver/claim/queue.ts'
import { createArchiveSender } from '../../src/mail/stored/archive.ts'
import { createIdempotency } from '../../src/platform/http/limits/idempotency.ts'
import { claimTask } from '../../src/platform/jobs/stepped-task.ts'
import { createPostRows } from '../../src/platform/posts/post-rows.ts'
import { openBlobs } from '../../src/platform/store/blobs/blobs.ts'
import { openPostgres } from '../../src/platform/store/postgres/postgres.ts'
import type { CertificateRow, DeliveryRow, ListUploadRow } from '../../src/platform/store/schema.ts'
import { createSealer } from '../../src/platform/store/secrets/sealing.ts'
import { insert, insertMany, type Store } from '../../src/platform/store/store.ts'
import { createCertificateStore } from '../../src/sending/certificates/certificate-store.ts'
import type { Domain } from '../../src/sending/domains/domain.ts'
import { createImports } from '../../src/sending/suppressions/import.ts'
import { clockAhead, createTestClock } from '../support/clock.ts'
import { post } from '../support/crash-rig.ts'
import { bareRecorder } from '../support/events.ts'
import { jobContext } from '../support/job-context.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { seedQueue } from '../support/seed-queue.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

const AHEAD_MS = 120_000
const SECRET = 'secret-of-both-processes-0123456789'

test('a process whose clock is two minutes ahead sends nothing that another one is sending', async (t) => {
  const database = await createTestDatabase()
  const sink = await createSink()
  t.after(async () => {
    await sink.close()
    await database.drop()
  })
  const start = async (more: Record<string, string>) => {
    const service = await startProcess(ownAddress(), {
      SENDWRIGHT_DATA: await temporaryFolder(t),
      SENDWRIGHT_DATABASE_URL: database.url,
      SENDWRIGHT_SECRET: SECRET,
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
      ...more,
    })
    t.after(() => service.end('SIGKILL'))
    return service
  }
  const one = await start({})
  const held = sink.hold('DATA-DOT')
  await post(one, { to: 'held@example.org', subject: 'held', text: 'Hi.' })
  await held.reached
  const ahead = await start(clockAhead(AHEAD_MS))
  // At its start, before this message, it has searched for expired leases.
  const next = { to: 'next@example.org', subject: 'next', text: 'Hi.' }
  assert.ok('id' in (await post(ahead, next)))
  await sink.waitFor(1)
  held.release()
  await sink.waitFor(2)
  assert.equal(await one.end('SIGTERM'), 0)
  assert.equal(await ahead.end('SIGTERM'), 0)
  const recipients = sink.messages.map(({ envelope }) => envelope.to[0]).sort()
  assert.deepEqual(recipients, ['held@example.org', 'next@example.org'])
})

test('a lease set by a slow clock is not expired for a fast one', async (t) => {
  const database = await createTestDatabase()
  const store = await openPostgres(database.url)
  t.after(async () => {
    await store.close()
    await database.drop()
  })
  const slow = Date.now() - AHEAD_MS
  const fast = Date.now() + AHEAD_MS
  await t.test('deliveries', () => deliveries(store, slow, fast))
  await t.test('lanes of outgoing requests', async () => {
    assert.notEqual(await createPostRows(store, 'a').acquire('lane', slow), null)
    assert.equal(await createPostRows(store, 'b').acquire('lane', fast), null)
  })
  await t.test('tasks of lists', async () => {
    await store.commit([insert('list_uploads', UPLOAD)])
    const open = "task.state = 'running'"
    const lease = { ms: 60_000, check: 'done', tries: null } as const
    const table = { name: 'list_uploads', key: 'id', open, turn: 'updated_at', lease } as const
    assert.notEqual(await claimTask(store, table, 'a', slow), null)
    assert.equal(await claimTask(store, table, 'b', fast), null)
  })
  await t.test('imports', (t) => imports(store, t, slow, fast))
  await t.test('archive copies', () => archiveCopies(store, slow, fast))
  await t.test('certificates', async () => {
    const certificates = createCertificateStore(store, sealer)
    await certificates.add({ host: 'h.example', accountId: 'a', domainId: 'd', now: slow })
    const [row] = (await certificates.due(slow, 1, [])) as [CertificateRow]
    await certificates.claim(row, { claim: 'one', now: slow, claimMs: 60_000, orders: [] })
    assert.deepEqual(await certificates.due(fast, 1, []), [])
  })
  await t.test('calls under an Idempotency-Key', async () => {
    const call = { accountId: 'a', owner: null, key: 'k', digest: 'd', joins: false }
    const held = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    const first = createIdempotency({ store, sealer, clock: createTestClock(slow) }).run(call, async () => {
      reached.resolve()
      await held.promise
      return {}
    })
    await reached.promise
    const other = createIdempotency({ store, sealer, clock: createTestClock(fast) })
    const second = other.run(call, async () => assert.fail('it ran twice'))
    await assert.rejects(second, /is still running/)
    held.resolve()
    await first
  })
})

async function deliveries(store: Store, slow: number, fast: number): Promise<void> {
  const target = { accountId: 'a', domainId: 'd', recipientDomain: 'x.example' }
  const [seeded, other] = (await seedQueue(store, { ...target, count: 2, dueAt: slow - 1 })) as [
    string,
    string,
  ]
  const [holder, taker] = [
    createQueue(store, 'holder', bareRecorder),
    createQueue(store, 'taker', bareRecorder),
  ]
  assert.equal((await holder.claim([seeded], slow)).length, 1)
  assert.equal(await taker.reclaim(fast), 0, 'claimed')
  // As acceptance inserts a delivery that enters a lane at once.
  const row = await store.db.selectFrom('deliveries').selectAll().where('id', '=', other).executeTakeFirst()
  const claimed = { ...(row as DeliveryRow), id: newId(), state: 'sending' as const, ...holder.lease(slow) }
  await store.commit(insertMany('deliveries', [claimed], store.leaseTimes))
  assert.equal(await taker.reclaim(fast), 0, 'inserted as claimed')
  await holder.renew(slow)
  assert.equal(await taker.reclaim(fast), 0, 'renewed')
  const ends = await store.db
    .selectFrom('deliveries')
    .select('lease_until')
    .where('state', '=', 'sending')
    .execute()
  const leftMs = ends.map(({ lease_until }) => (lease_until ?? 0) - Date.now())
  assert.ok(
    leftMs.length === 2 && leftMs.every((left) => left > 0 && left <= 60_000),
    `they end in ${leftMs} ms`,
  )
  // Expired by the database's time.
  await store.db.updateTable('deliveries').set({ lease_until: 1 }).where('state', '=', 'sending').execute()
  assert.equal(await taker.reclaim(slow), 2)
}

async function archiveCopies(store: Store, slow: number, fast: number): Promise<void> {
  const row = {
    id: 'a1',
    account_id: 'a',
    domain_name: '',
    delivery_id: 'd',
    url: 'https://archive.example/',
    head: '',
  }
  await store.commit([
    insert('archive_outbox', { ...row, state: 'waiting', attempts: 0, due_at: slow - 1, created_at: slow }),
  ])
  const taken = Promise.withResolvers<'taken'>()
  const reached = Promise.withResolvers<void>()
  const sender = (now: number, post: () => Promise<'taken'>) =>
    createArchiveSender({
      store,
      clock: createTestClock(now),
      log: pino({ level: 'silent' }),
      scheduleMs: [],
      countTaken: (_, removal) => store.commit([removal]).then(() => {}),
      bodyOf: async () => [Buffer.from('Body\r\n')],
      poster: { post },
    })
  const first = sender(slow, () => {
    reached.resolve()
    return taken.promise
  })
  const running = first.run()
  await reached.promise
  assert.equal(await sender(fast, () => assert.fail('posted twice')).run(), 0)
  taken.resolve('taken')
  await running
}

const UPLOAD: ListUploadRow = {
  ...{
    id: 'u1',
    account_id: 'a',
    list_id: 'l',
    format: 'json',
    is_upsert: 0,
    subscribed: 1,
    entries_json: '[]',
  },
  ...{ done: 0, upserted_count: 0, failed_count: 0, state: 'running', lease_owner: null, lease_until: 0 },
  ...{ created_at: 0, updated_at: 0, is_confirmed: 0, called_by: null },
}

async function imports(store: Store, t: TestContext, slow: number, fast: number): Promise<void> {
  const blobs = await openBlobs(await temporaryFolder(t))
  const held = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  const read: string[] = []
  const importer = (now: number, reading: (name: string) => Promise<void>) => {
    const lines: string[] = []
    const log = pino({}, { write: (line: string) => void lines.push(line) })
    const heldBack = {
      ...blobs,
      async read(name: string) {
        await reading(name)
        return blobs.read(name)
      },
    }
    const made = createImports({
      ...{ store, blobs: heldBack, clock: createTestClock(now), log },
      ...{ owner: `at ${now}`, unpackedBytesMax: 1e6 },
    })
    made.job.start(jobContext(store, { clock: createTestClock(now) }))
    t.after(() => {
      held.resolve()
      return made.job.stop()
    })
    return { ...made, lines }
  }
  const first = importer(slow, () => {
    reached.resolve()
    return held.promise
  })
  const second = importer(fast, async (name) => void read.push(name))
  const file = Buffer.from('address\na@example.org\n')
  await first.submit(ACTOR, DOMAIN, 'bounces', file)
  await reached.promise
  await second.submit(ACTOR, DOMAIN, 'bounces', file)
  await eventually('the second import', async () => second.lines.some((line) => /import finished/.test(line)))
  assert.equal(read.length, 1, 'the first one is still in progress')
}

const DOMAIN = { id: 'd1', accountId: 'a1', name: 'example.com' } as Domain
const sealer = createSealer('for tests')
const ACTOR = {
  caller: { accountId: 'a1', keyId: 'k1', role: 'admin', kind: 'user' },
  remoteAddress: '127.0.0.1',
  requestId: 'r',
} as const
