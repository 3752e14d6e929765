import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import pino from 'pino'
import { jobContext } from '../../../test/support/job-context.ts'
import { eventually } from '../../../test/support/service.ts'
import { eachStore, temporaryFolder } from '../../../test/support/stores.ts'
import { BadRequest } from '../../base/process/errors.ts'
import { systemClock } from '../../base/time/clock.ts'
import { openBlobs } from '../../platform/store/blobs/blobs.ts'
import type { SuppressionImportRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import type { Domain } from '../domains/domain.ts'
import { addBounce } from './automatic.ts'
import { createImports } from './import.ts'
import { policyStatements } from './policy.ts'
import { listRecords } from './service.ts'

const DOMAIN = { id: 'd1', accountId: 'a1', name: 'example.com' } as Domain
const ACTOR = {
  caller: { accountId: 'a1', keyId: 'k1', role: 'admin', kind: 'user' },
  remoteAddress: '127.0.0.1',
  requestId: 'r1',
} as const

/** Imports over a store, with their log lines. */
async function startImports(store: Store, t: TestContext) {
  const lines: Record<string, unknown>[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const blobs = await openBlobs(await temporaryFolder(t))
  const imports = createImports({
    ...{ store, blobs, clock: systemClock, log, owner: 'test' },
    unpackedBytesMax: 10_000_000,
  })
  imports.job.start(jobContext(store))
  t.after(() => imports.job.stop())
  const line = (msg: string) => eventually(msg, async () => lines.find((one) => one['msg'] === msg))
  return { imports, blobs, lines, line }
}

const records = (store: Store, kind: 'bounces' | 'unsubscribes' = 'bounces') =>
  listRecords(store, DOMAIN.id, kind, {
    direction: 'forward',
    pivot: undefined,
    prefix: '',
    limit: 10_000,
    now: Date.now(),
  })

const tasks = (store: Store) => store.db.selectFrom('suppression_imports').selectAll().execute()

const csv = (count: number) =>
  Buffer.from(`address\n${Array.from({ length: count }, (_, index) => `u${index}@x.org\n`).join('')}`)

eachStore('bad rows are skipped and counted in the log', async (store, t) => {
  const { imports, line } = await startImports(store, t)
  const tags = Array.from({ length: 101 }, (_, index) => `t${index}`)
  const rows = [
    'a@x.org,news',
    'nobody,news',
    `b@x.org,"${tags}"`,
    '\xff@x.org,',
    'c@x.org,',
    "'+d@x.org,",
  ].join('\n')
  await imports.submit(ACTOR, DOMAIN, 'unsubscribes', Buffer.from(`address,tags\n${rows}`, 'latin1'))
  const done = await line('import finished')
  assert.deepEqual([done['rows'], done['bad']], [6, 3])
  assert.deepEqual(
    (await records(store, 'unsubscribes')).map(({ address, tags: kept }) => [address, kept]),
    [
      ['+d@x.org', ['*']],
      ['a@x.org', ['news']],
      ['c@x.org', ['*']],
    ],
  )
  assert.deepEqual(await tasks(store), [])
})

eachStore('an import of a process that is gone goes on where it stood', async (store, t) => {
  const { imports, blobs, line } = await startImports(store, t)
  const spooled = await blobs.spool(
    (async function* () {
      yield csv(2500)
    })(),
  )
  const task: SuppressionImportRow = {
    id: 'i1',
    account_id: DOMAIN.accountId,
    domain_id: DOMAIN.id,
    kind: 'bounces',
    blob: await blobs.keep(spooled.chunk),
    rows_done: 2000,
    rows_bad: 7,
    attempts: 1,
    lease_token: 'lost',
    lease_owner: 'gone',
    lease_until: 1,
    created_at: 1000,
  }
  await store.db.insertInto('suppression_imports').values(task).execute()
  imports.job.wake()
  const done = await line('import finished')
  assert.deepEqual([done['rows'], done['bad']], [2500, 7])
  const added = await records(store)
  assert.equal(added.length, 500)
  assert.deepEqual(new Set(added.map(({ createdAt }) => createdAt)), new Set([1000]))
  await assert.rejects(blobs.read(task.blob), 'the file is gone')
})

eachStore('the imports of a deleted domain end, with their files', async (store, t) => {
  const { imports, blobs, line } = await startImports(store, t)
  await imports.submit(ACTOR, { ...DOMAIN, id: 'gone' }, 'bounces', csv(1))
  await line('import finished')
  await imports.job.stop()
  await imports.submit(ACTOR, DOMAIN, 'bounces', csv(3000))
  const [task] = await tasks(store)
  await imports.forgetDomain('gone')
  assert.equal((await tasks(store)).length, 1)
  await imports.forgetDomain(DOMAIN.id)
  assert.deepEqual(await tasks(store), [])
  await assert.rejects(blobs.read(task?.blob ?? ''))
})

eachStore('a file that unpacks without end is given up, what came before it stays', async (store, t) => {
  const { imports, line } = await startImports(store, t)
  const filler = Buffer.alloc(11_000_000, `${'x'.repeat(65_535)}\n`)
  const bomb = gzipSync(Buffer.concat([csv(1000), filler]), { level: 1 })
  await imports.submit(ACTOR, DOMAIN, 'bounces', bomb)
  const failed = await line('import failed')
  assert.match((failed['err'] as Error).message, /unpacks to more than/)
  await eventually('the end of the import', async () => (await tasks(store)).length === 0)
  assert.equal((await records(store)).length, 1000)
})

eachStore('an import whose file is gone is given up after its attempts', async (store, t) => {
  const { imports, line } = await startImports(store, t)
  const task = { account_id: 'a1', domain_id: 'd1', kind: 'bounces', blob: 'A'.repeat(22) } as const
  const lease = { lease_token: null, lease_owner: null, lease_until: 0, created_at: 0 }
  await store.db
    .insertInto('suppression_imports')
    .values({ id: 'i1', ...task, ...lease, rows_done: 0, rows_bad: 0, attempts: 4 })
    .execute()
  imports.job.wake()
  await line('import failed')
  await eventually('the end of the import', async () => (await tasks(store)).length === 0)
})

eachStore('a refused header leaves nothing behind', async (store, t) => {
  const { imports } = await startImports(store, t)
  await assert.rejects(imports.submit(ACTOR, DOMAIN, 'bounces', Buffer.from('a@x.org\n')), BadRequest)
  assert.deepEqual(await tasks(store), [])
})

eachStore(
  'a new lifetime holds for bounces that came before, not for those given by a caller',
  async (store) => {
    const bounce = { owner: DOMAIN, severity: 'hard', code: '550', error: '', now: 5 } as const
    await store.commit(addBounce({ ...bounce, recipient: 'a@x.org', eventId: 'e1' }))
    const policy = { hard_bounces_to_suppress: 1, soft_bounces_to_suppress: 0, window_days: 30 }
    const expiry = async () =>
      (await store.db.selectFrom('suppressions').select('expires_at').execute())[0]?.expires_at
    await store.commit(policyStatements(ACTOR, DOMAIN, { ...policy, lifetime_days: 2 }, 0))
    assert.equal(await expiry(), 5 + 2 * 86_400_000)
    await store.commit(policyStatements(ACTOR, DOMAIN, { ...policy, lifetime_days: 0 }, 0))
    assert.equal(await expiry(), null)
  },
)
