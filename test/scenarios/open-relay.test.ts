/**
 * R35: the classic ways to make a server relay. For a client without a valid login no recipient is accepted, whatever it
 * writes. A client that is logged in may send to anybody, but an address that routes through this server to another one
 * is never followed: the service sends to the address as written.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { type Dialogue, openDialogue, plainLogin } from '../support/smtp-dialogue.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

const TARGET = 'target.example'
const VICTIM = `victim@${TARGET}`
const PASSWORD = 'correct-horse'

interface Names {
  /** Our host name, a sending domain of ours, the server's address. */
  host: string
  domain: string
  ip: string
}

/** [MAIL FROM, RCPT TO] with their brackets, as used to search for open relays. */
const FORMS: (names: Names) => [from: string, to: string][] = ({ host, domain, ip }) => [
  // The sender: a stranger, nobody, ourselves.
  [`<spam@${TARGET}>`, `<${VICTIM}>`],
  ['<>', `<${VICTIM}>`],
  [`<spam@${host}>`, `<${VICTIM}>`],
  [`<postmaster@${domain}>`, `<${VICTIM}>`],
  [`<spam@[${ip}]>`, `<${VICTIM}>`],
  ['<spam@localhost>', `<${VICTIM}>`],
  ['<spam>', `<${VICTIM}>`],
  [`<${VICTIM}>`, `<${VICTIM}>`],
  // Percent hack.
  ['<spam@spam.example>', `<victim%${TARGET}@${host}>`],
  ['<spam@spam.example>', `<victim%${TARGET}@${domain}>`],
  ['<spam@spam.example>', `<victim%${TARGET}@[${ip}]>`],
  ['<spam@spam.example>', `<victim%${TARGET}>`],
  ['<>', `<victim%${TARGET}%${host}@${domain}>`],
  // Quoted local parts, two at signs.
  ['<spam@spam.example>', `<"${VICTIM}">`],
  ['<spam@spam.example>', `<"victim%${TARGET}">`],
  ['<spam@spam.example>', `<"${VICTIM}"@${host}>`],
  ['<spam@spam.example>', `<"${VICTIM}"@[${ip}]>`],
  ['<spam@spam.example>', `<${VICTIM}@${host}>`],
  ['<spam@spam.example>', `<${VICTIM}@[${ip}]>`],
  ['<spam@spam.example>', `<victim@${domain}@${TARGET}>`],
  // Source routes (RFC 5321 appendix C).
  ['<spam@spam.example>', `<@${host}:${VICTIM}>`],
  ['<spam@spam.example>', `<@[${ip}]:${VICTIM}>`],
  ['<spam@spam.example>', `<@${host},@${TARGET}:${VICTIM}>`],
  [`<@${host}:spam@spam.example>`, `<${VICTIM}>`],
  // Bang paths.
  ['<spam@spam.example>', `<${TARGET}!victim>`],
  ['<spam@spam.example>', `<${TARGET}!victim@${host}>`],
  ['<spam@spam.example>', `<${TARGET}!victim@[${ip}]>`],
  ['<spam@spam.example>', `<${host}!${TARGET}!victim@${domain}>`],
  // No domain, an empty domain, one with a trailing dot, an address literal.
  ['<spam@spam.example>', '<victim@>'],
  ['<spam@spam.example>', `<${VICTIM}.>`],
  ['<spam@spam.example>', '<victim@[127.0.0.1]>'],
  ['<spam@spam.example>', '<victim@localhost>'],
  // Without brackets, with blanks, with a line that holds two commands.
  ['spam@spam.example', VICTIM],
  ['<spam@spam.example>', `< ${VICTIM} >`],
  ['<spam@spam.example>', `<postmaster@${host}> <${VICTIM}>`],
  // Addresses that look like our own.
  ['<>', `<bounce+${'0'.repeat(20)}=victim=${TARGET}@${domain}>`],
  ['<>', `<unsub+victim=${TARGET}@${host}>`],
]

async function start(t: TestContext): Promise<{ service: TestService; sink: Sink; names: Names }> {
  const sink = await createSink({ host: ownAddress() })
  const service = await startTestService(t, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
  })
  t.after(() => sink.close())
  await service.call('PUT', `/v3/domains/${service.domain}/credentials/postmaster`, {
    form: { password: PASSWORD },
  })
  const names = { host: service.config.hostname, domain: service.domain, ip: service.config.smtpHost }
  return { service, sink, names }
}

async function greeted(t: TestContext, { config, service }: TestService): Promise<Dialogue> {
  const client = await openDialogue(t, { host: config.smtpHost, port: service.smtp.port })
  await client.reply()
  await client.say('EHLO relay-tester.example')
  return client
}

/** Tries one form and the rest of the transaction; returns whether a recipient was accepted, and whether the message was. */
async function attempt(client: Dialogue, [from, to]: [string, string], subject: string) {
  const mail = (await client.say(`MAIL FROM:${from}`)) ?? 'closed'
  const recipient = (await client.say(`RCPT TO:${to}`)) ?? 'closed'
  const data = (await client.say('DATA')) ?? 'closed'
  let end = ''
  if (data.startsWith('354')) {
    client.write(`From: a@example.com\r\nTo: b@example.org\r\nSubject: ${subject}\r\n\r\nRelayed?\r\n.\r\n`)
    end = (await client.reply()) ?? 'closed'
  }
  await client.say('RSET')
  return { mail, recipient, data, end }
}

/** Once a later message of our own has been delivered, everything before it would have been delivered as well. */
async function nothingRelayed({ service, sink }: { service: TestService; sink: Sink }): Promise<void> {
  const last = await service.send({
    from: 'a@example.com',
    to: 'last@example.org',
    subject: 'last',
    text: 't',
  })
  assert.equal(last.status, 200, last.text)
  await sink.waitFor(1)
  assert.deepEqual(
    sink.messages.map(({ envelope }) => envelope.to),
    [['last@example.org']],
  )
}

test('without a login none of them is relayed', async (t) => {
  const rig = await start(t)
  const forms = FORMS(rig.names)
  assert.ok(forms.length >= 30)
  for (const [at, form] of forms.entries()) {
    const client = await greeted(t, rig.service)
    const { recipient, data } = await attempt(client, form, `form ${at}`)
    assert.match(recipient, /^5\d\d /, `${form.join(' ')}: ${recipient}`)
    assert.match(data, /^503 /, `${form.join(' ')}: ${data}`)
    await client.say('QUIT')
  }
  await nothingRelayed(rig)
})

test('nor with a login for another domain, with a wrong password, or one of a deleted credential', async (t) => {
  const rig = await start(t)
  const { domain } = rig.service
  await rig.service.call('POST', `/v3/domains/${domain}/credentials`, {
    form: { login: 'gone', password: PASSWORD },
  })
  assert.equal((await rig.service.call('DELETE', `/v3/domains/${domain}/credentials/gone`)).status, 200)
  const logins: [user: string, password: string][] = [
    [`postmaster@${TARGET}`, PASSWORD],
    [`postmaster@${domain}`, 'wrong'],
    [`gone@${domain}`, PASSWORD],
  ]
  const forms = FORMS(rig.names)
  const half = Math.ceil(forms.length / 2)
  for (const [user, password] of logins) {
    // Half of them on each connection: a client without a login may send a hundred commands.
    for (const some of [forms.slice(0, half), forms.slice(half)]) {
      const client = await greeted(t, rig.service)
      assert.match((await client.say(`AUTH PLAIN ${plainLogin(user, password)}`)) ?? '', /^535 /)
      for (const [from, to] of some) {
        await client.say(`MAIL FROM:${from}`)
        assert.match((await client.say(`RCPT TO:${to}`)) ?? 'closed', /^5\d\d /, `${user}: ${from} ${to}`)
        await client.say('RSET')
      }
      await client.say(`MAIL FROM:<a@${rig.names.domain}>`)
      assert.match((await client.say('DATA')) ?? '', /^503 /)
      client.destroy()
    }
  }
  await nothingRelayed(rig)
})

test('with a login an address that routes through this server to another is not followed', async (t) => {
  const rig = await start(t)
  const login = plainLogin(`postmaster@${rig.service.domain}`, PASSWORD)
  // One connection each: a client is disconnected after too many bad commands.
  const sent = async (form: [from: string, to: string], subject: string) => {
    const client = await greeted(t, rig.service)
    assert.match((await client.say(`AUTH PLAIN ${login}`)) ?? '', /^235/)
    const { end } = await attempt(client, form, subject)
    client.destroy()
    return end
  }
  const taken: string[] = []
  const refused: string[] = []
  for (const [at, form] of FORMS(rig.names).entries()) {
    const end = await sent(form, `form ${at}`)
    if (end.startsWith('250')) taken.push(form[1])
    else refused.push(form[1])
  }
  for (const route of [
    `<@${rig.names.host}:${VICTIM}>`,
    `<${TARGET}!victim>`,
    `<victim%${TARGET}>`,
    `<${VICTIM}@${rig.names.host}>`,
  ])
    assert.ok(refused.includes(route), `${route} was taken`)
  assert.match(await sent(['<a@example.com>', '<last@example.org>'], 'last'), /^250/)
  await eventually('all that was taken has ended', async () => {
    const ended = await rig.service.events('?event=delivered OR failed OR rejected&limit=300')
    return ended.length >= taken.length + 1
  })
  const written = new Set([...taken, '<last@example.org>'].map((path) => path.slice(1, -1).toLowerCase()))
  for (const { envelope } of rig.sink.messages)
    for (const address of envelope.to)
      assert.ok(written.has(address.toLowerCase()), `${address} was written by nobody`)
})
