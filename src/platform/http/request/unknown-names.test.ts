import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearestName } from '../../../base/nearest-name.ts'
import { anyJson } from '../../../base/shape.ts'
import { isDeclaredName, operation, shownNames, unknownNames, unknownParameters } from '../operation.ts'
import { otherParam } from './inputs.ts'
import { Fields, Params } from './params.ts'

const NAMES = ['to', 'subject', 'attachment', 'o:tracking', 'o:tag', 'h:<name>', 'v:<name>']
const send = operation({
  method: 'POST',
  path: '/v3/{domain_name}/messages',
  id: 'send',
  tag: 'Test',
  summary: 'x',
  auth: { area: 'messages:send', access: 'write' },
  params: Object.fromEntries(NAMES.map((name) => [name, otherParam(name)])),
  answers: { 200: anyJson('ok') },
  handler: async () => ({}),
})
const taking = (schema: object) => ({
  ...send,
  params: [],
  body: { schema: { ...schema }, parts: {} },
})

const paramsOf = (...names: string[]) => {
  const body = new Fields()
  for (const name of names) body.add(name, 'x')
  return new Params({ query: new Fields(), body })
}

test('names of the declaration, of the path and under a declared prefix are known', () => {
  const known = ['to', 'to[]', 'o:tag[1]', 'domain_name', 'h:X-Any', 'v:any']
  assert.deepEqual(unknownNames(send, paramsOf(...known)), [])
  assert.deepEqual(unknownNames(send, paramsOf('to', 'o:trackng', 'h:', 'TO')), ['o:trackng', 'h:', 'TO'])
  assert.equal(isDeclaredName(send, 'o:trackng'), false)
})

test('names of uploads count, each once', () => {
  const file = { filename: 'a', contentType: null, chunk: Buffer.of(), keep: () => Buffer.of() }
  const files = ['attachment', 'attachments', 'attachments'].map((fieldName) => ({ ...file, fieldName }))
  const params = new Params({ query: new Fields(), body: new Fields(), files })
  assert.deepEqual(unknownNames(send, params), ['attachments'])
})

test('members of a document are known by its schema; one without members takes any', () => {
  const closed = taking({ type: 'object', properties: { filter: {} } })
  assert.deepEqual(unknownNames(closed, paramsOf('filter', 'filtre')), ['filtre'])
  assert.deepEqual(unknownNames(taking({ type: 'object' }), paramsOf('filtre')), [])
})

test('10 names of 64 harmless characters are shown, whatever is sent', () => {
  const cases: [string, string][] = [
    ['o:trackng', 'o:trackng'],
    ['a\r\nX-Evil: 1', 'a%0D%0AX-Evil:%201'],
    ['\0', '%00'],
    ['größe', 'gr%C3%B6%C3%9Fe'],
    ['\ud800', '%EF%BF%BD'],
    ['a, b', 'a%2C%20b'],
    ['100%"\\', '100%25%22%5C'],
    ['x'.repeat(100_000), 'x'.repeat(64)],
    [`${'x'.repeat(62)}é`, 'x'.repeat(62)],
    [`${'x'.repeat(63)}😀`, 'x'.repeat(63)],
  ]
  for (const [name, shown] of cases) assert.deepEqual(shownNames([name]), [shown])
  const many = Array.from({ length: 10_000 }, (_, at) => `n${at}`)
  assert.deepEqual(unknownNames(send, paramsOf(...many)), [...many.slice(0, 10), '...'])
  assert.equal(unknownNames(send, paramsOf(...many.slice(0, 10))).length, 10)
})

test('the nearest name is the one with the fewest edits', () => {
  const known = [
    'to',
    'cc',
    'subject',
    'text',
    'attachment',
    'o:tag',
    'o:tracking',
    'o:tracking-clicks',
    'o:dkim',
  ]
  const cases: [string, string | null][] = [
    ['o:trackng', 'o:tracking'],
    ['o:trakcing', 'o:tracking'],
    ['O:Tracking', 'o:tracking'],
    ['tracking', 'o:tracking'],
    ['o:tracking-click', 'o:tracking-clicks'],
    ['attachments', 'attachment'],
    ['subjetc', 'subject'],
    ['tags', 'o:tag'],
    ['foo', null],
    ['a', null],
    ['x'.repeat(64), null],
  ]
  for (const [name, near] of cases) assert.equal(nearestName(name, known), near, name)
})

test('the refusal names them all, with the nearest known names', () => {
  assert.equal(
    unknownParameters(send, ['o:trackng']).message,
    'Unknown parameter: o:trackng (did you mean o:tracking?)',
  )
  assert.equal(
    unknownParameters(send, ['colour', 'subjct', '...']).message,
    'Unknown parameters: colour, subjct (did you mean subject?), ...',
  )
})
