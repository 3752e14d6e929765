/** The listener over real sockets; deliveries and the database are in faults.test.ts. */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import pino from 'pino'
import { type Dialogue, openDialogue, plainLogin } from '../../../test/support/smtp-dialogue.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { systemClock } from '../../base/time/clock.ts'
import { openBlobs } from '../../platform/store/blobs/blobs.ts'
import { readChunk } from '../../protocols/message/mime-message.ts'
import { type CapturedMail, type CaptureListener, startCaptureListener } from './capture-listener.ts'
import type { FaultReply, FaultStage } from './faults.ts'

interface Rig {
  listener: CaptureListener
  /** Files of large mail that is not stored. */
  spooled(): Promise<string[]>
  captured: CapturedMail[]
  faults: Map<FaultStage, FaultReply>
  /** Greeted, and logged in. */
  client(): Promise<Dialogue>
}

async function startRig(t: TestContext, receive?: (mail: CapturedMail) => Promise<void>): Promise<Rig> {
  const captured: CapturedMail[] = []
  const faults: Rig['faults'] = new Map()
  const folder = await temporaryFolder(t)
  const listener = await startCaptureListener({
    receive: receive ?? (async (mail) => void captured.push(mail)),
    faults: { list: async () => [], replace: async () => [], at: async (stage) => faults.get(stage) ?? null },
    recipientOf: async () => 'ann@example.org',
    spool: await openBlobs(folder),
    clock: systemClock,
    log: pino({ level: 'silent' }),
  })
  t.after(() => listener.close())
  const { user, password } = listener.auth
  const client = async () => {
    const dialogue = await openDialogue(t, listener)
    assert.equal(await dialogue.reply(), '220 inbox.sendwright.localhost ESMTP captured mail')
    await dialogue.say('EHLO client.example')
    assert.equal(
      await dialogue.say(`AUTH PLAIN ${plainLogin(user, password)}`),
      '235 2.7.0 Authentication successful',
    )
    return dialogue
  }
  return { listener, spooled: () => readdir(join(folder, 'spool')), captured, faults, client }
}

const MAIL = 'MAIL FROM:<bounces@mg.example.com>'

async function send(client: Dialogue, content: string, to = 'ann@example.org'): Promise<string | null> {
  for (const command of [MAIL, `RCPT TO:<${to}>`]) assert.match((await client.say(command)) ?? '', /^250 /)
  assert.match((await client.say('DATA')) ?? '', /^354 /)
  return client.say(`${content}\r\n.`)
}

test('only the login of this start is accepted, and STARTTLS is neither offered nor accepted', async (t) => {
  const { listener } = await startRig(t)
  const client = await openDialogue(t, listener)
  await client.reply()
  assert.deepEqual(
    (await client.say('EHLO client.example'))?.split('\r\n').map((line) => line.slice(4)),
    [
      'inbox.sendwright.localhost',
      'PIPELINING',
      'SIZE 27262976',
      '8BITMIME',
      'SMTPUTF8',
      'ENHANCEDSTATUSCODES',
      'AUTH PLAIN LOGIN',
    ],
  )
  assert.match((await client.say('STARTTLS')) ?? '', /^502 /)
  assert.match((await client.say(MAIL)) ?? '', /^530 /)
  assert.match((await client.say(`AUTH PLAIN ${plainLogin('capture', 'guess')}`)) ?? '', /^535 /)
  const { auth } = (await startRig(t)).listener
  assert.match((await client.say(`AUTH PLAIN ${plainLogin(auth.user, auth.password)}`)) ?? '', /^535 /)
})

test('mail is captured byte for byte: large, with a quoted local part, with 60 Received fields', async (t) => {
  const { captured, client } = await startRig(t)
  const connection = await client()
  const received = 'Received: from a by b; Mon, 23 Nov 2026 10:00:00 +0000\r\n'.repeat(60)
  assert.equal(await send(connection, `${received}Subject: a\r\n\r\n..dot`), '250 Captured')
  const large = `Subject: b\r\n\r\n${`${'x'.repeat(76)}\r\n`.repeat(10_000)}end`
  assert.equal(await send(connection, large, '"a b"@example.org'), '250 Captured')
  const from = 'bounces@mg.example.com'
  assert.deepEqual(
    captured.map(({ from, to }) => ({ from, to })),
    [
      { from, to: ['ann@example.org'] },
      { from, to: ['"a b"@example.org'] },
    ],
  )
  const texts = captured.map(async ({ raw }) => (await readChunk(raw)).toString('latin1'))
  assert.deepEqual(await Promise.all(texts), [`${received}Subject: a\r\n\r\n.dot\r\n`, `${large}\r\n`])
})

test('mail that cannot be stored is deferred and leaves no file, and the connection stays', async (t) => {
  let broken = true
  const { client, spooled } = await startRig(t, async () => {
    if (broken) throw new Error('no database')
  })
  const connection = await client()
  for (const size of [0, 10_000]) {
    const content = `Subject: a\r\n\r\n${'line\r\n'.repeat(size)}`
    assert.equal(await send(connection, content), '451 Cannot store the message now')
  }
  assert.deepEqual(await spooled(), [])
  broken = false
  assert.equal(await send(connection, 'Subject: a\r\n'), '250 Captured')
})

test('a fault replaces the reply at its stage; 421 ends the connection', async (t) => {
  const { captured, faults, client, listener } = await startRig(t)
  const commands: [FaultStage, string][] = [
    ['mail', MAIL],
    ['rcpt', 'RCPT TO:<ann@example.org>'],
    ['data', 'DATA'],
    ['dot', 'Subject: a\r\n\r\n.'],
  ]
  for (const [stage] of commands) {
    for (const code of [450, 421]) {
      faults.set(stage, { code, text: '4.2.2 try later' })
      const connection = await client()
      for (const [name, command] of commands) {
        const reply = await connection.say(command)
        if (name === stage) assert.equal(reply, `${code} 4.2.2 try later`)
        if (name === stage) break
      }
      faults.clear()
      if (code === 421) assert.equal(await connection.reply(), null, stage)
      else {
        assert.equal(await connection.say('RSET'), '250 2.0.0 OK')
        assert.equal(await send(connection, 'Subject: b\r\n'), '250 Captured', stage)
      }
    }
  }
  assert.equal(captured.length, commands.length)
  const used = await client()
  await send(used, 'Subject: c\r\n')
  faults.set('connect', { code: 554, text: '5.3.2 no service' })
  assert.equal(await used.say(MAIL), '421 4.3.0 Connect again')
  assert.deepEqual(await (await openDialogue(t, listener)).rest(), ['554 5.3.2 no service'])
})
