/** Raw messages that some servers cannot accept unchanged: 8-bit content without 8BITMIME, lines that are too long. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { parseMessage } from '../../src/protocols/mime/parse.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { createSink, DEFAULT_EXTENSIONS, type SinkMessage } from '../support/smtp-sink.ts'

const SEVEN_BIT = DEFAULT_EXTENSIONS.filter((name) => !['8BITMIME', 'SMTPUTF8'].includes(name))

async function rig(t: TestContext, extensions: readonly string[]) {
  const sink = await createSink({ extensions })
  t.after(() => sink.close())
  const service = await startTestService(t, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
  })
  /** Sends a message unchanged; returns what arrived, or the failed event. */
  async function send(lines: readonly string[]): Promise<SinkMessage | Record<string, unknown>> {
    const raw = [`From: sender@${service.domain}`, 'To: user@example.org', ...lines].join('\r\n')
    const form = { to: 'user@example.org', message: new File([raw], 'message.mime') }
    const before = sink.messages.length
    const answer = await service.call('POST', `/v3/${service.domain}/messages.mime`, { form })
    assert.equal(answer.status, 200, answer.text)
    return eventually('delivered or failed', async () => {
      const [failed] = await service.events('?event=failed')
      return sink.messages[before] ?? failed
    })
  }
  return { service, send }
}

/** The result of every signature. */
async function signatures(service: TestService, raw: Buffer): Promise<string[]> {
  const { body } = await service.call('GET', `/v4/domains/${service.domain}`)
  const records = body.sending_dns_records as { name: string; record_type: string; value: string }[]
  const resolver = async (name: string) =>
    records
      .filter((record) => record.record_type === 'TXT' && record.name === name)
      .map(({ value }) => [value])
  const { results } = await dkimVerify(raw, { resolver })
  return results.map(({ status }: { status: { result: string } }) => status.result)
}

const isSevenBit = (raw: Buffer) => raw.every((byte) => byte < 128)
const longest = (raw: Buffer) =>
  Math.max(
    ...raw
      .toString('latin1')
      .split('\r\n')
      .map(({ length }) => length),
  )

const MULTIPART = [
  'Subject: Hello',
  'Mime-Version: 1.0',
  'Content-Type: multipart/mixed; boundary=m',
  '',
  '--m',
  'Content-Type: text/plain; charset=utf-8',
  'Content-Transfer-Encoding: 8bit',
  '',
  'Grüße, Привет',
  '--m',
  'Content-Type: text/csv; charset=utf-8',
  'Content-Disposition: attachment; filename="a.csv"',
  'Content-Transfer-Encoding: 8bit',
  '',
  'Größe,1',
  '--m--',
  '',
]

test('a server without 8BITMIME gets equivalent 7-bit content, and its signature verifies', async (t) => {
  const { service, send } = await rig(t, SEVEN_BIT)
  const { raw } = (await send(MULTIPART)) as SinkMessage
  assert.ok(isSevenBit(raw))
  const { text, attachments } = await parseMessage(raw)
  assert.equal(text?.trim(), 'Grüße, Привет')
  assert.equal(Buffer.from(attachments[0]?.content ?? []).toString(), 'Größe,1')
  assert.deepEqual(await signatures(service, raw), ['pass'])
})

test('a server with 8BITMIME gets the original bytes', async (t) => {
  const { service, send } = await rig(t, DEFAULT_EXTENSIONS)
  const { raw } = (await send(MULTIPART)) as SinkMessage
  assert.ok(raw.includes(MULTIPART.slice(4).join('\r\n')))
  assert.deepEqual(await signatures(service, raw), ['pass'])
})

test('a message that somebody else signed is not converted: without 8BITMIME it fails permanently with 5.6.3', async (t) => {
  const { send } = await rig(t, SEVEN_BIT)
  const event = (await send([
    'Subject: Hello',
    'Mime-Version: 1.0',
    'Content-Type: multipart/signed; boundary=s; micalg=sha-256; protocol="application/pkcs7-signature"',
    '',
    '--s',
    'Content-Type: text/plain; charset=utf-8',
    '',
    'Grüße',
    '--s',
    'Content-Type: application/pkcs7-signature',
    '',
    'AAAA',
    '--s--',
    '',
  ])) as Record<string, unknown>
  assert.equal(event['severity'], 'permanent')
  const status = event['delivery-status'] as Record<string, unknown>
  assert.deepEqual([status['code'], status['enhanced-code']], [554, '5.6.3'])
  assert.match(status['message'] as string, /takes no 8-bit mail/)
})

test('no line over 998 bytes is sent, whatever the server accepts; size and signature are right', async (t) => {
  const { service, send } = await rig(t, DEFAULT_EXTENSIONS)
  const long = `${'word '.repeat(1_000)}end`
  const { raw } = (await send([
    `Subject: ${'subject '.repeat(200)}`,
    'Mime-Version: 1.0',
    'Content-Type: text/html; charset=utf-8',
    '',
    `<p>${long}</p>`,
    '',
  ])) as SinkMessage
  assert.ok(longest(raw) <= 998, `${longest(raw)}`)
  assert.ok((await parseMessage(raw)).html?.includes(long))
  assert.deepEqual(await signatures(service, raw), ['pass'])
  const [event] = await service.events('?event=accepted')
  const size = (event?.['message'] as { size: number } | undefined)?.size ?? 0
  // Signature and the service's own fields are added at the top.
  assert.ok(size > 6_000 && size <= raw.length, `${size} of ${raw.length}`)
})
