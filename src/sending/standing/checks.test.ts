/** What the checks do while senders are released, and of domains that have sent nothing lately. */
// Both databases: the guard of a stop is a statement of its unit.
import assert from 'node:assert/strict'
import pino from 'pino'
import { createTestClock } from '../../../test/support/clock.ts'
import { eventually } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import type { Job, JobContext } from '../../platform/jobs/job.ts'
import type { StandingCountRow, StandingRow } from '../../platform/store/schema.ts'
import { insert, type Statement, type Store } from '../../platform/store/store.ts'
import { newDomainRow } from '../domains/domain.ts'
import { createStandingChanges } from './changes.ts'
import { type ContentFigures, createStandingChecks } from './checks.ts'
import { activeAccounts, hourOf, stepCount } from './counts.ts'
import { openStandings } from './known-standings.ts'

const log = pino({ level: 'silent' })
const account = { id: 'a', parentId: 'first', status: 'active', name: 'A', createdAt: 0 }
const accounts = { byId: async () => account } as never
const OPERATOR = { caller: { accountId: 'first', keyId: 'k' }, remoteAddress: '', requestId: '' }
const DAY_MS = 86_400_000

/** `onFigures` is called when the counts have been read. */
async function startChecks(store: Store, onFigures: () => Promise<void>) {
  const clock = createTestClock()
  /** Accounts whose mail was made due, each time. */
  const released: string[] = []
  const notices: [type: string, details: object][] = []
  const known = await openStandings({
    ...{ store, clock, accounts, deliverers: () => 1, isUnknownUser: () => false, isCaptured: false },
  })
  const changes = createStandingChanges({
    ...{ store, clock, known },
    domains: { changed() {} } as never,
    holds: {
      async release(accountId) {
        released.push(accountId)
      },
    },
    wakeDelivery() {},
    notices: {
      async statements({ type, details }) {
        notices.push([type, details])
        return []
      },
      written() {},
    },
  })
  const contentFigures: ContentFigures = async () => {
    await onFigures()
    return []
  }
  const sendMail = async () => {}
  const job = createStandingChecks({
    ...{ store, clock, log, accounts, known, changes, contentFigures, sendMail },
  })
  const count = (domain_name: string, sent: number, bounced: number): Promise<unknown> => {
    const hour_at = hourOf(clock.now())
    const row: StandingCountRow = {
      ...{ account_id: 'a', domain_name, hour_at, sent, bounced, first_at: hour_at },
      ...{ unknown_users: 0, complained: 0, trapped: 0 },
    }
    return store.commit([insert('standing_counts', row)])
  }
  const stopped = async (domain_name: string, state: string, account_id = 'a') => {
    const row: StandingRow = {
      ...{ account_id, domain_name, state, code: 'bounces', reason: 'many', figures_json: '{}' },
      ...{ per_minute: 60, since_at: clock.now() - 1, until_at: clock.now() + DAY_MS },
      ...{ told_json: '[]', is_told: 1, is_settled: 1 },
    }
    await store.commit([insert('standings', row)])
    await known.changed()
  }
  const states = async () => {
    const rows = await store.db.selectFrom('standings').select(['domain_name', 'state']).execute()
    return Object.fromEntries(rows.map(({ domain_name, state }) => [domain_name, state]))
  }
  return {
    clock,
    known,
    changes,
    count,
    stopped,
    states,
    released,
    notices,
    run: () => runOnce(job, { store, clock }),
  }
}

/** Starts the job, and resolves when it has run once. */
async function runOnce(job: Job, context: Pick<JobContext, 'store' | 'clock'>): Promise<void> {
  job.start({ ...context, log, random: () => 0, owner: 'test' })
  await eventually('a run', async () => {
    const { running, lastEndedAt, lastError } = await job.report()
    assert.equal(lastError, null)
    return !running && lastEndedAt !== null
  })
  await job.stop()
}

eachStore('a release while a sender is judged by older figures stands', async (store) => {
  let isReleased = false
  const scene = await startChecks(store, async () => {
    await scene.changes.release('a', '', OPERATOR)
    isReleased = true
  })
  await scene.count('x.example', 400, 40)
  await scene.stopped('', 'slowed')
  await scene.run()
  assert.ok(isReleased)
  assert.deepEqual(await scene.states(), { '': 'good' })
})

eachStore(
  'domains that were stopped alone count, though they have sent nothing in the window',
  async (store) => {
    const scene = await startChecks(store, async () => {})
    await scene.stopped('one.example', 'held')
    await scene.stopped('two.example', 'held')
    await scene.count('good.example', 400, 0)
    await scene.count('three.example', 400, 40)
    await scene.run()
    const { '': whole, ...domains } = await scene.states()
    assert.deepEqual([whole, domains], ['slowed', { 'one.example': 'held', 'two.example': 'held' }])
  },
)

eachStore('a domain that another account has by now is not held for the former one', async (store) => {
  const scene = await startChecks(store, async () => {})
  const row = newDomainRow({
    ...{ id: 'd', account_id: 'b', name: 'x.example', type: 'custom', state: 'active', created_at: 0 },
  })
  const features = { status: 'active', disabled_json: null, features_json: '{}', updated_at: 0 }
  const owner = { id: 'b', parent_id: null, name: 'B', signing_key_sealed: Buffer.alloc(0), created_at: 0 }
  await store.commit([insert('accounts', { ...owner, ...features }), insert('domains', row)])
  await scene.stopped('x.example', 'held')
  await scene.stopped('x.example', 'warned', 'b')
  const held = (account_id: string) =>
    scene.known.engine.heldUntil({ account_id, domain_id: 'd', reason: 'new' })
  assert.equal(held('b'), null)
  await scene.stopped('', 'held', 'b')
  assert.notEqual(held('b'), null)
})

eachStore(
  'a release makes mail due at once and once more a minute later, whatever the clock does',
  async (store) => {
    const scene = await startChecks(store, async () => {})
    const { clock, changes, released } = scene
    const end = () => changes.endOver(new AbortController().signal)
    await scene.stopped('', 'held')
    await changes.release('a', '', OPERATOR)
    assert.deepEqual(released.splice(0), ['a'])
    for (let run = 0; run < 3; run++) await end()
    assert.deepEqual(released, [])
    clock.leap(60_000)
    for (let run = 0; run < 3; run++) await end()
    assert.deepEqual(released.splice(0), ['a'])

    await scene.stopped('x.example', 'held')
    clock.leap(DAY_MS)
    await end()
    assert.deepEqual(released.splice(0), ['a'], 'its time is over')
    clock.stepWall(-DAY_MS / 2)
    for (let run = 0; run < 3; run++) await end()
    assert.deepEqual(released, ['a'])
  },
)

eachStore(
  'the end of what the operator disabled does not end what the service holds for longer',
  async (store) => {
    const scene = await startChecks(store, async () => {})
    const { clock, changes } = scene
    const row = newDomainRow({
      ...{ id: 'd', account_id: 'a', name: 'x.example', type: 'custom', state: 'active', created_at: 0 },
    })
    const owner = { id: 'a', parent_id: null, name: 'A', signing_key_sealed: Buffer.alloc(0), created_at: 0 }
    const features = { status: 'active', disabled_json: null, features_json: '{}', updated_at: 0 }
    await store.commit([insert('accounts', { ...owner, ...features }), insert('domains', row)])
    const until = clock.now() + 3_600_000
    await changes.disable('a', 'x.example', { reason: 'ticket', note: '', until })
    await scene.stopped('x.example', 'held')
    clock.leap(2 * 3_600_000)
    await changes.endOver(new AbortController().signal)
    assert.deepEqual(await scene.states(), { 'x.example': 'held' })
    const { state, disabled_json } = await store.db
      .selectFrom('domains')
      .select(['state', 'disabled_json'])
      .where('id', '=', 'd')
      .executeTakeFirstOrThrow()
    assert.equal(state, 'disabled')
    assert.equal(JSON.parse(disabled_json ?? '').code, 'reputation')
    clock.leap(DAY_MS)
    await changes.endOver(new AbortController().signal)
    assert.deepEqual(await scene.states(), { 'x.example': 'good' })
  },
)

eachStore(
  'mail beyond a budget comes back spread over an hour, and waits for its turn if its sender is slowed then',
  async (store) => {
    const scene = await startChecks(store, async () => {})
    const { clock, known } = scene
    const mail = (reason: string) => ({ account_id: 'a', domain_id: 'd', reason })
    const midnight = (Math.floor(clock.now() / DAY_MS) + 1) * DAY_MS
    const waits = Array.from({ length: 2_000 }, () => known.engine.nextFree(mail('new')))
    const times = new Set(waits.map(({ dueAt }) => dueAt))
    assert.ok(times.size > 1_900 && Math.min(...times) >= midnight)
    assert.ok(Math.max(...times) < midnight + 3_600_000)
    const reason = waits[0]?.reason ?? ''
    await scene.stopped('', 'slowed')
    const first = await known.engine.take(mail(reason))
    const second = await known.engine.take(mail(reason))
    assert.deepEqual([first !== null, second], [true, null])
    const turn = known.engine.nextFree(mail(reason))
    assert.equal(await known.engine.take(mail(turn.reason)), undefined, 'its turn has come')
  },
)

eachStore('a turn of a slowed sender that is taken while standings are read stays taken', async (store) => {
  const mail = { account_id: 'a', domain_id: 'd', reason: 'new' }
  const taken: boolean[] = []
  let read = (_table: string) => {}
  const selectFrom = (table: never) => {
    read(table)
    return store.db.selectFrom(table)
  }
  const { known, stopped } = await startChecks({ ...store, db: { selectFrom } as never }, async () => {})
  await stopped('', 'slowed')
  // The last table: the standings themselves have been read.
  read = (table) => {
    if (table === 'spam_traps') taken.push(known.engine.take(mail) !== null)
  }
  await known.changed()
  assert.deepEqual([taken, known.engine.take(mail)], [[true], null])
})

eachStore('mail to domains of the account itself does not count, whoever names a domain', async (store) => {
  const account = (id: string) =>
    insert('accounts', {
      ...{ id, parent_id: null, name: id, signing_key_sealed: Buffer.alloc(0), created_at: 0 },
      ...{ status: 'active', disabled_json: null, features_json: '{}', updated_at: 0 },
    })
  const domain = (id: string, account_id: string, name: string, state: 'active' | 'unverified') =>
    insert('domains', newDomainRow({ ...{ id, account_id, name, type: 'custom', state, created_at: 0 } }))
  await store.commit([
    account('a'),
    account('b'),
    domain('d1', 'a', 'own.example', 'active'),
    domain('d2', 'a', 'gmail.example', 'unverified'),
    domain('d3', 'b', 'other.example', 'active'),
  ])
  const counting = stepCount({ store, isTrap: () => false, isUnknownUser: () => false })
  const recipients = [
    'x@own.example',
    'x@mx.OWN.example',
    'x@gmail.example',
    'x@other.example',
    'x@notown.example',
  ]
  for (const recipient of recipients)
    counting.add({
      accountId: 'a',
      domainName: 'own.example',
      event: 'delivered',
      recipient,
      payload: {},
      at: 1,
    })
  await store.commit(await counting.statements())
  const [row] = await store.db.selectFrom('standing_counts').select('sent').execute()
  assert.equal(Number(row?.sent), 3)
})

eachStore('who has sent lately is found without the counts of other hours', async (store) => {
  // PostgreSQL chooses by the sizes of the tables.
  if (store.kind === 'postgres') return
  const reads: Statement[] = []
  const reading: Store = {
    ...store,
    read(statement) {
      reads.push(statement)
      return store.read(statement)
    },
  }
  assert.deepEqual(await activeAccounts(reading, 0, true), [])
  const [{ sql, values }] = reads as [Statement]
  const plan = JSON.stringify(await store.read({ sql: `EXPLAIN QUERY PLAN ${sql}`, values }))
  assert.match(plan, /standing_counts_hour/)
})
