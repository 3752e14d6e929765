/** The readers of bounces against every made-up report; what follows from each is tested in src/bounces. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { HOSTILE, SAMPLES } from '../../test/support/reports/corpus.ts'
import type { Subject } from '../../test/support/reports/mail.ts'
import { readFeedbackReport } from '../arf/report.ts'
import type { ReportMail } from '../base/report-mail.ts'
import { readReportMail } from '../inbound/read-report-mail.ts'
import { codesIn } from './codes.ts'
import { readDsn } from './report.ts'

const SUBJECT: Subject = {
  recipient: 'bob.smith@there.example',
  returnPath: 'bounce+abcdefg@mg.sender.example',
  header: [
    'Received: from out.sender.example by mx.there.example; Fri, 20 Nov 2026 09:59:58 +0000',
    'From: Shop <shop@mg.sender.example>',
    'To: Bob <bob.smith@there.example>',
    'Subject: Hello',
    'Message-ID: <20261120.1@mg.sender.example>',
  ].join('\r\n'),
}

async function read(raw: string) {
  const mails = await readReportMail(Buffer.from(raw))
  const first = <T>(reader: (mail: ReportMail) => T | null) =>
    mails.reduce<T | null>((found, mail) => found ?? reader(mail), null)
  return { feedback: first(readFeedbackReport), dsn: first(readDsn) }
}

test('every report of a failure is read as one, with its status and recipient', async () => {
  const wrong: string[] = []
  for (const { name, raw, expect, namesRecipient } of SAMPLES) {
    if (expect.kind !== 'bounce') continue
    const { dsn, feedback } = await read(raw(SUBJECT))
    const failed = dsn?.recipients.find(({ action }) => action === 'failed')
    const right =
      feedback === null &&
      failed !== undefined &&
      (failed.status === expect.status || expect.status === null) &&
      (!namesRecipient || failed.recipient === SUBJECT.recipient)
    if (!right) wrong.push(`${name}: ${JSON.stringify(failed)}`)
  }
  assert.deepEqual(wrong, [])
})

test('delays, successes, vacation notices and replies are no failures', async () => {
  const wrong: string[] = []
  for (const { name, raw, expect } of SAMPLES) {
    if (expect.kind !== 'nothing') continue
    const { dsn } = await read(raw(SUBJECT))
    const own = dsn?.recipients.find(({ recipient }) => recipient === SUBJECT.recipient) ?? dsn?.recipients[0]
    if (own?.action === 'failed') wrong.push(`${name}: ${JSON.stringify(own)}`)
  }
  assert.deepEqual(wrong, [])
})

test('every group of a report is read, with host, diagnostic and what was returned', async () => {
  const raw = [
    'From: MAILER-DAEMON@mx.example',
    'Content-Type: multipart/report; report-type=delivery-status; boundary=b',
    '',
    '--b',
    'Content-Type: message/delivery-status',
    '',
    'Reporting-MTA: dns; mx.example',
    'Arrival-Date: Fri, 20 Nov 2026 10:00:00 +0000',
    '',
    'Original-Recipient: rfc822;list@there.example',
    'Final-Recipient: rfc822; one@there.example',
    'Action: failed (bounced)',
    'Status: 5.0.0 (no better code)',
    'Remote-MTA: dns; mx1.there.example (192.0.2.1)',
    'Diagnostic-Code: smtp; 550-5.1.1 No such user',
    '\t550 5.1.1 here',
    '',
    'Final-Recipient: LOCAL; two@there.example',
    'Action: delayed',
    'Status: 4.2.2',
    '',
    'Final-Recipient: rfc822; three@there.example',
    'Action: relayed',
    'Status: 2.1.9',
    '--b',
    'Content-Type: message/rfc822',
    '',
    'Message-ID:',
    ' <1@sender.example>',
    '',
    'Body',
    '--b--',
  ].join('\r\n')
  const { dsn } = await read(raw)
  assert.equal(dsn?.reportingMta, 'mx.example')
  assert.equal(dsn?.messageId, '1@sender.example')
  assert.deepEqual(dsn?.recipients[0], {
    action: 'failed',
    recipient: 'one@there.example',
    originalRecipient: 'list@there.example',
    status: '5.1.1',
    replyCode: 550,
    replyStatus: '5.1.1',
    diagnostic: '550-5.1.1 No such user 550 5.1.1 here',
    remoteMta: 'mx1.there.example',
  })
  const others = dsn?.recipients.slice(1).map(({ action, status }) => [action, status])
  assert.deepEqual(others, [
    ['delayed', '4.2.2'],
    ['relayed', '2.1.9'],
  ])
})

test("the reply's own code is kept beside the reporter's guess", async () => {
  const raw = (status: string, diagnostic: string) =>
    [
      'From: MAILER-DAEMON@mx.example',
      'Content-Type: message/delivery-status',
      '',
      'Reporting-MTA: dns; mx.example',
      '',
      'Final-Recipient: rfc822; one@there.example',
      'Action: failed',
      `Status: ${status}`,
      `Diagnostic-Code: ${diagnostic}`,
      '',
    ].join('\r\n')
  const cases: [
    status: string,
    diagnostic: string,
    expected: [string | null, number | null, string | null],
  ][] = [
    ['5.1.1', 'smtp; 550 5.7.1 Message refused', ['5.1.1', 550, '5.7.1']],
    ['5.0.0', 'smtp; 550 5.7.1 Message refused', ['5.7.1', 550, '5.7.1']],
    ['5.1.1', 'smtp; 550 Message refused', ['5.1.1', 550, null]],
    ['5.5.0', 'X-Postfix; unknown user: "one"', ['5.5.0', null, null]],
  ]
  for (const [status, diagnostic, expected] of cases) {
    const failed = (await read(raw(status, diagnostic))).dsn?.recipients[0]
    assert.deepEqual([failed?.status, failed?.replyCode, failed?.replyStatus], expected, diagnostic)
  }
})

test('codes are distinguished from addresses, dates and longer numbers', () => {
  const cases: [text: string, status: string | null, reply: number | null][] = [
    ['550 5.1.1 no', '5.1.1', 550],
    ['Sorry, no mailbox here by that name. (#5.1.1)', '5.1.1', null],
    ['host mx[195.5.1.1] said: 554 no', null, 554],
    ['5.1.1.7 is an address', null, null],
    ['5.0.0 then 5.2.1', '5.2.1', null],
    ['5.0.0 then 4.2.1', '5.0.0', null],
    ['4.4.7 expired', '4.4.7', null],
    ['port :550 and ticket #551', null, null],
    ['on 2026-11-20 at 10:00', null, null],
    ['2.1.5 fine', '2.1.5', null],
    ['6.1.1 unknown class', null, null],
  ]
  for (const [text, status, reply] of cases) assert.deepEqual(codesIn(text), { status, reply }, text)
})

test('hostile mail is read to an end and throws nothing', async () => {
  for (const [name, raw] of Object.entries(HOSTILE)) {
    const mails = await readReportMail(Buffer.from(raw(SUBJECT)))
    for (const mail of mails) {
      const size = (readDsn(mail)?.recipients.length ?? 0) + (readFeedbackReport(mail)?.original.length ?? 0)
      assert.ok(size <= 1_000, name)
    }
  }
})

test('any change of a report, and any bytes, are read without an error', async () => {
  const raws = SAMPLES.filter((_, at) => at % 9 === 0).map(({ raw }) => raw(SUBJECT))
  const change = fc.record({
    raw: fc.constantFrom(...raws),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    length: fc.nat(200),
    put: fc.string({ maxLength: 40, unit: 'binary' }),
  })
  await fc.assert(
    fc.asyncProperty(change, async ({ raw, at, length, put }) => {
      const from = Math.floor(at * raw.length)
      for (const mail of await readReportMail(
        Buffer.from(raw.slice(0, from) + put + raw.slice(from + length)),
      )) {
        const dsn = readDsn(mail)
        for (const one of dsn?.recipients ?? []) assert.ok(one.diagnostic.length <= 1_000)
        readFeedbackReport(mail)
      }
    }),
    { seed: 27, numRuns: 200 },
  )
})
