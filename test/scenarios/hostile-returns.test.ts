/** Mail to a return path that is slow to read: large, or texts made for the expressions that read bounces. */
// Slow: it sends a whole process more than anyone does, and measures it meanwhile.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { longestBlock } from '../support/block-probe.ts'
import { Returner, subjectOf } from '../support/reports/returning.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

const BLOCK_MAX_MS = 200
const SMTP_PORT = 2525
/** More than is read of a mail. */
const TEXT_BYTES = 300_000

const HEAD = 'From: MAILER-DAEMON@x.example\r\nSubject: failure notice\r\n'
const TEXT = `${HEAD}\r\nYour message could not be delivered.\r\n\r\n`
const filled = (unit: string, bytes = TEXT_BYTES) => unit.repeat(bytes / unit.length)
const fields = (value: string) =>
  `${HEAD}Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\n\r\n${filled('x.', 20_000)}\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\n${filled(`Final-Recipient: rfc822; a@b.cc\r\nAction: failed\r\nStatus: 5.0.0 ${value}\r\nDiagnostic-Code: smtp; ${value}\r\n\r\n`, 200_000)}--b--\r\n`

const MAILS: [name: string, raw: () => string][] = [
  ['20 MB of lines', () => TEXT + filled(`${'x'.repeat(998)}\r\n`, 20_000_000)],
  ...[
    'message ',
    'a@',
    '5.1.',
    '550-',
    '550 a@b.cc\r\n',
    '<<< ',
    'was ',
    'x.y.',
    '\r\n',
    '1',
    '='.repeat(70),
  ].map((unit): [string, () => string] => [`"${unit}" without end`, () => TEXT + filled(unit)]),
  ['fields without words', () => fields('')],
  ['fields of brackets', () => fields('('.repeat(2_000))],
]

test('no mail to a return path blocks the main thread for long', async (t) => {
  const sink = await createSink({ host: ownAddress() })
  const folder = await temporaryFolder(t)
  const probe = join(folder, 'probe.json')
  const host = ownAddress()
  const service = await startProcess(
    host,
    {
      SENDWRIGHT_DATA: join(folder, 'data'),
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
      SENDWRIGHT_SMTP_PORT: String(SMTP_PORT),
      SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    },
    { probe },
  )
  t.after(async () => {
    await service.end('SIGKILL')
    await sink.close()
  })
  const body = new URLSearchParams({
    from: `a@${service.domain}`,
    to: 'b@there.example',
    subject: 's',
    text: 't',
  })
  const sent = await fetch(`${service.url}/v3/${service.domain}/messages`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body,
  })
  assert.equal(sent.status, 200, await sent.text())
  await sink.waitFor(1)
  const { returnPath } = subjectOf(sink.messages[0] as (typeof sink.messages)[number])
  const returner = await Returner.open({ host, port: SMTP_PORT })
  t.after(() => returner.close())
  const process = { pid: service.child.pid as number, probe }
  // Loading and compiling once is not measured.
  await returner.give(returnPath, TEXT)
  for (const [name, raw] of MAILS) {
    const text = raw()
    const longestMs = await longestBlock(process, BLOCK_MAX_MS, async () => {
      assert.equal(await returner.give(returnPath, text), '250 2.0.0 Received', name)
    })
    t.diagnostic(`${name}: ${Math.round(longestMs)} ms`)
    assert.ok(longestMs < BLOCK_MAX_MS, `${name}: the main thread was busy for ${Math.round(longestMs)} ms`)
  }
})
