/** JSON for every operation that expands, nests deeply, or does not end. */
// Slow: it sends a whole process more than anyone does, and measures it meanwhile.
import { gzipSync } from 'node:zlib'
import { JSON_TYPE, type Target, testEveryOperation } from '../support/hostile-operations.ts'

/** Below the limits of a document (src/base/foreign-json.ts). */
const DEPTH = 120
const MEMBERS = 20_000

const PACKED = gzipSync(Buffer.concat([Buffer.from('{"\\u0041":['), Buffer.alloc(8 * 2 ** 20, '{},')]))
const TOO_DEEP = Buffer.from(`{"a":${'['.repeat(100_000)}`)
const TOO_MANY = Buffer.from(`{"a":[${'{},'.repeat(50_000)}{}]}`)
const HALF = Buffer.from(`{"a":"${'b'.repeat(150_000)}`)

const nested = JSON.parse('['.repeat(DEPTH) + ']'.repeat(DEPTH)) as unknown
const members = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`name${index}`, index]))
const [many, some] = [members(MEMBERS), members(100)]
/** A document with a value for each name that the operation reads. */
const document = ({ names }: Target, value: (name: string) => unknown) =>
  Buffer.from(JSON.stringify(Object.fromEntries(names.map((name) => [name, value(name)]))))

testEveryOperation({
  packed: () => ({ type: JSON_TYPE, headers: ['Content-Encoding: gzip'], body: PACKED }),
  'nested deeper than it may be': () => ({ type: JSON_TYPE, body: TOO_DEEP }),
  'nested as deeply as it may be': (target) => ({ type: JSON_TYPE, body: document(target, () => nested) }),
  'more members than there may be': () => ({ type: JSON_TYPE, body: TOO_MANY }),
  'as many members as there may be': (target) => ({
    type: JSON_TYPE,
    body: document(target, (name) => (target.jsonNames.includes(name) ? many : some)),
  }),
  'half of a body': () => ({ type: JSON_TYPE, body: HALF, length: 300_000, after: 'close' }),
  'a body that never ends': () => ({
    type: JSON_TYPE,
    body: Buffer.from('7\r\n{"a":"b\r\n'),
    length: 'chunked',
    after: 'cut',
  }),
})
