import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readMail } from './received-mail.ts'

test('a multipart without delimiters is a file, or an empty text if it is blank', async () => {
  const field = 'Content-Type: multipart/alternative; boundary=b\r\n\r\n'
  for (const [body, type] of [
    ['', 'text/plain'],
    ['\r\n\r\n', 'text/plain'],
    ['Hello\r\n', 'multipart/alternative'],
    [`${' '.repeat(5_000)}Hello\r\n`, 'multipart/alternative'],
  ] as const) {
    const { leaves } = await readMail(Buffer.from(field + body))
    assert.deepEqual(
      leaves.map((leaf) => [leaf.type, leaf.sizeBytes]),
      [[type, body.length]],
    )
  }
})
