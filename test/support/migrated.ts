/**
 * Databases that already have today's schema, as copies of a template: applying all migrations takes a tenth of a
 * second on SQLite and half a second on PostgreSQL, and a run of all tests opens about a thousand. Tests of the
 * migrations and of the first start take empty ones instead.
 */
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DATABASE_FILE } from '../../src/platform/store/blobs/data-folder.ts'
import { readMigrations } from '../../src/platform/store/migrate.ts'
import { openPostgres } from '../../src/platform/store/postgres/postgres.ts'
import { openSqlite } from '../../src/platform/store/sqlite/sqlite.ts'
import { createTestDatabase, execute, type TestDatabase } from './postgres.ts'

const hashes = new Map<string, string>()

/** Names the schema, so that a server which outlives the run never offers an older one. */
function schemaHash(kind: 'sqlite' | 'postgres'): string {
  const known = hashes.get(kind)
  if (known !== undefined) return known
  const text = JSON.stringify(readMigrations(kind))
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16)
  hashes.set(kind, hash)
  return hash
}

/**
 * Gives an empty data folder a database with today's schema. Only in a run of `npm test`, which names a folder that
 * its files share: a file that runs alone would make the template for itself.
 */
export async function prepareDataFolder(folder: string): Promise<void> {
  const shared = process.env['SENDWRIGHT_TEST_TEMPLATES']
  if (!shared) return
  const template = join(shared, `${schemaHash('sqlite')}.db`)
  if (!existsSync(template)) {
    const own = mkdtempSync(join(tmpdir(), 'template-'))
    await (await openSqlite(own)).close()
    renameSync(join(own, DATABASE_FILE), template) // another file may have made it meanwhile: they are equal
    rmSync(own, { recursive: true })
  }
  copyFileSync(template, join(folder, DATABASE_FILE))
}

let template: Promise<string> | undefined

/** A database with today's schema for one test; `createTestDatabase` makes an empty one. */
export async function createMigratedDatabase(): Promise<TestDatabase> {
  template ??= makeTemplate()
  return createTestDatabase('test', await template)
}

/** Makes the template of the cluster, unless another test file has. Returns its name. */
async function makeTemplate(): Promise<string> {
  const name = `template_${schemaHash('postgres')}`
  const exists = async () => (await execute(`SELECT 1 FROM pg_database WHERE datname = '${name}'`)).length > 0
  if (await exists()) return name
  const own = await createTestDatabase('template')
  try {
    await (await openPostgres(own.url)).close()
    // Whoever comes second fails, as the name is taken.
    await execute(`ALTER DATABASE ${new URL(own.url).pathname.slice(1)} RENAME TO ${name}`)
  } catch (error) {
    await own.drop()
    if (!(await exists())) throw error
  }
  return name
}
