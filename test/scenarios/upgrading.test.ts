/** Data folders of earlier releases are brought up to date without a loss. */
// Slow: it starts and ends whole processes, again and again.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { type Catalog, planOf } from '../../src/carry/migrate/catalog.ts'
import { openPostgresTarget } from '../../src/carry/migrate/postgres-side.ts'
import { batches, createReader } from '../../src/carry/migrate/reading.ts'
import { openSqliteSource } from '../../src/carry/migrate/sqlite-side.ts'
import { openInstallation } from '../../src/platform/store/installation.ts'
import { readSecret } from '../../src/platform/store/secrets/secret-file.ts'
import type { UpgradeCopy } from '../../src/platform/store/sqlite/upgrade-copy.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { countRows, fixtureNames, type ReleaseFixture, unpackFixture } from '../support/release-fixture.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { AUTHORIZATION, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

/** Rows that a migration removes on purpose, by table. */
const REMOVED_BY: Readonly<Record<string, number>> = {
  // Counts of a form that nobody had read yet.
  tls_results: 112,
}
/** Each migration adds its own. */
const VERSIONS = 'schema_versions'

test('there is a fixture to upgrade from', () => assert.ok(fixtureNames().length > 0))

for (const name of fixtureNames())
  test(`the data folder ${name} is upgraded, keeps every row, and its mail is sent`, async (t) => {
    const folder = join(await temporaryFolder(t), 'data')
    const fixture = unpackFixture(name, folder)
    const before = valuesOf(folder)
    const config = { databaseUrl: null, dataFolder: folder, secret: null }
    const copies: UpgradeCopy[] = []
    const onUpgradeCopy = (copy: UpgradeCopy) => copies.push(copy)
    const { store } = await openInstallation(config, { onUpgradeCopy })
    await store.close()
    const [copy] = copies
    assert.ok(copy?.file, 'a copy from before')
    const kept = new DatabaseSync(copy.file, { readOnly: true })
    t.after(() => kept.close())
    const [{ schema } = {}] = kept.prepare('SELECT max(version) AS schema FROM schema_versions').all()
    assert.equal(schema, fixture.schema)
    const again = await openInstallation(config, { onUpgradeCopy })
    await again.store.close()
    assert.equal(copies.length, 1, 'there is nothing to upgrade any more')
    assert.deepEqual(losses(fixture, countRows(folder)), [])
    for (const [table, rows] of before) assert.deepEqual(changedValues(folder, table, rows), [], table)

    const sink = await createSink({ host: ownAddress() })
    t.after(() => sink.close())
    const host = ownAddress()
    const service = await startProcess(host, {
      SENDWRIGHT_DATA: folder,
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    })
    t.after(() => service.end('SIGKILL'))
    const recipients = () => sink.messages.flatMap(({ envelope }) => envelope.to)
    await eventually('what was queued', async () =>
      fixture.waiting.every((one) => recipients().includes(one)),
    )
    const answer = await fetch(`${service.url}/v4/domains/${fixture.domain}`, {
      headers: { authorization: AUTHORIZATION },
    })
    assert.equal(answer.status, 200, 'the key and the domain are known')
  })

/** Tables with fewer rows than the fixture has. */
function losses({ rows, schema }: ReleaseFixture, now: Record<string, number>): string[] {
  return Object.entries(rows)
    .filter(([table, count]) => (now[table] ?? 0) < count && table !== VERSIONS)
    .filter(([table]) => (REMOVED_BY[table] ?? 0) <= schema)
    .map(([table, count]) => `${table}: ${count} rows, now ${now[table] ?? 'no table'}`)
}

type Rows = Record<string, unknown>[]

/** Tables whose values are compared too: what people have entered, and what is not sent yet. */
const COMPARED = [
  'accounts',
  'domains',
  'api_keys',
  'deliveries',
  'messages',
  'templates',
  'suppressions',
  'dkim_keys',
]

function readRows(folder: string, table: string): Rows {
  const database = new DatabaseSync(join(folder, 'sendwright.db'), { readOnly: true })
  const rows = database.prepare(`SELECT * FROM ${table} ORDER BY 1, 2, 3`).all()
  database.close()
  return rows.map((row) => ({ ...row }))
}

const valuesOf = (folder: string) => COMPARED.map((table) => [table, readRows(folder, table)] as const)

/** Columns whose values are others now; new columns do not count. */
function changedValues(folder: string, table: string, before: Rows): string[] {
  const now = readRows(folder, table)
  return Object.keys(before[0] ?? {}).filter(
    (column) =>
      JSON.stringify(before.map((row) => row[column])) !== JSON.stringify(now.map((row) => row[column])),
  )
}

for (const name of fixtureNames())
  test(`the data of ${name} is upgraded on PostgreSQL and keeps every row`, async (t) => {
    const folder = join(await temporaryFolder(t), 'data')
    const fixture = unpackFixture(name, folder)
    const database = await createTestDatabase()
    t.after(() => database.drop())
    const [secret, tables] = await loadInto(database.url, folder)
    const config = { databaseUrl: database.url, dataFolder: join(folder, 'node'), secret }
    const { store } = await openInstallation(config)
    t.after(() => store.close())
    const now: Record<string, number> = {}
    for (const table of tables)
      now[table] = Number(
        (await store.read({ sql: `SELECT count(*) AS n FROM ${table}`, values: [] }))[0]?.['n'],
      )
    const copied = Object.entries(fixture.rows).filter(([table]) => tables.includes(table))
    assert.ok(copied.length > 80)
    assert.deepEqual(losses({ ...fixture, rows: Object.fromEntries(copied) }, now), [])
  })

/** The rows of a data folder in a PostgreSQL of the same schema; resolves to the secret and the names of the tables. */
async function loadInto(url: string, folder: string): Promise<[secret: string, tables: string[]]> {
  const source = openSqliteSource(folder)
  const target = await openPostgresTarget(url)
  try {
    const versions = await source.query('SELECT version FROM schema_versions')
    await target.prepare(versions.map(([version]) => Number(version)))
    const plan = planOf((await source.catalog()) as Catalog, (await target.catalog()) as Catalog)
    await target.write(async (writer) => {
      for (const table of plan) await writer.run(`DELETE FROM ${table.name}`)
      for (const table of plan)
        for await (const { rows } of batches(createReader(source, table), null))
          if (rows.length > 0) await writer.insert(table, rows)
    })
    await target.finish(plan, () => {})
    return [readSecret(null, folder) as string, plan.map(({ name }) => name)]
  } finally {
    await source.close()
    await target.close()
  }
}
