import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { createTestDatabase } from '../../../test/support/postgres.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { folderPlace } from './blobs.ts'
import { copyAll } from './migration.ts'
import { openPostgresSource, openPostgresTarget } from './postgres-side.ts'
import { openSqliteTarget } from './sqlite-side.ts'

test('events keep the order of their commits, and followers what they have passed', async (t) => {
  const database = await createTestDatabase()
  t.after(() => database.drop())
  const made = await openPostgresTarget(database.url)
  await made.prepare()
  await made.write(async (writer) => {
    await writer.run("INSERT INTO installation VALUES ('secret-mark', '\\x00')")
    // By commits: b, d, a, c, e.
    for (const [id, tx, seq] of [
      ['a', 5, 11],
      ['b', 3, 12],
      ['c', 9, 13],
      ['d', 3, 14],
      ['e', 9, 20],
    ] as const)
      await writer.run(
        `INSERT INTO events (id, account_id, domain_name, event, timestamp_us, recipient, payload_json,
            tags_json, tx, seq) OVERRIDING SYSTEM VALUE
          VALUES (?, 'account', 'example.org', 'accepted', 1, 'x@example.net', '{}', ?, ${tx}, ${seq})`,
        [id, `["${id}"]`],
      )
    await writer.run("UPDATE event_followers SET tx = 3, seq = 14 WHERE name = 'counters'")
    await writer.run("INSERT INTO event_followers VALUES ('all', 10, 0), ('none', 0, 0)")
  })
  await made.close()
  const folder = join(await temporaryFolder(t), 'data')
  const other = await createTestDatabase()
  t.after(() => other.drop())
  for (const target of [openSqliteTarget(folder), await openPostgresTarget(other.url)]) {
    const source = await openPostgresSource(database.url)
    const request = { source, target, blobs: { from: folderPlace(folder), to: null } }
    assert.deepEqual((await copyAll(request, () => {})).differences, [])
    assert.deepEqual(await target.query('SELECT id, seq, tx FROM events ORDER BY tx, seq'), [
      ['b', 11n, 0n],
      ['d', 12n, 0n],
      ['a', 13n, 0n],
      ['c', 14n, 0n],
      ['e', 20n, 0n],
    ])
    assert.deepEqual(await target.query('SELECT name, tx, seq FROM event_followers ORDER BY name'), [
      ['all', 0n, 20n],
      ['counters', 0n, 12n],
      ['none', 0n, 0n],
    ])
    const tags = await target.query('SELECT tag FROM event_tag_keys ORDER BY seq')
    assert.deepEqual(tags.flat(), ['b', 'd', 'a', 'c', 'e'])
    await source.close()
    await target.close()
  }
})
