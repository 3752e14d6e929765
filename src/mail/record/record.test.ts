/** The stored form of contents. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { contentBytes, contentOfBytes, type PartsContent } from './record.ts'

const EMPTY: PartsContent = {
  kind: 'parts',
  headers: [['Subject', 'line one\nline two']],
  template: null,
  batch: false,
  text: null,
  html: null,
  amp: null,
  files: [],
}

test('every content of parts reads back as it was stored, whatever its texts hold', () => {
  const text = fc.option(fc.string({ unit: 'grapheme' }))
  fc.assert(
    fc.property(text, text, text, fc.string(), (plain, html, amp, subject) => {
      const content: PartsContent = { ...EMPTY, headers: [['Subject', subject]], text: plain, html, amp }
      assert.deepEqual(contentOfBytes(contentBytes(content)), content)
    }),
    { seed: 7, numRuns: 500 },
  )
})

test('an empty text is not the same as none', () => {
  const content = { ...EMPTY, text: '', html: '\n' }
  assert.deepEqual(contentOfBytes(contentBytes(content)), content)
})

test('contents that were stored as JSON alone are read', () => {
  const content = { ...EMPTY, text: 'one\ntwo' }
  assert.deepEqual(contentOfBytes(Buffer.from(JSON.stringify(content))), content)
})

test('a MIME message is stored as JSON', () => {
  const content = {
    ...{ kind: 'mime' as const, headers: [], template: null, batch: false, leaves: [] },
    body: { base64: 'aGk=', sizeBytes: 2 },
  }
  assert.deepEqual(contentOfBytes(contentBytes(content)), content)
})
