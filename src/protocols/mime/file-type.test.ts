import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileType } from './file-type.ts'

const CASES: [given: string | null, filename: string, expected: string][] = [
  [null, 'invoice.pdf', 'application/pdf'],
  [null, 'INVITE.ICS', 'text/calendar'],
  [null, 'photo.of.me.jpeg', 'image/jpeg'],
  [null, 'letter.docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
  ['application/octet-stream', 'table.csv', 'text/csv'],
  ['application/octet-stream', 'data.unknown-extension', 'application/octet-stream'],
  ['text/plain', 'invoice.pdf', 'text/plain'],
  ['image/png', 'no-extension', 'image/png'],
  [null, 'pdf', 'application/octet-stream'],
  [null, '.pdf.', 'application/octet-stream'],
  [null, '', 'application/octet-stream'],
  [null, 'x/../y.gif', 'image/gif'],
]

for (const [given, filename, expected] of CASES) {
  test(`a file "${filename}" sent as ${given} is ${expected}`, () => {
    assert.equal(fileType(given, filename), expected)
  })
}
