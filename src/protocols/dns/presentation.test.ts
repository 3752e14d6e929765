import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  canonicalData,
  dataBytes,
  plainText,
  quotedText,
  readStrings,
  type WritableType,
} from './presentation.ts'

const CASES: [WritableType, string, string | null][] = [
  ['A', '192.0.2.1', '192.0.2.1'],
  ['A', '192.0.2.256', null],
  ['AAAA', '2001:DB8:0::1', '2001:db8::1'],
  ['AAAA', '::ffff:192.0.2.1', null],
  ['CNAME', 'Mail.Example.COM.', 'mail.example.com'],
  ['CNAME', 'a b', null],
  ['MX', '010  MX.Example.com.', '10 mx.example.com'],
  ['MX', '0 .', '0 .'],
  ['MX', '70000 mx.example.com', null],
  ['MX', 'mx.example.com', null],
  ['TXT', '"a" "b"', '"a" "b"'],
  ['TXT', 'plain words', '"plain" "words"'],
  ['TXT', '"a \\"b\\" \\\\ \\001\\255"', '"a \\"b\\" \\\\ \\001\\255"'],
  ['TXT', '"ä"', '"\\195\\164"'],
  ['TXT', '"open', null],
  ['TXT', '"\\256"', null],
  ['TXT', `"${'x'.repeat(256)}"`, null],
]

for (const [type, data, expected] of CASES)
  test(`${type} ${data.slice(0, 40)}`, () => assert.equal(canonicalData(type, data), expected))

test('a long text is split, and read as it was', () => {
  const text = `v=DKIM1; p=${'A'.repeat(700)}"\\ä`
  assert.deepEqual(
    readStrings(quotedText(text))?.map(({ length }) => length),
    [255, 255, 205],
  )
  assert.equal(plainText('TXT', quotedText(text)), text)
  assert.equal(dataBytes('TXT', quotedText(text)).length, 3 + Buffer.byteLength(text))
})

test('data on the wire', () => {
  const hex = (type: WritableType, data: string) => dataBytes(type, data).toString('hex')
  assert.equal(hex('A', '192.0.2.1'), 'c0000201')
  assert.equal(hex('AAAA', '2001:db8::1'), '20010db8000000000000000000000001')
  assert.equal(hex('MX', '10 mx.a'), '000a026d78016100')
  assert.equal(hex('MX', '0 .'), '000000')
  assert.equal(hex('TXT', '"a" ""'), '016100')
})
