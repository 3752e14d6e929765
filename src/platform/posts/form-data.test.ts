import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeParts, formEnd, formType, newBoundary } from './form-data.ts'

test('a form is read back as it was written, whatever its names and values', async () => {
  const boundary = newBoundary()
  const pieces: Uint8Array[] = []
  for await (const piece of encodeParts(boundary, [
    { name: 'subject', value: 'Grüße\r\n--sendwright' },
    { name: 'a"b\r\nc', value: '' },
    {
      name: 'file',
      value: Buffer.alloc(700_000, 'x'),
      file: { name: 'über "1".txt', contentType: 'text/plain' },
    },
    {
      name: 'lazy',
      value: {
        async *open() {
          yield Buffer.from('hi')
        },
      },
    },
    { name: 'subject', value: 'again' },
  ]))
    pieces.push(piece)
  const form = await new Response(Buffer.concat([...pieces, formEnd(boundary)]), {
    headers: { 'content-type': formType(boundary) },
  }).formData()
  const names = [...form].map(([name]) => name)
  assert.deepEqual(names, ['subject', 'a"b\r\nc', 'file', 'lazy', 'subject'])
  assert.deepEqual(form.getAll('subject'), ['Grüße\r\n--sendwright', 'again'])
  const file = form.get('file') as File
  assert.deepEqual([file.name, file.type, file.size], ['über "1".txt', 'text/plain', 700_000])
})
