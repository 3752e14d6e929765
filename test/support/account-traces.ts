/** What an account has anywhere: rows of every table of the schema that name it or its domains, and blobs. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../src/platform/store/store.ts'

type Row = Record<string, unknown>

/** All tables; views are left out, and partitions, whose rows are those of their tables. */
export async function tablesOf(store: Store): Promise<string[]> {
  const sql =
    store.kind === 'sqlite'
      ? `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name`
      : `SELECT table_name AS name FROM information_schema.tables
          WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'
            AND to_regclass(table_name) NOT IN (SELECT inhrelid FROM pg_inherits) ORDER BY table_name`
  return (await store.read({ sql, values: [] })).map(({ name }) => String(name))
}

const textOf = (row: Row) =>
  JSON.stringify(row, (_, value: unknown) => (value instanceof Uint8Array ? '' : value))

/** Rows that contain one of the texts in any column, by table; tables without such rows are left out. */
export async function rowsNaming(
  store: Store,
  texts: readonly string[],
  except: readonly string[] = [],
): Promise<Map<string, Row[]>> {
  const found = new Map<string, Row[]>()
  for (const table of await tablesOf(store)) {
    if (except.includes(table)) continue
    const rows = await store.read({ sql: `SELECT * FROM ${table}`, values: [] })
    const naming = rows.filter((row) => {
      const rowText = textOf(row)
      return texts.some((text) => rowText.includes(text))
    })
    if (naming.length > 0) found.set(table, naming)
  }
  return found
}

/** Tables with a column of that name. */
export async function tablesWith(store: Store, column: string): Promise<string[]> {
  const found: string[] = []
  for (const table of await tablesOf(store)) {
    const sql =
      store.kind === 'sqlite'
        ? 'SELECT name FROM pragma_table_info(?)'
        : 'SELECT column_name AS name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = ?'
    const columns = await store.read({ sql, values: [table] })
    if (columns.some(({ name }) => name === column)) found.push(table)
  }
  return found
}

/** Names of the blobs that the rows refer to. */
export function blobsOf(rows: ReadonlyMap<string, readonly Row[]>): Set<string> {
  const names = new Set<string>()
  for (const row of [...rows.values()].flat()) {
    for (const column of ['content_blob', 'raw_blob', 'blob'])
      if (typeof row[column] === 'string') names.add(row[column])
    if (typeof row['blobs_json'] === 'string')
      for (const name of JSON.parse(row['blobs_json']) as string[]) names.add(name)
  }
  return names
}

/** Names of the files in the blob folder. */
export function blobFiles(dataFolder: string): string[] {
  const entries = readdirSync(join(dataFolder, 'blobs'), { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name)
}
