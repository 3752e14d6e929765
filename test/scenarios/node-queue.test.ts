/** Actions on the queue and dropped queues reach what another node holds in memory. */
// Slow: it starts several whole processes on one database, and ends some.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judge, post, queueTotals } from '../support/crash-rig.ts'
import { pair } from '../support/node-pair.ts'
import { call } from '../support/nodes.ts'
import { eventually } from '../support/service.ts'

/** The other node alone holds mail. */
const NOT_SENDING = { SENDWRIGHT_ROLES: 'api,jobs' }

test('actions on the queue reach what the other node holds', async (t) => {
  const { sink, one, two } = await pair(t, { SENDWRIGHT_RELAY_CONNECTIONS: '1' }, NOT_SENDING)
  const held = sink.hold('RCPT TO')
  const ids: string[] = []
  for (let number = 0; number < 6; number++) {
    const answer = await post(two, { to: `user${number}@example.org`, subject: 'held', text: 'Hi.' })
    assert.ok('id' in answer)
    ids.push(answer.id)
  }
  await held.reached
  // Node two holds the other five in memory; node one changes them.
  const act = (action: string) =>
    call(one, 'POST', '/sendwright/v1/queue/actions', undefined, { action, filter: { domain: one.domain } })
  assert.equal((await act('pause'))['changed'], 5)
  held.release()
  await sink.waitFor(1)
  await act('resume')
  await sink.waitFor(6)
  assert.deepEqual(judge(new Set(ids), sink), { lost: [], repeated: [] })
})

test('dropping the queue of a domain drops what the other node holds', async (t) => {
  const { sink, one, two } = await pair(t, { SENDWRIGHT_RELAY_CONNECTIONS: '1' }, NOT_SENDING)
  const held = sink.hold('RCPT TO')
  for (let number = 0; number < 6; number++)
    assert.ok('id' in (await post(two, { to: `user${number}@example.org`, subject: 'held', text: 'Hi.' })))
  await held.reached
  await call(one, 'DELETE', `/v3/${one.domain}/envelopes`)
  held.release()
  await eventually('an empty queue', async () => (await queueTotals(two)) === 0)
  // The attempt in progress, and the one that is prepared while its connection is busy.
  const sent = sink.messages.length
  assert.ok(sent <= 2, `${sent} of 6 were sent`)
  assert.ok('id' in (await post(two, { to: 'later@example.org', subject: 'later', text: 'Hi.' })))
  await sink.waitFor(sent + 1)
  assert.equal(sink.messages.at(-1)?.envelope.to[0], 'later@example.org')
})
