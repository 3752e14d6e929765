import assert from 'node:assert/strict'
import { test } from 'node:test'
import { csvLine, parseCsv } from './csv.ts'
import { readRecords } from './records.ts'

const CASES: readonly [text: string, rows: string[][]][] = [
  ['', []],
  [
    'a,b\r\nc,d\r\n',
    [
      ['a', 'b'],
      ['c', 'd'],
    ],
  ],
  ['a\nb', [['a'], ['b']]],
  ['\ufeffaddress\n\n\na@example.com\n', [['address'], ['a@example.com']]],
  ['"a ""b""","c,\nd",\n', [['a "b"', 'c,\nd', '']]],
  ['a "b",c', [['a "b"', 'c']]],
  ['"not closed, \n', [['not closed, \n']]],
]

test('fields with quotes, commas and line ends, and back', () => {
  for (const [text, rows] of CASES) assert.deepEqual(parseCsv(text), rows, JSON.stringify(text))
  const fields = ['a', '', ' b ', 'c,"d"', 'e\r\nf']
  assert.deepEqual(parseCsv(csvLine(fields)), [fields])
  const formulas = ['=cmd|x', '+49@x.org', '-1', '@a', '\tx', '\uff1d1', "'x"]
  assert.deepEqual(parseCsv(csvLine(formulas)), [formulas])
  assert.equal(csvLine(formulas), "'=cmd|x,'+49@x.org,'-1,'@a,'\tx,'\uff1d1,'x\r\n")
})

const COLUMNS = ['address', 'name']
const READ: readonly [text: string, result: unknown][] = [
  ['address,name\na@b.c,Ann', { records: [{ address: 'a@b.c', name: 'Ann' }] }],
  [
    'Name, Address ,extra\nAnn,a@b.c,x\n,d@e.f',
    { records: [{ name: 'Ann', address: 'a@b.c' }, { address: 'd@e.f' }] },
  ],
  ['a@b.c\nd@e.f', { records: [{ address: 'a@b.c' }, { address: 'd@e.f' }] }],
  [
    '["a@b.c", {"address": "d@e.f", "vars": {"x": 1}}]',
    { records: [{ address: 'a@b.c' }, { address: 'd@e.f', vars: { x: 1 } }] },
  ],
  ['{"address": "a@b.c"}', { records: [{ address: 'a@b.c' }] }],
  ['[1]', { fault: 'Entry 1 is neither an address nor an object' }],
  ['who,what\na,b', { fault: 'The first line names none of these columns: address, name' }],
  ['', { fault: 'There is nothing in it' }],
]

test('records from CSV with a header line, plain addresses and JSON', () => {
  for (const [text, result] of READ) assert.deepEqual(readRecords(text, COLUMNS), result, text)
  assert.match(JSON.stringify(readRecords('[{', COLUMNS)), /Not valid JSON/)
})
