import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { runTests } from '../../scripts/test.ts'
import { plantFiles } from './plant-files.ts'

const FROM = JSON.stringify(join(import.meta.dirname, '../..')).slice(1, -1)
/** A file that passes in itself: operations of one declaration answer what `returned` has, `read0` the first. */
const file = (returned: string[]) => `
import { test } from 'node:test'
import { list, named, nullable, object, optional, text } from '${FROM}/src/base/shape.ts'
import { operation } from '${FROM}/src/platform/http/operation.ts'
import { htmlReply, jsonReply, noContent } from '${FROM}/src/platform/http/answer/reply.ts'
import { startServer } from '${FROM}/test/support/http-server.ts'

const part = named('Part', 'A part', { examples: object('', { id: text('') }) })
const thing = object('A thing', {
  name: text('Its name'),
  parts: list('', part),
  place: nullable(object('', { town: text('') })),
  note: optional(text('')),
})
const operations = [${returned}].map((answer, i) => operation({
  method: 'GET', path: '/v1/things/' + i, id: 'read' + i, tag: 'Things', summary: 'Read a thing', auth: 'public',
  answers: { 200: thing, 409: 'It is in use' },
  handler: async () => answer as never,
}))
test('reads things', async () => {
  await using server = await startServer(operations)
  for (const { path } of operations) await (await server.fetch(path, { key: '' })).text()
})
`

const ANSWERS: [what: string, returned: string, said?: string][] = [
  ['the declared answer', "{ name: 'a', parts: [{ examples: { id: '1' } }], place: null }"],
  ['a declared error', "jsonReply({ message: 'no' }, { status: 409 })"],
  [
    'a member that is missing',
    '{ parts: [], place: null }',
    "200: the answer must have required property 'name'",
  ],
  ['a member of another type', '{ name: 1, parts: [], place: null }', '200: /name must be string'],
  [
    'a member that is not declared',
    "{ name: 'a', parts: [], place: null, size: 1 }",
    '200: the answer must NOT have additional properties {"additionalProperty":"size"}',
  ],
  [
    'one inside a named object',
    "{ name: 'a', parts: [{ examples: { id: '1', no: 2 } }], place: null }",
    '200: /parts/0/examples must NOT have additional properties {"additionalProperty":"no"}',
  ],
  [
    'one inside an object that may be null',
    "{ name: 'a', parts: [], place: { town: 'x', no: 2 } }",
    '200: /place must NOT have additional properties {"additionalProperty":"no"}',
  ],
  ['a status that is not declared', 'jsonReply({}, { status: 201 })', '201: the status is not declared'],
  [
    'another type',
    "htmlReply('<p>')",
    '200: the content type text/html is not declared, but application/json',
  ],
  ['no body', 'noContent()', '204: the status is not declared'],
  [
    'an error of another form',
    "jsonReply({ error: 'no' }, { status: 409 })",
    '409: the answer must have required',
  ],
]

test('the runner fails a file whose answers differ from their shapes, and says how', async (context) => {
  const [good, bad] = [ANSWERS.filter(([, , said]) => !said), ANSWERS.filter(([, , said]) => said)]
  const source = (answers: typeof ANSWERS) => file(answers.map(([, returned]) => returned))
  const printed: string[] = []
  const totals = await runTests({
    root: plantFiles(context, { 'src/good.test.ts': source(good), 'src/bad.test.ts': source(bad) }),
    filters: [],
    slow: false,
    fileLimitMs: 600_000,
    skippedIsFailed: true,
    print: (text) => void printed.push(text),
    stop: new AbortController().signal,
  })
  assert.deepEqual(totals, { passed: 2, failed: 1, skipped: 0 })
  const said = printed.find((text) => text.startsWith('FAIL src/bad.test.ts')) ?? ''
  for (const [i, [what, , fault]] of bad.entries())
    assert.ok(said.includes(`read${i} ${fault}`), `${what}: ${said}`)
})
