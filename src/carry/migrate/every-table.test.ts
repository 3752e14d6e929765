/** A store with rows in every table goes to PostgreSQL, to another PostgreSQL and back, and is what it was. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { fillTables } from '../../../test/support/fill-tables.ts'
import { createTestDatabase } from '../../../test/support/postgres.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { BLOB_COLUMNS } from '../../platform/store/blobs/blobs.ts'
import { openInstallation } from '../../platform/store/installation.ts'
import { folderPlace } from './blobs.ts'
import { type Catalog, MADE_ANEW, planOf } from './catalog.ts'
import { copyAll, type MigrationResult } from './migration.ts'
import { openPostgresSource, openPostgresTarget } from './postgres-side.ts'
import type { Source, Target } from './side.ts'
import { openSqliteSource, openSqliteTarget } from './sqlite-side.ts'

/** A data folder with rows in every table. */
async function filledFolder(t: TestContext): Promise<{ folder: string; tables: string[] }> {
  const folder = await temporaryFolder(t)
  const { store } = await openInstallation({ databaseUrl: null, dataFolder: folder, secret: null })
  await store.close()
  const side = openSqliteTarget(folder)
  await side.prepare()
  const mark = await side.query("SELECT value FROM installation WHERE name = 'secret-mark'")
  const tables = await fillTables(side)
  await side.write((writer) =>
    writer.run("INSERT INTO installation VALUES ('secret-mark', ?)", mark[0] ?? []),
  )
  await side.close()
  return { folder, tables }
}

async function testUrl(t: TestContext): Promise<string> {
  const database = await createTestDatabase()
  t.after(() => database.drop())
  return database.url
}

async function move(source: Source, target: Target, folder: string): Promise<MigrationResult> {
  try {
    return await copyAll({ source, target, blobs: { from: folderPlace(folder), to: null } }, () => {})
  } finally {
    await source.close()
    await target.close()
  }
}

/** All rows of all tables as text, in an order of their own. */
function dump(folder: string): Map<string, string[]> {
  const database = new DatabaseSync(join(folder, 'sendwright.db'), { readOnly: true })
  const names = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all()
  const tables = names.map(({ name }): [string, string[]] => {
    const statement = database.prepare(`SELECT * FROM ${name}`)
    statement.setReadBigInts(true)
    const text = (_: string, value: unknown) => {
      if (typeof value === 'bigint') return `${value}n`
      return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value
    }
    return [
      String(name),
      statement
        .all()
        .map((row) => JSON.stringify({ ...row }, text))
        .sort(),
    ]
  })
  database.close()
  return new Map(tables)
}

test('rows in every table go to PostgreSQL, to another one and back without a loss', async (t) => {
  const { folder, tables } = await filledFolder(t)
  const before = dump(folder)
  for (const name of before.keys())
    assert.ok(
      tables.includes(name) || Object.hasOwn(MADE_ANEW, name),
      `table ${name} is neither copied nor explained`,
    )
  for (const name of tables) assert.ok((before.get(name)?.length ?? 0) >= 4, `${name} has rows`)
  const url = await testUrl(t)
  const there = await move(openSqliteSource(folder), await openPostgresTarget(url), folder)
  assert.deepEqual(there.differences, [])
  const repeated = move(openSqliteSource(folder), await openPostgresTarget(url), folder)
  await assert.rejects(repeated, /it is not empty, table \w+ has rows/)
  const next = await testUrl(t)
  const further = await move(await openPostgresSource(url), await openPostgresTarget(next), folder)
  assert.deepEqual(further.differences, [])
  assert.deepEqual(further.tables, there.tables, 'with the same digests')
  assert.deepEqual(further.tags, there.tags)
  const back = join(await temporaryFolder(t), 'back')
  const again = await move(await openPostgresSource(next), openSqliteTarget(back), folder)
  assert.deepEqual(again.differences, [])
  assert.deepEqual(again.tables, there.tables, 'with the same digests')
  const after = dump(back)
  for (const [name, rows] of before)
    if (!Object.hasOwn(MADE_ANEW, name)) assert.deepEqual(after.get(name), rows, name)
  assert.equal(after.get('event_index')?.length, before.get('events')?.length, 'the index is made anew')
  assert.equal(after.get('event_tags')?.length, 3)
  const database = new DatabaseSync(join(back, 'sendwright.db'), { readOnly: true })
  assert.equal(
    database.prepare('PRAGMA auto_vacuum').get()?.['auto_vacuum'],
    2,
    'it can return space to the disk',
  )
  database.close()

  await t.test('PostgreSQL numbers new rows above the copied ones', async () => {
    const side = await openPostgresTarget(next)
    const catalog = await side.catalog()
    for (const { name, identity } of catalog?.values() ?? []) {
      if (identity === null) continue
      const [row] = await side.query(
        `SELECT nextval(pg_get_serial_sequence('${name}', '${identity}')) - max(${identity}) FROM ${name}`,
      )
      assert.equal(row?.[0], 1n, name)
    }
    await side.close()
  })
})

async function emptyCatalog(t: TestContext): Promise<Catalog> {
  const side = openSqliteTarget(join(await temporaryFolder(t), 'new'))
  await side.prepare()
  const catalog = (await side.catalog()) as Catalog
  await side.close()
  return catalog
}

test('tables, columns and types that only one database has stop the copy before it begins', async (t) => {
  const catalog = await emptyCatalog(t)
  const changed = new Map(catalog)
  const alerts = catalog.get('alerts')
  assert.ok(alerts)
  changed.set('new_table', { ...alerts, name: 'new_table' })
  assert.throws(() => planOf(catalog, changed), /Table new_table is only in the target/)
  changed.set('new_table', { ...alerts, name: 'new_table', columns: [{ name: 'x', type: 'other' }] })
  assert.throws(() => planOf(changed, changed), /type of column new_table.x is not known/)
  changed.delete('new_table')
  changed.set('alerts', { ...alerts, columns: alerts.columns.slice(1) })
  assert.throws(() => planOf(catalog, changed), /Column alerts.\w+ is absent in the target/)
})

test('every column that names blobs is known', async (t) => {
  const named: string[] = []
  for (const { name, columns } of (await emptyCatalog(t)).values())
    named.push(
      ...columns.filter((column) => /blob/.test(column.name)).map((column) => `${name}.${column.name}`),
    )
  const known = BLOB_COLUMNS.map(({ table, column }) => `${table}.${column}`)
  // Also in blobs_json of its row.
  assert.deepEqual(named.toSorted(), [...known, 'messages.content_blob'].toSorted())
})

test('what cannot be copied is refused with the reason, and nothing is written', async (t) => {
  const folder = join(await temporaryFolder(t), 'data')
  const url = await testUrl(t)
  const tryMove = async () => move(openSqliteSource(folder), await openPostgresTarget(url), folder)
  await assert.rejects(tryMove(), /holds no database/)
  const side = openSqliteTarget(folder)
  await side.prepare()
  assert.throws(() => openSqliteSource(folder), { detail: /another process is using it/ })
  await side.close()
  await assert.rejects(tryMove(), /no service has used/)
  const change = (sql: string) => {
    const database = new DatabaseSync(join(folder, 'sendwright.db'))
    database.exec(sql)
    database.close()
  }
  change("INSERT INTO installation VALUES ('secret-mark', x'00')")
  const other = await openPostgresTarget(url)
  await other.query('CREATE TABLE others (id text)')
  await other.close()
  await assert.rejects(tryMove(), /it holds other tables, such as "others"/)
  const cleared = await openPostgresTarget(url)
  await cleared.query('DROP TABLE others')
  await assert.rejects(openPostgresSource(url), /Another process is copying/)
  await assert.rejects(
    openInstallation({ databaseUrl: url, dataFolder: join(folder, 'node'), secret: null }),
    { detail: /is copying it. Start again/ },
  )
  await cleared.close()
  change("INSERT INTO schema_versions VALUES (9999, 'future', 'now')")
  await assert.rejects(tryMove(), /has schema version 9999, this program has \d+\. Use the version/)
  change('DELETE FROM schema_versions WHERE version > 90')
  await assert.rejects(tryMove(), /Start and stop the service of this version once/)
  const after = await openPostgresTarget(url)
  assert.equal(await after.catalog(), null)
  await after.close()
})
