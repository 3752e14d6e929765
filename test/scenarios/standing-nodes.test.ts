/** A sender that sends through two nodes is counted exactly, stopped on both, also after both were killed, and released by either. */
// By name: it waits for the minutes in which nodes judge.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { call, type TestNode, testNodes } from '../support/nodes.ts'
import { eventually } from '../support/service.ts'
import { newSender, pickySink } from '../support/standing.ts'

const MIN = 20
/** Leases of killed processes end after a minute; then comes the next check. */
const patiently = (what: string, look: () => Promise<boolean>) =>
  eventually(what, look).catch(() => eventually(what, look))

const COUNTED = `SELECT sum(sent) AS sent, sum(bounced) AS bounced FROM standing_counts WHERE account_id = $1`
/** What the events say. */
const LOGGED = `SELECT count(*) AS sent, count(*) FILTER (WHERE event = 'failed') AS bounced FROM events
  WHERE account_id = $1 AND event IN ('delivered', 'failed')`

test('two nodes count exactly, and stop and release a sender together', async (t) => {
  const sink = await pickySink(t)
  const nodes = await testNodes(t, { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` })
  let pair: [TestNode, TestNode] = [await nodes.start(), await nodes.start()]
  const policy = { policy: 'custom', min_messages: String(MIN) }
  await call(pair[0], 'PUT', '/sendwright/v1/standing/policy', policy)
  const verify = (name: string) =>
    nodes.query("UPDATE domains SET verified = 1, state = 'active' WHERE name = $1", [name])
  const bad = await newSender(pair[0], sink, 'bad', verify)
  const good = await newSender(pair[0], sink, 'good', verify)
  /** By both nodes in turn. */
  const send = async (sender: typeof bad, count: number, badOnes: number) => {
    for (let number = 0; number < count; number++)
      await sender.send(pair[number % 2] as TestNode, number < badOnes)
  }
  const onBoth = (what: string, state: string) =>
    patiently(what, async () => {
      const found = await Promise.all(pair.map((node) => bad.standing(node)))
      return found.every((standing) => standing.state === state)
    })
  const agree = async () => {
    const [[counted], [logged]] = [await nodes.query(COUNTED, [bad.id]), await nodes.query(LOGGED, [bad.id])]
    return (
      Number(counted?.['sent']) === Number(logged?.['sent']) && counted?.['bounced'] === logged?.['bounced']
    )
  }

  // A cache may have it as it was.
  await eventually('the domain on both', async () => {
    const sends = pair.map((node) => bad.send(node, false))
    return (await Promise.allSettled(sends)).every(({ status }) => status === 'fulfilled')
  })
  await send(bad, MIN, 6)
  await send(good, MIN, 0)
  await onBoth('slowed', 'slowed')
  await eventually('the same figures', agree)

  for (const node of pair) await node.end('SIGKILL')
  pair = [await nodes.start(), await nodes.start()]
  await onBoth('slowed after the kill', 'slowed')
  await send(bad, MIN + 2, 3)
  await onBoth('held', 'held')

  const before = bad.arrived()
  await send(bad, 4, 0)
  await send(good, 4, 0)
  await eventually('mail of the other', async () => good.arrived() === good.accepted())
  assert.ok(bad.arrived() <= before + 1, 'nothing but what was under way')
  await eventually('the same figures', agree)

  await call(pair[1], 'POST', `/sendwright/v1/accounts/${bad.id}/standing/release`, {})
  await onBoth('released', 'good')
  await patiently('all that waited', async () => bad.arrived() === bad.accepted() - 9)
})
