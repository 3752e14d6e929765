// Both databases: a task is claimed with row locks on PostgreSQL.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { jobContext } from '../../../test/support/job-context.ts'
import { eachStore } from '../../../test/support/stores.ts'
import type { NodeReport } from '../nodes/node.ts'
import { removalOf } from '../nodes/nodes.ts'
import type { ListUploadRow, PersonTaskRow, SuppressionImportRow, ValidationJobRow } from '../store/schema.ts'
import { insert, StaleWrite, type Statement, type Store } from '../store/store.ts'
import { createTaskSteps, LEASE_MS, type TaskTable, taskJob } from './stepped-task.ts'

const NOW = 1_700_000_000_000

/** A kind whose steps count: the cursor is how many have been committed. */
interface Kind {
  what: string
  table: TaskTable
  cursor: 'done' | 'rows_done'
  add(id: string, more?: object): Statement
}

const LEASED = { lease_owner: null, lease_until: 0, created_at: NOW }
const UPLOAD: Omit<ListUploadRow, 'id' | 'list_id'> = {
  ...{ account_id: 'a', format: 'json', is_upsert: 0, subscribed: 1, entries_json: '[]', done: 0 },
  ...{ upserted_count: 0, failed_count: 0, state: 'running', ...LEASED, updated_at: NOW },
  ...{ is_confirmed: 0, called_by: null },
}
const IMPORT: Omit<SuppressionImportRow, 'id'> = {
  ...{ account_id: 'a', domain_id: 'd', kind: 'bounces', blob: 'b', rows_done: 0, rows_bad: 0 },
  ...{ attempts: 0, lease_token: null, ...LEASED },
}

const PERSON_TASK: Omit<PersonTaskRow, 'id'> = {
  ...{ account_id: 'a', everywhere: 0, kind: 'erase', dry_run: 0, state: 'running', address_sealed: null },
  ...{ address_hash: '', position_json: '{}', counts_json: '{}', blobs_json: '[]', report_json: null },
  ...{ fault: '', tries: 0, lease_token: null, stepped_at: NOW, finished_at: null, ...LEASED },
}
const VALIDATION: Omit<ValidationJobRow, 'id' | 'list_id'> = {
  ...{ account_id: 'a', kind: 'bulk', mailing_list_id: null, blob: null, status: 'processing', dropping: 0 },
  ...{ quantity: 1, read_up_to: '', addresses: 1, done: 0, done_up_to: 0, tries: 0, counts_json: '{}' },
  ...{ lease_token: null, stepped_at: NOW, ended_at: null, ...LEASED },
}
const DEAD: NodeReport = {
  ...{ id: 'dead', host: 'h', roles: [], addresses: [], version: '1', state: 'running' },
  ...{ startedAt: 0, lastSeenAt: NOW, silentMs: LEASE_MS },
}

const KINDS: Kind[] = [
  {
    what: 'its cursor',
    table: {
      ...{ name: 'list_uploads', key: 'id', open: "task.state = 'running'", turn: 'updated_at' },
      ...{ inOrderOf: 'list_id', lease: { ms: LEASE_MS, check: 'done', tries: null } },
    },
    cursor: 'done',
    add: (id, more) => insert('list_uploads', { id, list_id: id, ...UPLOAD, ...more }),
  },
  {
    what: 'the token of its claim',
    table: {
      ...{ name: 'suppression_imports', key: 'id', open: 'TRUE', turn: null },
      lease: { ms: LEASE_MS, check: 'lease_token', tries: 'attempts' },
    },
    cursor: 'rows_done',
    add: (id, more) => insert('suppression_imports', { id, ...IMPORT, ...more }),
  },
]

type Task = Partial<ListUploadRow & SuppressionImportRow> & { id: string }

function processOf(store: Store, { table, cursor }: Kind, owner: string, afterMs = 0) {
  const clock = createTestClock(NOW)
  clock.stepWall(afterMs)
  const parts = { store, clock, owner }
  const seen: string[] = []
  const work = { before: async () => {} }
  const tasks = createTaskSteps<Task>(parts, table, async (task) => {
    seen.push(task.id)
    await work.before()
    await tasks.commit(task, { [cursor]: (task[cursor] ?? 0) + 1 }, [], 'release')
  })
  return Object.assign(work, { ...tasks, seen })
}

const rowsOf = async (store: Store, { table, cursor }: Kind) => {
  const rows = await store.read({ sql: `SELECT * FROM ${table.name} ORDER BY id`, values: [] })
  return rows.map((row) => [row['id'], Number(row[cursor]), Number(row['attempts'] ?? 0)])
}

for (const kind of KINDS) {
  eachStore(`a step relies on ${kind.what}: one that died is done again, whole`, async (store) => {
    await store.commit([kind.add('one')])
    const dying = processOf(store, kind, 'dying')
    dying.before = async () => {
      throw new Error('the process is gone')
    }
    await assert.rejects(dying.runOne(), /the process is gone/)
    const tries = kind.table.lease?.tries ? 1 : 0
    assert.deepEqual(await rowsOf(store, kind), [['one', 0, tries]])
    if (store.kind === 'postgres') assert.equal(await processOf(store, kind, 'early').runOne(), false)
    assert.equal(await processOf(store, kind, 'next', LEASE_MS + 1).runOne(), true)
    assert.deepEqual(await rowsOf(store, kind), [['one', 1, 0]])
  })

  eachStore(`a step relies on ${kind.what}: of two that do it, one is undone`, async (store) => {
    await store.commit([kind.add('one')])
    const slow = processOf(store, kind, 'slow')
    slow.before = async () => void (await processOf(store, kind, 'fast', LEASE_MS + 1).runOne())
    await assert.rejects(slow.runOne(), StaleWrite)
    assert.deepEqual(await rowsOf(store, kind), [['one', 1, 0]])
  })

  eachStore(`a step relies on ${kind.what}: a stop gives the lease back`, async (store) => {
    await store.commit([kind.add('one')])
    const stopping = new AbortController()
    const clock = createTestClock(NOW)
    const tasks = createTaskSteps<Task>({ store, clock, owner: 'one' }, kind.table, async (task) => {
      await tasks.commit(task, { [kind.cursor]: 1 }, [], 'continue')
      stopping.abort()
    })
    await tasks.runOne(stopping.signal)
    assert.equal(await processOf(store, kind, 'two').runOne(), true)
    assert.deepEqual(await rowsOf(store, kind), [['one', 2, 0]])
  })
}

eachStore('a dead node loses its leases in every table that has them, and only those', async (store) => {
  if (store.kind === 'sqlite') return // one process has the database
  const columns = await store.read({
    sql: `SELECT table_name AS name FROM information_schema.columns
      WHERE column_name = 'lease_owner' AND table_schema = current_schema()`,
    values: [],
  })
  const returned = removalOf(DEAD).flatMap(({ sql }) => /^UPDATE (\w+)/.exec(sql)?.[1] ?? [])
  assert.deepEqual(returned.toSorted(), columns.map(({ name }) => String(name)).toSorted())
  const held = (owner: string) => ({ lease_owner: owner, lease_until: NOW + LEASE_MS })
  await store.commit([
    {
      sql: `INSERT INTO nodes (id, host, roles_json, addresses_json, version, state, started_at, last_seen_at)
        VALUES (?, 'h', '[]', '[]', '1', 'running', 0, ?)`,
      values: [DEAD.id, DEAD.lastSeenAt],
    },
    ...[DEAD.id, 'alive'].flatMap((owner) => [
      ...KINDS.map(({ add }) => add(owner, held(owner))),
      insert('person_tasks', { ...PERSON_TASK, id: owner, ...held(owner) }),
      insert('validation_jobs', { ...VALIDATION, id: owner, list_id: owner, ...held(owner) }),
    ]),
  ])
  await store.commit(removalOf(DEAD))
  for (const name of ['list_uploads', 'suppression_imports', 'person_tasks', 'validation_jobs'])
    assert.deepEqual(
      await store.read({ sql: `SELECT id FROM ${name} WHERE lease_until = 0`, values: [] }),
      [{ id: DEAD.id }],
      name,
    )
})

eachStore(
  'the task whose last step is longest ago is next; tasks of one list keep their order',
  async (store) => {
    const [kind] = KINDS as [Kind]
    const list = { list_id: 'list' }
    await store.commit([kind.add('a1', list), kind.add('a2', { ...list, updated_at: 0 }), kind.add('b')])
    for (const afterMs of [1, 2, 3]) {
      const { seen, runOne } = processOf(store, kind, 'one', afterMs)
      await runOne()
      assert.deepEqual(seen, [afterMs === 2 ? 'b' : 'a1'])
    }
    await store.commit([{ sql: "UPDATE list_uploads SET state = 'done' WHERE id = 'a1'", values: [] }])
    const { seen, runOne } = processOf(store, kind, 'one', 4)
    await runOne()
    assert.deepEqual(seen, ['a2'])
  },
)

eachStore('a task that was given up does not fail its job', async (store) => {
  const [, kind] = KINDS as [Kind, Kind]
  await store.commit([kind.add('one')])
  const parts = { store, clock: createTestClock(NOW), owner: 'one' }
  const fail = async () => Promise.reject(new Error('hopeless'))
  const gaveUp: string[] = []
  const tasks = createTaskSteps<Task>(parts, kind.table, fail, async (task, error) => {
    gaveUp.push(`${task.id}: ${(error as Error).message}`)
    return true
  })
  assert.equal(await tasks.runOne(), true)
  assert.deepEqual(gaveUp, ['one: hopeless'])
})

test('the job does all tasks, survives a fault, and ends on stop', async () => {
  const clock = createTestClock(NOW)
  const outcomes: (boolean | Error)[] = [true, true, new Error('database gone'), true, false]
  let idle = () => {}
  const runner = taskJob('tasks', async () => {
    const next = outcomes.shift() ?? false
    if (next instanceof Error) throw next
    if (outcomes.length === 0) idle()
    return next
  })
  const done = new Promise<void>((resolve) => {
    idle = resolve
  })
  runner.start(jobContext(null as unknown as Store, { clock }))
  await clock.advance(2_000)
  await done
  assert.equal(outcomes.length, 0)
  outcomes.push(true, false)
  runner.wake()
  await clock.advance(0)
  assert.equal(outcomes.length, 0)
  await runner.stop()
  outcomes.push(true)
  runner.wake()
  await clock.advance(60_000)
  assert.deepEqual(outcomes, [true])
})
