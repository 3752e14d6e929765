import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createInternet } from '../../../../test/support/internet.ts'
import { startClamd, startRspamd, startSpamd, VIRUS } from '../../../../test/support/scanners.ts'
import {
  eventually,
  ownAddress,
  startTestService,
  type TestService,
} from '../../../../test/support/service.ts'
import { openDialogue } from '../../../../test/support/smtp-dialogue.ts'
import { pointsOf } from './own-score.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reaches into bodies freely and asserts on what it finds
type Json = any

const SPAM = 'From: <a@sender.example>\r\nSubject: BUY NOW\r\n\r\nBuy.\r\n'
const HAM = 'From: <a@sender.example>\r\nSubject: lunch\r\n\r\nAt one?\r\n'

/** A service with a route that stores mail, for a domain with that action. */
async function start(t: TestContext, spamAction: string, env: Record<string, string>) {
  const { dns } = await createInternet(t)
  const settings = { SENDWRIGHT_SMTP_PORT: '0', SENDWRIGHT_DNS: `${dns.host}:${dns.port}` }
  const service = await startTestService(t, { ...settings, ...env })
  const form = { expression: 'match_recipient("bob@")', action: 'store()' }
  assert.equal((await service.call('POST', '/v3/routes', { form })).status, 200)
  const changed = await service.call('PUT', `/v4/domains/${service.domain}`, {
    form: { spam_action: spamAction },
  })
  assert.equal(changed.status, 200, changed.text)
  return { service, dns }
}

/** The reply to the final dot. */
async function say(t: TestContext, service: TestService, mail: string): Promise<string | null> {
  const client = await openDialogue(t, { host: service.config.smtpHost, port: service.service.smtp.port })
  await client.reply()
  await client.say('EHLO client.example')
  await client.say('MAIL FROM:<a@sender.example>')
  assert.equal(await client.say(`RCPT TO:<bob@${service.domain}>`), '250 2.1.5 OK')
  await client.say('DATA')
  return client.say(`${mail}.`)
}

/** Score fields of the mails stored, oldest first. */
async function scores(service: TestService, count: number): Promise<(string | undefined)[][]> {
  const events: Json[] = await eventually('stored', async () => {
    const found = await service.events('?event=stored')
    return found.length === count && found
  })
  const read = events.toReversed().map(async ({ storage }) => {
    const { body } = await service.call('GET', new URL(storage.url).pathname)
    const fields: Record<string, string> = Object.fromEntries(body['message-headers'])
    return [fields['X-Service-Sflag'], fields['X-Service-Sscore']]
  })
  return Promise.all(read)
}

/** Rejected events, oldest first; each names no stored message. */
async function rejections(service: TestService, count: number): Promise<[string, string][]> {
  const events: Json[] = await eventually('rejected', async () => {
    const found = await service.events('?event=rejected')
    return found.length === count && found
  })
  return events.toReversed().map(({ reject, storage, recipient }) => {
    assert.deepEqual([storage, recipient], [undefined, undefined])
    return [reject.reason, reject.description]
  })
}

test('rspamd scores: fields with tag, an event instead of the mail with block', async (t) => {
  const rspamd = await startRspamd(t)
  const { service } = await start(t, 'tag', { SENDWRIGHT_SPAM_SCORER: rspamd.url })
  assert.equal(await say(t, service, SPAM), '250 2.0.0 Received')
  assert.equal(await say(t, service, HAM), '250 2.0.0 Received')
  assert.deepEqual(await scores(service, 2), [
    ['Yes', '15.3'],
    ['No', '-0.1'],
  ])
  const asked = rspamd.asked[0]?.headers
  const facts = [asked?.['from'], asked?.['helo'], asked?.['rcpt']]
  assert.deepEqual(facts, ['a@sender.example', 'client.example', `bob@${service.domain}`])
  assert.match(String(asked?.['ip']), /^127\./)

  await service.call('PUT', `/v4/domains/${service.domain}`, { form: { spam_action: 'block' } })
  assert.equal(await say(t, service, SPAM), '250 2.0.0 Received')
  assert.deepEqual(await rejections(service, 1), [['Message is spam', 'score 15.3']])
  assert.equal(await say(t, service, HAM), '250 2.0.0 Received')
  assert.equal((await scores(service, 3)).length, 3)
  const [rejected] = (await service.events('?event=rejected')) as [Json]
  const { headers } = rejected.message
  assert.deepEqual([headers.from, headers.subject], ['<a@sender.example>', 'BUY NOW'])
  const before = rspamd.asked.length
  await service.call('PUT', `/v4/domains/${service.domain}`, { form: { spam_action: 'disabled' } })
  assert.equal(await say(t, service, SPAM), '250 2.0.0 Received')
  assert.equal((await scores(service, 4)).length, 4)
  assert.equal(rspamd.asked.length, before)
})

test('SpamAssassin scores, and mail is taken without a score when it does not answer', async (t) => {
  const spamd = await startSpamd(t)
  const { service } = await start(t, 'block', { SENDWRIGHT_SPAM_SCORER: spamd.url })
  assert.equal(await say(t, service, SPAM), '250 2.0.0 Received')
  assert.equal(await say(t, service, HAM), '250 2.0.0 Received')
  assert.deepEqual(await scores(service, 1), [['No', '0.3']])
  assert.equal((await rejections(service, 1)).length, 1)
  for (const mail of spamd.asked)
    assert.match(mail, /^Received: from client\.example \(\[127\.[\d.]+\]\)\r\n by mail\.test\.example /)
  const silent = await start(t, 'block', { SENDWRIGHT_SPAM_SCORER: `spamd://${ownAddress()}:9` })
  assert.equal(await say(t, silent.service, SPAM), '250 2.0.0 Received')
  assert.deepEqual(await scores(silent.service, 1), [[undefined, undefined]])
})

const withFile = (content: string) =>
  [
    'From: <a@sender.example>',
    'Content-Type: multipart/mixed; boundary=b',
    '',
    '--b\r\n\r\nSee the file.',
    `--b\r\nContent-Type: application/pdf; name=bill.pdf\r\n\r\n${content}`,
    '--b--\r\n',
  ].join('\r\n')

test('received mail with a virus in a file is dropped with an event, whatever the domain does about spam', async (t) => {
  const clamd = await startClamd(t)
  const { service } = await start(t, 'disabled', { SENDWRIGHT_CLAMAV: clamd.url })
  assert.equal(await say(t, service, withFile(VIRUS)), '250 2.0.0 Received')
  assert.deepEqual(await rejections(service, 1), [['Message contains a virus', 'Test-Virus']])
  assert.equal(await say(t, service, withFile('harmless')), '250 2.0.0 Received')
  assert.equal(await say(t, service, HAM), '250 2.0.0 Received')
  assert.equal((await scores(service, 2)).length, 2)
  assert.equal(clamd.scanned.length, 2, 'the mail without a file is not scanned')
})

test('without a scorer the origin of a mail counts', async (t) => {
  const { service, dns } = await start(t, 'block', {})
  dns.set('sender.example', 'TXT', ['v=spf1 -all'])
  dns.set('_dmarc.forged.example', 'TXT', ['v=DMARC1; p=reject'])
  // Refused by SPF; no Date, no Message-Id.
  assert.equal(await say(t, service, HAM), '250 2.0.0 Received')
  assert.deepEqual(await scores(service, 1), [['No', '4.5']])
  const forged = HAM.replace('sender.example', 'forged.example')
  assert.equal(await say(t, service, forged), '250 2.0.0 Received')
  assert.deepEqual(await rejections(service, 1), [['Message is spam', 'score 7.5']])

  const listing = await start(t, 'block', { SENDWRIGHT_SPAM_DNSBL_ZONES: 'list.example' })
  listing.dns.set('1.0.0.127.list.example', 'A', ['127.0.0.2'])
  assert.equal(await say(t, listing.service, HAM), '250 2.0.0 Received')
  assert.deepEqual(await rejections(listing.service, 1), [['Message is spam', 'score 6']], '2 points, 4 more')
})

test('points of what a mail says', () => {
  const header = (...names: string[]) => names.map((name) => ({ name, value: 'x', raw: `${name}: x` }))
  const whole = header('From', 'Date', 'Message-ID')
  const fine = { spf: 'pass', dkim: 'pass', authenticationResults: 'h; dmarc=pass' } as const
  type Case = [number, ReturnType<typeof header>, Partial<typeof fine> | object, string]
  const cases: Case[] = [
    [0, whole, {}, 'mx.example'],
    [0, whole, {}, '[192.0.2.1]'],
    [1, whole, {}, '192.0.2.1'],
    [1, whole, {}, 'laptop'],
    [1, whole, { spf: 'softfail' }, 'mx.example'],
    [5.5, whole, { spf: 'fail', authenticationResults: 'h;\r\n dmarc=fail (p=none)' }, 'mx.example'],
    [0.5, whole, { dkim: 'fail' }, 'mx.example'],
    [3, header('From', 'From', 'Date', 'Message-ID'), {}, 'mx.example'],
    [5, [], {}, 'mx.example'],
  ]
  for (const [points, headers, change, helo] of cases)
    assert.equal(pointsOf({ headers, helo }, { ...fine, ...change }), points, JSON.stringify(change) + helo)
})
