/** The number of connections to a relay: as configured, and fewer once it replies that there are too many. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { createSink, type SinkSession } from '../support/smtp-sink.ts'

interface LaneItem {
  site: string
  limits: { connections: number; messages_per_second: number | null }
  backed_off_why: string | null
}

async function relayLane(service: TestService): Promise<LaneItem | undefined> {
  const { items } = (await service.call('GET', '/sendwright/v1/queue/lanes')).body as { items: LaneItem[] }
  return items.find(({ site }) => site === 'relay:default')
}

const recipients = (count: number) => Array.from({ length: count }, (_, index) => `user${index}@example.net`)

test('a relay gets as many connections as are configured, and no more', async (t) => {
  const sink = await createSink()
  t.after(() => sink.close())
  const service = await startTestService(t, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_RELAY_CONNECTIONS: '7',
  })
  const full = Promise.withResolvers<void>()
  const open = new Set<SinkSession>()
  // No connection gets past the content until all have reached it.
  sink.on('DATA', async (session) => {
    if (open.add(session).size === 7) full.resolve()
    await full.promise
    return '354 go on'
  })
  await service.send({ to: recipients(60) })
  await sink.waitFor(60)
  assert.equal(sink.connections.peak, 7)
})

test('a relay that answers 421 to too many connections gets fewer, and still gets everything once', async (t) => {
  const CONNECTIONS = 8
  const ALLOWED = 5
  const sink = await createSink()
  t.after(() => sink.close())
  // Postfix's reply (smtpd_client_connection_count_limit).
  sink.on('CONNECT', (session) => {
    if (sink.connections.open <= ALLOWED) return '220 sink.test ESMTP'
    session.write('421 4.7.0 sink.test Error: too many connections from 127.0.0.1\r\n')
    session.drop()
    return null
  })
  const service = await startTestService(t, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_RELAY_CONNECTIONS: String(CONNECTIONS),
    SENDWRIGHT_RETRY_SCHEDULE: '1s,1s,1s,1s,1s,1s',
  })
  const to = recipients(120)
  await service.send({ to })
  const { limits, backed_off_why } = await eventually('slowed down', async () => {
    const lane = await relayLane(service)
    return lane?.backed_off_why ? lane : null
  })
  assert.match(backed_off_why ?? '', /too many connections/)
  assert.ok(limits.connections <= CONNECTIONS / 2 + 1, `${limits.connections} connections`)
  assert.equal(limits.messages_per_second, null, 'what goes over the connections left is not slowed down')
  await sink.waitFor(to.length)
  assert.deepEqual(sink.messages.flatMap(({ envelope }) => envelope.to).sort(), to.sort())
})
