import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readChunk } from '../base/mime-message.ts'
import { encodeForm } from './form-data.ts'

test('a form is read back as it was written, whatever its names and values', async () => {
  const big = Buffer.alloc(700_000, 'x')
  const { contentType, body } = encodeForm([
    { name: 'subject', value: 'Grüße\r\n--sendwright' },
    { name: 'a"b\r\nc', value: '' },
    { name: 'file', value: big, file: { name: 'über "1".txt', contentType: 'text/plain' } },
    {
      name: 'lazy',
      value: {
        sizeBytes: 2,
        async *open() {
          yield Buffer.from('hi')
        },
      },
    },
    { name: 'subject', value: 'again' },
  ])
  const form = await new Response(await readChunk(body), {
    headers: { 'content-type': contentType },
  }).formData()
  const names = [...form].map(([name]) => name)
  assert.deepEqual(names, ['subject', 'a"b\r\nc', 'file', 'lazy', 'subject'])
  assert.deepEqual(form.getAll('subject'), ['Grüße\r\n--sendwright', 'again'])
  const file = form.get('file') as File
  assert.deepEqual([file.name, file.type, file.size], ['über "1".txt', 'text/plain', 700_000])
  assert.ok(!(body instanceof Uint8Array))
  assert.equal(body.sizeBytes, (await readChunk(body)).byteLength)
})
