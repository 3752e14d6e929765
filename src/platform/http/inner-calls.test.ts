import assert from 'node:assert/strict'
import { test } from 'node:test'
import { echo, startServer } from '../../../test/support/http-server.ts'
import { anyJson } from '../../base/shape.ts'
import { eventStream, jsonStreamReply } from './answer/reply.ts'
import type { InnerAnswer, InnerCall, InnerCalls } from './inner-calls.ts'
import { operation } from './operation.ts'

const COMMON = { tag: 'Test', summary: 'x', answers: { 200: anyJson('ok') } } as const

let endless = 0
const stream = operation({
  ...COMMON,
  ...{ method: 'GET', path: '/v1/stream', id: 'stream', auth: { area: 'events', access: 'read' } },
  async handler() {
    async function* source() {
      try {
        for (;;) yield Buffer.alloc(10, 'x')
      } finally {
        endless++
      }
    }
    return jsonStreamReply(source())
  },
})

const reached = Promise.withResolvers<void>()
const hanging = operation({
  ...COMMON,
  ...{ method: 'GET', path: '/v1/hanging', id: 'hanging', auth: { area: 'events', access: 'read' } },
  handler() {
    reached.resolve()
    return new Promise(() => {})
  },
})

let opened = 0
const silent = operation({
  ...COMMON,
  ...{ method: 'GET', path: '/v1/silent', id: 'silent', auth: { area: 'events', access: 'read' } },
  async handler({ signal }) {
    async function* source() {
      opened++
      yield Buffer.from('[')
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    }
    return jsonStreamReply(source())
  },
})

const events = operation({
  ...COMMON,
  ...{ method: 'GET', path: '/v1/events', id: 'events', auth: { area: 'events', access: 'read' } },
  async handler({ signal }) {
    async function* source() {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      yield* []
    }
    return eventStream(source())
  },
})

/** A server whose operation `outer` makes the call of its body. */
async function start(options: Parameters<typeof startServer>[1] = {}) {
  const late: { innerCall?: InnerCalls } = {}
  const ended: Error[] = []
  const outer = operation({
    ...COMMON,
    ...{ method: 'POST', path: '/v1/outer', id: 'outer', auth: { area: 'events', access: 'read' } },
    bearer: true,
    body: anyJson('The call'),
    audit: { exempt: 'reads only' },
    handler: (context) =>
      (late.innerCall as InnerCalls)(context, context.params.json() as InnerCall, 100).catch((error) => {
        ended.push(error)
        throw error
      }),
  })
  const test = await startServer([outer, echo, stream, hanging, silent, events], options)
  late.innerCall = test.server.innerCall
  const call = async (
    inner: InnerCall,
    headers: Record<string, string> = { authorization: 'Bearer admin' },
    signal: AbortSignal | null = null,
  ) => {
    const body = JSON.stringify(inner)
    const response = await test.fetch('/v1/outer', { method: 'POST', body, headers, signal })
    return (await response.json()) as InnerAnswer & { message?: string }
  }
  return { test, call, ended }
}

const ECHO = { method: 'POST', url: '/v3/example.com/echo?x=1', json: { a: 'b' } }

test('an inner call has the rights of its caller, and is made for the same account', async () => {
  const { test, call } = await start()
  await using _ = test
  const own = await call(ECHO)
  assert.equal(own.status, 200, own.text)
  assert.match(own.text, /"domain":"example\.com","account":"acc-1","remoteAddress":"127\.0\.0\.1"/)
  const child = { authorization: 'Bearer admin', 'x-mailgun-on-behalf-of': 'child' }
  assert.match((await call(ECHO, child)).text, /"account":"child"/)
  assert.equal((await call(ECHO, { authorization: 'Bearer basic' })).status, 403)
  assert.equal((await call({ method: 'GET', url: '/v1/nowhere' })).status, 404)
})

test('a client of a proxy calls for its own address, over https as it came', async () => {
  const { test, call } = await start({ trustedProxies: ['127.0.0.1'], httpsOnly: true })
  await using _ = test
  const forwarded = { authorization: 'Bearer admin', 'x-forwarded-for': '192.0.2.7' }
  const { status, text } = await call(ECHO, { ...forwarded, 'x-forwarded-proto': 'https' })
  assert.equal(status, 200, text)
  assert.match(text, /"remoteAddress":"192\.0\.2\.7"/)
  assert.match(
    (await call(ECHO, { ...forwarded, 'x-forwarded-proto': 'http' })).message ?? '',
    /over plain http/,
  )
})

test('an answer is read up to the limit, and its source ends', async () => {
  const { test, call } = await start()
  await using _ = test
  const { text, isCut } = await call({ method: 'GET', url: '/v1/stream' })
  assert.deepEqual([text.length, isCut, endless], [100, true, 1])
})

test('a call ends when its caller leaves', async () => {
  const { test, call, ended } = await start()
  await using _ = test
  const client = new AbortController()
  const left = call({ method: 'GET', url: '/v1/hanging' }, undefined, client.signal)
  await reached.promise
  client.abort()
  await assert.rejects(left)
  while (ended.length === 0) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(ended[0]?.message, 'The caller has gone')
})

test('a call ends when its caller leaves while the answer is read', async () => {
  const { test, call, ended } = await start()
  await using _ = test
  const client = new AbortController()
  const left = call({ method: 'GET', url: '/v1/silent' }, undefined, client.signal)
  while (opened === 0) await new Promise((resolve) => setImmediate(resolve))
  client.abort()
  await assert.rejects(left)
  while (ended.length === 0) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(ended[0]?.message, 'The caller has gone')
})

test('events, which never end, are no answer of an inner call', async () => {
  const { test, call, ended } = await start()
  await using _ = test
  assert.match((await call({ method: 'GET', url: '/v1/events' })).message ?? '', /sends events/)
  assert.equal(ended.length, 1)
})
