import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAnswer } from './http-load.ts'
import { NUMBER_MARK, NumberedBytes, Schedule, Tally } from './load.ts'
import { batchFields, makeContent, mimeMessage, sendRequest, singleFields } from './messages.ts'

test('a number is written at every mark of a request, and again for the next one', () => {
  const request = new NumberedBytes(`to=r${NUMBER_MARK}@x&subject=${NUMBER_MARK}`)
  assert.equal(request.with(42).toString(), 'to=r00000042@x&subject=00000042')
  assert.equal(request.with(12_345_678).toString(), 'to=r12345678@x&subject=12345678')
})

test('a schedule ends at its count', () => {
  const schedule = new Schedule({ count: 2, firstNumber: 7 })
  assert.deepEqual([schedule.next(), schedule.next(), schedule.next()], [7, 8, null])
})

test('a schedule with a rate gives the first number at once and the second one later', async () => {
  const schedule = new Schedule({ count: 2, perSecond: 200, firstNumber: 0 })
  assert.equal(schedule.next(), 0)
  const second = schedule.next()
  assert.ok(second instanceof Promise)
  assert.equal(await second, 1)
  assert.equal(schedule.next(), null)
})

test('a tally keeps latencies, first and last acceptance, and the first failure', () => {
  const tally = new Tally(true)
  tally.accepted(1, 100, 110)
  tally.accepted(2, 100, 130)
  tally.failed('400 bad')
  tally.failed('500 worse')
  tally.limited(false)
  const result = tally.result()
  assert.deepEqual(
    [result.accepted, result.failed, result.failure, result.firstAt, result.lastAt],
    [2, 2, '400 bad', 110, 130],
  )
  assert.deepEqual([result.limited, result.limitedWithoutTime], [1, 1])
  assert.deepEqual([result.latencyMs.p50, result.latencyMs.max], [10, 30])
  assert.equal(result.acceptedAt?.get(2), 130)
})

test('a response is read when it is complete', () => {
  const text = 'HTTP/1.1 429 Too Many\r\nRetry-After: 3\r\nContent-Length: 4\r\n\r\nslow'
  assert.equal(parseAnswer(Buffer.from(text.slice(0, 30))), null)
  assert.equal(parseAnswer(Buffer.from(text.slice(0, -1))), null)
  assert.deepEqual(parseAnswer(Buffer.from(text)), { status: 429, hasRetryAfter: true, body: 'slow' })
})

test('content has the requested size, with and without links', () => {
  for (const links of [0, 20]) {
    const { text, html } = makeContent(10_000, links)
    const size = text.length + (html ?? '').length
    assert.ok(Math.abs(size - 10_000) < 100, `${size}`)
    assert.equal(html?.split('<a href=').length, links + 1)
  }
})

test('a request states the length of its body', () => {
  const service = { host: '127.0.0.1', port: 1, domain: 'a.example', authorization: 'Basic x' }
  const fields = batchFields('a.example', makeContent(2_000), 3)
  for (const form of [singleFields('a.example', makeContent(2_000)), fields]) {
    const [head = '', ...body] = sendRequest(service, form).split('\r\n\r\n')
    assert.ok(head.includes(`Content-Length: ${Buffer.byteLength(body.join('\r\n\r\n'))}`))
  }
  assert.equal(fields.filter(([name]) => name === 'to').length, 3)
})

test('no line of a message over SMTP is too long or begins with a dot', () => {
  const message = mimeMessage('a@a.example', 'b@b.example', makeContent(10_000, 20))
  for (const line of message.split('\r\n')) assert.ok(line.length <= 998 && !line.startsWith('.'), line)
})
