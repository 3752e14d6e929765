/**
 * Logs in to a server (RFC 4954) with PLAIN (RFC 4616), LOGIN, CRAM-MD5 (RFC 2195), OAUTHBEARER (RFC 7628) or XOAUTH2:
 *
 * 1. the peer must be verified: its certificate, or without TLS a loopback address. That holds for every mechanism;
 * 2. the mechanism is the one asked for, or the best that a server offers for a password;
 * 3. the first response goes with the command where the line has room for it (RFC 4954 §4);
 * 4. a server that refuses an access token says why in a challenge, which is answered so that it can refuse (RFC 7628
 *    §3.2.3; Google and Microsoft describe the same for XOAUTH2).
 *
 * Secrets and what is made of them are left out of the transcript, also where a server repeats them.
 */
import { createHmac } from 'node:crypto'
import type { MaybePromise } from '../../base/flow/cache.ts'
import { localFaultOf } from '../../base/process/system-fault.ts'
import { type Channel, without } from './channel.ts'
import { CODE } from './codes.ts'
import type { TlsState } from './connection.ts'
import { type Fault, refusedBy, SmtpFailure } from './failure.ts'
import type { SmtpReply } from './reply.ts'

/** How to log in to a server (RFC 4954). */
export interface SmtpAuth {
  /** `auto`: the best of PLAIN, LOGIN and CRAM-MD5 that the server offers. */
  mechanism: 'auto' | Mechanism
  user: string
  /**
   * The password, or a current access token. `refused`: the one that the server has just refused; another one is wanted.
   * The same again: there is no other. Its errors are shown in events.
   */
  secret(refused?: string): MaybePromise<string>
  /** Log in whatever the server's certificate. By default only over TLS that verifies. */
  allowUnverified?: boolean
}

/** The mechanisms by their names in settings. */
export type Mechanism = 'plain' | 'login' | 'cram-md5' | 'xoauth2' | 'oauthbearer'

/** A login by password with what the server offers. */
export const passwordLogin = (login: {
  user: string
  password: string
  allowUnverified?: boolean
}): SmtpAuth => ({
  mechanism: 'auto',
  user: login.user,
  secret: () => login.password,
  ...(login.allowUnverified && { allowUnverified: true }),
})

/** The server has refused an access token; another one may be accepted. */
export class TokenRefused extends SmtpFailure {
  /** Not a property: loggers write those of errors. */
  readonly #token: string

  constructor(fault: Fault, token: string) {
    super('auth', fault)
    this.#token = token
  }

  token(): string {
    return this.#token
  }
}

/** The connection to log in on. */
export interface LoginPeer {
  channel: Channel
  /** What the caller has asked to connect to, for OAUTHBEARER. */
  host: string
  port: number
  /** The parameter of the server's AUTH keyword. */
  offered: string
  tls: TlsState | null
  timeoutMs: number
}

/** What a mechanism says. */
interface Exchange {
  /** Goes with the command; null: the server begins. */
  initial: string | null
  /** For each challenge after that, in order. */
  responses: readonly ((challenge: string) => string)[]
}

/** Where TLS protects the password, CRAM-MD5 gains nothing, and servers that hold hashes of passwords offer it in vain. */
const BEST_OVER_TLS: readonly Mechanism[] = ['plain', 'login', 'cram-md5']
/** To a loopback address without TLS, or to a server that could be another one. */
const BEST_OTHERWISE: readonly Mechanism[] = ['cram-md5', 'plain', 'login']

/** A line with an initial response may have this many bytes, else the response goes on its own (RFC 4954 §4). */
const COMMAND_LINE_MAX = 512
/** Servers take lines of this many bytes within AUTH (RFC 4954 §4), CRLF included. */
const RESPONSE_LINE_MAX = 12_288
/** Shorter ones occur in other words of a reply. */
const HIDDEN_LENGTH_MIN = 6
/** Length of a refused token's challenge, in failures. */
const CHALLENGE_LENGTH_MAX = 500
/** Separates the fields of OAUTHBEARER and XOAUTH2. */
const SOH = '\x01'

/**
 * Logs in, or throws.
 * @throws SmtpFailure of stage `auth`; TokenRefused for an access token
 */
export async function logIn(peer: LoginPeer, auth: SmtpAuth): Promise<void> {
  const mechanism = mechanismFor(peer, auth)
  const secret = await secretOf(auth)
  const { initial, responses } = EXCHANGES[mechanism](auth.user, secret, peer)
  const { channel } = peer
  const hidden: string[] = []
  const hide = (text: string) => {
    hidden.push(...[text, base64(text)].filter(({ length }) => length >= HIDDEN_LENGTH_MIN))
    channel.hide(hidden)
  }
  hide(secret)
  if (initial !== null) hide(initial)
  const challenges: string[] = []
  let reply = await begin(peer, mechanism, initial)
  for (const respond of responses) {
    if (reply.code !== CODE.challenge) break
    challenges.push(Buffer.from(reply.text, 'base64').toString())
    const response = respond(challenges.at(-1) as string)
    if (response !== auth.user) hide(response)
    reply = await say(peer, base64(response))
  }
  channel.hide([])
  if (reply.code === CODE.authenticated) return
  if (!isOfToken(mechanism)) throw new SmtpFailure('auth', refusal(reply))
  const [reason] = challenges
  const fault = refusal(reason === undefined ? reply : withReason(reply, without(reason, hidden)))
  const isRefused = reason !== undefined || reply.code === CODE.loginRefused
  throw isRefused ? new TokenRefused(fault, secret) : new SmtpFailure('auth', fault)
}

/** The secret of a login. @throws SmtpFailure without one; the error itself if this machine cannot read it now */
export async function secretOf({ secret }: SmtpAuth, refused?: string): Promise<string> {
  try {
    return await secret(refused)
  } catch (cause) {
    if (localFaultOf(cause) !== null) throw cause
    const message = `cannot log in: ${(cause as Error).message}`
    throw new SmtpFailure('auth', { reason: 'login', message, cause })
  }
}

const isOfToken = (mechanism: Mechanism) => mechanism === 'xoauth2' || mechanism === 'oauthbearer'

/** @throws SmtpFailure if the secret must not be sent here, or cannot be */
function mechanismFor({ channel, tls, offered }: LoginPeer, auth: SmtpAuth): Mechanism {
  const fail = (reason: Fault['reason'], message: string) => new SmtpFailure('auth', { reason, message })
  const { remoteAddress = '' } = channel.socket
  const isLoopback = remoteAddress === '::1' || /^(?:::ffff:)?127\./.test(remoteAddress)
  if (tls === null && !isLoopback)
    throw fail('unsupported', 'the password is not sent over a connection without TLS')
  if (tls?.verified === false && !auth.allowUnverified)
    throw fail('certificate', `certificate not accepted: ${tls.verifyError}`)
  const names = offered.toLowerCase().split(/\s+/)
  const wanted = auth.mechanism !== 'auto' ? [auth.mechanism] : tls?.verified ? BEST_OVER_TLS : BEST_OTHERWISE
  const found = wanted.find((name) => names.includes(name))
  if (found !== undefined) return found
  const list = wanted.map((name) => name.toUpperCase()).join(', ')
  throw fail('unsupported', `the server offers AUTH ${offered || '(nothing)'}, and not ${list}`)
}

async function begin(peer: LoginPeer, mechanism: Mechanism, initial: string | null): Promise<SmtpReply> {
  const command = `AUTH ${mechanism.toUpperCase()}`
  if (initial === null) return exchange(peer, command, command)
  const response = base64(initial)
  const line = `${command} ${response}`
  if (line.length + 2 <= COMMAND_LINE_MAX) return exchange(peer, line, `${command} [hidden]`)
  const reply = await exchange(peer, command, command)
  return reply.code === CODE.challenge ? say(peer, response) : reply
}

async function say(peer: LoginPeer, response: string): Promise<SmtpReply> {
  if (response.length + 2 <= RESPONSE_LINE_MAX) return exchange(peer, response, '[hidden]')
  const message = `the login takes ${response.length} bytes, and servers take ${RESPONSE_LINE_MAX}`
  throw new SmtpFailure('auth', { reason: 'login', message })
}

async function exchange({ channel, timeoutMs }: LoginPeer, line: string, shown: string): Promise<SmtpReply> {
  channel.write(`${line}\r\n`, 1, shown)
  return channel.reply('auth', timeoutMs)
}

const EXCHANGES: Record<Mechanism, (user: string, secret: string, peer: LoginPeer) => Exchange> = {
  plain: (user, secret) => ({ initial: `\0${fieldOf(user)}\0${fieldOf(secret)}`, responses: [] }),
  login: (user, secret) => ({ initial: null, responses: [() => user, () => secret] }),
  'cram-md5': (user, secret) => ({
    initial: null,
    responses: [(challenge) => `${user} ${createHmac('md5', secret).update(challenge).digest('hex')}`],
  }),
  xoauth2: (user, token) => ({
    initial: `user=${fieldOf(user)}${SOH}auth=Bearer ${fieldOf(token)}${SOH}${SOH}`,
    responses: [() => ''],
  }),
  oauthbearer: (user, token, { host, port }) => ({
    initial: [
      `n,a=${saslName(fieldOf(user))},`,
      `host=${host}`,
      `port=${port}`,
      `auth=Bearer ${fieldOf(token)}`,
    ]
      .map((part) => part + SOH)
      .concat(SOH)
      .join(''),
    responses: [() => SOH],
  }),
}

/** The text, if it holds none of the characters that end a field (RFC 4616 §2, RFC 7628 §3.1). */
function fieldOf(text: string): string {
  if (!/[\0\x01]/.test(text)) return text
  const message = 'cannot log in with a control character in user, password or token'
  throw new SmtpFailure('auth', { reason: 'login', message })
}

/** RFC 5801 §4. */
const saslName = (text: string) => text.replaceAll('=', '=3D').replaceAll(',', '=2C')

const base64 = (text: string) => Buffer.from(text).toString('base64')

/** A refusal; a positive reply is a protocol error. */
function refusal(reply: SmtpReply): Fault {
  const fault = refusedBy(reply)
  return reply.code < 400 ? { ...fault, reason: 'protocol' } : fault
}

/** The reply with the server's reason, which it gave in a challenge, such as `{"status":"401","schemes":"bearer"}`. */
function withReason(reply: SmtpReply, reason: string): SmtpReply {
  const shown = reason.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ').slice(0, CHALLENGE_LENGTH_MAX)
  const text = `${reply.text} ${shown}`.trim()
  return { ...reply, lines: [...reply.lines, shown], text }
}
