/** What the database leaves out never passes the filter. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededNumbers } from '../../../test/support/random.ts'
import {
  ATTRIBUTE_NAMES,
  type Condition,
  conditionsOf,
  type LogRow,
  passesAll,
  textConditions,
} from './log-filter.ts'

const random = seededNumbers(71)
const oneOf = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T

const TEXTS = [
  'a',
  'Größe',
  'K',
  '\u212a',
  'İ',
  '"',
  '\\',
  'a"B\\c',
  '\n',
  'ſ',
  '',
  'none',
  'true',
  '550',
  'É',
]
const text = () => oneOf(TEXTS) + oneOf(TEXTS)

const rowOf = (): LogRow => ({
  id: 'id',
  event: oneOf(['failed', 'opened', 'accepted']),
  accountId: 'account-1',
  domainName: oneOf(['a.example', 'none.example']),
  payload: {
    tags: [text(), text()],
    severity: oneOf(['permanent', 'temporary']),
    recipient: text(),
    'recipient-domain': text(),
    'recipient-provider': text(),
    'i-classification-rule-id': text(),
    'user-variables': { [text()]: text() },
    'mailing-list': { address: text() },
    envelope: { 'sending-ip': text(), 'i-ip-pool-id': text() },
    flags: { 'is-routed': oneOf([true, false]) },
    geolocation: { country: text() },
    'client-info': { bot: text(), 'device-type': text() },
    'delivery-status': { code: oneOf([250, 550]), message: text() },
    message: {
      headers: { from: text(), to: text(), subject: text() },
      attachments: [{ filename: text() }],
      recipients: [text()],
    },
  },
})

/** A text in both letter cases; only comparators that the attribute has. */
function randomCondition(): Condition {
  for (;;) {
    const attribute = oneOf(ATTRIBUTE_NAMES)
    const comparator = oneOf(['=', '!=', 'contains', 'not contains'])
    const value = oneOf([text(), oneOf(TEXTS), 'A.example', '550', 'TRUE'])
    try {
      return conditionsOf({ AND: [{ attribute, comparator, values: [value] }] })[0] as Condition
    } catch {
      // The attribute does not have the comparator.
    }
  }
}

/** As databases compare: letters of ASCII without regard to their case. */
const asciiLower = (value: string) => value.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())

test('an event that passes a filter has the texts that the database looks for', () => {
  let passed = 0
  for (let at = 0; at < 40_000; at++) {
    const row = rowOf()
    const condition = randomCondition()
    if (!passesAll([condition])(row)) continue
    const columns = { payload_json: JSON.stringify(row.payload), domain_name: row.domainName }
    for (const { column, texts } of textConditions([condition])) {
      passed++
      const stored = asciiLower(columns[column])
      assert.ok(
        texts.some((wanted) => stored.includes(wanted)),
        JSON.stringify({ condition, texts, row }),
      )
    }
  }
  assert.ok(passed > 500, String(passed))
})
