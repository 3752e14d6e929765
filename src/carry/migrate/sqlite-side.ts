/** SQLite's side of a copy. The data folder is locked for as long, as the service locks it. */
import { closeSync, existsSync, mkdirSync, openSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { syncFolder } from '../../platform/store/blobs/blobs.ts'
import { DATABASE_FILE, refuseHalfRestored } from '../../platform/store/blobs/data-folder.ts'
import { checkLog } from '../../platform/store/log-check.ts'
import { migrate } from '../../platform/store/migrate.ts'
import { LOCK_NAME, lockFolder } from '../../platform/store/sqlite/sqlite.ts'
import { type SqlValue, type Statement, type StatementResult, StoreFull } from '../../platform/store/store.ts'
import { indexEvents } from '../../watching/events/search/indexing.ts'
import type { Catalog, Column, Table } from './catalog.ts'
import type { Source, Target, Writer } from './side.ts'
import { type ColumnType, MigrationError, type Row, type Value } from './values.ts'

const TYPES: Readonly<Record<string, ColumnType>> = {
  INTEGER: 'integer',
  REAL: 'real',
  TEXT: 'text',
  BLOB: 'blob',
}

/** Opens the database of a data folder for reading. @throws MigrationError, StoreUnavailable, StoreFault */
export function openSqliteSource(folder: string): Source {
  const file = join(folder, DATABASE_FILE)
  if (!existsSync(file)) throw new MigrationError(`There is nothing to copy: "${folder}" holds no database.`)
  refuseHalfRestored(folder)
  const lock = lockFolder(folder)
  try {
    checkLog(file)
    const database = new DatabaseSync(file, { readOnly: true })
    database.exec('BEGIN')
    return {
      ...reading(folder, () => database),
      async close() {
        database.close()
        lock.close()
      },
    }
  } catch (error) {
    lock.close()
    throw error
  }
}

/** Nothing is created before `prepare`. @throws MigrationError if the folder holds something else */
export function openSqliteTarget(folder: string): Target {
  const file = join(folder, DATABASE_FILE)
  const exists = existsSync(file)
  // A copy that was killed at its very beginning leaves the lock's file.
  if (!exists && existsSync(folder) && readdirSync(folder).some((name) => !name.startsWith(LOCK_NAME)))
    throw new MigrationError(`Cannot copy to "${folder}": the folder is not empty.`)
  refuseHalfRestored(folder)
  let lock = exists ? lockFolder(folder) : null
  // Without a file an empty database stands in for it.
  let database = exists ? openFile(file) : new DatabaseSync(':memory:')
  const execute = (sql: string) => database.exec(sql)
  return {
    ...reading(folder, () => database),
    async prepare(only) {
      if (!lock) {
        mkdirSync(folder, { recursive: true, mode: 0o700 })
        lock = lockFolder(folder)
        closeSync(openSync(file, 'a', 0o600))
        database.close()
        database = openFile(file)
      }
      // As the service sets a new database up (sqlite/connection.ts), but references are checked at the end. A loss of power
      // may take the last transactions, with their marks.
      execute('PRAGMA auto_vacuum = INCREMENTAL')
      execute('PRAGMA journal_mode = WAL')
      execute('PRAGMA synchronous = NORMAL')
      execute('PRAGMA foreign_keys = OFF')
      await migrate(
        {
          kind: 'sqlite',
          run: async (sql) => execute(sql),
          applied: async () =>
            database
              .prepare('SELECT version FROM schema_versions')
              .all()
              .map((row) => Number(row['version'])),
        },
        only,
      )
    },
    async write(run) {
      execute('BEGIN IMMEDIATE')
      try {
        await run(writing(database))
        execute('COMMIT')
      } catch (error) {
        if (database.isTransaction) execute('ROLLBACK')
        const { errcode, message } = error as Error & { errcode?: number }
        throw errcode === SQLITE_FULL ? new StoreFull(`"${folder}": ${message}`, { cause: error }) : error
      }
    },
    async finish(_, onStep) {
      onStep('index of events')
      // An index that begins far above would be made in many empty steps.
      execute(`UPDATE event_index_place SET seq = (SELECT min(seq) - 1 FROM events)
        WHERE seq = 0 AND EXISTS (SELECT 1 FROM events)`)
      await indexEvents(storeOf(database))
      const [broken] = database.prepare('PRAGMA foreign_key_check').all()
      if (broken)
        throw new MigrationError(
          `A row of ${broken['table']} refers to one of ${broken['parent']} that is not there.`,
        )
      execute('PRAGMA synchronous = FULL')
      execute('PRAGMA wal_checkpoint(TRUNCATE)')
      await syncFolder(folder)
      // Which may belong to somebody else.
      await syncFolder(dirname(folder)).catch(() => {})
    },
    async close() {
      database.close()
      lock?.close()
    },
  }
}

const SQLITE_FULL = 13
const CACHE_KB = 64_000

function openFile(file: string): DatabaseSync {
  checkLog(file)
  const database = new DatabaseSync(file)
  database.exec(`PRAGMA cache_size = -${CACHE_KB}`)
  return database
}

function reading(folder: string, database: () => DatabaseSync) {
  const texts = new Map<string, StatementSync>()
  let prepared: DatabaseSync | null = null
  return {
    kind: 'sqlite' as const,
    name: folder,
    // The lock says so.
    usedBy: async () => null,
    catalog: async () => readCatalog(database()),
    async query(sql: string, values: Row = []): Promise<Value[][]> {
      if (prepared !== database()) texts.clear()
      prepared = database()
      let statement = texts.get(sql)
      if (!statement) {
        statement = prepared.prepare(sql)
        statement.setReadBigInts(true)
        statement.setReturnArrays(true)
        texts.set(sql, statement)
      }
      return statement.all(...(values as SqlValue[])) as unknown as Value[][]
    },
  }
}

function readCatalog(database: DatabaseSync): Catalog | null {
  const names = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    .all()
    .map(({ name }) => String(name))
  const tables = names.map((name): [string, Table] => {
    const columns = database.prepare('SELECT * FROM pragma_table_xinfo(?)').all(name)
    const keys = columns.filter(({ pk }) => Number(pk) > 0).sort((a, b) => Number(a['pk']) - Number(b['pk']))
    const references = database.prepare('SELECT "table" AS name FROM pragma_foreign_key_list(?)').all(name)
    return [
      name,
      {
        name,
        // Hidden: computed from the others.
        columns: columns
          .filter(({ hidden }) => hidden === 0)
          .map(
            (column): Column => ({
              name: String(column['name']),
              type: TYPES[String(column['type'])] ?? 'other',
            }),
          ),
        key: keys.map((column) => String(column['name'])),
        refersTo: references.map((row) => String(row['name'])),
        identity: null,
      },
    ]
  })
  return tables.length > 0 ? new Map(tables) : null
}

function writing(database: DatabaseSync): Writer {
  return {
    run: async (sql, values = []) => void database.prepare(sql).run(...(values as SqlValue[])),
    async insert({ name, columns }, rows) {
      const names = columns.map((column) => column.name)
      const marks = columns.map(() => '?').join(', ')
      const statement = database.prepare(`INSERT INTO ${name} (${names.join(', ')}) VALUES (${marks})`)
      for (const row of rows) statement.run(...(row as SqlValue[]))
    },
  }
}

/** As much of a store as making the index needs. */
function storeOf(database: DatabaseSync) {
  const rowsOf = ({ sql, values }: Statement) => database.prepare(sql).all(...values)
  return {
    kind: 'sqlite' as const,
    read: async (statement: Statement) => rowsOf(statement),
    async commit(unit: readonly Statement[]): Promise<StatementResult[]> {
      database.exec('BEGIN IMMEDIATE')
      for (const { sql, values } of unit) database.prepare(sql).run(...values)
      database.exec('COMMIT')
      return []
    },
  }
}
