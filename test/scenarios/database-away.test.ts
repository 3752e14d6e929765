/**
 * R10, short: PostgreSQL stops under two nodes for longer than a node may be silent, and comes back; then it stops for good,
 * and its standby is promoted.
 */
// Slow: it stops the database under a whole process.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { judge, queueTotals } from '../support/crash-rig.ts'
import { listNodes, testNodes } from '../support/nodes.ts'
import {
  answersBetween,
  INCOMING_ENV,
  recoveryMs,
  severalHosts,
  startClients,
} from '../support/outage-rig.ts'
import { startPostgres } from '../support/postgres.ts'
import { eventually } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'

/** A node that gives no sign of life for six seconds is dead, unless all are silent. */
const AWAY_MS = 9_000
/** Long enough that nodes notice it, however soon clients do. */
const NOTICED_MS = 1_000
const SETTINGS = { synchronous_commit: 'on', wal_retrieve_retry_interval: '100ms' }

test('PostgreSQL that was away, or replaced by its standby, costs no message, and no node takes another one for dead', async (t) => {
  const primary = await startPostgres({ settings: SETTINGS })
  t.after(() => primary.stop())
  const standby = await primary.startStandby()
  t.after(() => standby.stop())
  const sink = await createSink()
  t.after(() => sink.close())
  const nodes = await testNodes(
    t,
    {
      ...INCOMING_ENV,
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
      SENDWRIGHT_DATABASE_URL: severalHosts([primary, standby]),
    },
    { url: primary.url, drop: async () => {} },
  )
  const [one, two] = [await nodes.start(), await nodes.start()]
  const clients = await startClients([one, two], { each: 1, pauseMs: 100 })
  t.after(() => clients.stop())
  const { answers } = clients
  await eventually('mail is accepted', async () => recoveryMs(answers, 0, 2) !== null)

  const outage = async (breaks: () => Promise<void>, ms: number, mends: () => Promise<void>) => {
    await breaks()
    const from = performance.now()
    await sleep(ms)
    const seen = () => Object.keys(answersBetween(answers, from, performance.now()).counts)
    await eventually('clients of each kind have an answer', async () => seen().length >= 3)
    const found = seen().sort()
    await mends()
    const back = performance.now()
    await eventually('mail is accepted again', async () => recoveryMs(answers, back, 2) !== null)
    assert.deepEqual(found, [
      'HTTP: 503 Retry-After',
      'incoming: 451 4.3.0 Try again later',
      'submission: 451 4.3.0 Try again later',
    ])
  }
  await outage(
    () => primary.halt(),
    AWAY_MS,
    () => primary.resume(),
  )
  await outage(
    () => primary.stop(),
    NOTICED_MS,
    () => standby.promote(),
  )

  await clients.stop()
  await eventually('an empty queue', async () => (await queueTotals(one)) === 0)
  assert.deepEqual(judge(clients.outgoing, sink), { lost: [], repeated: [] })
  await eventually('signs of life of both', async () =>
    (await listNodes(two)).every(({ silent_seconds: silent }) => silent < 3),
  )
  assert.deepEqual(
    (await listNodes(one)).map(({ id }) => id),
    [one.id, two.id],
  )
  for (const node of [one, two]) assert.doesNotMatch(node.output(), /is dead|for dead/)
})
