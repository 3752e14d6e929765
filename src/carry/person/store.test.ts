/** What is kept of exports and erasures of an account. */
import assert from 'node:assert/strict'
import { eachStore } from '../../../test/support/stores.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { PersonTaskRow } from '../../platform/store/schema.ts'
import { insert, type Store } from '../../platform/store/store.ts'
import { ERASURES_MAX, insertTask, removeBeyond, TASKS_MAX } from './store.ts'

const DONE: PersonTaskRow = {
  ...{ id: 'one', account_id: 'account', everywhere: 0, kind: 'erase', dry_run: 0, state: 'done' },
  ...{ address_sealed: null, address_hash: 'hash', position_json: '{}', counts_json: '{}', blobs_json: '[]' },
  ...{ report_json: '{}', fault: '', tries: 0, lease_token: null, lease_owner: null, lease_until: 0 },
  ...{ stepped_at: 1, created_at: 1, finished_at: 1 },
}

/** Copies the task `one`; `set`: columns with other values, in SQL. */
async function copies(store: Store, prefix: string, count: number, set: Record<string, string>) {
  const columns = Object.keys(DONE)
  const chosen: Record<string, string> = { id: `'${prefix}' || no`, ...set }
  const values = columns.map((column) => chosen[column] ?? column)
  const sql = `WITH RECURSIVE numbers (no) AS (SELECT 1 UNION ALL SELECT no + 1 FROM numbers WHERE no < ${count})
    INSERT INTO person_tasks (${columns.join(', ')}) SELECT ${values.join(', ')}
    FROM (SELECT * FROM person_tasks WHERE id = 'one') AS one, numbers`
  await store.commit([{ sql, values: [] }])
}

const count = async (store: Store, condition: string) =>
  Number(
    (await store.read({ sql: `SELECT count(*) AS n FROM person_tasks WHERE ${condition}`, values: [] }))[0]?.[
      'n'
    ],
  )

eachStore(
  'reports of erasures outlive any number of other tasks, and are bounded by a refusal',
  async (store) => {
    await store.commit([insert('person_tasks', DONE)])
    await copies(store, 'export-', TASKS_MAX + 20, { kind: "'export'", created_at: '1 + no' })
    await copies(store, 'dry-', 20, { dry_run: '1' })
    const blobs = { remove: async () => {} } as unknown as BlobStore
    await removeBeyond({ store, blobs }, 'account', new AbortController().signal)
    assert.equal(await count(store, "id = 'one'"), 1, 'the oldest is a proof')
    assert.equal(await count(store, "id <> 'one'"), TASKS_MAX)
    assert.equal(await count(store, "id LIKE 'dry-%'"), 0, 'a dry run proves nothing')

    await copies(store, 'erase-', ERASURES_MAX - 2, {})
    const next = (id: string, more: Partial<PersonTaskRow>) =>
      insertTask(store, { ...DONE, state: 'queued', report_json: null, finished_at: null, id, ...more })
    await next('last', {})
    await assert.rejects(next('more', {}), /at most 10000 erasures in 90 days/)
    await next('dry', { dry_run: 1 })
    await next('export', { kind: 'export' })
  },
)
