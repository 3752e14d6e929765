import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CsvSyntaxError, type CsvValue, csvBytes, csvRecord, readCsv, withoutGuard } from './csv.ts'

async function* pieces(text: string | Uint8Array, size = 1000): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function read(text: string | Uint8Array, size?: number): Promise<string[][]> {
  const records: string[][] = []
  for await (const record of readCsv(pieces(text, size))) records.push(record)
  return records
}

const CASES: [what: string, text: string, records: string[][]][] = [
  [
    'line ends of any system',
    'a,b\r\nc,d\ne,f\rg,h',
    [
      ['a', 'b'],
      ['c', 'd'],
      ['e', 'f'],
      ['g', 'h'],
    ],
  ],
  ['a quoted field with comma, quote and line break', '"a,""b""\r\nc",d\r\n', [['a,"b"\r\nc', 'd']]],
  ['empty fields', ',a,\r\n""\r\n', [['', 'a', ''], ['']]],
  ['empty lines are no records', '\r\n\r\na\r\n\r\n\nb', [['a'], ['b']]],
  ['a byte order mark', '\uFEFFaddress,code\r\n', [['address', 'code']]],
  ['a quote inside a plain field', 'say "hi",b', [['say "hi"', 'b']]],
  ['text behind a closing quote', '"a"b,"c"" d\n"\n', [['ab', 'c" d\n']]],
  ['nothing', '', []],
]

for (const [what, text, records] of CASES) {
  test(`reads ${what}, wherever the pieces are cut`, async () => {
    for (const size of [1, 2, 3, 1000]) assert.deepEqual(await read(text, size), records)
  })
}

test('bytes that are no UTF-8 spoil their field alone', async () => {
  assert.deepEqual(await read(Buffer.from([0x61, 0xff, 0x2c, 0x62])), [['a\ufffd', 'b']])
})

test('refuses what cannot be read', async () => {
  for (const text of ['"open', 'x'.repeat(300_000), ','.repeat(2000)]) {
    await assert.rejects(read(text), CsvSyntaxError)
  }
})

test('any records come back as they were written', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.string({ unit: 'grapheme' }), { minLength: 2 })),
      fc.integer({ min: 1, max: 9 }),
      async (records, size) => {
        const text = records.map(csvRecord).join('')
        const unguarded = (await read(text, size)).map((record) => record.map(withoutGuard))
        // What had the form of a guarded field before is not told apart.
        assert.deepEqual(
          unguarded,
          records.map((record) => record.map(withoutGuard)),
        )
      },
    ),
    { seed: 4180, numRuns: 100 },
  )
})

test('other programs separate fields by semicolons or tabs', async () => {
  for (const separator of [';', '\t'] as const) {
    const text = ['a,b', '"c;\td"', 'e'].join(separator)
    const source = (async function* () {
      yield Buffer.from(`${text}\n`)
    })()
    const records: string[][] = []
    for await (const record of readCsv(source, separator)) records.push(record)
    assert.deepEqual(records, [['a,b', 'c;\td', 'e']])
  }
})

const WRITTEN: [value: CsvValue, text: string][] = [
  ['plain', 'plain'],
  ['a,b', '"a,b"'],
  ['say "hi"', '"say ""hi"""'],
  ['two\nlines', '"two\nlines"'],
  [null, ''],
  [undefined, ''],
  [-12.5, '-12.5'],
  [true, 'true'],
  ['=HYPERLINK("http://192.0.2.1")', `"'=HYPERLINK(""http://192.0.2.1"")"`],
  ['+1', "'+1"],
  ['-1', "'-1"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['\t=1', "'\t=1"],
  ['\r=1', `"'\r=1"`],
  ['\uFF1D1', "'\uFF1D1"],
  ['a=1', 'a=1'],
]

test('values are quoted where needed, and none begins a formula', () => {
  for (const [value, text] of WRITTEN) assert.equal(csvRecord([value, 'x']), `${text},x\r\n`)
})

test('the apostrophe before a formula is taken off again, others stay', () => {
  for (const [field, read] of [
    ["'=1+1", '=1+1'],
    ["'+49@x.org", '+49@x.org'],
    ["'a@x.org", "'a@x.org"],
    ['=1', '=1'],
    ["'", "'"],
  ] as const)
    assert.equal(withoutGuard(field), read)
})

test('a file is written as its reader takes it', async () => {
  let made = 0
  async function* records() {
    for (; made < 10_000; made++) yield [`row ${made}`, 'x'.repeat(100)]
  }
  const bytes = csvBytes(['name', 'text'], records())
  const first = (await bytes.next()).value as Uint8Array
  assert.ok(made < 1_000, `${made} records were made for one piece`)
  assert.equal(Buffer.from(first).subarray(0, 14).toString(), '\uFEFFname,text\r\n')
  const rest: Uint8Array[] = [first]
  for await (const piece of bytes) rest.push(piece)
  const found = await read(Buffer.concat(rest))
  assert.equal(found.length, 10_001)
  assert.deepEqual(found.at(-1), ['row 9999', 'x'.repeat(100)])
})
