import assert from 'node:assert/strict'
import { test } from 'node:test'
import { codesOf } from './shared-lanes.ts'

const REPLIES: [reply: string | null, codes: string | null][] = [
  ['421 4.7.0 too many mails to secret@other.example', '421 4.7.0'],
  ['421-4.7.0 slow down', '421 4.7.0'],
  ['4.7.0 slow down', '4.7.0'],
  ['550 secret@other.example is gone', '550'],
  ['4.7.0secret@other.example', null],
  ['secret@other.example 421 4.7.0', null],
  ['421secret@other.example', null],
  ['', null],
  [null, null],
]
for (const [reply, codes] of REPLIES)
  test(`of ${JSON.stringify(reply)} others see ${codes}`, () => assert.equal(codesOf(reply), codes))
