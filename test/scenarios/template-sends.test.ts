import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import PostalMime, { type Email } from 'postal-mime'
import { eachDatabase } from '../support/databases.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

type Form = Record<string, string | string[] | File>

interface Scene {
  service: TestService
  sink: Sink
  store(scope: string, form: Record<string, string>): Promise<void>
  /** Sends with the template `order` and only From and To besides `form`; resolves the received mail, parsed. */
  send(form: Form, path?: string): Promise<Email>
}

async function startScene(t: TestContext, database: 'sqlite' | 'postgres' = 'sqlite'): Promise<Scene> {
  const sink = await createSink()
  t.after(() => sink.close())
  const settings = { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` }
  const service = await startTestService(t, settings, { database })
  return {
    service,
    sink,
    async store(scope, form) {
      const made = await service.call('POST', scope, { form })
      assert.equal(made.status, 200, made.text)
    },
    async send(form, path = 'messages') {
      const call = { to: 'ann@example.org', template: 'order', ...form }
      const seen = sink.messages.length
      const sent = await service.call('POST', `/v3/${service.domain}/${path}`, { form: call })
      assert.equal(sent.status, 200, sent.text)
      const message = (await sink.waitFor(seen + 1))[seen]
      return PostalMime.parse(message?.raw ?? '')
    },
  }
}

eachDatabase((database) => {
  test('a stored template is rendered into mail as the call says', async (t) => {
    const { service, store, send } = await startScene(t, database)
    const own = `/v3/${service.domain}/templates`
    await store(own, {
      name: 'Order',
      template: '<p>Order {{order.id}} of {{name}}</p><a href="https://shop.example/{{order.id}}">see</a>',
      headers: JSON.stringify({
        From: `Shop <shop@${service.domain}>`,
        Subject: 'Order {{order.id}} for {{name}}',
        'Reply-To': 'help+{{order.id}}@shop.example',
      }),
    })
    await store(`${own}/order/versions`, { tag: 'v2', template: '<b>Second {{name}}</b>' })
    const variables = { 't:variables': JSON.stringify({ order: { id: 7 }, name: 'Ann & <Co>' }) }

    const plain = await send(variables)
    assert.equal(
      plain.html?.trim(),
      '<p>Order 7 of Ann &amp; &lt;Co&gt;</p><a href="https://shop.example/7">see</a>',
    )
    assert.equal(plain.text, undefined, 'no text part unless asked for')
    assert.equal(plain.subject, 'Order 7 for Ann & <Co>')
    assert.equal(plain.from?.address, `shop@${service.domain}`)
    assert.equal(plain.replyTo?.[0]?.address, 'help+7@shop.example')

    const asText = await send({ ...variables, 't:text': 'yes' })
    assert.match(asText.text ?? '', /^Order 7 of Ann & <Co>\s+see \(https:\/\/shop\.example\/7\)\s*$/)
    const ownText = await send({ ...variables, 't:text': 'yes', text: 'my own' })
    assert.equal(ownText.text?.trim(), 'my own')

    const second = await send({
      ...variables,
      't:version': 'V2',
      subject: 'mine',
      from: `me@${service.domain}`,
    })
    assert.equal(second.html?.trim(), '<b>Second Ann &amp; &lt;Co&gt;</b>')
    assert.deepEqual([second.subject, second.from?.address], ['mine', `me@${service.domain}`])

    const above = await send({
      subject: 's',
      'v:name': 'from v',
      'v:order': '{"id":1}',
      't:variables': '{"name":"from t"}',
    })
    assert.match(above.html ?? '', /Order 1 of from t/)

    const [, delivered] = await eventually('both events', async () => {
      const events = (await service.events(`?message-id=${plain.messageId?.slice(1, -1)}`)).toReversed()
      return events.length === 2 && events
    })
    assert.deepEqual(delivered?.['template'], { name: 'order', version: 'initial', 'is-text': false })
  })
})

test('template headers are not in the accepted event, and are not used if the call has its own', async (t) => {
  const { service, store, send } = await startScene(t)
  const headers = JSON.stringify({ Subject: 'From the template', 'Reply-To': 'template@example.com' })
  await store('/v4/templates', { name: 'order', template: 'x', headers })
  const mail = await send({ 'h:Reply-To': 'call@example.com' })
  assert.equal(mail.replyTo?.[0]?.address, 'call@example.com')
  assert.equal(mail.from?.address, `postmaster@${service.domain}`, 'no From anywhere')
  const events = await eventually('both events', async () => {
    const all = await service.events(`?message-id=${mail.messageId?.slice(1, -1)}`)
    return all.length === 2 && all
  })
  const subjects = events.map(({ event, message }) => [
    event,
    (message as { headers: { subject: string } }).headers.subject,
  ])
  assert.deepEqual(
    new Map(subjects as [string, string][]),
    new Map([
      ['delivered', 'From the template'],
      ['accepted', ''],
    ]),
  )
})

test('the version is fixed at acceptance; recipients of a batch get their own rendering', async (t) => {
  const { service, sink, store, send } = await startScene(t)
  const own = `/v3/${service.domain}/templates`
  await store(own, { name: 'order', template: 'old {{name}}', headers: '{"Subject":"S"}' })
  const held = sink.hold('MAIL FROM')
  const form = { to: 'held@example.org', template: 'order', 't:variables': '{"name":"x"}' }
  assert.equal((await service.call('POST', `/v3/${service.domain}/messages`, { form })).status, 200)
  await held.reached
  const deferred = {
    ...form,
    to: 'later@example.org',
    'o:deliverytime': new Date(Date.now() + 2_000).toUTCString(),
  }
  assert.equal((await service.call('POST', `/v3/${service.domain}/messages`, { form: deferred })).status, 200)
  assert.equal((await service.call('DELETE', `${own}/order`)).status, 200)
  held.release()
  for (const { raw } of await sink.waitFor(2)) assert.match(raw.toString(), /old x/)

  await store(own, {
    name: 'order',
    template: 'Hi {{name}}, {{{raw}}}',
    headers: '{"Subject":"For {{name}}"}',
  })
  const batch = {
    to: ['a@example.org', 'b@example.org'],
    't:variables': '{"name":"%recipient.n%","raw":"%recipient_email%"}',
    'recipient-variables': '{"a@example.org":{"n":"<A>"},"b@example.org":{"n":"B"}}',
  }
  await send(batch)
  const texts = (await sink.waitFor(4)).slice(2).map(({ raw }) => raw.toString())
  assert.ok(
    texts.some((raw) => raw.includes('Hi &lt;A&gt;, a@example.org') && raw.includes('Subject: For <A>')),
  )
  assert.ok(texts.some((raw) => raw.includes('Hi B, b@example.org') && raw.includes('Subject: For B')))
})

test('the rendered template replaces the html of a MIME message, and nothing else', async (t) => {
  const { service, store, send } = await startScene(t)
  await store(`/v3/${service.domain}/templates`, { name: 'order', template: '<i>{{name}}</i>' })
  const mime = (type: string) =>
    new File([`From: a@${service.domain}\r\nSubject: s\r\nContent-Type: ${type}\r\n\r\ngiven`], 'm.eml')
  const form = (type: string) => ({ message: mime(type), 't:variables': '{"name":"N"}' })
  assert.equal((await send(form('text/html'), 'messages.mime')).html?.trim(), '<i>N</i>')
  const text = await send(form('text/plain'), 'messages.mime')
  assert.deepEqual([text.text?.trim(), text.html], ['given', undefined])
})

test('a template that fails for one recipient is a rejected event of that one only', async (t) => {
  const { service, sink, store } = await startScene(t)
  const template = '{{#each rows}}{{#each @root.rows}}{{@root.long}}{{/each}}{{/each}}ok'
  await store(`/v3/${service.domain}/templates`, { name: 'order', template, headers: '{"Subject":"S"}' })
  const form = {
    to: ['big@example.org', 'small@example.org'],
    template: 'order',
    't:variables': JSON.stringify({ rows: Array(100).fill(1), long: '%recipient.long%' }),
    'recipient-variables': JSON.stringify({
      'big@example.org': { long: 'x'.repeat(1_000) },
      'small@example.org': { long: '' },
    }),
  }
  const sent = await service.call('POST', `/v3/${service.domain}/messages`, { form })
  assert.equal(sent.status, 200, sent.text)
  const rejected = await eventually(
    'the rejected event',
    async () => (await service.events('?event=rejected'))[0],
  )
  assert.equal((rejected['reject'] as { reason: string }).reason, 'Template render error')
  await sink.waitFor(1)
  assert.deepEqual(
    sink.messages.map(({ envelope }) => envelope.to),
    [['small@example.org']],
  )
})

test('a call that refers to a missing template or version is refused at once', async (t) => {
  const { service, store } = await startScene(t)
  await store('/v4/templates', { name: 'empty' })
  await store('/v4/templates', { name: 'order', template: 'x' })
  const faults: [Record<string, string>, string][] = [
    [{ template: 'nothing' }, "template 'nothing' not found"],
    [{ template: 'empty' }, "template 'empty' has no active version"],
    [{ template: 'order', 't:version': 'v9' }, "version 'v9' of template 'order' not found"],
  ]
  for (const [form, message] of faults) {
    const answer = await service.call('POST', `/v3/${service.domain}/messages`, {
      form: { to: 'a@example.org', subject: 's', from: `me@${service.domain}`, ...form },
    })
    assert.deepEqual([answer.status, answer.body], [400, { message }])
  }
})
