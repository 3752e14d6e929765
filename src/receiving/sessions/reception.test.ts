/** Reception over real sockets, with addresses that only note what they get. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { openDialogue, plainLogin } from '../../../test/support/smtp-dialogue.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { startTestListener } from '../../../test/support/test-listener.ts'
import { StoreFull, StoreUnavailable } from '../../platform/store/store.ts'
import { chunkSize } from '../../protocols/message/mime-message.ts'
import { createReception, type ReceivedMail, type ServiceAddress } from './reception.ts'
import { Refusal } from './replies.ts'

interface Taken {
  address: string
  sender: string
  text: string
}

/** `<name>@own.example` is taken for the names `a`, `b`, `r0`, `r1`...; `fails` throws what `failure` holds. */
async function startRig(t: TestContext, { unlimited = true } = {}) {
  const folder = await temporaryFolder(t)
  const taken: Taken[] = []
  const rig: { taken: Taken[]; failure: Error } = { taken, failure: new Error('?') }
  const receive = (address: string) => async (mail: ReceivedMail) => {
    if (address.startsWith('fails')) throw rig.failure
    const [first] = await mail.mails()
    const text = first?.text ?? ''
    taken.push({
      address,
      sender: mail.sender,
      text: address.startsWith('large') ? `${chunkSize(mail.raw)} bytes` : text,
    })
  }
  const known = async (address: string): Promise<ServiceAddress | null> =>
    /^(?:a|b|fails|r\d+|large\d)@own\.example$/.test(address)
      ? {
          ...(address.startsWith('large') && { keptBytes: 1_000_000 }),
          subject: /^(?:b@|large)/.test(address) ? null : address,
          receive: receive(address),
        }
      : null
  const listener = await startTestListener(folder, {
    hostname: 'mx.own.example',
    authenticate: async () => ({ login: 'x', accountId: 'a', domainId: 'd', changedAt: 1 }),
    reception: createReception({
      readers: [async () => null, async ({ local, domain }) => known(`${local}@${domain}`)],
      mailReader: undefined,
      isOwnDomain: async (domain) => domain === 'own.example',
      isSuspended: async () => false,
      clock: createTestClock(),
      unlimited,
    }),
  })
  t.after(() => listener.close(5_000))
  const { host } = listener
  const open = async (port = listener.port, implicitTls = false) => {
    const client = await openDialogue(t, { host, port, implicitTls })
    await client.reply()
    await client.say('EHLO there.example')
    return client
  }
  return Object.assign(rig, { open, implicitTlsPort: listener.implicitTlsPort as number })
}

type Client = Awaited<ReturnType<Awaited<ReturnType<typeof startRig>>['open']>>

async function give(
  client: Client,
  recipients: readonly string[],
  content: string,
  sender = '',
): Promise<string | null> {
  await client.say(`MAIL FROM:<${sender}>`)
  for (const recipient of recipients) assert.equal(await client.say(`RCPT TO:<${recipient}>`), '250 2.1.5 OK')
  await client.say('DATA')
  return client.say(`${content}\r\n.`)
}

test('mail for addresses of ours is taken once for each; a domain in capitals is the same', async (t) => {
  const rig = await startRig(t)
  const client = await rig.open()
  const reply = await give(
    client,
    ['a@OWN.example', 'b@own.example', 'a@own.example'],
    'Subject: x\r\n\r\nhello',
    'ann@there.example',
  )
  assert.equal(reply, '250 2.0.0 Received')
  assert.deepEqual(rig.taken, [
    { address: 'a@own.example', sender: 'ann@there.example', text: 'hello\n' },
    { address: 'b@own.example', sender: 'ann@there.example', text: 'hello\n' },
  ])
})

test('other addresses are refused one by one, and the transaction continues', async (t) => {
  const rig = await startRig(t)
  const client = await rig.open()
  await client.say('MAIL FROM:<>')
  assert.equal(await client.say('RCPT TO:<c@own.example>'), '550 5.1.1 Recipient not found')
  assert.equal(await client.say('RCPT TO:<a@other.example>'), '550 5.7.1 Relaying denied')
  assert.equal(await client.say('DATA'), '503 5.5.1 No recipients')
  assert.equal(await client.say('RCPT TO:<a@own.example>'), '250 2.1.5 OK')
  await client.say('DATA')
  assert.equal(await client.say('\r\nx\r\n.'), '250 2.0.0 Received')
  assert.equal(rig.taken.length, 1)
})

test('what cannot be stored is not taken: its sender keeps it', async (t) => {
  const rig = await startRig(t)
  const client = await rig.open()
  const cases: [failure: Error, reply: string][] = [
    [new StoreUnavailable('away'), '451 4.3.0 Try again later'],
    [new StoreFull('full'), '452 4.3.1 Insufficient Storage'],
    [new Refusal('451 4.4.5 Try again later'), '451 4.4.5 Try again later'],
    [new Error('a fault of ours'), '451 4.3.0 Try again later'],
  ]
  for (const [failure, reply] of cases) {
    rig.failure = failure
    assert.equal(await give(client, ['fails@own.example'], 'x'), reply)
  }
  assert.equal(await give(client, ['a@own.example'], 'x'), '250 2.0.0 Received')
})

test('only the head of a large mail is read; a larger one than SIZE says is refused', async (t) => {
  const rig = await startRig(t)
  const client = await rig.open()
  const line = `${'y'.repeat(62)}\r\n`
  assert.equal(await give(client, ['a@own.example'], `\r\n${line.repeat(10_000)}`), '250 2.0.0 Received')
  const { text } = rig.taken[0] as Taken
  assert.ok(text.length > 200_000 && text.length <= 262_144, String(text.length))
  const large = `\r\n${line.repeat(26_214_400 / 64 + 1)}`
  assert.equal(
    await give(client, ['a@own.example'], large),
    '552 5.3.4 Message is too large, max size is 25MB',
  )
  assert.equal(rig.taken.length, 1)
})

test('a client that logs in submits; the port with implicit TLS accepts no other', async (t) => {
  const rig = await startRig(t)
  const client = await rig.open()
  assert.match((await client.say(`AUTH PLAIN ${plainLogin('x', 'y')}`)) ?? '', /^235/)
  assert.equal(await give(client, ['anybody@other.example'], 'x', 'me@own.example'), '250 2.0.0 Submitted')
  const secure = await rig.open(rig.implicitTlsPort, true)
  assert.equal(await secure.say('MAIL FROM:<>'), '530 5.7.0 Authentication required')
  assert.deepEqual(rig.taken, [])
})

test('mails to an address that needs no token are bounded more closely', async (t) => {
  const rig = await startRig(t, { unlimited: false })
  const client = await rig.open()
  for (let mails = 0; mails < 120; mails++)
    assert.equal(await give(client, ['b@own.example'], 'x'), '250 2.0.0 Received')
  const refused = await give(client, ['b@own.example'], 'x')
  assert.equal(refused, '451 4.7.1 Too many messages, try again later')
  assert.equal(await give(client, ['a@own.example', 'b@own.example'], 'x'), '250 2.0.0 Received')
})

test('an address of large contents gets more of a mail, alone in its transaction, and fewer mails', async (t) => {
  const rig = await startRig(t, { unlimited: false })
  const client = await rig.open()
  const long = `Subject: x\r\n\r\n${`${'x'.repeat(98)}\r\n`.repeat(12_000)}`
  assert.equal(await give(client, ['large1@own.example'], long), '250 2.0.0 Received')
  assert.deepEqual(
    rig.taken.map(({ text }) => text),
    ['1000000 bytes'],
  )
  await client.say('MAIL FROM:<>')
  assert.equal(await client.say('RCPT TO:<large1@own.example>'), '250 2.1.5 OK')
  assert.match((await client.say('RCPT TO:<large2@own.example>')) ?? '', /^452 /)
  await client.say('RSET')
  for (let mails = 1; mails < 30; mails++)
    assert.equal(await give(client, ['large2@own.example'], 'x'), '250 2.0.0 Received')
  assert.match((await give(client, ['large1@own.example'], 'x')) ?? '', /^451 4\.7\.1 /)
})

test('mails to one address and wrong addresses are bounded', async (t) => {
  const rig = await startRig(t, { unlimited: false })
  const next = await rig.open()
  for (let mails = 0; mails < 20; mails++) {
    assert.equal(await give(next, ['b@own.example', 'a@own.example'], 'x'), '250 2.0.0 Received')
  }
  await next.say('MAIL FROM:<>')
  assert.equal(await next.say('RCPT TO:<b@own.example>'), '250 2.1.5 OK')
  assert.equal(await next.say('RCPT TO:<a@own.example>'), '451 4.7.1 Too many messages, try again later')
  const prober = await rig.open()
  await prober.say('MAIL FROM:<>')
  for (let guess = 0; guess < 95; guess++) await prober.say(`RCPT TO:<g${guess}@own.example>`)
  const second = await rig.open()
  await second.say('MAIL FROM:<>')
  const replies: (string | null)[] = []
  for (let guess = 0; guess < 6; guess++) replies.push(await second.say(`RCPT TO:<h${guess}@own.example>`))
  assert.equal(replies[4], '550 5.1.1 Recipient not found')
  assert.equal(replies[5], '421 4.7.0 Too many unknown recipients')
  assert.equal(await second.reply(), null)
})
