// Both databases: it is the store itself.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { domainRow } from '../../../test/support/figures.ts'
import { createTestDatabase } from '../../../test/support/postgres.ts'
import { eachStore, temporaryFolder } from '../../../test/support/stores.ts'
import { openPostgres } from './postgres/postgres.ts'
import { openSqlite } from './sqlite/sqlite.ts'
import { insert, StaleWrite, type Store, StoreUnavailable } from './store.ts'

const account = (id: string) => ({
  id,
  parent_id: null,
  name: `account ${id}`,
  signing_key_sealed: Buffer.from([0, 1, 255]),
  created_at: 1_780_315_200_123,
})

const names = async (store: Store) =>
  (await store.db.selectFrom('accounts').select('id').orderBy('id').execute()).map((row) => row.id)

eachStore('a unit that is written a second time is stale, whatever else it inserts', async (store) => {
  await store.commit([insert('accounts', account('once'))])
  const unit = [
    {
      sql: "UPDATE accounts SET name = 'renamed' WHERE name = ?",
      values: [account('once').name],
      expectRows: 1,
    },
    insert('accounts', account('with it')),
  ]
  await store.commit(unit)
  await assert.rejects(store.commit(unit), StaleWrite)
})

eachStore('a committed unit is read back with the same types', async (store) => {
  await store.commit([insert('accounts', account('a'))])
  const names = ['id', 'parent_id', 'name', 'signing_key_sealed', 'created_at'] as const
  const row = await store.db.selectFrom('accounts').select(names).executeTakeFirstOrThrow()
  assert.deepEqual({ ...row, signing_key_sealed: Buffer.from(row.signing_key_sealed) }, { ...account('a') })
})

eachStore(
  'a unit whose expectation fails is rolled back whole, units of its group are not',
  async (store) => {
    const expectOne = {
      sql: 'UPDATE accounts SET name = ? WHERE id = ?',
      values: ['x', 'nobody'],
      expectRows: 1,
    }
    const outcomes = await Promise.allSettled([
      store.commit([insert('accounts', account('a'))]),
      store.commit([insert('accounts', account('b')), expectOne]),
      store.commit([insert('accounts', account('c'))]),
    ])
    assert.deepEqual(
      outcomes.map((outcome) => outcome.status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    assert.ok((outcomes[1] as PromiseRejectedResult).reason instanceof StaleWrite)
    assert.deepEqual(await names(store), ['a', 'c'])
  },
)

eachStore('a unit with a duplicate key is rolled back alone', async (store) => {
  const outcomes = await Promise.allSettled([
    store.commit([insert('accounts', account('a'))]),
    store.commit([insert('accounts', account('b')), insert('accounts', account('b'))]),
    store.commit([insert('accounts', account('d'))]),
  ])
  assert.deepEqual(
    outcomes.map((outcome) => outcome.status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  assert.deepEqual(await names(store), ['a', 'd'])
})

eachStore('a transaction reads its own writes and rolls back on an error', async (store) => {
  await assert.rejects(
    store.transaction(async (tx) => {
      await tx.insertInto('accounts').values(account('a')).execute()
      assert.equal((await tx.selectFrom('accounts').select('id').execute()).length, 1)
      throw new Error('changed my mind')
    }),
    /changed my mind/,
  )
  assert.deepEqual(await names(store), [])
  await store.transaction((tx) => tx.insertInto('accounts').values(account('b')).execute())
  assert.deepEqual(await names(store), ['b'])
})

eachStore('queries are answered during an open transaction, from committed data', async (store) => {
  await store.transaction(async (tx) => {
    await tx.insertInto('accounts').values(account('a')).execute()
    assert.deepEqual(await names(store), [])
  })
  assert.deepEqual(await names(store), ['a'])
})

eachStore('five hundred units at once are all committed', async (store) => {
  const ids = Array.from({ length: 500 }, (_, index) => `id-${index}`)
  await Promise.all(ids.map((id) => store.commit([insert('accounts', account(id))])))
  assert.deepEqual(await names(store), [...ids].sort())
})

eachStore('a priority unit is committed before units that were queued earlier', async (store) => {
  if (store.kind === 'postgres') return // every unit has a connection of its own and waits for none
  const done: string[] = []
  const busy = store.transaction(async () => {
    const note = (name: string) => () => void done.push(name)
    const select = [{ sql: 'SELECT 1', values: [] }]
    waiting = [
      store.transaction(async () => {}).then(note('transaction')),
      store.commit(select).then(note('unit')),
      store.commit(select, 'first').then(note('first')),
    ]
  })
  let waiting: Promise<void>[] = []
  await busy
  await Promise.all(waiting)
  assert.equal(done[0], 'first')
})

eachStore('text with a NUL in it is written and found like any other', async (store) => {
  const name = 'a\0b'
  await store.commit([insert('accounts', { ...account('unit'), name })])
  await store.db
    .insertInto('accounts')
    .values({ ...account('single'), name })
    .execute()
  await store.transaction((tx) =>
    tx
      .insertInto('accounts')
      .values({ ...account('tx'), name })
      .execute(),
  )
  const found = await store.db.selectFrom('accounts').select('id').where('name', '=', name).execute()
  assert.deepEqual(found.map(({ id }) => id).sort(), ['single', 'tx', 'unit'])
  const rows = await store.read({ sql: 'SELECT id FROM accounts WHERE name = ?', values: [name] })
  assert.equal(rows.length, 3)
})

eachStore('ids compare by their bytes in both databases', async (store) => {
  const ids = ['-a', '0a', 'A', '_', 'a', 'B']
  for (const id of ids) await store.commit([insert('accounts', account(id))])
  assert.deepEqual(await names(store), ['-a', '0a', 'A', 'B', '_', 'a'])
})

eachStore(
  'a connection that the server closes in the middle of a transaction affects nothing else',
  async (store) => {
    if (store.kind === 'sqlite') return // its connections are threads of this process
    const ended = store.transaction(async (tx) => {
      const { rows } = await sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`.execute(tx)
      const [row] = rows
      await store.read({ sql: 'SELECT pg_terminate_backend(?, 5000)', values: [row?.pid ?? 0] })
      await tx.insertInto('accounts').values(account('a')).execute()
    })
    await assert.rejects(ended)
    const own = { sql: 'SELECT pg_terminate_backend(pg_backend_pid())', values: [] }
    await assert.rejects(store.commit([insert('accounts', account('b')), own]), StoreUnavailable)
    await store.commit([insert('accounts', account('c'))])
    assert.deepEqual(await names(store), ['c'])
  },
)

test('PostgreSQL compresses contents with lz4 if it was built with it', async () => {
  const database = await createTestDatabase()
  const store = await openPostgres(database.url)
  try {
    const { rows } = await sql<{ method: string; known: boolean }>`
      SELECT attcompression AS method, 'lz4' = ANY (enumvals) AS known FROM pg_attribute, pg_settings
      WHERE attrelid = 'messages'::regclass AND attname = 'content'
        AND pg_settings.name = 'default_toast_compression'`.execute(store.db)
    assert.equal(rows[0]?.method, rows[0]?.known ? 'l' : '')
  } finally {
    await store.close()
    await database.drop()
  }
})

test('a second process cannot open the same data folder, and can once the first has closed it', async (t) => {
  const folder = await temporaryFolder(t)
  const first = await openSqlite(folder)
  await assert.rejects(openSqlite(folder), StoreUnavailable)
  await first.close()
  const second = await openSqlite(folder)
  await second.close()
})

test('a database from a newer program is refused', async (t) => {
  const folder = await temporaryFolder(t)
  const store = await openSqlite(folder)
  await store.commit([{ sql: "INSERT INTO schema_versions VALUES (9999, 'future', 'now')", values: [] }])
  await store.close()
  await assert.rejects(openSqlite(folder), /schema version 9999/)
})

eachStore('a steady stream of priority units does not block a transaction', async (store) => {
  let over = false
  let passed = 0
  const settle = async () => {
    while (!over && passed < 2_000) {
      await store.commit([{ sql: 'UPDATE accounts SET name = name WHERE 1 = 0', values: [] }], 'first')
      passed++
    }
  }
  const settling = [settle(), settle(), settle()]
  await store.transaction((tx) => tx.insertInto('accounts').values(account('a')).execute())
  await store.commit([insert('accounts', account('b'))])
  over = true
  await Promise.all(settling)
  assert.ok(passed < 2_000, 'the transaction waited for the last of them')
  assert.deepEqual(await names(store), ['a', 'b'])
})

test('a failed commit reports its reason, and does not affect the next transaction (sqlite)', async (t) => {
  const store = await openSqlite(await temporaryFolder(t))
  t.after(() => store.close())
  // Checked at the commit, which then fails as on a full disk.
  const failing = store.transaction(async (tx) => {
    await sql`PRAGMA defer_foreign_keys = ON`.execute(tx)
    await tx.insertInto('domains').values(domainRow('x.example', 'nobody')).execute()
  })
  const next = store.transaction(async (tx) => {
    await tx.insertInto('accounts').values(account('a')).execute()
    throw new Error('changed my mind')
  })
  const outcomes = await Promise.allSettled([failing, next])
  const reasons = outcomes.map((outcome) => String((outcome as PromiseRejectedResult).reason))
  await assert.rejects(
    // Rolls back the transaction, as a full disk may.
    store.transaction((tx) =>
      sql`INSERT OR ROLLBACK INTO event_followers VALUES ('counters', 0, 0)`.execute(tx),
    ),
    /UNIQUE/,
  )
  assert.deepEqual(reasons, ['Error: FOREIGN KEY constraint failed', 'Error: changed my mind'])
  assert.deepEqual(await names(store), [])
})
