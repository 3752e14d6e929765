/**
 * One client from its greeting to its goodbye (smtp-submission.md):
 *
 * 1. the greeting, then one command line after the other (src/protocols/smtp/server-dialogue.ts);
 * 2. logins are checked (login-guard.ts): each failure delays the client by a second, the fifth closes the connection;
 * 3. MAIL FROM opens a transaction: submission after a login, else reception;
 * 4. the content is read and handed to the transaction; the 250 follows once it is stored.
 *
 * The connection ends with QUIT, after too many bad commands, failed logins or messages, on a timeout, and when the
 * service stops.
 */

import assert from 'node:assert/strict'
import type { SecureContext } from 'node:tls'
import type { ByteBudget } from '../../base/flow/byte-budget.ts'
import type { FaultLog } from '../../base/process/fault-log.ts'
import { SECOND_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { Chunk } from '../../protocols/message/mime-message.ts'
import { type Mailbox, parseMailbox, readOrNull } from '../../protocols/mime/address.ts'
import { STATUS } from '../../protocols/smtp/codes.ts'
import { ChannelClosed, type ServerChannel } from '../../protocols/smtp/server-channel.ts'
import {
  LONG_LINE_BYTES_MAX,
  type MailParameters,
  ServerDialogue,
  type Step,
} from '../../protocols/smtp/server-dialogue.ts'
import { type ContentLimits, readContent } from './received-content.ts'
import { Refusal, replyTo } from './replies.ts'

/** The account and domain of an authenticated login. */
export interface SmtpLogin {
  login: string
  accountId: string
  domainId: string
  /** Changes with the password: a session that began under an earlier value has ended. */
  changedAt: number
}

export interface MailOpening {
  login: SmtpLogin
  remoteAddress: string
  /**
   * MAIL FROM as given; empty: the null sender of automatic mail (RFC 5321 §4.5.5). Not used for delivery, but mailing lists
   * check whether it is empty.
   */
  envelopeSender: string
  /** No transaction was opened on this connection before. */
  isFirst: boolean
  parameters: MailParameters
}

/** MAIL FROM of a client that has not logged in. */
export interface ReceptionOpening {
  /** Envelope sender as given; '' is `<>`. */
  sender: string
  remoteAddress: string
  /** The name that the client gave at EHLO or HELO. */
  helo: string
  /** As in the transaction's Received field, e.g. `ESMTPS`. */
  protocol: string
  /** Only over TLS may the mail go on (RFC 8689). */
  requireTls?: true
}

/** Handles one transaction. Every method may throw a Refusal or a ServiceError. */
export interface MailTransaction {
  /** Accepts or refuses one recipient; absent: each is accepted. */
  recipient?(mailbox: Mailbox): Promise<void>
  /** Keep only the head of the content, which the caller discards afterwards. Absent: all of it. */
  readonly keepBytesMax?: number | undefined
  /** After `finish`: nothing of the content is kept, so that the caller discards it. Absent: it is. */
  readonly dropped?: boolean
  /** Accepts or refuses the DATA command; absent: it is accepted. */
  data?(): Promise<void>
  /** Stores the message durably; resolves with the reply, a 250. If it throws, the caller discards `raw`. */
  finish(raw: Chunk, recipients: readonly Mailbox[]): Promise<string>
}

export interface SessionParts extends Pick<Core, 'clock' | 'log'> {
  hostname: string
  limits: SessionLimits
  /** Whether this address may send passwords in plain text. */
  authWithoutTls(remoteAddress: string): boolean
  /** Null: no STARTTLS. */
  secureContext: (() => SecureContext) | null
  /** Resolves with the first line; a Refusal replaces it and ends the connection. Null: the usual greeting. */
  greeting: (() => Promise<string>) | null
  /** Null for every wrong login, after the same time whatever is wrong. @throws Refusal when it was not checked */
  authenticate(user: string, password: string, remoteAddress: string): Promise<SmtpLogin | null>
  /** Resolves when the reply to a failed login may be sent. */
  loginFailed(remoteAddress: string, user: string): Promise<void>
  /** MAIL FROM of a client that has logged in. */
  submission(opening: MailOpening): Promise<MailTransaction>
  /** MAIL FROM of one that has not; null: such clients are refused. Never on the port with implicit TLS. */
  reception: ((opening: ReceptionOpening) => Promise<MailTransaction>) | null
  /** For large content; null: all content stays in memory. */
  blobs: Pick<BlobStore, 'spool'> | null
  /** Memory for content that does not stay small; null: without a limit. */
  largeBodies: ByteBudget | null
  /** Limits how many faults are logged. */
  faults: FaultLog
}

export interface SessionLimits extends ContentLimits {
  recipientsMax: number
  messagesMax: number
  /** How long a client that logs in may have a message held; absent: not at all. */
  holdMaxMs?: number
}

/** Limits of the contract that cannot be configured; content as SIZE counts it. */
export const SMTP_LIMITS = {
  sizeBytesMax: 26_214_400,
  recipientsMax: 1_000,
  contentMs: 600_000,
  hopsMax: 50, // RFC 5321 §6.3: "at least 100" is for servers that relay
} as const

export const BAD_COMMANDS_MAX = 20
export const FAILED_LOGINS_MAX = 5
/** Commands between two messages, of a client that has not logged in: two transactions of a hundred recipients. */
export const ANONYMOUS_COMMANDS_MAX = 250
export const HANDSHAKE_MS = 30_000

/** As `serve` of the listener's options. */
export async function serveClient(
  channel: ServerChannel,
  parts: SessionParts,
  remoteAddress: string,
  implicitTls: boolean,
  loggedIn: () => void,
): Promise<void> {
  try {
    if (implicitTls) await secure(channel, parts, true)
    await new Session(channel, remoteAddress, parts, implicitTls, loggedIn).run()
  } catch (error) {
    sayFarewell(channel, error, (fault) =>
      parts.log.error({ err: fault, remoteAddress }, 'an SMTP session failed'),
    )
  }
  await channel.end()
}

/** The last reply to a client whose session ended with `error`. `onFault`: called for what is our fault. */
export function sayFarewell(channel: ServerChannel, error: unknown, onFault: (fault: unknown) => void): void {
  if (!(error instanceof ChannelClosed)) {
    onFault(error)
    channel.reply(`${STATUS.internalError} Internal error`)
  } else if (error.why === 'timeout') channel.reply(`${STATUS.timeout} Timeout`)
  else if (error.why === 'crowded') channel.reply(`${STATUS.enough} Too many connections`)
  else if (error.why === 'stopping') channel.reply(`${STATUS.stopping} Service shutting down`)
}

interface OpenTransaction {
  handler: MailTransaction
  recipients: Mailbox[]
}

class Session {
  readonly #channel: ServerChannel
  readonly #remoteAddress: string
  readonly #parts: SessionParts
  readonly #dialogue: ServerDialogue
  readonly #reception: SessionParts['reception']
  readonly #loggedIn: () => void
  #login: SmtpLogin | null = null
  #transaction: OpenTransaction | null = null
  /** No transaction has been opened. */
  #isUnused = true
  #badCommands = 0
  #failedLogins = 0
  #anonymousCommands = 0
  #messages = 0
  #closing = false

  /** `submits`: the port is for submission only. */
  constructor(
    channel: ServerChannel,
    remoteAddress: string,
    parts: SessionParts,
    submits: boolean,
    loggedIn: () => void,
  ) {
    this.#channel = channel
    this.#loggedIn = loggedIn
    this.#remoteAddress = remoteAddress
    this.#parts = parts
    this.#reception = submits ? null : parts.reception
    const { hostname, limits } = parts
    this.#dialogue = new ServerDialogue(
      {
        hostname,
        sizeBytesMax: limits.sizeBytesMax,
        recipientsMax: limits.recipientsMax,
        authWithoutTls: parts.authWithoutTls(remoteAddress),
        loginRequired: this.#reception === null,
        startTls: parts.secureContext !== null,
        holdMaxSeconds: limits.holdMaxMs === undefined ? null : Math.floor(limits.holdMaxMs / SECOND_MS),
        now: () => parts.clock.now(),
      },
      channel.isSecure,
    )
  }

  async run(): Promise<void> {
    await this.#greet()
    while (!this.#closing) {
      const read = await this.#channel.line(LONG_LINE_BYTES_MAX, this.#parts.limits.idleMs)
      if (read.kind === 'line') await this.#perform(this.#dialogue.take(read.line))
      else {
        this.#goodbye(
          read.kind === 'too-long'
            ? `${STATUS.syntax} Line too long`
            : `${STATUS.syntax} Line ends must be CRLF`,
        )
      }
      if (this.#login === null && ++this.#anonymousCommands > ANONYMOUS_COMMANDS_MAX) {
        this.#goodbye(`${STATUS.enough} Too many commands without authentication`)
      }
    }
  }

  async #greet(): Promise<void> {
    const { hostname, greeting } = this.#parts
    const line = await this.#tried(
      async () => (greeting && (await greeting())) ?? `220 ${hostname} ESMTP Sendwright`,
    )
    if (line === undefined) this.#closing = true
    else this.#channel.reply(line)
  }

  async #perform(step: Step): Promise<void> {
    switch (step.kind) {
      case 'reply':
        if (step.close) return this.#goodbye(step.reply)
        return this.#answer(step.reply, step.bad)
      case 'starttls':
        return this.#startTls()
      case 'login':
        return this.#logIn(step.user, step.password)
      case 'mail':
        return this.#mail(step.sender, step)
      case 'recipient':
        return this.#recipient(step.address)
      case 'content':
        return this.#content()
    }
  }

  #answer(reply: string, bad: boolean): void {
    this.#channel.reply(reply)
    if (!bad) return
    this.#badCommands += 1
    if (this.#badCommands === BAD_COMMANDS_MAX) this.#goodbye(`${STATUS.enough} Too many bad commands`)
  }

  #goodbye(reply: string): void {
    if (this.#closing) return
    this.#channel.reply(reply)
    this.#closing = true
  }

  async #startTls(): Promise<void> {
    this.#channel.reply('220 2.0.0 Ready to start TLS')
    await secure(this.#channel, this.#parts, false)
    this.#login = null
    this.#transaction = null
    this.#dialogue.secured()
  }

  async #logIn(user: string, password: string): Promise<void> {
    const login = await this.#tried(() => this.#parts.authenticate(user, password, this.#remoteAddress))
    if (login === undefined) return
    if (login !== null) {
      this.#login = login
      this.#dialogue.loggedIn()
      this.#loggedIn()
      return this.#channel.reply('235 2.7.0 Authentication successful')
    }
    this.#parts.log.info(
      { remoteAddress: this.#remoteAddress, user: user.slice(0, 320) },
      'SMTP login failed',
    )
    this.#failedLogins += 1
    await this.#parts.loginFailed(this.#remoteAddress, user)
    this.#channel.reply(`${STATUS.loginFailed} Authentication failed`)
    if (this.#failedLogins === FAILED_LOGINS_MAX) this.#goodbye(`${STATUS.enough} Too many failed logins`)
  }

  async #mail(sender: string, parameters: MailParameters): Promise<void> {
    if (this.#messages >= this.#parts.limits.messagesMax) {
      return this.#goodbye(`${STATUS.enough} Too many messages on one connection`)
    }
    const handler = await this.#tried(() => this.#open(sender, parameters))
    if (!handler) return
    this.#isUnused = false
    this.#transaction = { handler, recipients: [] }
    this.#dialogue.began(parameters.utf8)
    this.#channel.reply('250 2.1.0 OK')
  }

  async #open(sender: string, parameters: MailParameters): Promise<MailTransaction> {
    const remoteAddress = this.#remoteAddress
    if (this.#login === null && this.#reception) {
      const { utf8, requireTls } = parameters
      const client = this.#dialogue.client(utf8)
      return this.#reception({ sender, remoteAddress, ...client, ...(requireTls && { requireTls }) })
    }
    if (sender !== '') readMailbox(sender, `${STATUS.badSender} cannot parse from address`)
    const login = this.#login as SmtpLogin
    const isFirst = this.#isUnused
    return this.#parts.submission({ login, remoteAddress, envelopeSender: sender, isFirst, parameters })
  }

  async #recipient(address: string): Promise<void> {
    const mailbox = await this.#tried(async () => {
      const read = readMailbox(address, `${STATUS.badRecipient} cannot parse to address`)
      await this.#transaction?.handler.recipient?.(read)
      return read
    })
    if (!mailbox) return
    this.#transaction?.recipients.push(mailbox)
    this.#dialogue.recipientTaken()
    this.#channel.reply('250 2.1.5 OK')
  }

  async #content(): Promise<void> {
    const { handler, recipients } = this.#transaction as OpenTransaction
    const { data } = handler
    if (data && !(await this.#tried(() => data().then(() => true)))) return
    this.#transaction = null
    this.#dialogue.ended()
    this.#channel.reply('354 End data with <CR><LF>.<CR><LF>')
    const { limits, blobs, clock } = this.#parts
    const reply = await this.#tried(async () => {
      const content = await readContent(this.#channel, blobs, () => clock.monotonic(), {
        ...limits,
        keepBytesMax: handler.keepBytesMax ?? null,
        largeBodies: handler.keepBytesMax === undefined ? this.#parts.largeBodies : null,
      })
      let stored = false
      try {
        const answer = await handler.finish(content.chunk, recipients)
        stored = handler.keepBytesMax === undefined && handler.dropped !== true
        return answer
      } finally {
        if (!stored) await content.discard()
        content.done()
      }
    })
    this.#messages += 1
    if (reply === undefined) return
    this.#anonymousCommands = 0
    this.#channel.reply(reply)
  }

  /** Undefined: it was refused, and the reply has been sent. @throws ChannelClosed */
  async #tried<T>(run: () => Promise<T>): Promise<T | undefined> {
    try {
      return await run()
    } catch (error) {
      if (error instanceof ChannelClosed) throw error
      const { reply, closes, ourFault } = replyTo(error)
      if (ourFault) {
        const { log, faults } = this.#parts
        faults.log(
          log,
          error,
          { remoteAddress: this.#remoteAddress, reply: reply.slice(0, 3) },
          'SMTP refused',
        )
      }
      if (closes) this.#goodbye(reply)
      else this.#channel.reply(reply)
      return undefined
    }
  }
}

function secure(channel: ServerChannel, { secureContext }: SessionParts, implicit: boolean): Promise<void> {
  assert(secureContext, 'TLS without a certificate')
  return channel.secure(secureContext(), HANDSHAKE_MS, implicit)
}

function readMailbox(text: string, refusal: string): Mailbox {
  const mailbox = readOrNull(() => parseMailbox(text))
  if (mailbox === null) throw new Refusal(refusal)
  return mailbox
}
