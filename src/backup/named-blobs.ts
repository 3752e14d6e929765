/** Lists the blobs that the rows of a database name. */
import type { DatabaseSync } from 'node:sqlite'

export function* namedBlobs(database: DatabaseSync): Generator<string> {
  const lists = database.prepare("SELECT blobs_json FROM messages WHERE blobs_json <> '[]'").iterate()
  for (const row of lists) yield* JSON.parse(String(row['blobs_json'])) as string[]
  const names = database
    .prepare(
      `SELECT raw_blob AS blob FROM inbox WHERE raw_blob IS NOT NULL
       UNION ALL SELECT blob FROM suppression_imports
       UNION ALL SELECT blob FROM validation_jobs WHERE blob IS NOT NULL`,
    )
    .iterate()
  for (const row of names) yield String(row['blob'])
}
