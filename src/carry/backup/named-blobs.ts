/** Lists the blobs that the rows of a database name. */
import type { DatabaseSync } from 'node:sqlite'
import { BLOB_COLUMNS, blobsIn, namesBlobs } from '../../platform/store/blobs/blobs.ts'

export function* namedBlobs(database: DatabaseSync): Generator<string> {
  for (const place of BLOB_COLUMNS) {
    const { table, column } = place
    const sql = `SELECT ${column} AS value FROM ${table} WHERE ${namesBlobs(place)}`
    for (const row of database.prepare(sql).iterate()) yield* blobsIn(place, String(row['value']))
  }
}
