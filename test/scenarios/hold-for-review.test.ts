/** Mail that its sender puts before a person: it waits whatever its content is, and is judged for itself. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { REVIEWED_AT_ONCE_MAX } from '../../src/sending/content-check/holds.ts'
import { startRspamd } from '../support/scanners.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'

const holds = async (service: TestService) =>
  (await service.call('GET', '/sendwright/v1/content-holds')).body.items as Record<string, string>[]

const holdOf = (service: TestService, to: string) =>
  eventually(`held: ${to}`, async () => {
    const { body } = await service.call('GET', '/sendwright/v1/queue/deliveries?reason=content-held')
    const found = body.items.find((one: Record<string, string>) => one['recipient'] === to)
    return found && (await holds(service)).find((one) => one['message_id'] === found.message_id)
  })

test('mail waits until it is released or dropped, each message for itself', async (t) => {
  const sink = await createSink()
  t.after(() => sink.close())
  const service = await startTestService(t, { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` })
  const decide = (method: string, id = '', end = '') =>
    service.call(method, `/sendwright/v1/content-holds/${id}${end}`)
  assert.equal((await service.send({ 'o:hold-for-review': 'perhaps' })).status, 400)
  await service.send({ to: 'a@one.example, b@two.example', 'o:hold-for-review': 'yes' })
  const first = await holdOf(service, 'b@two.example')
  assert.equal(first['reason'], 'review asked for')
  // A person has seen who gets this message, not who gets the same text later.
  await service.send({ to: 'c@one.example', 'h:X-Service-Hold-For-Review': 'true' })
  const second = await holdOf(service, 'c@one.example')
  assert.equal((await decide('POST', first['id'], '/release')).body.messages, 1)
  await sink.waitFor(2)
  assert.deepEqual(await holds(service), [second])
  assert.equal((await decide('DELETE', second['id'])).status, 200)
  const event = await eventually('dropped', async () => (await service.events('?event=rejected'))[0])
  assert.match(JSON.stringify(event['message']), /"to":"c@one\.example"/)
  await service.send({ to: 'd@one.example' })
  await sink.waitFor(3)
  // Nor does sending it again lead around them.
  const [accepted] = await service.events('?event=accepted&ascending=yes')
  assert.ok(accepted)
  const { key } = accepted['storage'] as { key: string }
  const again = await service.call('POST', `/v3/domains/${service.domain}/messages/${key}`, {
    form: { to: 'e@one.example' },
  })
  assert.equal(again.status, 200, again.text)
  assert.equal((await holdOf(service, 'e@one.example'))['reason'], 'review asked for')
  const reached = sink.messages.flatMap(({ envelope }) => envelope.to).toSorted()
  assert.deepEqual(reached, ['a@one.example', 'b@two.example', 'd@one.example'])
})

test('mail that was released is not held again for its content', async (t) => {
  const sink = await createSink()
  t.after(() => sink.close())
  const rspamd = await startRspamd(t)
  const service = await startTestService(t, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_OUTBOUND_CHECK: rspamd.url,
  })
  await service.send({ to: 'a@one.example', text: 'BUY NOW', 'o:hold-for-review': 'yes' })
  const { id } = await holdOf(service, 'a@one.example')
  assert.equal(rspamd.asked.length, 0)
  await service.call('POST', `/sendwright/v1/content-holds/${id}/release`)
  await sink.waitFor(1)
  assert.equal(rspamd.asked.length, 1)
  assert.deepEqual(await holds(service), [])
})

test('what one account has before a person is bounded: further mail waits unlisted', async (t) => {
  // It removes rows of messages that are not there.
  const service = await startTestService(t, {}, { restingJobs: ['content-check-retention'] })
  const account = 'SELECT account_id FROM domains LIMIT 1'
  const database = new DatabaseSync(join(service.config.dataFolder, 'sendwright.db'))
  for (let count = 0; count < REVIEWED_AT_ONCE_MAX; count++)
    database.exec(
      `INSERT INTO content_holds (message_pk, digest, account_id, domain_name, reason, held_at)
        VALUES ('m${count}', 'd${count}', (${account}), 'x.example', 'review asked for', ${count})`,
    )
  database.close()
  await service.send({ to: 'a@one.example', 'o:hold-for-review': 'yes' })
  const waits = () => service.call('GET', '/sendwright/v1/queue/deliveries?reason=content-held')
  const [waiting] = await eventually('waits', async () => {
    const { items } = (await waits()).body
    return items.length > 0 && items
  })
  assert.equal(waiting.attempts, 0)
  const listed = (await holds(service)).map((one) => one['message_id'])
  assert.ok(!listed.includes(waiting.message_id), String(listed))
})
