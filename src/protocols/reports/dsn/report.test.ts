/** The readers of bounces against every made-up report; what follows from each is tested in src/receiving/bounces. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from '../../../../test/support/any-character.ts'
import { HOSTILE, SAMPLES } from '../../../../test/support/reports/corpus.ts'
import type { Subject } from '../../../../test/support/reports/mail.ts'
import { readReportMail } from '../../../receiving/sessions/read-report-mail.ts'
import { readFeedbackReport } from '../arf/report.ts'
import { codesIn } from './codes.ts'
import { readDsn, readFirstDsn } from './report.ts'

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
  const feedback = mails.map(readFeedbackReport).find((found) => found !== null) ?? null
  return { feedback, dsn: readFirstDsn(mails) }
}

test('every report of a failure is read as one, with its status and recipient', async () => {
  const wrong: string[] = []
  for (const { name, raw, expect, namesRecipient } of SAMPLES) {
    if (expect.kind !== 'bounce') continue
    const { dsn, feedback } = await read(raw(SUBJECT))
    const failures = dsn?.recipients.filter(({ action }) => action === 'failed') ?? []
    const failed = failures.find(({ recipient }) => recipient === SUBJECT.recipient) ?? failures[0]
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
    command: null,
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

test('the refused command is read from the words of the reporter', async () => {
  const cases: [line: string, command: string | null][] = [
    ['host mx.there.example[192.0.2.1] said: 550 Unknown user (in reply to end of DATA command)', 'data'],
    ['host mx.there.example[192.0.2.1] said: 550 Unknown user (in reply to RCPT TO command)', 'rcpt'],
    ['SMTP error from remote mail server after MAIL FROM:<a@b.example> SIZE=9: 550 no', 'mail'],
    ['SMTP error from remote mail server after pipelined end of data: 550 User unknown', 'data'],
    ['mx.there.example [192.0.2.1] did not like our RCPT TO: 550 no', 'rcpt'],
    ['Remote host said: 550 no [MAIL_FROM]', 'mail'],
    ['SMTP error from remote server for TEXT command, host: mx.there.example reason: 550 no', 'data'],
    ['The following mail could not be delivered: 550 no', null],
    ['The following data may contain encoded files: 550 no', null],
    ['550 no', null],
  ]
  for (const [line, command] of cases) {
    const raw = `From: MAILER-DAEMON@mx.example\r\nSubject: failure notice\r\n\r\n<one@there.example>: ${line}\r\n`
    assert.equal((await read(raw)).dsn?.recipients[0]?.command, command, line)
  }
})

/** A report with a text and a group of fields. */
const twoParts = (text: string, fields: string) =>
  `From: MAILER-DAEMON@mx.example\r\nContent-Type: multipart/report; boundary=b\r\n\r\n--b\r\n\r\n${text}\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example\r\n\r\nFinal-Recipient: rfc822; one@there.example\r\nAction: failed\r\n${fields}\r\n--b--\r\n`

test('words that the fields lack are found in the text, and a reply that they cut is completed', async () => {
  const cases: [text: string, fields: string, diagnostic: string][] = [
    [
      '<<< 552-5.7.0 This message was blocked because\r\n<<< 552-5.7.0 it is dangerous\r\n<<< 552 5.7.0 - gsmtp\r\n554 5.0.0 Service unavailable',
      'Status: 5.7.0\r\nDiagnostic-Code: SMTP; 552-5.7.0 This message was blocked because',
      '552-5.7.0 This message was blocked because 552-5.7.0 it is dangerous 552 5.7.0 - gsmtp',
    ],
    [
      '<one@there.example>\r\n    (reason: Insufficient permission)\r\n\r\n550 5.0.0 <one@there.example>... Insufficient permission',
      'Status: 5.3.0\r\nDiagnostic-Code: X-Unix; 77',
      '550 5.0.0 <one@there.example>... Insufficient permission',
    ],
    [
      '<one@there.example>... Deferred: Connection refused\r\nMessage could not be delivered for 5 days',
      'Status: 4.4.7',
      'Deferred: Connection refused Message could not be delivered for 5 days',
    ],
    ['550 5.1.1 nothing', 'Status: 5.4.4 (illegal host name)', 'illegal host name'],
    ['550 5.1.1 nothing', 'Status: 5.2.2\r\nDiagnostic-Code: smtp; Mailbox full', 'Mailbox full'],
    ['', 'Status: 5.1.1\r\nDiagnostic-Code: X-Notes; \x1b$B8+$D$+$j$^$;$s\x1b(B', '見つかりません'],
  ]
  for (const [text, fields, diagnostic] of cases) {
    const { dsn } = await read(twoParts(text, fields))
    assert.equal(dsn?.recipients[0]?.diagnostic, diagnostic)
  }
})

test('in a text the reply of each recipient is read, and no words of the reporter or of the copy', async () => {
  const text = [
    'Your mail could not be delivered.',
    '',
    '  one@there.example',
    '    host mx.there.example [192.0.2.1]: 552 5.2.2 Mailbox full',
    '  two@there.example:',
    '    The server that we asked, mx2.there.example, said: "550-5.1.1 No such user',
    '    550 5.1.1 here"',
    '',
    '  three@there.example',
    '    is a mailbox that nobody reads',
    '',
    'From: shop@sender.example',
    'To: one@there.example',
    'Subject: 550 5.7.1 You are blocked',
    '',
    'four@there.example 550 5.7.1 spam',
  ].join('\r\n')
  const raw = `From: MAILER-DAEMON@mx.example\r\nSubject: failure notice\r\n\r\n${text}\r\n`
  const { dsn } = await read(raw)
  assert.deepEqual(
    dsn?.recipients.map(({ recipient, diagnostic, remoteMta }) => [recipient, diagnostic, remoteMta]),
    [
      ['one@there.example', '552 5.2.2 Mailbox full', 'mx.there.example'],
      ['two@there.example', '550-5.1.1 No such user 550 5.1.1 here', null],
      ['three@there.example', 'is a mailbox that nobody reads', null],
    ],
  )
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
    put: fc.string({ maxLength: 40, unit: anyCharacter }),
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
