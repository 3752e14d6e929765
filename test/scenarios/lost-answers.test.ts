/** The connection to PostgreSQL breaks after a commit was done and before its answer arrived. */
// Slow: it kills processes of the service, again and again.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createMigratedDatabase } from '../support/migrated.ts'
import { testNodes } from '../support/nodes.ts'
import { startPostgresRelay } from '../support/postgres-relay.ts'
import { eventually } from '../support/service.ts'
import { AUTHORIZATION } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'

test('mail whose acceptance had no answer is sent when the database is back, and its sender is told to try again', async (t) => {
  const { relay, sink, post, arrived } = await startBehindRelay(t)
  relay.cutCommitWith('cut@example.org')
  assert.equal(await post('cut@example.org'), 503)
  assert.equal(relay.cuts, 1)
  await arrived('cut@example.org')
  assert.equal(sink.messages.length, 2)
})

test('an outcome whose commit had no answer is written once, and delivery goes on', async (t) => {
  const { relay, sink, post, arrived, query } = await startBehindRelay(t)
  const reply = 'taken as number 4711'
  relay.cutCommitWith(reply)
  sink.on('DATA-DOT', `250 2.0.0 ${reply}`, { times: 1 })
  assert.equal(await post('cut@example.org'), 200)
  await eventually('a cut', async () => relay.cuts === 1)
  await eventually('the next message is accepted', async () => (await post('next@example.org')) === 200)
  await arrived('next@example.org')
  await eventually(
    'outcomes',
    async () => (await query("SELECT 1 FROM deliveries WHERE state <> 'delivered'")).length === 0,
  )
  assert.equal(sink.messages.length, 3)
  const delivered = await query('SELECT last_reply FROM deliveries WHERE last_reply LIKE $1', [`%${reply}%`])
  assert.equal(delivered.length, 1)
})

/** A node whose connections to PostgreSQL go through a relay. It has sent a message: from then on its engine has slots. */
async function startBehindRelay(t: TestContext) {
  const database = await createMigratedDatabase()
  const relay = await startPostgresRelay(database.url)
  t.after(() => relay.close())
  const sink = await createSink()
  t.after(() => sink.close())
  const nodes = await testNodes(
    t,
    {
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
      SENDWRIGHT_DATABASE_URL: relay.url,
    },
    database,
  )
  const node = await nodes.start()
  const post = async (to: string) => {
    const form = { from: `a@${node.domain}`, to, subject: 'cut', text: 'Hi.' }
    const answer = await fetch(`${node.url}/v3/${node.domain}/messages`, {
      method: 'POST',
      headers: { authorization: AUTHORIZATION },
      body: new URLSearchParams(form),
    })
    await answer.arrayBuffer()
    return answer.status
  }
  const arrived = (recipient: string) =>
    eventually(recipient, async () => sink.messages.some(({ envelope }) => envelope.to.includes(recipient)))
  assert.equal(await post('first@example.org'), 200)
  await arrived('first@example.org')
  return { relay, sink, post, arrived, query: nodes.query }
}
