/**
 * The mail client and the analytics of Ghost, as published, against the service: a newsletter is sent, received and opened,
 * its events are polled and counted, a bounce is removed from the list. Its log, metrics and database are stubs.
 *
 * `INTEROP_GHOST=latest` takes another version of Ghost, as .github/workflows/ghost.yml does every week.
 */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { simpleParser } from 'mailparser'
import { addPackages, unpackFiles } from '../support/npm-package.ts'
import { eventually, ownAddress, startTestService } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

function analyticsFile(name: string): string {
  return `core/server/services/email-analytics/${name}.js`
}
const OTHER_VERSION = process.env['INTEROP_GHOST']
const GHOST = {
  spec: `ghost@${OTHER_VERSION ?? '6.65.0'}`,
  integrity:
    OTHER_VERSION === undefined
      ? 'sha512-D369qivOmfn4YwvBD1DljOGsHnJzBEQhBsiFnBZD+GjWrBpdZQYYNHneiQcKQVJwUom8eHWml1n5FRLQIwVFOg=='
      : null,
  files: [
    'core/server/services/lib/mailgun-client.js',
    'core/server/services/lib/mailgun-recipient-message-id.js',
    ...['email-analytics-service', 'event-processing-result', 'fetch-mailgun-events'].map(analyticsFile),
    analyticsFile('newsletter-email-analytics-batch-processor'),
  ],
}
/** The versions of Ghost's own lock file. */
const LINKED = { lodash: 'lodash', 'form-data': 'form-data', 'mailgun.js': 'mailgun.js-10' }
const REPORTED =
  'globalThis.ghostReports ??= []; const report = (...texts) => globalThis.ghostReports.push(texts)'
const STAND_INS = {
  '@tryghost/debug': 'module.exports = () => () => {}',
  '@tryghost/metrics': 'module.exports = { metric() {} }',
  '@tryghost/logging': `${REPORTED}; module.exports = { info() {}, warn: report, error: report }`,
  '@tryghost/errors': 'module.exports = { IncorrectUsageError: class extends Error {} }',
}

interface GhostEvent {
  type: string
  severity?: string
  recipientEmail: string
  emailId: string
  providerId: string
  error: { code: number; message: string; enhancedCode: string | null } | null
}

interface GhostClient {
  send(message: object, recipients: object, replacements: readonly object[]): Promise<{ id: string | null }>
  fetchEvents(options: object, handle: (events: GhostEvent[]) => Promise<void>): Promise<unknown>
  removeBounce(address: string): Promise<boolean>
  removeComplaint(address: string): Promise<boolean>
  removeUnsubscribe(address: string): Promise<boolean>
}

/** `schedule` and `fetchScheduled`: what Ghost does for a period that an administrator asks for. */
interface GhostAnalytics {
  schedule(period: { begin: Date; end: Date }): Promise<void>
  fetchScheduled(): Promise<{ eventCount: number; result: Record<string, unknown> }>
}

type ClientClass = new (parts: { config: object; settings: object }) => GhostClient

const EMAIL_ID = '65a1f0c2d3b4e5f6a7b8c9d0'
const READERS = ['alice', 'bob', 'carol'].map((name) => `${name}@example.org`)

test('Ghost sends a newsletter, polls its events, and removes a bounce from the list', async (t) => {
  const folder = await temporaryFolder(t)
  await unpackFiles(GHOST, folder)
  await addPackages(folder, LINKED, STAND_INS)
  const load = <T>(file: string) => createRequire(import.meta.url)(join(folder, file)) as T
  const MailgunClient = load<ClientClass>(GHOST.files[0] as string)

  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  sink.on('RCPT TO:<carol@example.org>', '550 5.1.1 no such user')
  const service = await startTestService(t, { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` })
  const settings: Record<string, string> = {
    mailgun_api_key: service.key,
    mailgun_domain: service.domain,
    mailgun_base_url: `${service.url}/v3`,
  }
  const parts = { config: { get: () => undefined }, settings: { get: (name: string) => settings[name] } }
  const ghost = new MailgunClient(parts)
  t.mock.method(console, 'warn', () => {}) // the library warns of every deprecated call

  const recipients = Object.fromEntries(
    READERS.map((address, index) => [
      address,
      {
        name: address.split('@')[0],
        list_unsubscribe: `https://blog.example/unsubscribe/?uuid=${index}`,
        unsubscribe_url: `https://blog.example/unsubscribe/?uuid=${index}`,
      },
    ]),
  )
  const sent = await ghost.send(
    {
      id: EMAIL_ID,
      from: `Weekly: News <noreply@${service.domain}>`,
      replyTo: `editor@${service.domain}`,
      subject: 'Weekly',
      html: '<p>Dear {name}, <a href="https://blog.example/post">read</a></p>',
      plaintext: 'Dear {name}',
      tags: ['blog'],
      track_opens: true,
      perRecipientMessageId: true,
    },
    recipients,
    [
      { format: 'html', regexp: /\{name\}/g, id: 'name' },
      { format: 'plaintext', regexp: /\{name\}/g, id: 'name' },
    ],
  )
  assert.equal(sent.id, null, 'the batch has no single id')

  const messages = await sink.waitFor(2)
  const ids = new Set<string>()
  for (const { raw, envelope } of messages) {
    const mail = await simpleParser(raw)
    assert.equal(mail.text?.trim(), `Dear ${envelope.to[0]?.split('@')[0]}`)
    assert.equal(mail.from?.value[0]?.name, 'Weekly: News')
    assert.match(String(mail.headers.get('list-unsubscribe-post') ?? 'One-Click'), /One-Click/)
    ids.add(mail.messageId ?? '')
    const pixel = /src="(http[^"]+)"/.exec(String(mail.html))?.[1]
    assert.ok(pixel, 'no pixel')
    if (envelope.to[0] === 'alice@example.org') {
      const opened = await fetch(pixel, {
        headers: { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0' },
      })
      assert.equal(opened.status, 200)
    }
  }
  assert.equal(ids.size, 2)

  const begin = Date.now() / 1000 - 600
  const events = await eventually('all of its events', async () => {
    const found: GhostEvent[] = []
    const options = {
      event: 'delivered OR opened OR failed OR unsubscribed OR complained',
      tags: 'ghost-email',
      limit: 2,
      begin,
      end: Date.now() / 1000 + 600,
      ascending: 'yes',
    }
    await ghost.fetchEvents(options, async (batch) => void found.push(...batch))
    return found.length >= 4 && found
  })
  assert.deepEqual(events.map(({ type, recipientEmail }) => `${type} ${recipientEmail}`).sort(), [
    'delivered alice@example.org',
    'delivered bob@example.org',
    'failed carol@example.org',
    'opened alice@example.org',
  ])
  for (const event of events) {
    assert.equal(event.emailId, EMAIL_ID)
    if (event.type === 'delivered') assert.ok(ids.has(`<${event.providerId}>`), event.providerId)
  }
  const failed = events.find(({ type }) => type === 'failed')
  assert.deepEqual(
    [failed?.severity, failed?.error?.code, failed?.error?.enhancedCode],
    ['permanent', 550, '5.1.1'],
  )

  const counted = await countEvents(load, parts)
  assert.equal(counted.eventCount, 4)
  const { delivered, opened, permanentFailed, unprocessable, emailIds } = counted.result
  assert.deepEqual(
    { delivered, opened, permanentFailed, unprocessable, emailIds },
    { delivered: 2, opened: 1, permanentFailed: 1, unprocessable: 0, emailIds: [EMAIL_ID] },
  )

  const bounces = `/v3/${service.domain}/bounces/carol@example.org`
  await eventually('the bounce', async () => (await service.call('GET', bounces)).status === 200)
  assert.equal(await ghost.removeBounce('carol@example.org'), true)
  assert.equal((await service.call('GET', bounces)).status, 404)
  const reports = (globalThis as { ghostReports?: unknown[] }).ghostReports
  assert.deepEqual(reports ?? [], [])
  assert.equal(await ghost.removeUnsubscribe('nobody@example.org'), false)
})

/** Runs Ghost's analytics of newsletters over the last minutes. */
async function countEvents(
  load: <T>(file: string) => T,
  parts: { config: object; settings: object },
): ReturnType<GhostAnalytics['fetchScheduled']> {
  const { EmailAnalyticsService } = load<{ EmailAnalyticsService: new (parts: object) => GhostAnalytics }>(
    analyticsFile('email-analytics-service'),
  )
  const { fetchMailgunEvents } = load<{ fetchMailgunEvents(options: object): Promise<unknown> }>(
    analyticsFile('fetch-mailgun-events'),
  )
  const { NewsletterEmailAnalyticsBatchProcessor } = load<{
    NewsletterEmailAnalyticsBatchProcessor: new (parts: object) => object
  }>(analyticsFile('newsletter-email-analytics-batch-processor'))
  const stored = async () => {}
  const queries = {
    ...{ setJobMetadata: stored, setJobTimestamp: stored, setJobStatus: stored },
    ...{ aggregateEmailStats: stored, aggregateMemberStats: stored },
  }
  // Finds the recipient of an event, as Ghost does in its database.
  const found = async ({ emailId, email }: { emailId: string; email: string }) =>
    emailId === EMAIL_ID && READERS.includes(email) ? { emailId, memberId: email } : undefined
  const emailEventProcessor = { handleDelivered: found, handleOpened: found, handlePermanentFailed: found }
  const analytics = new EmailAnalyticsService({
    queries,
    fetchEvents: (options: object) => fetchMailgunEvents({ ...parts, tags: ['blog'], ...options }),
    createEventProcessor: () =>
      new NewsletterEmailAnalyticsBatchProcessor({ ...parts, emailEventProcessor, queries }),
    jobNames: { scheduled: 'scheduled' },
  })
  await analytics.schedule({ begin: new Date(Date.now() - 600_000), end: new Date(Date.now() + 600_000) })
  return await analytics.fetchScheduled()
}
