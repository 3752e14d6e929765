import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nameOf } from '../entry.ts'
import type { InputRecord } from '../input-file.ts'
import { BREVO } from './brevo.ts'
import { POSTAL } from './postal.ts'
import { POSTMARK } from './postmark.ts'
import { SENDGRID } from './sendgrid.ts'
import { SES } from './ses.ts'
import { type Shape, type ShapeContext, secondsOf } from './shape.ts'

const CONTEXT: ShapeContext = {
  domain: 'example.com',
  list: 'all@example.com',
  content: '',
  blocklistColumn: null,
}

const record = (value: unknown, member = ''): InputRecord => ({ place: 'row 2', member, value, fault: null })

/** Kinds of the entries that a record becomes, or the reason why it becomes none. */
const found = (shape: Shape, value: unknown, context: Partial<ShapeContext> = {}, member = '') =>
  shape.items(record(value, member), { ...CONTEXT, ...context }).map((item) => item.entry?.kind ?? item)

const TIMES: [text: unknown, seconds: number | undefined][] = [
  [1_600_000_000, 1_600_000_000],
  ['1600000000.75', 1_600_000_000],
  [1_600_000_000_000, 1_600_000_000],
  ['2020-09-13T12:26:40Z', 1_600_000_000],
  ['2020-09-13 12:26:40', 1_600_000_000],
  ['2020-09-13 12:26:40 UTC', 1_600_000_000],
  ['2020-09-13T08:26:40-04:00', 1_600_000_000],
  ['Sun, 13 Sep 2020 12:26:40 GMT', 1_600_000_000],
  ['05-06-2024 10:00:00', undefined],
  ['05/06/2024', undefined],
  ['', undefined],
  ['never', undefined],
  [-1, undefined],
  [{}, undefined],
]

test('times of all usual forms are read, and ambiguous ones are not', () => {
  for (const [text, seconds] of TIMES) assert.equal(secondsOf(text), seconds, String(text))
})

const BLOCKED: [row: Record<string, unknown>, isBlocked: boolean][] = [
  [{ BLOCKLISTED: 'Yes' }, true],
  [{ 'Email Blacklisted': '0' }, false],
  [{ emailBlacklisted: true }, true],
  [{ EMAIL_MARKETING: 'unsubscribed' }, true],
  [{ EMAIL_MARKETING: 'yes' }, false],
  [{ EMAIL_MARKETING: 'no' }, true],
  [{ BLOCKLISTED: '' }, false],
]

test('who is on a blocklist is unsubscribed, whatever the column is called', () => {
  for (const [row, isBlocked] of BLOCKED) {
    const context = { list: null, content: 'contacts' }
    const kinds = found(BREVO, { EMAIL: 'a@example.org', ...row }, context)
    assert.deepEqual(kinds, isBlocked ? ['unsubscribe'] : [], JSON.stringify(row))
  }
})

test('a contact of whom it is not known whether they may be written to is not taken', () => {
  for (const row of [{}, { BLOCKLISTED: 'perhaps' }]) {
    const [item] = found(BREVO, { EMAIL: 'a@example.org', ...row }, { content: 'contacts' })
    assert.match(JSON.stringify(item), /blocklist/)
  }
  const chosen = { content: 'contacts', blocklistColumn: 'none' }
  assert.deepEqual(found(BREVO, { EMAIL: 'a@example.org' }, chosen), ['member'])
})

test('reasons that no list has are reported', () => {
  assert.match(JSON.stringify(found(SES, { EmailAddress: 'a@b.example', Reason: 'OTHER' })), /OTHER/)
  assert.match(JSON.stringify(found(POSTMARK, { EmailAddress: 'a@b.example' })), /none of HardBounce/)
  assert.match(JSON.stringify(found(POSTAL, { address: 'a@b.example', type: 'sender' })), /not recipient/)
  assert.match(
    JSON.stringify(found(POSTMARK, { TemplateId: 1, LayoutTemplate: 'l', HtmlBody: 'x' })),
    /layout/,
  )
})

const NAMES = [
  'EmailAddress',
  'Reason',
  'email',
  'TemplateId',
  'TemplateName',
  'Template',
  'versions',
  'attributes',
  'id',
]

test('whatever a file holds, a record becomes entries or a reason', () => {
  const known = fc.dictionary(fc.constantFrom(...NAMES), fc.jsonValue({ maxDepth: 3 }))
  const value = fc.oneof(known, fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })))
  const shapes = [SES, SENDGRID, POSTMARK, POSTAL, BREVO]
  fc.assert(
    fc.property(
      value,
      fc.constantFrom(...shapes),
      fc.nat(6),
      fc.constantFrom('', 'Contacts'),
      (given, shape, n, member) => {
        const content = shape.contents[n % shape.contents.length] as string
        for (const item of shape.items(record(given, member), { ...CONTEXT, content }))
          assert.ok(
            item.entry === null ? item.reason !== '' : nameOf(item.entry) !== '',
            JSON.stringify(item),
          )
      },
    ),
    { seed: 20261128, numRuns: 2_000 },
  )
})
