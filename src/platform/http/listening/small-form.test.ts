// Own process: it measures the memory of its process.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from '../../../../test/support/any-character.ts'
import { heldMb } from '../../../../test/support/process-memory.ts'
import { readMultipart } from '../request/multipart.ts'
import { Fields } from '../request/params.ts'
import { splitPlainForm } from './direct-arrival.ts'

const type = (boundary: string) => `multipart/form-data; boundary=${boundary}`
const part = (name: string, value: string) =>
  `Content-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`

async function streamed(body: Buffer, contentType: string): Promise<Map<string, string[]> | 'refused'> {
  const fields = new Fields()
  const source = async function* () {
    yield body
  }
  return readMultipart(source(), contentType, fields, null).then(
    () => fields.values,
    () => 'refused' as const,
  )
}

function split(body: Buffer, contentType: string): Map<string, string[]> | null {
  const fields = new Fields()
  const form = splitPlainForm(body, contentType)
  for (const [name, value] of form ?? []) fields.add(name, value)
  return form && fields.values
}

test('a form is split as the streaming parser reads it, whatever its values hold', async () => {
  const value = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.constantFrom('', '\r\n', '--b', '\r\n--', '\r\n-b', 'ä\ufeff', '\r\n--bc'),
  )
  const name = fc.stringMatching(/^[ !#$&-Z^-~]{1,12}$/)
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(name, value), { minLength: 1, maxLength: 5 }), async (form) => {
      const body = Buffer.from(`${form.map(([key, text]) => `--b\r\n${part(key, text)}`).join('')}--b--\r\n`)
      const own = split(body, type('b'))
      if (own) assert.deepEqual(own, await streamed(body, type('b')))
    }),
    { seed: 3, numRuns: 2_000 },
  )
})

test('a form with one byte changed is split alike or left to the streaming parser', async () => {
  const good = Buffer.from(`--xyz\r\n${part('to', 'a@b.c')}--xyz\r\n${part('text', 'Hi')}--xyz--\r\n`)
  assert.deepEqual(
    split(good, type('xyz')),
    new Map([
      ['to', ['a@b.c']],
      ['text', ['Hi']],
    ]),
  )
  for (let at = 0; at < good.length; at++) {
    for (const byte of [0x00, 0x0a, 0x0d, 0x20, 0x22, 0x25, 0x2d, 0x3b, 0x41, 0xff]) {
      const changed = Buffer.from(good)
      changed[at] = byte
      const own = split(changed, type('xyz'))
      if (own) assert.deepEqual(own, await streamed(changed, type('xyz')), `byte ${at} as ${byte}`)
    }
  }
})

test('what is not plain is left to the streaming parser', () => {
  const body = (text: string) => Buffer.from(text)
  const plain = `--b\r\n${part('a', '1')}--b--\r\n`
  const cases: [body: Buffer, contentType: string][] = [
    [body(plain), 'multipart/form-data'],
    [body(plain), 'multipart/form-data; boundary=other'],
    [body(plain), 'multipart/form-data; charset=utf-8; boundary=b'],
    [body(`preamble\r\n${plain}`), type('b')],
    [body(plain.replace('name="a"', 'name="a"; filename="f"')), type('b')],
    [body(plain.replace('"a"', 'a')), type('b')],
    [body(plain.replace('"a"', '"%61"')), type('b')],
    [body(plain.replace('"\r\n\r\n', '"\r\nContent-Type: text/plain\r\n\r\n')), type('b')],
    [body(plain.slice(0, -4)), type('b')],
    [body(plain.slice(0, 30)), type('b')],
    [body(''), type('b')],
  ]
  for (const [bytes, contentType] of cases) assert.equal(split(bytes, contentType), null)
})

test('long values are read as the streaming parser reads them, in ASCII and beyond', async () => {
  for (const text of ['x'.repeat(5_000), 'ä\ufeff'.repeat(2_000), `${'x'.repeat(5_000)}\xff`]) {
    const form = Buffer.from(`--b\r\n${part('a', text)}--b\r\n${part('b', 'y'.repeat(1_500))}--b--\r\n`)
    const own = split(form, type('b'))
    assert.equal(own?.get('a')?.[0], text)
    assert.deepEqual(own, await streamed(form, type('b')))
  }
})

test('a value that is little of a form does not keep the form', () => {
  const before = heldMb()
  const kept: string[] = []
  for (let at = 0; at < 800; at++) {
    const form = `--b\r\n${part('rest', 'x'.repeat(120_000))}--b\r\n${part('kept', 'y'.repeat(1_500) + at)}--b--\r\n`
    kept.push(split(Buffer.from(form), type('b'))?.get('kept')?.[0] as string)
  }
  const grown = heldMb() - before
  assert.ok(
    grown < 24,
    `${kept.length} values of 1.5 KB out of forms of 120 KB, and ${Math.round(grown)} MB more`,
  )
})
