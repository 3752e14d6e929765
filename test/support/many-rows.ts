/** Many rows of a kind, written straight into the database: a service would take minutes to make them. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestService } from './service.ts'

type Row = Record<string, string | number | bigint | null | Uint8Array>

/** Adds `count` copies of the table's newest row that `change` makes different; a column that it sets to undefined is left out. */
export function addRows(
  service: TestService,
  table: string,
  count: number,
  change: (at: number, row: Row) => Record<string, Row[string] | undefined>,
): void {
  const database = new DatabaseSync(join(service.config.dataFolder, 'sendwright.db'), { timeout: 5000 })
  const row = database.prepare(`SELECT * FROM ${table} ORDER BY rowid DESC LIMIT 1`).get() as Row | undefined
  if (row === undefined) throw new Error(`${table} has no row to copy`)
  database.exec('BEGIN')
  for (let at = 0; at < count; at++) {
    const copy = Object.entries({ ...row, ...change(at, row) }).filter(([, value]) => value !== undefined)
    const names = copy.map(([name]) => name)
    const values = copy.map(([, value]) => value as Row[string])
    database
      .prepare(`INSERT INTO ${table} (${names.join()}) VALUES (${names.map(() => '?').join()})`)
      .run(...values)
  }
  database.exec('COMMIT')
  database.close()
}

/** `count` domains: shop-000.example, shop-001.example, ...; each is newer than the one before. */
export const addDomains = (service: TestService, count: number) =>
  addRows(service, 'domains', count, (at, { created_at }) => {
    const name = `shop-${String(at).padStart(3, '0')}.example`
    return {
      id: String(at).padStart(24, '0'),
      name,
      type: 'custom',
      state: 'unverified',
      dkim_authority: name,
      // After the sandbox, and in the same second, which is all that the API says of it.
      created_at: Math.floor(Number(created_at) / 1000) * 1000 + 999,
    }
  })
