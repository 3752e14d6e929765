/** Nodes of one release work on the schema of the next one. */
// Slow: it starts several whole processes on one database, and ends some.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { call, testNodes } from '../support/nodes.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { EndedAtStart } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'

test('a node goes on when a newer one has added to the schema, and none of its version starts any more', async (t) => {
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const nodes = await testNodes(t, { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` })
  const node = await nodes.start()
  const send = (to: string) =>
    call(node, 'POST', `/v3/${node.domain}/messages`, {
      ...{ from: `sender@${node.domain}`, to, subject: to, text: 'Hi.', 'o:tag': 'one' },
      ...{ 'o:tracking': 'yes', html: '<a href="https://example.org">x</a>' },
    })
  // Statements are prepared, and know the columns.
  for (let at = 0; at < 10; at++) await send(`before${at}@example.org`)
  await sink.waitFor(10)
  await growSchema(nodes.query)
  for (let at = 0; at < 10; at++) await send(`after${at}@example.org`)
  await sink.waitFor(20)
  const events = async () =>
    ((await call(node, 'GET', `/v3/${node.domain}/events?event=delivered&limit=100`))['items'] as unknown[])
      .length
  await eventually('an event for each', async () => (await events()) === 20)
  assert.equal(Number((await nodes.query('SELECT count(*) FROM installation'))[0]?.['count']), 1)
  const second = await nodes.start().catch((error: unknown) => error)
  assert.ok(second instanceof EndedAtStart)
  assert.match(second.message, /has schema version 9999, this program knows up to \d+/)
})

/** What the next release may do: new columns everywhere, and a new table. */
async function growSchema(query: (sql: string) => Promise<Record<string, unknown>[]>): Promise<void> {
  const tables = await query(
    `SELECT table_name AS name FROM information_schema.tables
      WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' AND table_name <> 'schema_versions'
        AND to_regclass(table_name) NOT IN (SELECT inhrelid FROM pg_inherits)`,
  )
  for (const { name } of tables)
    await query(`ALTER TABLE ${name} ADD COLUMN of_the_next_release TEXT NOT NULL DEFAULT 'x'`)
  await query('CREATE TABLE the_next_table (id TEXT PRIMARY KEY)')
  await query("INSERT INTO schema_versions (version, name, applied_at) VALUES (9999, 'next', 'now')")
}
