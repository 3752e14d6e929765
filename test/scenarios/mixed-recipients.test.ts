/** R20, and many domains through one relay: every recipient reaches exactly one final state. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'

interface Item {
  recipient: string
  state: string
}

const FINAL_STATES = ['delivered', 'bounced', 'expired', 'suppressed', 'rejected', 'cancelled']

/** The deliveries of a message once all of them are final. */
async function finals(service: TestService, id: string): Promise<Item[]> {
  return eventually('all final', async () => {
    const path = `/sendwright/v1/messages/${encodeURIComponent(id)}/deliveries?limit=1000`
    const { items } = (await service.call('GET', path)).body as { items: Item[] }
    return items.every(({ state }) => FINAL_STATES.includes(state)) ? items : null
  })
}

test('mixed replies to RCPT: 250, 450 and 550 each end in one final state', async (t) => {
  const sink = await createSink()
  t.after(() => sink.close())
  const tried = new Set<string>()
  sink.on('RCPT TO', (_session, line) => {
    const kind = /<(\w+?)\d+@/.exec(line)?.[1]
    if (kind === 'no') return '550 5.1.1 no such user'
    const again = tried.has(line)
    tried.add(line)
    return kind === 'later' && !again ? '450 4.2.0 try again' : '250 2.1.5 Ok'
  })
  const service = await startTestService(t, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_RETRY_SCHEDULE: '1s,1s',
  })
  const kinds = ['yes', 'later', 'no'] as const
  const to = Array.from({ length: 150 }, (_, index) => `${kinds[index % 3]}${index}@example.net`)
  const sent = await service.send({ to })
  const found = await finals(service, sent.body.id)
  assert.deepEqual(found.map(({ recipient }) => recipient).sort(), [...to].sort())
  for (const { recipient, state } of found) {
    assert.equal(state, recipient.startsWith('no') ? 'bounced' : 'delivered', recipient)
  }
  assert.equal(sink.messages.length, 100)
})

test('fifty domains through one relay: each recipient gets the message once', async (t) => {
  const sink = await createSink()
  t.after(() => sink.close())
  const service = await startTestService(t, { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` })
  const to = Array.from({ length: 100 }, (_, index) => `user${index}@domain${index % 50}.example`)
  const sent = await service.send({ to })
  const found = await finals(service, sent.body.id)
  assert.deepEqual(
    found.map(({ state }) => state),
    to.map(() => 'delivered'),
  )
  assert.deepEqual(sink.messages.flatMap(({ envelope }) => envelope.to).sort(), [...to].sort())
})
