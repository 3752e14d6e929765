import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../../test/support/clock.ts'
import { shippedShaping } from '../../../mail/deliver/shaping/shaping-table.ts'
import { createEvidence } from './evidence.ts'

const DAY_MS = 24 * 3_600_000
const UNNAMED = 'mx.host.example'

/** Replies that say so, in a row, by the recipient's domain; `+`: accepted. The last one decides. */
const CASES: { what: string; site: string; answers: string[]; isEnough: boolean }[] = [
  { what: 'own mailboxes', site: 'google', answers: ['gmail.com', 'gmail.com', 'gmail.com'], isEnough: true },
  { what: 'too few', site: 'google', answers: ['gmail.com', 'gmail.com'], isEnough: false },
  { what: 'own hosts', site: 'eu-hosts', answers: ['one.pl', 'wp.pl', 'wp.pl'], isEnough: true },
  { what: 'own by its hosts', site: 'german-hosts', answers: Array(3).fill('mailbox.org'), isEnough: true },
  { what: 'one customer', site: 'google', answers: Array(9).fill('evil.example'), isEnough: false },
  {
    what: 'subdomains of one customer',
    site: 'google',
    answers: ['a.evil.co.uk', 'b.evil.co.uk', 'c.evil.co.uk'],
    isEnough: false,
  },
  {
    what: 'several customers',
    site: 'google',
    answers: ['a.example', 'b.example', 'c.example'],
    isEnough: true,
  },
  {
    what: 'customers and an accepted message',
    site: 'google',
    answers: ['a.example', 'b.example', '+gmail.com', 'c.example'],
    isEnough: false,
  },
  { what: 'a domain of its own', site: UNNAMED, answers: Array(3).fill('a.example'), isEnough: true },
  {
    what: 'one of two at an unknown host',
    site: UNNAMED,
    answers: ['+b.example', 'a.example', 'a.example', 'a.example', 'a.example'],
    isEnough: false,
  },
  {
    what: 'both at an unknown host',
    site: UNNAMED,
    answers: ['+b.example', 'a.example', 'b.example', 'a.example'],
    isEnough: true,
  },
]

for (const { what, site, answers, isEnough } of CASES)
  test(`enough to close an address: ${what}, ${isEnough ? 'yes' : 'no'}`, () => {
    const evidence = createEvidence({ clock: createTestClock(), shaping: shippedShaping })
    const results = answers.map((text) => {
      if (!text.startsWith('+')) return evidence.blocked('k', site, text).isEnough
      evidence.answered('k', site, text.slice(1), true)
      return false
    })
    assert.equal(results.at(-1), isEnough)
    assert.ok(results.slice(0, -1).every((enough) => !enough))
  })

test('a domain that has not answered for a day is not asked for', () => {
  const clock = createTestClock()
  const evidence = createEvidence({ clock, shaping: shippedShaping })
  evidence.answered('k', UNNAMED, 'b.example', true)
  clock.leap(DAY_MS + 1)
  const results = Array.from({ length: 3 }, () => evidence.blocked('k', UNNAMED, 'a.example').isEnough)
  assert.deepEqual(results, [false, false, true])
})
