/**
 * From a prepared message to a server's answer.
 *
 * 1. `laneOf`: one relay is one lane; in direct mode every recipient domain is one.
 * 2. `hosts`: the relay, or the domain's MX hosts in order (RFC 5321 §5).
 * 3. An idle connection of the lane is used first; else the hosts are tried in turn until one connects.
 * 4. One transaction; its replies become the outcome.
 *
 * TLS: STARTTLS is used when offered. When it fails or the certificate does not verify although it must, the
 * attempt goes on in plain text on a new connection, unless the message requires TLS (messages.md rule 36).
 */
import type { Clock } from '../base/clock.ts'
import type { Cidr } from '../base/ip.ts'
import { findMailHosts, type MxResult } from '../dns/mx.ts'
import type { Resolver } from '../dns/resolver.ts'
import { type ConnectOptions, connectSmtp, type SmtpConnection } from '../smtp/client.ts'
import { SmtpFailure } from '../smtp/failure.ts'
import { replyText } from '../smtp/reply.ts'
import { ConnectionPool } from './connection-pool.ts'
import type { AttemptResult, Prepared, Transport } from './engine.ts'
import {
  CODE_CONNECTION,
  CODE_NO_MX,
  CODE_NO_TLS,
  connectionFailure,
  type Failure,
  type Outcome,
  outcomeOfReply,
} from './outcome.ts'

/** Where mail goes: to one server, or to the recipients' own. */
export type Routing =
  | { kind: 'relay'; host: string; port: number; auth: { user: string; password: string } | null }
  | { kind: 'direct'; port: number; resolver: Resolver; allow: readonly Cidr[] }

export interface TransportParts {
  routing: Routing
  heloName: string
  clock: Clock
  random(): number
  /** Default `connectSmtp`. */
  connect?: (options: ConnectOptions) => Promise<SmtpConnection>
}

/** Attempts at a time to one recipient domain: below what large providers refuse from an unknown sender. */
const DIRECT_CONCURRENCY = 10
/** Attempts at a time through one relay. Postfix as a receiver is at its best around 20. */
const RELAY_CONCURRENCY = 20

const RELAY_LANE = 'relay'

type Ready = Extract<Prepared, { kind: 'send' }>

/** One address to connect to; `name` is what its certificate must say. */
interface Target {
  address: string
  name: string
}

export function createTransport(parts: TransportParts): Transport {
  const { routing, clock } = parts
  const connect = parts.connect ?? connectSmtp
  const pool = new ConnectionPool(clock)

  async function deliver(
    lane: string,
    recipientDomain: string,
    ready: Ready,
    recipient: string,
    stillOurs: () => Promise<void>,
  ): Promise<AttemptResult> {
    const startedAt = clock.monotonic()
    const result = await attempt(lane, recipientDomain, ready, recipient, stillOurs)
    return { ...result, sessionMs: clock.monotonic() - startedAt }
  }

  async function attempt(
    lane: string,
    recipientDomain: string,
    ready: Ready,
    recipient: string,
    stillOurs: () => Promise<void>,
  ): Promise<AttemptResult> {
    const idle = pool.take(lane, ready.tls, ready.source?.ip ?? null)
    if (idle) {
      const result = await transact(lane, idle, ready, recipient, stillOurs)
      if (result !== 'gone') return result
    }
    const found = await findTargets(routing, recipientDomain, parts.random)
    if ('outcome' in found) return unsent(found.outcome)
    let last: AttemptResult | null = null
    for (const target of found.targets) {
      const opened = await open(target, ready)
      if ('outcome' in opened) {
        last = { ...unsent(opened.outcome), mxHost: target.name }
        // A server that answered has spoken for its domain; one that could not be reached has not.
        if (opened.final) return last
        continue
      }
      const result = await transact(
        lane,
        { connection: opened.connection, name: target.name, used: 0 },
        ready,
        recipient,
        stillOurs,
      )
      if (result !== 'gone') return result
      last = { ...unsent(connectionFailure('the connection was closed')), mxHost: target.name }
    }
    return last ?? unsent(connectionFailure('no address to connect to'))
  }

  /** Connects with TLS as the policy says; a TLS fault is tried again in plain text unless TLS is required. */
  async function open(
    target: Target,
    { tls, source }: Ready,
  ): Promise<{ connection: SmtpConnection } | { outcome: Outcome; final: boolean }> {
    const options = (mode: ConnectOptions['tls']): ConnectOptions => ({
      host: target.address,
      port: routing.port,
      heloName: source?.helo ?? parts.heloName,
      ...(source && { localAddress: source.ip }),
      serverName: target.name,
      tls: mode,
      verify: tls.verify,
      clock,
      ...(routing.kind === 'relay' && routing.auth && { auth: routing.auth }),
    })
    try {
      return { connection: await connect(options(tls.required ? 'required' : 'opportunistic')) }
    } catch (error) {
      const failure = asFailure(error)
      const tlsFault = failure.stage === 'tls' || failure.stage === 'starttls'
      if (!tlsFault) return { outcome: outcomeOfFailure(failure), final: failure.reply !== null }
      if (tls.required) return { outcome: noTls(failure), final: false }
    }
    try {
      return { connection: await connect(options('none')) }
    } catch (error) {
      const failure = asFailure(error)
      return { outcome: outcomeOfFailure(failure), final: failure.reply !== null }
    }
  }

  /** One transaction; 'gone' when the server had left an idle connection, so that nothing was tried. */
  async function transact(
    lane: string,
    held: { connection: SmtpConnection; name: string; used: number },
    ready: Ready,
    recipient: string,
    stillOurs: () => Promise<void>,
  ): Promise<AttemptResult | 'gone'> {
    const { connection, name } = held
    const facts = {
      mxHost: name,
      sendingIp: connection.localAddress,
      provider: 'Other',
      tls: connection.tls !== null,
      verified: connection.tls?.verified ?? false,
      utf8: connection.extensions.has('SMTPUTF8'),
      sessionMs: 0,
    }
    try {
      const { returnPath, utf8 } = ready
      const { message, sizeBytes } = withSource(ready, connection.localAddress)
      const sent = await connection.send({
        returnPath,
        recipients: [recipient],
        message,
        sizeBytes,
        utf8,
        beforeFinalDot: stillOurs,
      })
      const reply = sent.data ?? sent.recipients[0]?.reply
      pool.give(lane, ready.tls, ready.source?.ip ?? null, { ...held, used: held.used + 1 })
      return {
        ...facts,
        outcome: reply ? outcomeOfReply(reply) : connectionFailure('no answer to the recipient'),
      }
    } catch (error) {
      if (!(error instanceof SmtpFailure)) {
        connection.close()
        throw error
      }
      if (connection.reusable)
        pool.give(lane, ready.tls, ready.source?.ip ?? null, { ...held, used: held.used + 1 })
      else connection.close()
      const left =
        held.used > 0 && error.reason === 'closed' && (error.stage === 'mail' || error.stage === 'rset')
      return left ? 'gone' : { ...facts, outcome: outcomeOfFailure(error) }
    }
  }

  return {
    laneOf: (delivery) => (routing.kind === 'relay' ? RELAY_LANE : delivery.recipient_domain),
    concurrencyOf: () => (routing.kind === 'relay' ? RELAY_CONCURRENCY : DIRECT_CONCURRENCY),
    deliver: (lane, delivery, ready, stillOurs) =>
      deliver(lane, delivery.recipient_domain, ready, delivery.recipient, stillOurs),
    close: () => pool.close(),
  }
}

/** The message with the field that names the address it is sent from. */
function withSource(
  { message, sizeBytes, sourceHeader }: Ready,
  ip: string | null,
): Pick<Ready, 'message' | 'sizeBytes'> {
  if (sourceHeader === null || ip === null) return { message, sizeBytes }
  const field = `${sourceHeader}: ${ip}`
  return {
    message: { headers: [...message.headers, field], body: message.body },
    sizeBytes: sizeBytes + field.length + 2,
  }
}

/** An outcome before any server was spoken to. */
function unsent(outcome: Outcome): AttemptResult {
  return {
    outcome,
    mxHost: null,
    sendingIp: null,
    provider: 'Other',
    tls: null,
    verified: null,
    utf8: null,
    sessionMs: 0,
  }
}

async function findTargets(
  routing: Routing,
  domain: string,
  random: () => number,
): Promise<{ targets: Target[] } | { outcome: Outcome }> {
  if (routing.kind === 'relay') return { targets: [{ address: routing.host, name: routing.host }] }
  const found = await findMailHosts(routing.resolver, domain, { random, allow: routing.allow })
  if (found.kind !== 'hosts') return { outcome: outcomeOfMx(found, domain) }
  return {
    targets: found.hosts.flatMap((host) =>
      host.addresses.map(({ address }) => ({ address, name: host.exchange })),
    ),
  }
}

/** events.md: 498 `No MX`, temporary for what may change, permanent at once for NXDOMAIN and null MX. */
function outcomeOfMx(found: Exclude<MxResult, { kind: 'hosts' }>, domain: string): Outcome {
  const failure = (description: string): Failure => ({
    reason: 'generic',
    code: CODE_NO_MX,
    enhanced: null,
    message: `No MX for ${domain}`,
    description,
  })
  switch (found.kind) {
    case 'null-mx':
      return {
        kind: 'bounced',
        failure: failure('the domain says that it takes no mail (null MX)'),
        hard: false,
      }
    case 'no-domain':
      return { kind: 'bounced', failure: failure('the domain does not exist'), hard: false }
    case 'no-mail-host':
      return { kind: 'deferred', failure: failure('the domain has neither MX nor address records') }
    case 'forbidden':
      return {
        kind: 'deferred',
        failure: failure('its mail hosts have only private addresses, which are not allowed'),
      }
    case 'temporary':
      return { kind: 'deferred', failure: failure(found.reason) }
  }
}

function asFailure(error: unknown): SmtpFailure {
  if (error instanceof SmtpFailure) return error
  throw error
}

/** A failure of the dialogue: a refusal is the server's word, everything else may pass. */
function outcomeOfFailure(failure: SmtpFailure): Outcome {
  if (failure.reply) {
    // Refused before any recipient was named: about us, not about the recipient. Tried again.
    const early = ['greeting', 'ehlo', 'auth', 'starttls'].includes(failure.stage)
    const outcome = outcomeOfReply(failure.reply)
    return early && outcome.kind === 'bounced'
      ? { kind: 'deferred', failure: { ...outcome.failure, reason: 'generic' } }
      : outcome
  }
  const permanent = ['address', 'too-large', 'message'].includes(failure.reason) || isMissingUtf8(failure)
  const cause: Failure = {
    reason: 'generic',
    code: permanent ? 554 : CODE_CONNECTION,
    enhanced: null,
    message: failure.message,
    description: '',
  }
  return permanent ? { kind: 'bounced', failure: cause, hard: false } : { kind: 'deferred', failure: cause }
}

/** An address that is not ASCII fails for good where the peer cannot take it (messages.md rule 16). */
const isMissingUtf8 = (failure: SmtpFailure) => failure.stage === 'mail' && failure.reason === 'unsupported'

function noTls(failure: SmtpFailure): Outcome {
  const message = failure.reply ? replyText(failure.reply) : failure.message
  return {
    kind: 'deferred',
    failure: {
      reason: 'generic',
      code: CODE_NO_TLS,
      enhanced: null,
      message,
      description: 'TLS is required and was not to be had',
    },
  }
}
