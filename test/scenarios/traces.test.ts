/** Traces from the HTTP request to the reply of the recipient's server, and none without the setting. */
import assert from 'node:assert/strict'
import { registerHooks } from 'node:module'
import { type TestContext, test } from 'node:test'
import { createTransport } from 'nodemailer'
import type { CollectedSpan, Collector } from '../support/collector.ts'
import { eachDatabase } from '../support/databases.ts'

/** Packages of OpenTelemetry that were loaded, but for the API, which the library of `/metrics` loads. */
const loaded = new Set<string>()
registerHooks({
  load(url, context, next) {
    const name = /\/node_modules\/(@opentelemetry\/[^/]+)\//.exec(url)?.[1]
    if (name !== undefined && name !== '@opentelemetry/api') loaded.add(name)
    return next(url, context)
  },
})
const { createCollector } = await import('../support/collector.ts')
const { createReceiver } = await import('../support/http-receiver.ts')
const { createSink } = await import('../support/smtp-sink.ts')
const { eventually, startTestService } = await import('../support/service.ts')

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const CALLER = '00f067aa0ba902b7'
const SAMPLED = `00-${TRACE}-${CALLER}-01`
const SEND = 'POST /v3/{domain_name}/messages'
const SECRET = 'c0llector secret'

const form = (domain: string) => ({
  from: `Sender <sender@${domain}>`,
  to: 'secret.person@example.org',
  subject: 'A secret subject',
  text: 'A secret body.',
})

async function startTraced(t: TestContext, env: Record<string, string>, database?: 'sqlite' | 'postgres') {
  const sink = await createSink()
  t.after(() => sink.close())
  const service = await startTestService(
    t,
    {
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
      SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
      SENDWRIGHT_RETRY_SCHEDULE: '1s',
      ...env,
    },
    database ? { database } : {},
  )
  return { sink, service }
}

const named = (spans: readonly CollectedSpan[], name: string) => spans.filter((span) => span.name === name)

/** Resolves with the spans of the trace once `count` of this name have come. */
const collected = (collector: Collector, name: string, count = 1) =>
  eventually(`${count} times ${name}`, async () => {
    const spans = collector.spans()
    return named(spans, name).length >= count && spans
  })

// First: nothing has loaded the libraries yet.
test('without the setting nothing is traced, sent or loaded', async (t) => {
  const collector = await createCollector(t)
  const { sink, service } = await startTraced(t, {})
  const { call, domain } = service
  const headers = { traceparent: SAMPLED }
  assert.equal((await call('POST', `/v3/${domain}/messages`, { form: form(domain), headers })).status, 200)
  await sink.waitFor(1)
  assert.doesNotMatch((await call('GET', '/metrics')).text, /sendwright_trace_spans/)
  await service.restart()
  assert.deepEqual(collector.receiver.posts, [])
  assert.deepEqual([...loaded], [])
})

eachDatabase((database) =>
  test('one trace from the request over a restart to the reply', async (t) => {
    const collector = await createCollector(t)
    const env = {
      SENDWRIGHT_OTLP_ENDPOINT: collector.url,
      SENDWRIGHT_OTLP_HEADERS: `authorization=${encodeURIComponent(SECRET)}`,
      // What the caller samples is traced all the same.
      SENDWRIGHT_OTLP_SAMPLING: '0',
    }
    const { sink, service } = await startTraced(t, env, database)
    const { call, domain } = service
    const hook = await createReceiver()
    t.after(() => hook.close())
    const url = `${hook.url}/hook-secret`
    assert.equal(
      (await call('POST', `/v3/domains/${domain}/webhooks`, { form: { id: 'delivered', url } })).status,
      200,
    )
    sink.on('RCPT TO', '451 4.7.1 <secret.person@example.org> later', { times: 1 })
    const path = `/v3/${domain}/messages`
    const headers = { traceparent: SAMPLED }
    const answer = await call('POST', path, { form: form(domain), headers })
    assert.equal(answer.status, 200)
    await eventually('the first attempt', async () => (await service.events('?event=failed')).length === 1)
    await service.restart()
    await sink.waitFor(1)
    const spans = await collected(collector, 'post webhook')

    const [request, ...further] = named(spans, SEND)
    assert.deepEqual(further, [])
    assert.deepEqual([request?.traceId, request?.parentSpanId, request?.kind], [TRACE, CALLER, 'server'])
    assert.equal(request?.attributes['http.route'], '/v3/{domain_name}/messages')
    assert.equal(request?.attributes['http.response.status_code'], 200)
    assert.equal(request?.attributes['sendwright.operation'], 'sendMessage')

    const [acceptance] = named(spans, 'accept message')
    assert.deepEqual([acceptance?.traceId, acceptance?.parentSpanId], [TRACE, request?.spanId])
    assert.equal(`<${acceptance?.attributes['messaging.message.id']}>`, answer.body.id)
    assert.equal(acceptance?.attributes['sendwright.recipients'], 1)
    assert.equal(acceptance?.attributes['sendwright.domain'], domain)

    const attempts = named(spans, 'deliver message')
    assert.equal(attempts.length, 2)
    for (const [index, attempt] of attempts.entries()) {
      assert.deepEqual([attempt.traceId, attempt.parentSpanId], [TRACE, acceptance?.spanId])
      assert.equal(attempt.kind, 'client')
      assert.equal(attempt.attributes['sendwright.attempt'], index + 1)
      assert.equal(attempt.attributes['sendwright.recipient.domain'], 'example.org')
      assert.equal(attempt.attributes['server.address'], sink.host)
      assert.equal(attempt.attributes['sendwright.tls'], false)
      assert.ok(Number(attempt.attributes['sendwright.bytes']) > 100)
      assert.ok(attempt.startedAt <= attempt.endedAt)
    }
    const replies = attempts.map(({ attributes }) => [
      attributes['smtp.reply.code'],
      attributes['smtp.reply.class'],
      attributes['sendwright.outcome'],
    ])
    assert.deepEqual(replies, [
      [451, '4xx', 'deferred'],
      [250, '2xx', 'delivered'],
    ])
    assert.deepEqual(
      attempts.map(({ isFailed }) => isFailed),
      [true, false],
    )
    // The second one was due a second after the first.
    assert.ok(Number(attempts[1]?.attributes['sendwright.age_ms']) >= 900)

    const [post] = named(spans, 'post webhook')
    assert.deepEqual([post?.traceId, post?.parentSpanId], [TRACE, acceptance?.spanId])
    assert.equal(post?.attributes['http.response.status_code'], 200)

    // Calls without a traceparent begin traces, of which none is sampled.
    assert.deepEqual(new Set(spans.map(({ traceId }) => traceId)), new Set([TRACE]))
    for (const { path, raw, headers } of collector.receiver.posts) {
      assert.equal(path, '/v1/traces')
      assert.equal(headers.authorization, SECRET)
      assert.doesNotMatch(raw.toString(), /secret|451 4/)
    }
    // Counted when the collector's answer has come.
    await eventually('they are counted', async () =>
      /sendwright_trace_spans_total\{result="sent"\} [1-9]/.test((await call('GET', '/metrics')).text),
    )
    assert.ok(loaded.has('@opentelemetry/sdk-trace'))
  }),
)

test('what the caller does not sample is not, what is no traceparent is ignored, and strangers get no span', async (t) => {
  const collector = await createCollector(t)
  const { sink, service } = await startTraced(t, { SENDWRIGHT_OTLP_ENDPOINT: collector.url })
  const { call, domain } = service
  const send = (traceparent: string, key?: null) =>
    call('POST', `/v3/${domain}/messages`, {
      form: form(domain),
      headers: { traceparent },
      ...(key === null && { key }),
    })
  assert.equal((await send(`00-${TRACE}-${CALLER}-00`)).status, 200)
  await sink.waitFor(1)
  assert.equal((await send(SAMPLED, null)).status, 401)
  assert.equal((await send(`00-${TRACE}-${'0'.repeat(16)}-01`)).status, 200)
  await sink.waitFor(2)
  const spans = await collected(collector, 'deliver message')
  const [request, ...further] = named(spans, SEND)
  assert.deepEqual(further, [])
  assert.notEqual(request?.traceId, TRACE)
  assert.equal(request?.parentSpanId, '')
  assert.deepEqual(new Set(spans.map(({ traceId }) => traceId)), new Set([request?.traceId]))
})

test('mail by SMTP, mail sent again, copies of a batch and mail that is not sent have traces', async (t) => {
  const collector = await createCollector(t)
  const { sink, service } = await startTraced(t, { SENDWRIGHT_OTLP_ENDPOINT: collector.url })
  const { call, domain, config } = service
  const hook = await createReceiver()
  t.after(() => hook.close())
  const path = `/v3/domains/${domain}`
  const login = { login: 'app', password: 'long enough' }
  assert.equal((await call('POST', `${path}/credentials`, { form: login })).status, 200)
  /** The spans of the caller's trace with this number. */
  const traceOf = (number: number, name: string, count: number) =>
    eventually(`trace ${number}`, async () => {
      const spans = collector.spans().filter(({ traceId }) => traceId === `${number}`.repeat(32))
      return named(spans, name).length >= count && spans
    })
  const traceparent = (number: number) => ({ traceparent: `00-${`${number}`.repeat(32)}-${CALLER}-01` })
  const childrenOf = (spans: readonly CollectedSpan[], parent: CollectedSpan | undefined) =>
    spans.filter(({ parentSpanId }) => parentSpanId === parent?.spanId)

  const mailer = createTransport({
    host: config.smtpHost,
    port: service.service.smtp.port,
    ignoreTLS: true,
    auth: { user: `app@${domain}`, pass: login.password },
  })
  await mailer.sendMail(form(domain))
  mailer.close()
  await sink.waitFor(1)
  const bySmtp = await collected(collector, 'deliver message')
  const [accepted] = named(bySmtp, 'accept message')
  assert.deepEqual([accepted?.parentSpanId, accepted?.kind], ['', 'server'])
  assert.equal(accepted?.attributes['sendwright.method'], 'smtp')
  assert.deepEqual(childrenOf(bySmtp, accepted), named(bySmtp, 'deliver message'))

  const delivered: unknown = await eventually('the event', async () => {
    const [found] = await service.events('?event=delivered')
    return found ?? false
  })
  const stored = new URL((delivered as { storage: { url: string } }).storage.url).pathname
  const again = await call('POST', stored, { form: { to: 'other@example.net' }, headers: traceparent(1) })
  assert.equal(again.status, 200)
  const resent = await traceOf(1, 'deliver message', 1)
  const [request] = named(resent, 'POST /v3/domains/{domain_name}/messages/{storage_key}')
  const [repeated] = childrenOf(resent, request)
  assert.equal(repeated?.name, 'accept message')
  assert.deepEqual(
    childrenOf(resent, repeated).map(({ attributes }) => attributes['sendwright.recipient.domain']),
    ['example.net'],
  )

  const send = (number: number, more: Record<string, string | string[]>) =>
    call('POST', `/v3/${domain}/messages`, {
      form: { ...form(domain), ...more },
      headers: traceparent(number),
    })
  assert.equal((await send(2, { 'o:testmode': 'yes' })).status, 200)
  const [unsent] = named(await traceOf(2, 'end delivery unsent', 1), 'end delivery unsent')
  assert.deepEqual([unsent?.kind, unsent?.attributes['server.address']], ['internal', undefined])

  const webhook = { id: 'delivered', url: hook.url }
  assert.equal((await call('POST', `${path}/webhooks`, { form: webhook })).status, 200)
  const to = ['ann@example.org', 'ben@example.org']
  assert.equal((await send(3, { to, 'recipient-variables': '{"ann@example.org": {}}' })).status, 200)
  const batch = await traceOf(3, 'post webhook', 2)
  const [one] = named(batch, 'accept message')
  const names = childrenOf(batch, one).map(({ name }) => name)
  assert.deepEqual(names.sort(), ['deliver message', 'deliver message', 'post webhook', 'post webhook'])
})

test('a collector that never answers delays neither mail nor a stop', async (t) => {
  const collector = await createCollector(t)
  collector.receiver.answer = () => {}
  const { sink, service } = await startTraced(t, { SENDWRIGHT_OTLP_ENDPOINT: collector.url })
  assert.equal((await service.send({})).status, 200)
  await sink.waitFor(1)
  await eventually('a post', async () => collector.receiver.posts.length > 0)
  assert.equal((await service.send({})).status, 200)
  await sink.waitFor(2)
})
