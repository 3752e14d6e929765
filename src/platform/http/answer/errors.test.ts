import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  BadRequest,
  Conflict,
  Forbidden,
  Gone,
  InsufficientStorage,
  MethodNotAllowed,
  NotFound,
  PayloadTooLarge,
  QuotaExceeded,
  TooManyRequests,
  Unauthenticated,
  Unavailable,
} from '../../../base/process/errors.ts'
import { answerTo, STATUS_OF } from './errors.ts'

const NOW_MS = 1_780_315_200_000

/** Section 7 of the contract's general errors, and the cases that single operations add to it. */
const DOCUMENTED: ReadonlyArray<[Error, number, object, object]> = [
  [new BadRequest('x'), 400, { message: 'x' }, {}],
  [new BadRequest('x', { form: 'Reason' }), 400, { Reason: 'x' }, {}],
  [
    new BadRequest('Webhook already exists', {
      form: 'Reason',
      extra: { message: 'Webhook already exists' },
    }),
    400,
    { Reason: 'Webhook already exists', message: 'Webhook already exists' },
    {},
  ],
  [
    new BadRequest('is not valid', { form: 'Field', field: 'webhook_id' }),
    400,
    { Field: 'webhook_id', Value: 'is not valid' },
    {},
  ],
  [new BadRequest('', { form: 'Field', field: 'url' }), 400, { Field: 'url' }, {}],
  [new Unauthenticated(undefined, { why: 'no such key' }), 401, { message: 'Invalid private key' }, {}],
  [new QuotaExceeded('x'), 402, { message: 'x' }, {}],
  [new Forbidden(undefined, { why: 'no right' }), 403, { message: 'Forbidden' }, {}],
  [new NotFound(), 404, { message: 'Not Found' }, {}],
  [new NotFound('gone', { form: 'Description' }), 404, { Description: 'gone' }, {}],
  [new MethodNotAllowed(['GET', 'HEAD']), 405, { message: 'Method Not Allowed' }, { allow: 'GET, HEAD' }],
  [new Conflict('busy', { retrySeconds: 1 }), 409, { message: 'busy' }, { 'retry-after': '1' }],
  [new Gone('moved'), 410, { message: 'moved' }, {}],
  [new PayloadTooLarge('big'), 413, { message: 'big' }, {}],
  [
    new TooManyRequests(60, undefined, { extra: { 'retry-seconds': 60 } }),
    429,
    { message: 'Too Many Requests', 'retry-seconds': 60 },
    { 'retry-after': '60', 'x-ratelimit-reset': '1780315260' },
  ],
  [new Error('secret detail'), 500, { message: 'Internal Server Error' }, {}],
  [new Unavailable(), 503, { message: 'Service Unavailable' }, { 'retry-after': '5' }],
  [new InsufficientStorage(), 507, { message: 'Insufficient Storage' }, { 'retry-after': '30' }],
]

test('each error type has the documented status, body and headers', () => {
  for (const [error, status, body, headers] of DOCUMENTED) {
    const answer = answerTo(error, NOW_MS)
    assert.deepEqual([answer.status, answer.body, answer.headers], [status, body, headers])
    assert.equal(answer.ourFault, status >= 500)
  }
})

test('the table has every documented status once and no other', () => {
  const documented = new Set(DOCUMENTED.map(([, status]) => status))
  documented.delete(500)
  assert.deepEqual(
    STATUS_OF.map(([, status]) => status),
    [...documented].sort((a, b) => a - b),
  )
})

test('docs/errors.md has a way out for each status and for no other', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../../docs/errors.md'), 'utf8')
  const [table] = page.slice(page.indexOf('## What to do by status')).split('\n## ', 1)
  const listed = [...(table ?? '').matchAll(/^\| (\d{3}) \|/gm)].map(([, status]) => Number(status))
  const statuses = [...STATUS_OF.map(([, status]) => status), 500].sort((a, b) => a - b)
  assert.deepEqual([...new Set(listed)], statuses)
})

test('an error keeps its cause and its own name', () => {
  const cause = new Error('below')
  const error = new NotFound('x', { cause })
  assert.equal(error.cause, cause)
  assert.equal(error.name, 'NotFound')
})

test('a further member never replaces the text', () => {
  const { body } = answerTo(new BadRequest('right', { extra: { message: 'wrong' } }), NOW_MS)
  assert.deepEqual(body, { message: 'right' })
})

test('thrown values that are no errors are our fault too', () => {
  for (const thrown of [undefined, null, 'text', 42, {}]) assert.equal(answerTo(thrown, NOW_MS).status, 500)
})
