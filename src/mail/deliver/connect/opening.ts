/**
 * Opens a connection for an attempt. STARTTLS is used when offered. When it fails, or the certificate does not verify
 * although it must, the attempt goes on in plain text on a new connection, unless the message (messages.md rule 36) or
 * the receiver's policy (receiver-tls.ts) requires TLS. Results under a policy are counted for TLS reports.
 */

import { failPoint } from '../../../base/flow/fail-point.ts'
import type { Clock } from '../../../base/time/clock.ts'
import type { ConnectOptions, TlsOptions } from '../../../protocols/smtp/client.ts'
import type { SmtpConnection } from '../../../protocols/smtp/connection.ts'
import { SmtpFailure } from '../../../protocols/smtp/failure.ts'
import { replyText } from '../../../protocols/smtp/reply.ts'
import { noProtection, noTls, type Outcome, outcomeOfFailure } from '../attempt/outcome.ts'
import type { AttemptResult } from '../contract.ts'
import { sourceHelo, sourceIp } from '../lanes/lanes.ts'
import { type HeldConnection, TranscriptRecorder } from './connection-pool.ts'
import type { Egress } from './egress.ts'
import type { HostTls } from './receiver-tls.ts'
import { isOwnMachine, relayOptions } from './relay.ts'
import type { Attempt, DirectHop, Routing, Target } from './routing.ts'
import type { TlsCounts } from './tls-counts.ts'

export interface OpeningParts {
  direct: DirectHop
  heloName: string
  clock: Clock
  tlsCounts: Pick<TlsCounts, 'record'>
  egress: Pick<Egress, 'wayFrom'>
  tlsOptions: TlsOptions
  connect: (options: ConnectOptions) => Promise<SmtpConnection>
}

type Opened =
  | HeldConnection
  /** `failure` is null where the server does what it should, and the message asks for more. */
  | { outcome: Outcome; transcript: AttemptResult['transcript']; failure: SmtpFailure | null }
  /** A fault of this machine, perhaps: says nothing about the peer. */
  | { cause: unknown }

/** Servers remembered as below; one that is forgotten costs one deferred message. */
const WITHOUT_CHUNKS_MAX = 1_000
/** In events, for the operator. */
const LOGIN_RULE =
  'a relay gets its login over verified TLS only, or with allow_unverified, in SENDWRIGHT_DELIVERY ?tls=unverified, over any TLS'

export class Opener {
  readonly #parts: OpeningParts
  readonly #routing: Routing
  /** Addresses that offer CHUNKING and do not know BDAT. */
  readonly #withoutChunks = new Set<string>()

  constructor(parts: OpeningParts, routing: Routing) {
    this.#parts = parts
    this.#routing = routing
  }

  /** Connects under the TLS rules; after a TLS fault again in plain text, unless TLS is required. */
  async open(attempt: Attempt, target: Target, rules: HostTls): Promise<Opened> {
    const transcript = new TranscriptRecorder()
    const startedAt = this.#parts.clock.now()
    const failed = (failure: SmtpFailure, outcome: Outcome): Opened => {
      if (failure.reason === 'local') return { cause: failure.cause }
      this.#noteFailure(attempt, target, failure)
      return { outcome, transcript: { startedAt, lines: transcript.take() }, failure }
    }
    try {
      const mode = rules.required ? 'required' : 'opportunistic'
      const held = await this.#connectTo(attempt, target, rules, mode, transcript)
      this.#report(attempt, target, rules, resultOf(rules, held.connection))
      const isOnward = attempt.prepared.tls.required === 'requiretls'
      if (!isOnward || held.connection.extensions.has('REQUIRETLS')) return held
      void held.connection.quit()
      const outcome = noProtection('5.7.30', 'REQUIRETLS needed: the server does not offer it')
      return { outcome, transcript: { startedAt, lines: transcript.take() }, failure: null }
    } catch (error) {
      const failure = smtpFailure(error)
      if (failure.stage === 'auth' && failure.reason === 'certificate')
        return failed(failure, noTlsFor(attempt, failure))
      if (!isTlsFault(failure)) return failed(failure, outcomeOfFailure(failure))
      this.#report(attempt, target, rules, resultOfFailure(failure))
      if (rules.required) return failed(failure, noTlsFor(attempt, failure))
    }
    try {
      return await this.#connectTo(attempt, target, rules, 'none', transcript)
    } catch (error) {
      const failure = smtpFailure(error)
      return failed(failure, outcomeOfFailure(failure))
    }
  }

  /** The server at this address gets no BDAT any more. */
  avoidChunks(address: string): void {
    if (this.#withoutChunks.size >= WITHOUT_CHUNKS_MAX) this.#withoutChunks.clear()
    this.#withoutChunks.add(address)
  }

  async #connectTo(
    attempt: Attempt,
    target: Target,
    rules: HostTls,
    mode: ConnectOptions['tls'],
    transcript: TranscriptRecorder,
  ): Promise<HeldConnection> {
    failPoint('connect-before')
    const { relay } = attempt
    const options = this.#optionsFor(attempt, target, rules, mode, transcript)
    const connection = await this.#parts.connect(
      relay === null ? options : { ...options, ...relayOptions(relay, mode) },
    )
    failPoint('connect-after')
    this.#routing.down.reached(attempt, target)
    return { connection, name: target.name, openedAt: this.#parts.clock.monotonic(), transcript, used: 0 }
  }

  #optionsFor(
    { lane, relay }: Attempt,
    target: Target,
    { judge, verify }: HostTls,
    mode: ConnectOptions['tls'],
    transcript: TranscriptRecorder,
  ): ConnectOptions {
    const { direct, heloName, tlsOptions, clock, egress } = this.#parts
    const from = sourceIp(lane)
    return {
      host: target.address,
      port: direct.port,
      ...(from !== null && egress.wayFrom(from, relay !== null && isOwnMachine(relay.host))),
      heloName: sourceHelo(lane) ?? heloName,
      serverName: target.name,
      tls: mode,
      verify,
      tlsOptions: { ...tlsOptions, ...(judge && { judge }) },
      transcript: transcript.add,
      chunking: !this.#withoutChunks.has(target.address),
      clock,
    }
  }

  #noteFailure(attempt: Attempt, target: Target, failure: SmtpFailure): void {
    if (failure.stage === 'connect') this.#routing.down.unreachable(attempt, target, failure.message)
    // Another message may need no TLS, or have other rules for it.
    else if (isTlsFault(failure)) this.#routing.down.reached(attempt, target)
    else this.#routing.down.refused(attempt, target, failure.message)
  }

  #report({ domain, lane }: Attempt, { name }: Target, { policy }: HostTls, result: string): void {
    if (policy === 'none') return
    const isTlsa = policy === 'tlsa'
    this.#parts.tlsCounts.record({
      recipientDomain: domain,
      sendingIp: sourceIp(lane) ?? '',
      policyDomain: isTlsa ? name : domain,
      policyType: isTlsa ? 'tlsa' : 'sts',
      mxHost: name,
      result,
    })
  }
}

function smtpFailure(error: unknown): SmtpFailure {
  if (error instanceof SmtpFailure) return error
  throw error
}

function noTlsFor({ relay, prepared }: Attempt, { reply, message, reason: kind }: SmtpFailure): Outcome {
  const reason = reply ? replyText(reply) : message
  // What the server is or has will not change soon; a broken handshake may.
  const isFinal = kind === 'certificate' || kind === 'unsupported'
  if (isFinal && prepared.tls.required === 'requiretls') return noProtection('5.7.10', reason)
  return noTls(relay?.auth ? `${reason} (${LOGIN_RULE})` : reason)
}

const isTlsFault = ({ stage }: SmtpFailure) => stage === 'tls' || stage === 'starttls'

/** RFC 8460 §4.3. A policy that is only tested lets a connection pass that does not fit it. */
function resultOf({ policy }: HostTls, { tls }: SmtpConnection): string {
  if (policy !== 'sts-testing' || tls?.verified) return 'success'
  return tls ? 'certificate-not-trusted' : 'starttls-not-supported'
}

/** RFC 8460 §4.3. */
function resultOfFailure({ stage, reason, message }: SmtpFailure): string {
  if (stage === 'starttls') return 'starttls-not-supported'
  if (reason !== 'certificate') return 'validation-failure'
  if (/EXPIRED|not valid at this time/i.test(message)) return 'certificate-expired'
  if (/is not for/.test(message)) return 'certificate-host-mismatch'
  return /TLSA/.test(message) ? 'validation-failure' : 'certificate-not-trusted'
}
