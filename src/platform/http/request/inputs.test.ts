import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BadRequest } from '../../../base/process/errors.ts'
import { operation } from '../operation.ts'
import {
  choiceParam,
  dateParam,
  fileParam,
  filesParam,
  flagParam,
  givenParam,
  type InputOf,
  type Inputs,
  integerParam,
  limitParam,
  otherParam,
  parsedParam,
  readInputs,
  skipParam,
  textParam,
  textsParam,
  wordParam,
} from './inputs.ts'
import { Params, parseUrlencoded, type UploadedFile } from './params.ts'

const FILE = { fieldName: 'x', filename: 'a.txt' } as UploadedFile
const paramsOf = (query: string, files: UploadedFile[] = []) =>
  new Params({ query: parseUrlencoded(query), body: parseUrlencoded(''), files })
const upper = (text: string) => {
  if (text === 'bad') throw new BadRequest('not this one')
  return text.toUpperCase()
}
const must = { required: true } as const

/** The value of `x`, or the text of the 400. */
const READ: [what: string, input: Inputs[string], query: string, value: unknown][] = [
  ['a text', textParam(''), 'x=a', 'a'],
  ['an empty text as absent', textParam(''), 'x=', undefined],
  ['a default', textParam('', { default: 'd' }), 'x=', 'd'],
  ['a mandatory text', textParam('', must), 'x=', 'Missing mandatory parameter: x'],
  ['a text of its own for it', textParam('', { ...must, missing: 'no x' }), '', 'no x'],
  ['an empty text that clears a value', givenParam(''), 'x=', ''],
  ['several texts', textsParam(''), 'x=a&x=&x=b', ['a', 'b']],
  ['no texts', textsParam(''), '', []],
  ['mandatory texts', textsParam('', must), 'x=', 'Missing mandatory parameter: x'],
  ['a flag', flagParam(''), 'x=no', false],
  ['a flag that is on by default', flagParam('', { default: true }), '', true],
  ['a flag that is off, and on by default', flagParam('', { default: true }), 'x=no', false],
  ['a word that is no flag', flagParam(''), 'x=maybe', 'Invalid format for parameter x: maybe'],
  ['a number', integerParam(''), 'x=0', 0],
  ['no number', integerParam(''), '', undefined],
  ['zero instead of the default', integerParam('', { default: 5 }), 'x=0', 0],
  ['a number below its bounds', integerParam('', { min: 1, invalid: 'too low' }), 'x=0', 'too low'],
  ['a number above them', integerParam('', { max: 1, tooLarge: 'too large' }), 'x=2', 'too large'],
  ['a page size', limitParam(100, 1000), '', 100],
  [
    'a page size over the largest',
    limitParam(100, 1000),
    'x=1001',
    "The 'x' parameter can't be larger than 1000",
  ],
  ['one that is cut', limitParam(100, 1000, { above: 'cut' }), 'x=1001', 1000],
  ['items to leave out', skipParam(), 'x=-1', 'Invalid format for parameter x: -1'],
  ['a word of several', choiceParam('', ['a', 'b']), 'x=b', 'b'],
  ['no word of several', choiceParam('', ['a', 'b']), 'x=c', "'c' is not a valid value for x"],
  ['a date', dateParam(''), 'x=86400', new Date(86_400_000)],
  ['a mandatory date', dateParam('', must), '', 'Missing mandatory parameter: x'],
  ['a parsed word', wordParam('', upper), 'x=a', 'A'],
  ['no word to parse', wordParam('', upper), '', undefined],
  ['a word that its parser refuses', wordParam('', upper), 'x=bad', 'not this one'],
  ['several names', parsedParam('', (params) => params.text('y') ?? params.text('x')), 'y=2', '2'],
  ['a default of a parser', parsedParam<unknown>('', () => undefined, { default: 3 }), '', 3],
  ['nothing that is only documented', otherParam(''), 'x=a', undefined],
]

for (const [what, input, query, value] of READ) {
  test(`reads ${what}`, () => {
    const read = () => readInputs({ x: input }, paramsOf(query)).x
    try {
      assert.deepEqual(read(), value)
    } catch (error) {
      if (!(error instanceof BadRequest)) throw error
      assert.equal(error.message, value)
    }
  })
}

test('reads uploads: all, the first, or a 400', () => {
  const inputs = { x: filesParam(''), first: parsedParam('', (params) => params.files('x')[0]) }
  assert.deepEqual(readInputs(inputs, paramsOf('', [FILE, FILE])).x, [FILE, FILE])
  assert.equal(readInputs({ x: fileParam('') }, paramsOf('', [FILE])).x, FILE)
  assert.throws(() => readInputs({ x: fileParam('', must) }, paramsOf('')), {
    message: 'Missing mandatory parameter: x',
  })
})

test('the first bad one in the order of the declaration is named', () => {
  const inputs = { a: integerParam(''), b: textParam('', must) }
  assert.throws(() => readInputs(inputs, paramsOf('a=x')), { message: 'Invalid format for parameter a: x' })
})

// The compiler checks these.
test('types follow from the declaration', () => {
  const inputs = {
    limit: limitParam(10, 100),
    term: textParam(''),
    state: choiceParam('', ['on', 'off'], must),
    from: wordParam('', (text) => text.length),
  }
  const exact: InputOf<typeof inputs> = { limit: 1, term: undefined, state: 'on', from: 2 }
  // @ts-expect-error a word that is not among them
  const other: InputOf<typeof inputs> = { ...exact, state: 'other' }
  assert.ok(other)
})

test('a part of the path is not read from the query', () => {
  const describe = (input: Inputs[string]) => () =>
    operation({
      method: 'GET',
      path: '/v1/things/{name}',
      id: 'readThing',
      tag: 'Things',
      summary: 'Read a thing',
      auth: 'public',
      params: { name: input },
      answers: {},
      handler: async () => ({}) as never,
    })
  assert.throws(describe(textParam('Its name')), /"name" is a part of the path/)
  assert.doesNotThrow(describe(otherParam('Its name')))
  assert.doesNotThrow(describe(textParam('Its new name', { in: 'form' })))
})
