/**
 * Passes SMTP clients on to a node of their pod.
 *
 * - A client that logs in is handed to the node of its login, and from then on the front passes bytes.
 * - Mail without a login belongs to the pod of its recipient, which is known at the first RCPT. The front then repeats EHLO and
 *   MAIL to a node, and passes replies and content on until the reply to the final dot. Recipients of another pod get 452, so
 *   that the client sends to them separately (RFC 5321 §4.5.3.1.10). The next message has a connection of its own.
 *
 * The node sees the client's address and whether it speaks TLS (protocols/proxy), and decides everything: what no pod has is
 * passed on as well, to be refused. The end of content is found by the reader that nodes have, so both agree on it.
 */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import type { SecureContext } from 'node:tls'
import type { Logger } from 'pino'
import type { Clock } from '../base/time/clock.ts'
import { MINUTE_MS } from '../base/time/durations.ts'
import { Channel } from '../protocols/smtp/channel.ts'
import { CODE, STATUS } from '../protocols/smtp/codes.ts'
import { DataReader } from '../protocols/smtp/data-reader.ts'
import { SmtpFailure } from '../protocols/smtp/failure.ts'
import type { SmtpReply } from '../protocols/smtp/reply.ts'
import type { ServerChannel } from '../protocols/smtp/server-channel.ts'
import { LONG_LINE_BYTES_MAX, ServerDialogue, type Step } from '../protocols/smtp/server-dialogue.ts'
import {
  ANONYMOUS_COMMANDS_MAX,
  BAD_COMMANDS_MAX,
  FAILED_LOGINS_MAX,
  HANDSHAKE_MS,
  type SessionLimits,
  sayFarewell,
} from '../receiving/sessions/session.ts'
import { type Directory, DirectoryAway, type Name, type Pod } from './directory.ts'
import { namesOfAddress } from './names.ts'
import { type Client, type Dial, NoNode } from './nodes.ts'

/** Nodes delay the reply to a wrong password, and store a message before they reply to its end. */
const REPLY_MAX_MS = 2 * MINUTE_MS
/** Beyond what nodes allow for a content, and for a client that is idle. */
const PASSED_IDLE_MS = 12 * MINUTE_MS

export interface SmtpFrontParts {
  hostname: string
  limits: SessionLimits
  authWithoutTls(address: string): boolean
  secureContext: () => SecureContext
  directory: Pick<Directory, 'find' | 'fallback'>
  dial: Dial
  /** A client was handed to the pod, or a message of one without a login. */
  passed(pod: string, kind: 'login' | 'mail'): void
  clock: Clock
  log: Logger
}

/** As `serve` of the listener's options (receiving/sessions/smtp-listener.ts). */
export async function serveThrough(
  channel: ServerChannel,
  parts: SmtpFrontParts,
  address: string,
  implicitTls: boolean,
  loggedIn: () => void,
): Promise<void> {
  const session = new FrontSession(channel, parts, address, implicitTls, loggedIn)
  try {
    if (implicitTls) await channel.secure(parts.secureContext(), HANDSHAKE_MS, true)
    await session.run()
  } catch (error) {
    sayFarewell(channel, error, (fault) =>
      parts.log.error({ err: fault, remoteAddress: address }, 'an SMTP session of the front failed'),
    )
  }
  session.leaveNode()
  await channel.end()
}

class FrontSession {
  readonly #channel: ServerChannel
  readonly #parts: SmtpFrontParts
  readonly #address: string
  readonly #loggedIn: () => void
  readonly #dialogue: ServerDialogue
  /** MAIL as the client gave it. */
  #mail = ''
  /** Has had EHLO and MAIL. */
  #node: { channel: Channel; pod: string; recipients: number } | null = null
  #badCommands = 0
  #failedLogins = 0
  #commands = 0
  #messages = 0
  #closing = false

  constructor(
    channel: ServerChannel,
    parts: SmtpFrontParts,
    address: string,
    submits: boolean,
    loggedIn: () => void,
  ) {
    this.#channel = channel
    this.#parts = parts
    this.#address = address
    this.#loggedIn = loggedIn
    const { hostname, limits, clock } = parts
    this.#dialogue = new ServerDialogue(
      {
        ...{ hostname, sizeBytesMax: limits.sizeBytesMax, recipientsMax: limits.recipientsMax },
        authWithoutTls: parts.authWithoutTls(address),
        loginRequired: submits,
        startTls: true,
        holdMaxSeconds: Math.floor((limits.holdMaxMs ?? 0) / 1000),
        now: () => clock.now(),
      },
      channel.isSecure || submits,
    )
  }

  async run(): Promise<void> {
    this.#channel.reply(`220 ${this.#parts.hostname} ESMTP Sendwright`)
    while (!this.#closing) {
      const read = await this.#channel.line(LONG_LINE_BYTES_MAX, this.#parts.limits.idleMs)
      if (read.kind === 'line') await this.#perform(this.#dialogue.take(read.line), read.line.toString())
      else
        this.#goodbye(
          `${STATUS.syntax} ${read.kind === 'too-long' ? 'Line too long' : 'Line ends must be CRLF'}`,
        )
      if (++this.#commands > ANONYMOUS_COMMANDS_MAX)
        this.#goodbye(`${STATUS.enough} Too many commands without authentication`)
    }
  }

  /** Ends the transaction at the node. */
  leaveNode(): void {
    this.#node?.channel.destroy()
    this.#node = null
  }

  async #perform(step: Step, line: string): Promise<void> {
    switch (step.kind) {
      case 'reply':
        // These end a transaction.
        if (!step.bad && /^(?:RSET|EHLO|HELO|QUIT)\b/i.test(line)) this.leaveNode()
        if (step.close) this.#goodbye(step.reply)
        else this.#answer(step.reply, step.bad)
        return
      case 'starttls':
        this.#channel.reply('220 2.0.0 Ready to start TLS')
        this.leaveNode()
        await this.#channel.secure(this.#parts.secureContext(), HANDSHAKE_MS, false)
        return this.#dialogue.secured()
      case 'login':
        return this.#logIn(step.user, step.password)
      case 'mail':
        if (this.#messages >= this.#parts.limits.messagesMax)
          return this.#goodbye(`${STATUS.enough} Too many messages on one connection`)
        this.#mail = line
        this.#dialogue.began(step.utf8)
        return this.#channel.reply('250 2.1.0 OK')
      case 'recipient':
        return this.#recipient(step.address, line)
      case 'content':
        return this.#content()
    }
  }

  #answer(reply: string, bad: boolean): void {
    this.#channel.reply(reply)
    if (bad && ++this.#badCommands === BAD_COMMANDS_MAX)
      this.#goodbye(`${STATUS.enough} Too many bad commands`)
  }

  #goodbye(reply: string): void {
    if (!this.#closing) this.#channel.reply(reply)
    this.#closing = true
  }

  async #logIn(user: string, password: string): Promise<void> {
    const away = `${STATUS.loginUnchecked} Temporary authentication failure`
    const pod = await this.#podOf([{ kind: 'login', value: user.toLowerCase() }])
    const node = pod && (await this.#open(pod))
    if (!node) return this.#channel.reply(away)
    const secret = Buffer.from(`\0${user}\0${password}`).toString('base64')
    const reply = await said(node, `AUTH PLAIN ${secret}`)
    if (reply?.code === CODE.authenticated) {
      this.#loggedIn()
      this.#parts.passed(pod.name, 'login')
      this.#channel.reply(replyLines(reply))
      this.#closing = true
      return passBoth(this.#channel.release(), node.release())
    }
    node.destroy()
    if (!reply) return this.#channel.reply(away)
    this.#pass(reply)
    if (++this.#failedLogins === FAILED_LOGINS_MAX) this.#goodbye(`${STATUS.enough} Too many failed logins`)
  }

  async #recipient(address: string, line: string): Promise<void> {
    const pod = await this.#podOf(namesOfAddress(address))
    if (pod === null) return this.#channel.reply(`${STATUS.tryLater} Try again later`)
    if (this.#node !== null && this.#node.pod !== pod.name) {
      if (this.#node.recipients > 0)
        return this.#channel.reply(`${STATUS.tooManyRecipients} Send to this recipient separately`)
      this.leaveNode()
    }
    if (this.#node === null) {
      const channel = await this.#open(pod)
      const reply = channel && (await said(channel, this.#mail))
      if (!channel || !isGood(reply)) {
        channel?.destroy()
        return reply ? this.#pass(reply) : this.#channel.reply(`${STATUS.tryLater} Try again later`)
      }
      this.#node = { channel, pod: pod.name, recipients: 0 }
    }
    const reply = await said(this.#node.channel, line)
    if (!reply) return this.#lost()
    if (isGood(reply)) {
      this.#node.recipients += 1
      this.#dialogue.recipientTaken()
    }
    this.#pass(reply)
  }

  async #content(): Promise<void> {
    const node = this.#node
    assert(node, 'a recipient without a node')
    const ready = await said(node.channel, 'DATA')
    if (!ready) return this.#lost()
    this.#pass(ready)
    if (ready.code !== CODE.startContent) return
    const reply = await this.#passContent(node.channel)
    if (reply === 'malformed') return this.#goodbye(`${STATUS.badContent} Line ends must be CRLF`)
    // The node may have stored it: as after any lost reply, the client decides.
    if (!reply) return this.#lost()
    this.#pass(reply)
    this.#parts.passed(node.pod, 'mail')
    this.#dialogue.ended()
    this.leaveNode()
    this.#messages += 1
    if (isGood(reply)) this.#commands = 0
  }

  /** Resolves to the node's reply to the content; null: the node is lost. @throws ChannelClosed */
  async #passContent(node: Channel): Promise<SmtpReply | 'malformed' | null> {
    const { clock, limits } = this.#parts
    const until = clock.monotonic() + limits.contentMs
    const reader = new DataReader()
    for (;;) {
      const bytes = await this.#channel.bytes(Math.min(until, clock.monotonic() + limits.idleMs))
      const progress = reader.push(bytes, () => {})
      if (progress.kind === 'bare-line-end') return 'malformed'
      try {
        if (progress.kind === 'more') await node.writeContent(bytes, 'body', REPLY_MAX_MS)
        else {
          this.#channel.unread(bytes.subarray(progress.next))
          node.writeLastContent(bytes.subarray(0, progress.next), [])
          return await node.reply('dot', REPLY_MAX_MS)
        }
      } catch (error) {
        if (error instanceof SmtpFailure) return error.reply
        throw error
      }
    }
  }

  /** A reply of the node, which may announce its end. */
  #pass(reply: SmtpReply): void {
    if (reply.code === CODE.leaving) this.#goodbye(replyLines(reply))
    else this.#channel.reply(replyLines(reply))
  }

  /** The node is gone in the middle of a transaction. */
  #lost(): void {
    this.#goodbye(`${STATUS.internalError} Try again later`)
  }

  /** The pod of the names, else one that refuses; null: nobody knows now. */
  async #podOf(names: readonly Name[]): Promise<Pod | null> {
    const { directory } = this.#parts
    try {
      return (await directory.find(names)) ?? directory.fallback()
    } catch (error) {
      if (error instanceof DirectoryAway) return null
      throw error
    }
  }

  /** A node that has been greeted with the client's own name; null: none can be used. */
  async #open(pod: Pod): Promise<Channel | null> {
    const { clock, dial } = this.#parts
    const { isSecure } = this.#channel
    const client: Client = { address: this.#address, port: 0, isSecure }
    const socket = await dial(pod.smtp, client).catch((error: unknown) => {
      if (error instanceof NoNode) return null
      throw error
    })
    if (socket === null) return null
    const node = new Channel(socket, { clock })
    const { helo, protocol } = this.#dialogue.client(false)
    const greeting = await said(node, null)
    const reply = isGood(greeting) && (await said(node, `${protocol === 'SMTP' ? 'HELO' : 'EHLO'} ${helo}`))
    if (reply && isGood(reply)) return node
    node.destroy()
    return null
  }
}

/** The reply to a line, null: to none; null if the node is lost. Lines are those of a dialogue, which has checked them. */
async function said(node: Channel, line: string | null): Promise<SmtpReply | null> {
  if (line !== null) node.write(`${line}\r\n`, 1)
  try {
    return await node.reply('ehlo', REPLY_MAX_MS)
  } catch (error) {
    if (error instanceof SmtpFailure) return error.reply
    throw error
  }
}

const isGood = (reply: SmtpReply | null): reply is SmtpReply => reply !== null && reply.code < 300

/** As the node gave it, without the last CRLF. */
const replyLines = ({ code, lines }: SmtpReply): string =>
  lines.map((line, at) => `${code}${at < lines.length - 1 ? '-' : ' '}${line}`).join('\r\n')

/** Until the node has said its last. */
async function passBoth(client: Socket, node: Socket): Promise<void> {
  const both = [client, node]
  const cut = () => {
    for (const socket of both) socket.destroy()
  }
  for (const socket of both) socket.setTimeout(PASSED_IDLE_MS, cut)
  void pipeline(client, node).catch(cut)
  await pipeline(node, client).catch(cut)
}
