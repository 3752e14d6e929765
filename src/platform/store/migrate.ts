/**
 * Numbered SQL files, each applied once in its own transaction. A database newer than the program is refused.
 *
 * PostgreSQL gets one command at a time: Citus sends commands that define something to its machines, and takes no text of
 * several.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { UnknownSchema } from './store.ts'

interface Migration {
  version: number
  name: string
  sql: string
}

const FOLDER = join(import.meta.dirname, 'migrations')

const POSTGRES_TYPES: Record<string, string> = {
  TEXT: 'text COLLATE "C"',
  INTEGER: 'bigint',
  REAL: 'double precision',
  BLOB: 'bytea',
  SEQUENCE: 'bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
}

/** All migrations in order, in the dialect of the database. Each is read when its `sql` is: most starts need none. */
export function readMigrations(kind: 'sqlite' | 'postgres'): Migration[] {
  const files = readdirSync(FOLDER).filter((name) => /^\d{4}-.*\.sql$/.test(name))
  return files.sort().map((file) => ({
    version: Number(file.slice(0, 4)),
    name: file.slice(5, -4),
    get sql() {
      const sql = sectionsOf(readFileSync(join(FOLDER, file), 'utf8'), kind)
      return kind === 'postgres' ? toPostgres(sql) : toSqlite(sql)
    },
  }))
}

/** A line `-- only sqlite` or `-- only postgres` starts a section for one database, `-- all` ends it. */
function sectionsOf(sql: string, kind: 'sqlite' | 'postgres'): string {
  let only: string | null = null
  const kept = sql.split('\n').filter((line) => {
    const marker = /^-- (?:only (sqlite|postgres)|all)$/.exec(line)
    if (marker) only = marker[1] ?? null
    return only === null || only === kind
  })
  return kept.join('\n')
}

const withoutComments = (sql: string) => sql.replaceAll(/--.*$/gm, '')

function toPostgres(sql: string): string {
  return withoutComments(sql).replaceAll(
    /\b(TEXT|INTEGER|REAL|BLOB|SEQUENCE)\b/g,
    (type) => POSTGRES_TYPES[type] as string,
  )
}

function toSqlite(sql: string): string {
  return withoutComments(sql).replaceAll(/\bSEQUENCE\b/g, 'INTEGER PRIMARY KEY')
}

export const VERSION_TABLE =
  'CREATE TABLE IF NOT EXISTS schema_versions (version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)'

/** A database before its migrations, for reading only. */
export interface UnmigratedDatabase {
  hasTable(name: string): Promise<boolean>
  /** Runs a query without parameters. */
  rows(sql: string): Promise<Record<string, unknown>[]>
}

/** Inspects a database before its migrations; an error that it throws aborts the opening. */
export type BeforeMigrations = (database: UnmigratedDatabase) => Promise<void>

/** `rows` queries the database that is being opened. */
export const unmigrated = (
  kind: 'sqlite' | 'postgres',
  rows: UnmigratedDatabase['rows'],
): UnmigratedDatabase => ({
  rows,
  async hasTable(name) {
    const [row] = await rows(
      kind === 'sqlite'
        ? `SELECT name FROM sqlite_master WHERE type = 'table' AND name = '${name}'`
        : `SELECT to_regclass('${name}') AS name`,
    )
    return (row?.['name'] ?? null) !== null
  },
})

export interface MigratedDatabase {
  kind: 'sqlite' | 'postgres'
  /** Executes SQL: on SQLite several statements, on PostgreSQL one, after those of earlier calls. */
  run(sql: string): Promise<void>
  /** The versions that the database already has. */
  applied(): Promise<number[]>
  /** Called before the first migration of a database that has some, with the version that it gets. */
  upgrading?(version: number): Promise<void>
}

/**
 * Brings a database to the newest version. `only`: not to the newest, but with these.
 * @throws UnknownSchema if the database has a version that this program does not know.
 */
export async function migrate(database: MigratedDatabase, only?: readonly number[]): Promise<void> {
  await database.run(VERSION_TABLE)
  const migrations = readMigrations(database.kind)
  const applied = await database.applied()
  const newest = migrations.at(-1)?.version ?? 0
  const unknown = applied.find((version) => version > newest)
  if (unknown !== undefined) {
    throw new UnknownSchema(
      `Cannot open the database: it has schema version ${unknown}, this program knows up to ${newest}`,
    )
  }
  const missing = migrations.filter(
    ({ version }) => !applied.includes(version) && (only?.includes(version) ?? true),
  )
  if (missing.length > 0 && applied.length > 0) await database.upgrading?.(newest)
  for (const { version, name, sql } of missing) {
    const record = `INSERT INTO schema_versions VALUES (${version}, '${name}', '${new Date().toISOString()}')`
    if (database.kind === 'sqlite') await database.run(`BEGIN;\n${sql};\n${record};\nCOMMIT;`)
    else await runEach(database, ['BEGIN', ...commandsOf(sql), record, 'COMMIT'])
  }
}

/** Sent without waiting in between, which would cost a round trip for each. After a failure COMMIT rolls back. */
async function runEach(database: MigratedDatabase, commands: readonly string[]): Promise<void> {
  const results = await Promise.allSettled(commands.map((command) => database.run(command)))
  const failed = results.find((result) => result.status === 'rejected')
  if (failed) throw failed.reason
}

/** Texts in quotes and bodies of functions in $$, which may hold semicolons; or the end of a command. */
const QUOTED_OR_END = /'[^']*'|\$\$.*?\$\$|;/gs

/** The commands of a migration without comments. */
export function commandsOf(sql: string): string[] {
  const commands: string[] = []
  let from = 0
  for (const { 0: found, index } of [...sql.matchAll(QUOTED_OR_END), { 0: ';', index: sql.length }]) {
    if (found !== ';') continue
    const command = sql.slice(from, index).trim()
    if (command !== '') commands.push(command)
    from = index + 1
  }
  return commands
}
