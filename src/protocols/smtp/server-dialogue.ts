/**
 * The server side of an SMTP dialogue as a state machine without sockets: a command line in, the next step out. Where a
 * reply depends only on the dialogue, the step is that reply; else it says what is to be done, and the caller reports
 * the outcome (`loggedIn`, `began`, `recipientTaken`, ...) before the next line.
 *
 * RFC 5321 §4.1, with SIZE (1870), PIPELINING (2920), 8BITMIME (6152), SMTPUTF8 (6531), STARTTLS (3207), AUTH PLAIN and
 * LOGIN (4954), enhanced codes (2034), REQUIRETLS over TLS (8689) and, for clients that log in, FUTURERELEASE (4865). Not
 * offered: CHUNKING, DSN, VRFY.
 */

import { isUtf8 } from 'node:buffer'
import { SECOND_MS } from '../../base/time/durations.ts'
import { STATUS } from './codes.ts'
import { type Command, type Parameters, parseCommand } from './server-command.ts'

export interface DialogueOptions {
  /** Name in the EHLO reply. */
  hostname: string
  /** Largest content, announced by SIZE. */
  sizeBytesMax: number
  /** Recipients of one transaction. */
  recipientsMax: number
  /** Passwords are accepted in plain text. */
  authWithoutTls: boolean
  /** Clients must log in before MAIL. */
  loginRequired: boolean
  /** STARTTLS is offered on a connection without TLS. */
  startTls: boolean
  /** How long a message may be held before it is sent, by FUTURERELEASE; null: that is not offered. */
  holdMaxSeconds: number | null
  /** Unix milliseconds. */
  now(): number
}

/** What a transaction is opened with. `requireTls`: REQUIRETLS (RFC 8689). `holdUntil`: Unix milliseconds (RFC 4865). */
export interface MailParameters {
  utf8: boolean
  requireTls?: true
  holdUntil?: number
}

export type Step =
  /** `bad` counts against the client; `close`: the connection ends with this reply. */
  | { kind: 'reply'; reply: string; bad: boolean; close: boolean }
  /** Answer 220, then do the handshake, then `secured`. */
  | { kind: 'starttls' }
  | { kind: 'login'; user: string; password: string }
  | ({ kind: 'mail'; sender: string } & MailParameters)
  | { kind: 'recipient'; address: string }
  /** Answer 354 and read the content, then `ended`. */
  | { kind: 'content' }

/** With its CRLF (RFC 5321 §4.5.3.1.4); the longer one for AUTH and SMTPUTF8. */
const LINE_BYTES_MAX = 512
export const LONG_LINE_BYTES_MAX = 4096
const CRLF_BYTES = 2

const TOO_LARGE = `${STATUS.tooLarge} Message is too large, max size is 25MB`

type Exchange = { mechanism: 'PLAIN' } | { mechanism: 'LOGIN'; user: string | null }

export class ServerDialogue {
  readonly #options: DialogueOptions
  #secure: boolean
  #greeted = false
  #helo = ''
  #isExtended = false
  #loggedIn = false
  #exchange: Exchange | null = null
  #transaction: { utf8: boolean; recipients: number } | null = null

  constructor(options: DialogueOptions, secure: boolean) {
    this.#options = options
    this.#secure = secure
  }

  /** The name that the client gave, and the protocol of a Received field (RFC 3848, RFC 6531 §4.3). */
  client(utf8: boolean): { helo: string; protocol: string } {
    if (!this.#isExtended) return { helo: this.#helo, protocol: 'SMTP' }
    const protocol = `${utf8 ? 'UTF8SMTP' : 'ESMTP'}${this.#secure ? 'S' : ''}`
    return { helo: this.#helo, protocol }
  }

  /** One line without its CRLF, of at most `LONG_LINE_BYTES_MAX`. */
  take(line: Buffer): Step {
    if (this.#exchange) return this.#continueLogin(this.#exchange, line)
    if (!isUtf8(line)) return bad(`${STATUS.syntax} Syntax error`)
    const text = line.toString()
    if (/[\u0000-\u001f\u007f]/.test(text)) return bad(`${STATUS.syntax} Syntax error`)
    if (line.length + CRLF_BYTES > this.#longest(text)) return bad(`${STATUS.syntax} Line too long`)
    return this.#command(parseCommand(text))
  }

  /** TLS is on: everything before is forgotten (RFC 3207 §4.2). */
  secured(): void {
    this.#secure = true
    this.#greeted = false
    this.#loggedIn = false
    this.#transaction = null
  }

  loggedIn(): void {
    this.#loggedIn = true
  }

  /** The sender of the last `mail` step was accepted. */
  began(utf8: boolean): void {
    this.#transaction = { utf8, recipients: 0 }
  }

  recipientTaken(): void {
    if (this.#transaction) this.#transaction.recipients += 1
  }

  /** The content was taken or refused. */
  ended(): void {
    this.#transaction = null
  }

  #longest(text: string): number {
    const long = /^AUTH /i.test(text) || this.#transaction?.utf8 || /^MAIL .* SMTPUTF8(?: |$)/i.test(text)
    return long ? LONG_LINE_BYTES_MAX : LINE_BYTES_MAX
  }

  #command(command: Command): Step {
    switch (command.verb) {
      case 'EHLO':
      case 'HELO':
        this.#greeted = true
        this.#helo = command.name
        this.#isExtended = command.verb === 'EHLO'
        this.#transaction = null
        return good(command.verb === 'EHLO' ? this.#extensions() : `250 ${this.#options.hostname}`)
      case 'STARTTLS':
        return this.#startTls()
      case 'AUTH':
        return this.#authenticate(command.mechanism, command.initial)
      case 'MAIL':
        return this.#mail(command.path, command.parameters)
      case 'RCPT':
        return this.#recipient(command.path, command.parameters)
      case 'DATA':
        return this.#data()
      case 'RSET':
        this.#transaction = null
        return good(`${STATUS.ok} OK`)
      case 'NOOP':
        return good(`${STATUS.ok} OK`)
      case 'VRFY':
      case 'EXPN':
        return good('252 2.1.5 Cannot verify, will take the message and try')
      case 'HELP':
        return good('214 2.0.0 See RFC 5321')
      case 'QUIT':
        return { ...good('221 2.0.0 Bye'), close: true }
      default:
        return this.#refused(command)
    }
  }

  #refused(command: Extract<Command, { verb: 'malformed' | 'not-offered' | 'foreign' | 'unknown' }>): Step {
    if (command.verb === 'foreign')
      return { ...bad(`${STATUS.unknownCommand} This is a mail server`), close: true }
    if (command.verb === 'unknown') return bad(`${STATUS.unknownCommand} Unknown command`)
    if (command.verb === 'not-offered') {
      // Content follows BDAT, which must never be read as commands.
      return {
        ...bad(`${STATUS.notOffered} ${command.command} is not offered`),
        close: command.command === 'BDAT',
      }
    }
    if (command.command === 'MAIL' && !this.#mayMail) return bad(LOGIN_REQUIRED)
    return bad(MALFORMED[command.command])
  }

  get #mayMail(): boolean {
    return this.#loggedIn || !this.#options.loginRequired
  }

  get #authOffered(): boolean {
    return this.#secure || this.#options.authWithoutTls
  }

  #extensions(): string {
    const lines = [
      this.#options.hostname,
      'PIPELINING',
      `SIZE ${this.#options.sizeBytesMax}`,
      '8BITMIME',
      'SMTPUTF8',
      'ENHANCEDSTATUSCODES',
      // Without TLS the promise could not be kept (RFC 8689 §2).
      ...(this.#secure ? ['REQUIRETLS'] : []),
      ...this.#futureRelease(),
      ...(this.#options.startTls && !this.#secure ? ['STARTTLS'] : []),
      ...(this.#authOffered ? ['AUTH PLAIN LOGIN'] : []),
    ]
    return lines.map((line, index) => `250${index < lines.length - 1 ? '-' : ' '}${line}`).join('\r\n')
  }

  /** Only where clients can log in: it is for submission (RFC 4865 §3). */
  #futureRelease(): string[] {
    const { holdMaxSeconds, now } = this.#options
    if (holdMaxSeconds === null || !this.#authOffered) return []
    return [`FUTURERELEASE ${holdMaxSeconds} ${isoSeconds(now() + holdMaxSeconds * SECOND_MS)}`]
  }

  #startTls(): Step {
    if (this.#secure) return bad(`${STATUS.badSequence} TLS is already on`)
    return this.#options.startTls ? { kind: 'starttls' } : bad(`${STATUS.notOffered} STARTTLS is not offered`)
  }

  #authenticate(mechanism: string, initial: string | null): Step {
    if (!this.#authOffered) return bad('538 5.7.11 Encryption required')
    if (!this.#greeted) return bad(`${STATUS.badSequence} EHLO first`)
    if (this.#loggedIn) return bad(`${STATUS.badSequence} Already authenticated`)
    if (this.#transaction) return bad(`${STATUS.badSequence} Not within a transaction`)
    if (mechanism !== 'PLAIN' && mechanism !== 'LOGIN') return bad('504 5.5.4 Unknown mechanism')
    this.#exchange = mechanism === 'PLAIN' ? { mechanism } : { mechanism, user: null }
    if (initial !== null) return this.#continueLogin(this.#exchange, Buffer.from(initial))
    return good(mechanism === 'PLAIN' ? '334 ' : '334 VXNlcm5hbWU6')
  }

  #continueLogin(exchange: Exchange, line: Buffer): Step {
    this.#exchange = null
    const text = line.toString('latin1')
    if (text === '*') return bad('501 5.7.0 Authentication cancelled')
    if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) return bad('501 5.5.2 Not base64')
    const response = Buffer.from(text, 'base64').toString()
    if (exchange.mechanism === 'PLAIN') {
      const [authorize, user, password, more] = response.split('\0')
      // Another authorization identity is not offered: such a login fails like any other.
      const own = (authorize === '' || authorize === user) && more === undefined
      return { kind: 'login', user: own ? (user ?? '') : '', password: own ? (password ?? '') : '' }
    }
    if (exchange.user !== null) return { kind: 'login', user: exchange.user, password: response }
    this.#exchange = { mechanism: 'LOGIN', user: response }
    return good('334 UGFzc3dvcmQ6')
  }

  #mail(path: string, parameters: Parameters): Step {
    if (!this.#mayMail) return bad(LOGIN_REQUIRED)
    if (!this.#greeted) return bad(`${STATUS.badSequence} EHLO first`)
    if (this.#transaction) return bad(`${STATUS.badSequence} A transaction is open`)
    const utf8 = parameters.has('SMTPUTF8')
    const refusal = refusedParameters(parameters, this.#options.sizeBytesMax)
    if (refusal) return refusal === TOO_LARGE ? refuse(refusal) : bad(refusal)
    if (!utf8 && !isAscii(path)) return refuse(NEEDS_SMTPUTF8)
    const requireTls = parameters.has('REQUIRETLS')
    if (requireTls && !this.#secure)
      return this.#options.startTls ? bad(NEEDS_STARTTLS) : bad(UNKNOWN_PARAMETER)
    const holdUntil = this.#holdUntil(parameters)
    if (typeof holdUntil === 'string') return bad(holdUntil)
    return {
      kind: 'mail',
      sender: path,
      utf8,
      ...(requireTls && { requireTls }),
      ...(holdUntil !== null && { holdUntil }),
    }
  }

  /** Null: sent at once. A text: the reply that refuses. RFC 4865 §4. */
  #holdUntil(parameters: Parameters): number | string | null {
    const [interval, time] = [parameters.get('HOLDFOR'), parameters.get('HOLDUNTIL')]
    if (interval === undefined && time === undefined) return null
    const { holdMaxSeconds, now } = this.#options
    if (holdMaxSeconds === null) return UNKNOWN_PARAMETER
    if (!this.#loggedIn) return LOGIN_REQUIRED
    if (interval !== undefined && time !== undefined)
      return `${STATUS.badArgument} HOLDFOR or HOLDUNTIL, not both`
    const at = interval === undefined ? readDateTime(time ?? '') : now() + readInterval(interval) * SECOND_MS
    if (Number.isNaN(at)) return `${STATUS.badArgument} HOLDFOR needs seconds, HOLDUNTIL a date and time`
    if (at < now()) return `${STATUS.badArgument} HOLDUNTIL is in the past`
    if (at > now() + holdMaxSeconds * SECOND_MS) return holdTooLong(holdMaxSeconds)
    return at
  }

  #recipient(path: string, parameters: Parameters): Step {
    if (!this.#transaction) return bad(`${STATUS.badSequence} MAIL FROM first`)
    if (parameters.size > 0) return bad(UNKNOWN_PARAMETER)
    if (!this.#transaction.utf8 && !isAscii(path)) return refuse(NEEDS_SMTPUTF8)
    if (this.#transaction.recipients >= this.#options.recipientsMax) {
      return refuse(`${STATUS.tooManyRecipients} Too many recipients`)
    }
    return { kind: 'recipient', address: path }
  }

  #data(): Step {
    if (!this.#transaction) return bad(`${STATUS.badSequence} MAIL FROM first`)
    return this.#transaction.recipients > 0 ? { kind: 'content' } : bad(`${STATUS.badSequence} No recipients`)
  }
}

/** The refusal of a time beyond the limit. */
export const holdTooLong = (maxSeconds: number) =>
  `${STATUS.badArgument} The message cannot be held for more than ${maxSeconds} seconds`

const isoSeconds = (at: number) => `${new Date(at).toISOString().slice(0, 19)}Z`

/** NaN for what is no interval. */
const readInterval = (text: string | null) => (/^[1-9]\d{0,8}$/.test(text ?? '') ? Number(text) : Number.NaN)

/** RFC 3339 §5.6 in Unix milliseconds; NaN for what is no such time. */
function readDateTime(text: string): number {
  const [, day, zone] = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d:\d\d(?:\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i.exec(text) ?? []
  if (day === undefined || zone === undefined) return Number.NaN
  // JavaScript reads the 30th of February as the 2nd of March.
  const midnight = new Date(`${day}T00:00:00Z`)
  const isDay = !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day)
  return isDay ? Date.parse(text.toUpperCase()) : Number.NaN
}

const LOGIN_REQUIRED = '530 5.7.0 Authentication required'
const NEEDS_STARTTLS = '530 5.7.0 Must issue a STARTTLS command first'
const NEEDS_SMTPUTF8 = '553 5.6.7 Non-ASCII addresses need SMTPUTF8'
const UNKNOWN_PARAMETER = '555 5.5.4 Unknown parameter'
const MALFORMED = {
  EHLO: `${STATUS.badArgument} EHLO needs a name`,
  HELO: `${STATUS.badArgument} HELO needs a name`,
  MAIL: `${STATUS.badSender} cannot parse from address`,
  RCPT: `${STATUS.badRecipient} cannot parse to address`,
  AUTH: `${STATUS.badArgument} Syntax: AUTH mechanism`,
  other: `${STATUS.badArgument} No argument allowed`,
} as const

/** The reply that refuses the parameters of MAIL; null: all are valid. */
function refusedParameters(parameters: Parameters, sizeBytesMax: number): string | null {
  for (const [name, value] of parameters) {
    if (name === 'SIZE') {
      if (!/^\d{1,20}$/.test(value ?? '')) return `${STATUS.badArgument} SIZE needs a number`
      if (Number(value) > sizeBytesMax) return TOO_LARGE
    } else if (name === 'BODY') {
      if (!/^(?:7BIT|8BITMIME)$/i.test(value ?? '')) return `${STATUS.badArgument} BODY is 7BIT or 8BITMIME`
    } else if (name === 'SMTPUTF8') {
      if (value !== null) return `${STATUS.badArgument} SMTPUTF8 has no value`
    } else if (name === 'AUTH') {
      // Who submitted it first (RFC 4954 §5): accepted and ignored, as for any client without special trust.
      if (value === null) return `${STATUS.badArgument} AUTH needs a value`
    } else if (name === 'REQUIRETLS') {
      if (value !== null) return `${STATUS.badArgument} REQUIRETLS has no value`
    } else if (name !== 'HOLDFOR' && name !== 'HOLDUNTIL') return UNKNOWN_PARAMETER
  }
  return null
}

const isAscii = (text: string) => /^[\x00-\x7f]*$/.test(text)
const good = (reply: string) => ({ kind: 'reply', reply, bad: false, close: false }) as const
/** Refused, but not the fault of the client program. */
const refuse = good
const bad = (reply: string) => ({ kind: 'reply', reply, bad: true, close: false }) as const
