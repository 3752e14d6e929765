import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { plantFiles } from '../test/support/plant-files.ts'
import { type Contraction, migrationFaults, removals } from './check-migrations.ts'

test('a migration may add tables, columns, indexes and rows, and fill what it has added', () => {
  for (const sql of [
    'CREATE TABLE a (id TEXT NOT NULL PRIMARY KEY); INSERT INTO a VALUES (1); DELETE FROM a; UPDATE a SET id = 2',
    'CREATE UNLOGGED TABLE a (x REAL); CREATE UNIQUE INDEX a_x ON a (x)',
    'ALTER TABLE messages ADD COLUMN size INTEGER; CREATE INDEX messages_size ON messages (size)',
    "ALTER TABLE messages ADD COLUMN note TEXT NOT NULL DEFAULT ''; UPDATE messages SET note = lower(id)",
    "-- We do not DROP TABLE here.\nINSERT INTO jobs (name) VALUES ('DROP TABLE x; RENAME')",
    'DROP INDEX events_time',
    'INSERT INTO figures SELECT 1 ON CONFLICT (x) DO UPDATE SET x = excluded.x',
  ])
    assert.deepEqual(removals(sql), [], sql)
})

test('a migration that removes, renames, rewrites or forbids is found', () => {
  for (const [sql, said] of [
    ['DROP TABLE counters', /drops/],
    ['ALTER TABLE messages DROP COLUMN size', /drops/],
    ['ALTER TABLE messages DROP size', /drops/],
    ['DROP\n  VIEW event_keys', /drops \("DROP VIEW"\)/],
    ['ALTER TABLE messages RENAME TO mails', /renames/],
    ['ALTER TABLE messages ALTER COLUMN size TYPE SMALLINT', /changes a type/],
    ['ALTER TABLE messages ALTER COLUMN size SET NOT NULL', /forbids null/],
    ['ALTER TABLE messages ADD CONSTRAINT c CHECK (size > 0)', /adds a constraint/],
    ['ALTER TABLE messages ADD COLUMN size INTEGER NOT NULL', /older releases do not fill/],
    ['CREATE UNIQUE INDEX messages_id ON messages (message_id)', /makes values unique/],
    ['DELETE FROM messages', /deletes rows/],
    ['UPDATE messages SET id = 1', /rewrites rows of messages/],
    [
      'ALTER TABLE messages ADD COLUMN n TEXT; UPDATE messages SET n = 1, id = 2',
      /rewrites rows of messages/,
    ],
  ] as const)
    assert.match(removals(sql).join(), said, sql)
})

test('something goes two releases after the last that needs it', async (t) => {
  const folder = await plantFiles(t, { '0200-less.sql': 'DROP TABLE a', '0039-old.sql': 'DROP TABLE b' })
  const faults = (version: string, lastNeededBy?: string | null) => {
    const listed: Record<string, Contraction> =
      lastNeededBy === undefined ? {} : { '0200-less.sql': { lastNeededBy, why: 'nothing reads it' } }
    return migrationFaults(join(folder), version, listed)
  }
  assert.match(faults('0.4.0').join(), /^0200-less.sql drops .*docs\/upgrading.md$/)
  assert.match(faults('0.4.0', '0.3.1').join(), /release 0.3.1 needs it/)
  assert.deepEqual(faults('0.5.0', '0.3.1'), [])
  assert.deepEqual(faults('1.0.0', '0.3.1'), [])
  assert.deepEqual(faults('0.1.0', null), [])
})
