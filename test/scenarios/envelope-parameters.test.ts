/** What a client demands in MAIL FROM, through the whole service: REQUIRETLS (RFC 8689) and FUTURERELEASE (RFC 4865). */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import nodemailer from 'nodemailer'
import { SMTPServer } from 'smtp-server'
import { createAuthority } from '../support/certificates.ts'
import { createInternet } from '../support/internet.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { AUTHORIZATION, startProcess } from '../support/service-process.ts'
import { type Dialogue, openDialogue, plainLogin } from '../support/smtp-dialogue.ts'
import type { Sink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

const PASSWORD = 'correct-horse'

interface Rig {
  service: TestService
  /** Offers no TLS, and so no REQUIRETLS. */
  sink: Sink
}

async function start(t: TestContext): Promise<Rig> {
  const internet = await createInternet(t)
  const sink = await internet.site(['receiver.example'])
  const service = await startTestService(t, { ...internet.env, SENDWRIGHT_SMTP_PORT: '0' })
  const path = `/v3/domains/${service.domain}/credentials/postmaster`
  assert.equal((await service.call('PUT', path, { form: { password: PASSWORD } })).status, 200)
  return { service, sink }
}

async function connect(t: TestContext, { service }: Rig, tls = true): Promise<Dialogue> {
  const client = await openDialogue(t, { host: service.config.smtpHost, port: service.service.smtp.port })
  await client.reply()
  if (tls) {
    await client.say('EHLO client.example')
    assert.match((await client.say('STARTTLS')) ?? '', /^220/)
    await client.secure()
  }
  return client
}

async function logIn(t: TestContext, rig: Rig): Promise<Dialogue> {
  const client = await connect(t, rig)
  await client.say('EHLO client.example')
  const login = plainLogin(`postmaster@${rig.service.domain}`, PASSWORD)
  assert.match((await client.say(`AUTH PLAIN ${login}`)) ?? '', /^235/)
  return client
}

/** The reply to the final dot. */
async function give(
  client: Dialogue,
  mail: { from: string; to: string; fields?: string[] },
): Promise<string> {
  assert.equal(await client.say(`MAIL FROM:${mail.from}`), '250 2.1.0 OK')
  assert.equal(await client.say(`RCPT TO:<${mail.to}>`), '250 2.1.5 OK')
  assert.match((await client.say('DATA')) ?? '', /^354/)
  const fields = ['From: Shop <shop@sandbox.localhost>', ...(mail.fields ?? [])]
  client.write(`${fields.join('\r\n')}\r\n\r\nHi.\r\n.\r\n`)
  return (await client.reply()) ?? 'closed'
}

type Failed = Record<string, unknown> & {
  severity: string
  'delivery-status': { code: number; 'enhanced-code'?: string; message: string }
}

const failures = (service: TestService, count: number) =>
  eventually('the failures', async () => {
    const found = (await service.events('?event=failed')) as Failed[]
    return found.length === count ? found : null
  })

test('REQUIRETLS: offered within TLS, and a message with it does not go to a server without', async (t) => {
  const rig = await start(t)
  const plain = await connect(t, rig, false)
  assert.doesNotMatch((await plain.say('EHLO client.example')) ?? '', /REQUIRETLS/)
  const before = await plain.say('MAIL FROM:<a@client.example> REQUIRETLS')
  assert.equal(before, '530 5.7.0 Must issue a STARTTLS command first')
  const client = await logIn(t, rig)
  assert.match((await client.say('EHLO client.example')) ?? '', /^250-REQUIRETLS\r$/m)
  const to = 'user@receiver.example'
  assert.match(await give(client, { from: '<> REQUIRETLS', to }), /^250 2\.0\.0 Queued/)
  // The parameter counts, whatever the header says.
  const fields = ['TLS-Required: No']
  assert.match(await give(client, { from: '<> REQUIRETLS', to, fields }), /^250 2\.0\.0 Queued/)
  await rig.service.send({ to, 'o:require-tls': 'requiretls' })
  for (const { severity, 'delivery-status': status } of await failures(rig.service, 3))
    assert.deepEqual([severity, status.code, status['enhanced-code']], ['permanent', 680, '5.7.10'])
  assert.equal(rig.sink.messages.length, 0)
})

test('REQUIRETLS of received mail is demanded of its forwarded copy, but not of a bounce', async (t) => {
  const rig = await start(t)
  const { service, sink } = rig
  const form = { expression: 'catch_all()', action: 'forward("user@receiver.example")' }
  assert.equal((await service.call('POST', '/v3/routes', { form })).status, 200)
  const client = await connect(t, rig)
  assert.match((await client.say('EHLO client.example')) ?? '', /^250-REQUIRETLS\r$/m)
  const to = `info@${service.domain}`
  assert.match(await give(client, { from: '<a@client.example> REQUIRETLS', to }), /^250/)
  const [failed] = await failures(service, 1)
  assert.deepEqual([failed?.severity, failed?.['delivery-status'].code], ['permanent', 680])
  assert.match(await give(client, { from: '<> REQUIRETLS', to, fields: ['Subject: bounce'] }), /^250/)
  await sink.waitFor(1)
})

test('TLS-Required: No takes precedence over the domain, not over the option of the message', async (t) => {
  const { service, sink } = await start(t)
  const path = `/v3/domains/${service.domain}/connection`
  assert.equal((await service.call('PUT', path, { form: { require_tls: 'true' } })).status, 200)
  const to = 'user@receiver.example'
  await service.send({ to, 'h:TLS-Required': 'No', subject: 'goes' })
  await sink.waitFor(1)
  await service.send({ to, 'h:TLS-Required': 'No', 'o:require-tls': 'yes', subject: 'stays' })
  const [failed] = await failures(service, 1)
  assert.deepEqual([failed?.severity, failed?.['delivery-status'].code], ['temporary', 680])
  assert.match(sink.messages[0]?.raw.toString() ?? '', /^TLS-Required: No\r$/m)
})

test('FUTURERELEASE: the message is scheduled, survives a restart, and two times are one too many', async (t) => {
  const rig = await start(t)
  const { service } = rig
  const client = await logIn(t, rig)
  const offer = /^250[- ]FUTURERELEASE 604800 (\S+)\r?$/m.exec((await client.say('EHLO x.example')) ?? '')
  assert.ok(Math.abs(Date.parse(offer?.[1] ?? '') - Date.now() - 604_800_000) < 60_000)
  const to = 'user@receiver.example'
  const until = new Date(Date.now() + 7_200_000).toISOString()
  const replies = [
    await give(client, { from: '<> HOLDFOR=3600', to }),
    await give(client, { from: `<> HOLDUNTIL=${until}`, to }),
  ]
  for (const reply of replies) assert.match(reply, /^250 2\.0\.0 Queued/)
  const events = await eventually('accepted', async () => {
    const found = await service.events('?event=accepted&ascending=yes')
    return found.length === 2 ? found : null
  })
  const times = events.map(({ message }) => (message as { 'scheduled-for': number })['scheduled-for'])
  assert.ok(Math.abs((times[0] as number) - Date.now() / 1000 - 3_600) < 60, String(times[0]))
  assert.ok(Math.abs((times[1] as number) - Date.parse(until) / 1000) < 1, String(times[1]))
  const fields = [`X-Service-Deliver-By: ${new Date(until).toUTCString()}`]
  const both = await give(client, { from: '<> HOLDFOR=60', to, fields })
  assert.match(both, /^554 5\.6\.0 the message has a delivery time, and so has its envelope/)
  // A domain that keeps its messages for an hour.
  const put = await service.call('PUT', `/v3/domains/${service.domain}/message_ttl?message_ttl=3600`)
  assert.equal(put.status, 200)
  const long = await client.say('MAIL FROM:<> HOLDFOR=3700')
  assert.equal(long, '501 5.5.4 The message cannot be held for more than 3600 seconds')
  await service.restart()
  const queue = await service.call('GET', '/sendwright/v1/system')
  assert.equal(queue.body.queue.scheduled ?? queue.body.queue.waiting, 2, JSON.stringify(queue.body.queue))
  assert.equal(rig.sink.connections.total, 0)
})

test('other programs: REQUIRETLS from nodemailer through the service to smtp-server, by a name that DNSSEC proves', async (t) => {
  const internet = await createInternet(t)
  internet.dns.authentic = true
  const authority = createAuthority()
  const folder = await temporaryFolder(t)
  const ca = join(folder, 'ca.pem')
  await writeFile(ca, authority.cert)
  const taken = Promise.withResolvers<{ args: object | boolean; secure: boolean }>()
  const server = new SMTPServer({
    ...authority.issue(['mx.receiver.example']),
    authOptional: true,
    hideREQUIRETLS: false,
    onData(stream, session, done) {
      stream.resume().on('end', () => {
        const from = session.envelope.mailFrom
        taken.resolve({ args: from === false ? false : from.args, secure: session.secure })
        done()
      })
    },
  })
  const [receiver, host] = [ownAddress(), ownAddress()]
  await new Promise<void>((resolve) => void server.listen(internet.port, receiver, resolve))
  t.after(() => new Promise<void>((resolve) => server.close(resolve)))
  internet.host('receiver.example', 'mx.receiver.example', receiver)
  const settings = { SENDWRIGHT_DATA: folder, SENDWRIGHT_SMTP_HOST: host, SENDWRIGHT_SMTP_PORT: '2525' }
  const process = await startProcess(host, { ...internet.env, ...settings, NODE_EXTRA_CA_CERTS: ca })
  t.after(() => process.end('SIGKILL'))
  const login = `postmaster@${process.domain}`
  const changed = await fetch(`${process.url}/v3/domains/${process.domain}/credentials/postmaster`, {
    method: 'PUT',
    headers: { authorization: AUTHORIZATION },
    body: new URLSearchParams({ password: PASSWORD }),
  })
  assert.equal(changed.status, 200)
  const client = nodemailer.createTransport({
    ...{ host, port: 2525, requireTLS: true, auth: { user: login, pass: PASSWORD } },
    tls: { rejectUnauthorized: false },
  })
  t.after(() => client.close())
  await client.sendMail({
    from: `Shop <shop@${process.domain}>`,
    ...{ to: 'user@receiver.example', subject: 'hello', text: 'Hi.' },
    requireTLSExtensionEnabled: true,
  })
  const { args, secure } = await taken.promise
  assert.ok(secure)
  assert.equal((args as { REQUIRETLS?: boolean }).REQUIRETLS, true)
})
