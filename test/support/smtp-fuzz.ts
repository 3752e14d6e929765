/**
 * Random SMTP clients: command lines generated from the grammar and then damaged, for the dialogue alone and for whole
 * sessions over sockets. The same seed gives the same lines.
 *
 * A separate model checks the invariants: content is requested only after an accepted MAIL FROM and at least one
 * accepted RCPT TO of the same transaction, from a client that may send; and nothing ever throws.
 */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { LONG_LINE_BYTES_MAX, ServerDialogue, type Step } from '../../src/protocols/smtp/server-dialogue.ts'

export type Random = () => number

const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
const chance = (random: Random, of: number) => random() < of
const upTo = (random: Random, max: number) => Math.floor(random() * (max + 1))

const LOCALS = ['a', 'a.b', '"a b"', '"\\""', '', '.', 'a..b', '%', 'a%b', 'a!b', 'ü', '"<>"', 'x'.repeat(70)]
const DOMAINS = [
  'example.com',
  '[127.0.0.1]',
  '[IPv6:::1]',
  '',
  '.',
  'exa mple',
  'ü.example',
  '-a.example',
  'x',
]
const PARAMETERS = [
  ...[
    'SIZE=1',
    'SIZE=99999999999',
    'SIZE=x',
    'SIZE',
    'BODY=8BITMIME',
    'BODY=7BIT',
    'BODY=BINARYMIME',
    'BODY',
  ],
  ...[
    'SMTPUTF8',
    'SMTPUTF8=1',
    'AUTH=<>',
    'AUTH',
    'RET=FULL',
    'ENVID=x',
    'NOTIFY=NEVER',
    'X',
    '=',
    'SIZE=1 SIZE=2',
  ],
]
const MECHANISMS = [
  'PLAIN',
  'LOGIN',
  'CRAM-MD5',
  'plain',
  '',
  'PLAIN AGFAYgBw',
  'PLAIN =',
  'LOGIN YQ==',
  'PLAIN !',
]
const LOGIN_LINES = ['*', '', '=', 'AGFAYgBw', 'YQ==', 'YQ', 'not base64', 'A'.repeat(4_000), 'AAAA']
const SPLINTERS = [
  '\r',
  '\0',
  '\t',
  ' ',
  '<',
  '>',
  '"',
  '\\',
  ':',
  '=',
  '@',
  '\xff',
  '\xc3\x28',
  '\u2028',
  '%',
  '\x1b',
]

function path(random: Random): string {
  const mailbox = chance(random, 0.15) ? '' : `${pick(random, LOCALS)}@${pick(random, DOMAINS)}`
  const route = chance(random, 0.1) ? '@a.example,@b.example:' : ''
  const [left, right] = chance(random, 0.9)
    ? ['<', '>']
    : [pick(random, ['', '<<', '<']), pick(random, ['', '>'])]
  return `${left}${route}${mailbox}${right}`
}

const parameters = (random: Random) =>
  Array.from(
    { length: chance(random, 0.7) ? 0 : upTo(random, 12) },
    () => ` ${pick(random, PARAMETERS)}`,
  ).join('')

/** One line as a client may send it, mostly well-formed. */
function grown(random: Random): string {
  const kinds: (() => string)[] = [
    () =>
      `${pick(random, ['EHLO', 'HELO', 'ehlo'])} ${pick(random, ['c.example', '[127.0.0.1]', '', 'a b', 'ü'])}`,
    () => `MAIL FROM:${path(random)}${parameters(random)}`,
    () => `MAIL FROM:<a@example.com>`,
    () => `RCPT TO:${path(random)}${parameters(random)}`,
    () => `RCPT TO:<b@example.org>`,
    () => 'DATA',
    () =>
      pick(random, [
        'RSET',
        'NOOP',
        'NOOP x',
        'VRFY a',
        'EXPN a',
        'HELP',
        'STARTTLS',
        'RSET ',
        'data',
        'DATA x',
      ]),
    () => `AUTH ${pick(random, MECHANISMS)}`,
    () => pick(random, LOGIN_LINES),
    () => pick(random, ['BDAT 10', 'BDAT 10 LAST', 'BDAT', 'BDAT 0 LAST', 'BDAT -1', 'bdat 99999999999']),
    () => pick(random, ['ETRN x', 'TURN', 'SEND FROM:<a@b.c>', 'XCLIENT ADDR=1.2.3.4', 'BURL x LAST']),
    () => pick(random, ['GET / HTTP/1.1', 'Host: x', 'QUIT', 'XYZZY', '.', '..', '']),
  ]
  return pick(random, kinds)()
}

function damaged(line: string, random: Random): string {
  const at = upTo(random, line.length)
  switch (upTo(random, 5)) {
    case 0:
      return line.slice(0, at)
    case 1:
      return line.slice(0, at) + pick(random, SPLINTERS) + line.slice(at)
    case 2:
      return line.slice(0, at) + pick(random, SPLINTERS).repeat(upTo(random, 600)) + line.slice(at)
    case 3:
      return line.slice(at) + line.slice(0, at)
    case 4:
      return line + line.slice(at)
    default:
      return line.slice(0, at) + String.fromCharCode(upTo(random, 255)) + line.slice(at + 1)
  }
}

/** A command line without its CRLF, as bytes. */
function commandLine(random: Random): Buffer {
  let line = grown(random)
  while (chance(random, 0.25)) line = damaged(line, random)
  const bytes = Buffer.from(line, chance(random, 0.8) ? 'utf8' : 'latin1')
  return bytes.subarray(0, LONG_LINE_BYTES_MAX).filter((byte) => byte !== 10) as Buffer
}

/** Lines changed a little, to extend a corpus. */
export function mutatedLines(lines: readonly Buffer[], random: Random): Buffer[] {
  const changed = [...lines]
  for (let change = upTo(random, 3); change >= 0; change--) {
    const at = upTo(random, changed.length)
    const line = changed[at] ?? commandLine(random)
    const other = Buffer.from(damaged(line.toString('latin1'), random), 'latin1').subarray(
      0,
      LONG_LINE_BYTES_MAX,
    )
    if (chance(random, 0.5)) changed.splice(at, 0, commandLine(random))
    else changed.splice(at, 1, other)
  }
  return changed.slice(0, LINES_MAX)
}

const LINES_MAX = 60
const TRANSACTION = [
  'EHLO c.example',
  'AUTH PLAIN AGFAYgBw',
  'MAIL FROM:<a@example.com>',
  'RCPT TO:<b@example.org>',
  'DATA',
]

/** Lines of a client: anything, or a transaction with other lines between its commands. */
export function randomLines(random: Random): Buffer[] {
  const lines: Buffer[] = []
  if (chance(random, 0.5)) {
    for (const line of TRANSACTION) {
      if (chance(random, 0.2)) lines.push(commandLine(random))
      if (chance(random, 0.95)) lines.push(Buffer.from(line))
    }
  }
  for (let left = upTo(random, LINES_MAX - 10); left >= 0; left--) lines.push(commandLine(random))
  return lines
}

export interface Dialogued {
  lines: number
  /** How often content was requested. */
  contents: number
}

/** Sends the lines to a dialogue. @throws AssertionError for a forbidden step; and what the dialogue throws */
export function speak(lines: readonly Buffer[], random: Random): Dialogued {
  const loginRequired = chance(random, 0.5)
  const options = {
    hostname: 'h.example',
    sizeBytesMax: 1_000,
    recipientsMax: 3,
    authWithoutTls: chance(random, 0.7),
  }
  const dialogue = new ServerDialogue(
    { ...options, loginRequired, startTls: true, holdMaxSeconds: 604_800, now: () => 0 },
    false,
  )
  const model = { secure: false, loggedIn: false, open: false, recipients: 0 }
  const done: Dialogued = { lines: 0, contents: 0 }
  let challenged = false
  for (const line of lines) {
    const step = dialogue.take(line)
    done.lines++
    // The response to a challenge may look like a command.
    if (!challenged) checkBdat(step, line)
    checkReply(step)
    challenged = step.kind === 'reply' && step.reply.startsWith('334')
    switch (step.kind) {
      case 'reply':
        // A transaction may be ended by anything, such as a new greeting or RSET; only MAIL FROM may open one.
        if (/^250[ -]/.test(step.reply) && !isNoop(line)) Object.assign(model, { open: false, recipients: 0 })
        if (step.close) return done
        break
      case 'starttls':
        assert.ok(!model.secure, 'TLS is on already')
        Object.assign(model, { secure: true, loggedIn: false, open: false, recipients: 0 })
        dialogue.secured()
        break
      case 'login':
        assert.ok(model.secure || options.authWithoutTls, 'a password in plain text was taken')
        assert.ok(!model.loggedIn && !model.open)
        if (chance(random, 0.5)) continue
        model.loggedIn = true
        dialogue.loggedIn()
        break
      case 'mail':
        assert.ok(model.loggedIn || !loginRequired, 'MAIL FROM of a client that has not logged in')
        assert.ok(!model.open, 'MAIL FROM within a transaction')
        if (chance(random, 0.2)) continue
        Object.assign(model, { open: true, recipients: 0 })
        dialogue.began(step.utf8)
        break
      case 'recipient':
        assert.ok(model.open && model.recipients < options.recipientsMax, 'RCPT TO out of order')
        if (chance(random, 0.3)) continue
        model.recipients++
        dialogue.recipientTaken()
        break
      case 'content':
        assert.ok(model.open && model.recipients > 0, 'DATA was taken without a recipient')
        Object.assign(model, { open: false, recipients: 0 })
        done.contents++
        dialogue.ended()
    }
  }
  return done
}

const isNoop = (line: Buffer) => /^noop(?: |$)/i.test(line.toString('latin1'))

function checkBdat(step: Step, line: Buffer): void {
  const isBdat = /^bdat(?: |$)/i.test(line.toString('latin1'))
  if (isBdat) assert.ok(step.kind === 'reply' && !step.reply.startsWith('2'), 'BDAT was taken')
}

function checkReply(step: Step): void {
  if (step.kind !== 'reply') return
  assert.match(step.reply, /^(?:[2345]\d\d-[^\r\n]*\r\n)*[2345]\d\d [^\r\n]*$/)
  for (const one of step.reply.split('\r\n')) assert.ok(one.length <= 510, 'a reply is too long for its line')
}

const CONTENTS = [
  'From: a@example.com\r\n\r\nText\r\n.\r\n',
  '.\r\n',
  '..\r\n.\r\n',
  'Text\n.\n',
  'Text\r.\r',
  'Text\r\n.\nMAIL FROM:<x@example.com>\r\n',
  `${'x'.repeat(2_000)}\r\n.\r\n`,
  '\0\xff\r\n.\r\n',
]

/** The input of a client in a session, in pieces as they are written. */
export function sessionPieces(random: Random): Buffer[] {
  const wire: Buffer[] = [Buffer.from('EHLO c.example\r\n')]
  if (chance(random, 0.7))
    wire.push(Buffer.from(`AUTH PLAIN ${Buffer.from('\0u\0p').toString('base64')}\r\n`))
  for (const line of randomLines(random)) {
    // A handshake would have to follow.
    if (/^starttls/i.test(line.toString('latin1'))) continue
    wire.push(line, Buffer.from(chance(random, 0.97) ? '\r\n' : pick(random, ['\n', '\r', ''])))
    if (/^data *$/i.test(line.toString('latin1')) || chance(random, 0.05))
      wire.push(Buffer.from(pick(random, CONTENTS), 'latin1'))
  }
  const whole = Buffer.concat(wire)
  const pieces: Buffer[] = []
  for (let at = 0; at < whole.length; ) {
    const size = chance(random, 0.5) ? 1 + upTo(random, 20) : 1 + upTo(random, 2_000)
    pieces.push(whole.subarray(at, at + size))
    at += size
  }
  return pieces
}

/** Sends the pieces, reads all replies until the server closes. @throws AssertionError for a malformed reply */
export async function converse(
  to: { host: string; port: number },
  pieces: readonly Buffer[],
): Promise<string> {
  const socket = connect(to)
  let received = ''
  let failed = false
  socket.setEncoding('latin1')
  socket.on('data', (text: string) => {
    received += text
  })
  socket.on('error', () => {
    failed = true
  })
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  for (const piece of pieces) {
    if (socket.destroyed) break
    socket.write(piece)
    await setImmediate()
  }
  socket.end()
  await closed
  // The server may have closed the connection before our last bytes: then the last replies are lost.
  if (!failed) assert.match(received, /^(?:[2345]\d\d[ -][^\r\n]*\r\n)*$/)
  return received
}
