/** R10, short: PostgreSQL stops under two nodes for longer than a node may be silent, and comes back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { judge, post, queueTotals } from '../support/crash-rig.ts'
import { listNodes, testNodes } from '../support/nodes.ts'
import { startPostgres } from '../support/postgres.ts'
import { eventually } from '../support/service.ts'
import { AUTHORIZATION } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'

/** A node that gives no sign of life for six seconds is dead, unless all are silent. */
const AWAY_MS = 9_000

test('PostgreSQL that was away costs no message, and no node takes another one for dead', async (t) => {
  const cluster = await startPostgres()
  t.after(() => cluster.stop())
  const sink = await createSink()
  t.after(() => sink.close())
  const nodes = await testNodes(
    t,
    { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` },
    { url: cluster.url, drop: async () => {} },
  )
  const one = await nodes.start()
  const two = await nodes.start()
  const ids = new Set<string>()
  const send = async (to: string) => {
    const answer = await post(one, { to, subject: 'away', text: 'Hi.' })
    if ('id' in answer) ids.add(answer.id)
    return answer
  }
  await send('before@example.org')
  await sink.waitFor(1)
  await eventually('an empty queue', async () => (await queueTotals(one)) === 0)

  await cluster.halt()
  const until = performance.now() + AWAY_MS
  while (performance.now() < until) {
    assert.deepEqual(await send('during@example.org'), { status: 503 })
    await sleep(200)
  }
  const refused = await fetch(`${two.url}/v3/${two.domain}/messages`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body: new URLSearchParams({ from: `a@${two.domain}`, to: 'b@example.org', subject: 's', text: 't' }),
  })
  assert.equal(refused.status, 503)
  assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/)

  await cluster.resume()
  await eventually('mail is accepted again', async () => 'id' in (await send('after@example.org')))
  await eventually('an empty queue', async () => (await queueTotals(one)) === 0)
  assert.deepEqual(judge(ids, sink), { lost: [], repeated: [] })
  await eventually('signs of life of both', async () =>
    (await listNodes(two)).every(({ silent_seconds: silent }) => silent < 3),
  )
  assert.deepEqual(
    (await listNodes(one)).map(({ id }) => id),
    [one.id, two.id],
  )
  for (const node of [one, two]) assert.doesNotMatch(node.output(), /is dead|for dead/)
})
