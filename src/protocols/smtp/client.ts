/**
 * Opens SMTP connections for delivery (RFC 5321 §3.1-3.2):
 *
 * 1. connect, with TCP_NODELAY (Nagle's algorithm halves the throughput of a dialogue); TLS at once if implicit;
 * 2. greeting, EHLO, or HELO where EHLO is refused;
 * 3. STARTTLS where wanted and offered, then EHLO again: nothing from the plain-text dialogue is kept (RFC 3207 §4.2);
 * 4. AUTH where a login is given (login.ts): over TLS that verifies, or without TLS to a loopback address whose server
 *    offers none. An access token that the server refuses is renewed once, and used on a new connection: servers may
 *    close the old one.
 *
 * Transactions on the connection are in connection.ts. Left out: MX lookup, the choice of TLS policy, pools and DSN.
 * Nothing else is retried here: the caller decides. In particular, with `tls: 'opportunistic'`, a failure with
 * stage `tls` means that the peer offers TLS which does not work, or does not verify although `verify` demands it; the
 * caller may connect again with `tls: 'none'`. A server that just does not offer STARTTLS, or refuses it with a reply, is
 * used in plain text on the same connection.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import type { ConnectionOptions, TLSSocket } from 'node:tls'
import { connectionFaultOf, shortageOf } from '../../base/process/shortage.ts'
import { type Clock, systemClock } from '../../base/time/clock.ts'
import { Channel, type TranscriptEntry } from './channel.ts'
import { CODE } from './codes.ts'
import { type PeerState, SmtpConnection, type TlsState } from './connection.ts'
import { isSendableHeloName } from './envelope.ts'
import { refusedBy, SmtpFailure, type SmtpStage } from './failure.ts'
import { logIn, type SmtpAuth, secretOf, TokenRefused } from './login.ts'
import type { SmtpReply } from './reply.ts'
import { DEFAULT_TIMEOUTS, type SmtpTimeouts } from './timeouts.ts'
import { gatherEvidence, pkixError, type TlsEvidence } from './tls-evidence.ts'

export interface ConnectOptions {
  /** IP address or name to connect to. */
  host: string
  port: number
  /** Source address. */
  localAddress?: string | undefined
  /** Opens the connection in another way, such as through a proxy. Default: straight to the host. */
  dial?: Dial | undefined
  /** Name, or bracketed address literal, for EHLO. */
  heloName: string
  /** `required`: no TLS, no connection. `implicit`: TLS from the first byte (RFC 8314 §3.3), as on port 465. */
  tls: 'none' | 'opportunistic' | 'required' | 'implicit'
  /** Name for SNI, which the certificate must have; default `host`. */
  serverName?: string | undefined
  /** The certificate must verify for TLS to count; otherwise the connection fails with stage `tls`. */
  verify: boolean
  tlsOptions?: TlsOptions | undefined
  auth?: SmtpAuth | undefined
  /** False: not used even if the server offers it. */
  chunking?: boolean | undefined
  timeouts?: Partial<SmtpTimeouts> | undefined
  /** Aborting ends the connection at any time, also between messages. */
  signal?: AbortSignal | undefined
  transcript?: ((entry: TranscriptEntry) => void) | undefined
  clock?: Clock | undefined
}

/** Resolves with a connected socket whose `remoteAddress` is that of the target. Rejects as sockets do, or with the signal's reason. */
export type Dial = (
  target: { host: string; port: number },
  limits: { timeoutMs: number; signal: AbortSignal | undefined; clock: Clock },
) => Promise<Socket>

/**
 * A `secureContext` made once saves building one per connection. There is no `session` to resume: a resumed handshake
 * shows no certificate here, so that nothing could be verified.
 */
export interface TlsOptions
  extends Pick<ConnectionOptions, 'ca' | 'secureContext' | 'minVersion' | 'maxVersion' | 'ciphers'> {
  /** Judges the certificate in place of the PKIX rules, e.g. by TLSA records: null = verified, else why not. */
  judge?: (evidence: TlsEvidence) => string | null
}

interface Opening {
  channel: Channel
  options: ConnectOptions
  timeouts: SmtpTimeouts
  extensions: Map<string, string>
  tls: TlsState | null
}

/**
 * A connection on which `send` can be called.
 * @throws SmtpFailure with the stage that failed, or what kept this machine from reading the secret; the socket is closed then.
 */
export async function connectSmtp(options: ConnectOptions): Promise<SmtpConnection> {
  const { auth } = options
  try {
    return await connectOnce(options)
  } catch (error) {
    if (auth === undefined || !(error instanceof TokenRefused)) throw error
    const renewed = await secretOf(auth, error.token())
    if (renewed === error.token()) throw error
    return connectOnce({ ...options, auth: { ...auth, secret: () => renewed } })
  }
}

async function connectOnce(options: ConnectOptions): Promise<SmtpConnection> {
  if (!isSendableHeloName(options.heloName)) {
    const message = `Cannot use HELO name ${JSON.stringify(options.heloName.slice(0, 80))}`
    throw new SmtpFailure('ehlo', { reason: 'address', message })
  }
  const clock = options.clock ?? systemClock
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts }
  const { host, port, localAddress: source, dial } = options
  const socket =
    dial === undefined
      ? connectTcp({ host, port, ...(source !== undefined && { localAddress: source }) })
      : await dialled(dial, options, timeouts.connect, clock)
  const channel = new Channel(socket, {
    clock,
    transcript: options.transcript,
    signal: options.signal,
  })
  const opening: Opening = { channel, options, timeouts, extensions: new Map(), tls: null }
  try {
    await open(opening)
  } catch (error) {
    channel.destroy()
    throw error
  }
  if (options.chunking === false) opening.extensions.delete('CHUNKING')
  const { remoteAddress = options.host, localAddress } = channel.socket
  const peer: PeerState = {
    peer: { host: options.host, port: options.port, address: remoteAddress },
    localAddress: localAddress?.replace(/^::ffff:/, '') ?? null,
    extensions: opening.extensions,
    tls: opening.tls,
  }
  return new SmtpConnection(channel, peer, timeouts, clock)
}

async function dialled(dial: Dial, { host, port, signal }: ConnectOptions, timeoutMs: number, clock: Clock) {
  try {
    return await dial({ host, port }, { timeoutMs, signal, clock })
  } catch (cause) {
    const isLocal = (shortageOf(cause) ?? connectionFaultOf(cause)) !== null
    const reason = signal?.aborted ? 'aborted' : isLocal ? 'local' : 'unreachable'
    throw new SmtpFailure('connect', { reason, message: (cause as Error).message, cause })
  }
}

async function open(opening: Opening): Promise<void> {
  const { channel, options, timeouts } = opening
  await channel.connected(timeouts.connect)
  if (options.tls === 'implicit') await startTls(opening)
  const greeting = await channel.reply('greeting', timeouts.greeting)
  if (greeting.code !== CODE.ready) throw refusal('greeting', greeting)
  await hello(opening)
  if (wantsStartTls(options) && (await offersTls(opening))) {
    await startTls(opening)
    await hello(opening)
  }
  if (options.auth !== undefined) {
    const { extensions, tls } = opening
    const { serverName: host = options.host, port } = options
    const offered = extensions.get('AUTH') ?? ''
    await logIn({ channel, host, port, offered, tls, timeoutMs: timeouts.auth }, options.auth)
  }
  // A surplus reply would be taken for the answer to the first MAIL.
  channel.check('ehlo')
}

const wantsStartTls = ({ tls }: ConnectOptions) => tls === 'opportunistic' || tls === 'required'

async function command({ channel, timeouts }: Opening, stage: SmtpStage, line: string): Promise<SmtpReply> {
  channel.write(`${line}\r\n`, 1)
  return channel.reply(stage, timeouts.ehlo)
}

/** EHLO, or HELO for a server that does not know it. */
async function hello(opening: Opening): Promise<void> {
  const { heloName } = opening.options
  let reply = await command(opening, 'ehlo', `EHLO ${heloName}`)
  opening.extensions = reply.code === CODE.ok ? parseExtensions(reply.lines.slice(1)) : new Map()
  // Where no mail is accepted at all, HELO would not change that.
  if (reply.code >= 500 && reply.code !== CODE.noMail && reply.code !== CODE.failed) {
    reply = await command(opening, 'ehlo', `HELO ${heloName}`)
  }
  if (reply.code !== CODE.ok) throw refusal('ehlo', reply)
}

/** Keywords in upper case with their parameters, "" without. RFC 5321 §4.1.1.1. */
function parseExtensions(lines: readonly string[]): Map<string, string> {
  const extensions = new Map<string, string>()
  for (const line of lines) {
    // Some old servers send "AUTH=LOGIN" as well as the proper line.
    const match = /^([A-Za-z0-9][A-Za-z0-9-]*)(?:[ =](.*))?$/.exec(line.trim())
    const keyword = match?.[1]?.toUpperCase()
    if (keyword !== undefined && !extensions.has(keyword)) extensions.set(keyword, (match?.[2] ?? '').trim())
  }
  return extensions
}

/** STARTTLS was offered and accepted. Without it an opportunistic connection stays in plain text. */
async function offersTls(opening: Opening): Promise<boolean> {
  const required = opening.options.tls === 'required'
  if (!opening.extensions.has('STARTTLS')) {
    if (!required) return false
    throw new SmtpFailure('starttls', {
      reason: 'unsupported',
      message: 'the server does not offer STARTTLS',
    })
  }
  const reply = await command(opening, 'starttls', 'STARTTLS')
  if (reply.code === CODE.ready) return true
  if (required || reply.code === CODE.leaving) throw refusal('starttls', reply)
  return false
}

async function startTls(opening: Opening): Promise<void> {
  const { channel, options, timeouts } = opening
  const { judge = pkixError, ...tlsOptions } = options.tlsOptions ?? {}
  const serverName = options.serverName ?? options.host
  const socket = await channel.upgrade(
    {
      ...tlsOptions,
      // SNI carries names only (RFC 6066 §3).
      servername: isIP(serverName) ? '' : serverName.replace(/\.$/, ''),
      rejectUnauthorized: false,
      checkServerIdentity: () => undefined,
    },
    timeouts.tls,
  )
  const verifyError = judge(gatherEvidence(socket, serverName))
  if (verifyError !== null && options.verify) {
    throw new SmtpFailure('tls', {
      reason: 'certificate',
      message: `certificate not accepted: ${verifyError}`,
    })
  }
  opening.tls = tlsState(socket, verifyError)
}

function tlsState(socket: TLSSocket, verifyError: string | null): TlsState {
  return {
    protocol: socket.getProtocol() ?? 'unknown',
    cipher: socket.getCipher().name,
    verified: verifyError === null,
    ...(verifyError === null ? {} : { verifyError }),
  }
}

/** A reply other than the expected one; a positive one is a protocol error, not a refusal. */
function refusal(stage: SmtpStage, reply: SmtpReply): SmtpFailure {
  const fault = refusedBy(reply)
  return new SmtpFailure(stage, reply.code < 400 ? { ...fault, reason: 'protocol' } : fault)
}
