/** What each notification of SES stands for, by a table over its documented types; and documents of strangers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { classify } from '../bounces/classify.ts'
import { reportedFailure } from '../bounces/reports.ts'
import { loadRules } from '../bounces/rules.ts'
import { readSesNotification } from './ses-notification.ts'

const rules = loadRules(null)
const RECIPIENT = 'recipient@example.com'
const mail = { source: 'bounce+token@example.com', destination: [RECIPIENT] }

function judged(bounceType: string, bounceSubType: string, fields: object = {}) {
  const bounce = { bounceType, bounceSubType, bouncedRecipients: [{ emailAddress: RECIPIENT, ...fields }] }
  const documents = ['notificationType', 'eventType'].map((name) => ({ [name]: 'Bounce', bounce, mail }))
  const [one, other] = documents.map((document) => readSesNotification(document))
  assert.deepEqual(one, other)
  const [group] = one?.recipients ?? []
  assert.ok(group)
  assert.equal(group.recipient, RECIPIENT)
  const found = classify(rules, reportedFailure(group, { recipient: RECIPIENT }, 'shop@example.com'))
  return `${group.action} ${group.status} ${found.category} ${found.suppression}`
}

test('a bounce without a report of the receiver is judged as SES judged it', () => {
  const expected: [type: string, subtype: string, judged: string][] = [
    ['Permanent', 'General', 'failed 5.1.1 BOUNCE hard'],
    ['Permanent', 'NoEmail', 'failed 5.1.1 BOUNCE hard'],
    ['Permanent', 'Suppressed', 'failed 5.1.1 BOUNCE hard'],
    ['Permanent', 'OnAccountSuppressionList', 'failed 5.1.1 BOUNCE hard'],
    ['Permanent', 'SomethingNew', 'failed 5.0.0 GENERIC soft'],
    ['Undetermined', 'Undetermined', 'failed 5.0.0 GENERIC soft'],
    ['SomethingNew', '', 'failed 5.0.0 GENERIC soft'],
    ['Transient', 'MailboxFull', 'failed 5.2.2 MAILBOXFULL soft'],
    ['Transient', 'MessageTooLarge', 'failed 5.3.4 TECHNICAL null'],
    ['Transient', 'ContentRejected', 'failed 5.7.1 ESPBLOCK null'],
    ['Transient', 'AttachmentRejected', 'failed 5.7.1 ESPBLOCK null'],
    ['Transient', 'CustomTimeoutExceeded', 'failed 4.4.7 TECHNICAL soft'],
    // An automatic reply.
    ['Transient', 'General', 'delayed 4.0.0 GENERIC soft'],
    ['Transient', 'SomethingNew', 'delayed 4.0.0 GENERIC soft'],
  ]
  for (const [type, subtype, what] of expected)
    assert.equal(judged(type, subtype), what, `${type} ${subtype}`)
})

test('the fields of a report of the receiver decide where there is one, as in returned mail', () => {
  const expected: [type: string, fields: object, judged: string][] = [
    [
      'Permanent',
      { action: 'failed', status: '5.1.1', diagnosticCode: 'smtp; 550 5.1.1 user unknown' },
      'failed 5.1.1 BOUNCE hard',
    ],
    [
      'Permanent',
      { action: 'failed', status: '5.0.0', diagnosticCode: 'X-Postfix; unknown user' },
      'failed 5.0.0 BOUNCE hard',
    ],
    [
      'Permanent',
      { action: 'failed', status: '5.1.1', diagnosticCode: 'smtp; 554 5.7.1 Message rejected as spam' },
      'failed 5.1.1 CONTENT null',
    ],
    [
      'Transient',
      { action: 'failed', status: '5.2.2', diagnosticCode: 'smtp; 552 5.2.2 over quota' },
      'failed 5.2.2 MAILBOXFULL soft',
    ],
    [
      'Transient',
      { action: 'failed', status: '4.4.7', diagnosticCode: 'smtp; 450 4.4.7 expired' },
      'failed 4.4.7 TECHNICAL soft',
    ],
    ['Permanent', { action: 'delayed', status: '4.0.0' }, 'delayed 4.0.0 GENERIC soft'],
    ['Permanent', { diagnosticCode: 'smtp; 550 5.1.1 user unknown' }, 'failed 5.1.1 BOUNCE hard'],
  ]
  for (const [type, fields, what] of expected)
    assert.equal(judged(type, 'General', fields), what, JSON.stringify(fields))
})

test('a complaint has the type of its report, and is one of abuse if it has none', () => {
  const types: [given: unknown, type: string][] = [
    ['abuse', 'abuse'],
    ['fraud', 'fraud'],
    ['not-spam', 'not-spam'],
    ['virus', 'virus'],
    ['auth-failure', 'auth-failure'],
    ['other', 'other'],
    ['news', 'other'],
    [undefined, 'abuse'],
    [null, 'abuse'],
  ]
  for (const [complaintFeedbackType, type] of types) {
    const document = { notificationType: 'Complaint', complaint: { complaintFeedbackType }, mail }
    assert.equal(readSesNotification(document)?.feedback, type)
  }
  const suppressed = { complaintSubType: 'OnAccountSuppressionList', complainedRecipients: [] }
  assert.equal(
    readSesNotification({ eventType: 'Complaint', complaint: suppressed, mail })?.feedback,
    'abuse',
  )
})

test('the texts that may name the delivery are the sender and the header, whatever else there is', () => {
  const headers = [{ name: 'X-Service-Sid', value: 'token' }, { name: 'X' }, null, 'x', { value: 1 }]
  const document = {
    notificationType: 'Complaint',
    complaint: {},
    mail: { ...mail, headers, commonHeaders: { returnPath: 'r@example.com', subject: 'secret' } },
  }
  assert.deepEqual(readSesNotification(document)?.returned, [mail.source, 'r@example.com', 'token', '', ''])
})

test('other events, and documents of any form, report nothing', () => {
  const names = [
    'Send',
    'Delivery',
    'DeliveryDelay',
    'Open',
    'Click',
    'Rendering Failure',
    'Subscription',
    '',
    'bounce',
  ]
  for (const name of names) assert.equal(readSesNotification({ eventType: name, mail }), null)
  const odd = [null, 1, 'x', [], {}, { eventType: 'Bounce' }, { eventType: 'Bounce', mail: [] }]
  for (const document of odd) assert.equal(readSesNotification(document), null)
  const bounces = [{}, null, 'x', { bouncedRecipients: {} }, { bouncedRecipients: [null, 1, []] }]
  for (const bounce of bounces)
    assert.equal(readSesNotification({ eventType: 'Bounce', bounce, mail })?.recipients, null)
  const wild = { emailAddress: { a: 1 }, action: [], status: 7, diagnosticCode: {} }
  const [group] =
    readSesNotification({ eventType: 'Bounce', bounce: { bouncedRecipients: [wild] }, mail })?.recipients ??
    []
  assert.equal(group?.recipient ?? null, null)
  const many = Array.from({ length: 10_000 }, () => ({ emailAddress: RECIPIENT, status: '5.1.1' }))
  const read = readSesNotification({ eventType: 'Bounce', bounce: { bouncedRecipients: many }, mail })
  assert.equal(read?.recipients?.length, 50)
  assert.equal(readSesNotification({ eventType: 'Reject', reject: null, mail: {} })?.recipients?.length, 1)
})
