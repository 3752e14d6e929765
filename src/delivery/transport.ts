/**
 * From a prepared message to a server's answer.
 *
 * 1. `laneOf`: the source address and the site. One relay is one site; in direct mode the domain's MX hosts say which
 *    site it belongs to.
 * 2. An idle connection of the lane to one of the domain's preferred hosts is used first, if it was made
 *    under the TLS rules that hold for this message.
 * 3. Else the hosts are tried in order (RFC 5321 §5.1) until one takes part in a transaction: one that cannot be
 *    reached, greets with anything but 220, refuses EHLO or leaves before it answers MAIL is passed over (decision 55).
 *    Addresses that were down lately are left out by the source that found them so, those that refused it are tried
 *    last: a host that shuts out one address need not shut out another.
 * 4. One transaction with one recipient; its replies become the outcome. Copies differ between recipients
 *    (return path, tracking), so there is nothing to gain from several recipients in one.
 *
 * TLS: STARTTLS is used when offered. When it fails or the certificate does not verify although it must, the
 * attempt goes on in plain text on a new connection, unless the message (messages.md rule 36) or the
 * receiver's policy (tls-policy.ts) requires TLS.
 */
import type { Clock } from '../base/clock.ts'
import { failPoint } from '../base/fail-point.ts'
import { type Cidr, parseIp } from '../base/ip.ts'
import { localFaultOf, shortageOf } from '../base/shortage.ts'
import type { MxResult } from '../dns/mx.ts'
import type { Resolver } from '../dns/resolver.ts'
import type { StsPolicies } from '../mta-sts/policies.ts'
import { type ConnectOptions, connectSmtp, type SmtpConnection, type TlsOptions } from '../smtp/client.ts'
import { needs8bit } from '../smtp/envelope.ts'
import { SmtpFailure } from '../smtp/failure.ts'
import { replyText } from '../smtp/reply.ts'
import { ConnectionPool, type HeldConnection } from './connection-pool.ts'
import type { AttemptResult, NotTried, Prepared, Routed, Transport } from './contract.ts'
import { createDestinations, type Destination, DownHosts, preferred } from './destinations.ts'
import type { LaneInfo, Source } from './lanes.ts'
import {
  CODE_CONNECTION,
  CODE_NO_MX,
  CODE_NO_TLS,
  CONTENT_MISSING,
  connectionFailure,
  type Failure,
  type Outcome,
  outcomeOfReply,
  unprepared,
} from './outcome.ts'
import { PROVIDERS, type Provider } from './providers.ts'
import type { ClaimedDelivery } from './queue.ts'
import { type HostTls, hostTls, senderTls } from './tls-policy.ts'
import type { TlsResults } from './tls-results.ts'
import { TranscriptRecorder } from './transcript.ts'

/** Where mail goes: to one server, or to the recipients' own. */
export type Routing =
  | {
      kind: 'relay'
      host: string
      port: number
      auth: { user: string; password: string } | null
      /** At a time from one source; a relay that refuses some of them is slowed down to by pacing. */
      connections: number
    }
  | {
      kind: 'direct'
      port: number
      resolver: Resolver
      allow: readonly Cidr[]
      /** Null: MTA-STS is not looked at. */
      policies?: StsPolicies | null
    }

export interface TransportParts {
  routing: Routing
  heloName: string
  clock: Clock
  random(): number
  /**
   * The address that a delivery is sent from, the same for all of a group; null and default: the system's choice.
   * `reaches`: whether the destination has an address that can be reached from that one.
   */
  sourceOf?(delivery: Routed, reaches: (ip: string) => boolean): Source | null
  /** Default PROVIDERS. */
  providers?: readonly Provider[]
  tlsResults?: TlsResults
  tlsOptions?: TlsOptions
  /** Default `connectSmtp`. */
  connect?: (options: ConnectOptions) => Promise<SmtpConnection>
}

const RELAY_SITE = 'relay'
/** A relay is ours to load: only connections are bounded. */
const relaySite = (connections: number): Pick<LaneInfo, 'site' | 'provider' | 'limits'> => ({
  site: RELAY_SITE,
  provider: 'Other',
  limits: { connections, messagesPerConnection: 100, messagesPerSecond: null },
})
/** Addresses tried in one attempt: with half a minute for each it stays within minutes. */
const ADDRESSES_PER_ATTEMPT_MAX = 8

/** Remembered; a server that is forgotten costs one deferred message. */
const WITHOUT_CHUNKS_MAX = 1_000

type Ready = Extract<Prepared, { kind: 'send' }>

/** One address to connect to; `name` is what its certificate must say. */
interface Target {
  address: string
  name: string
  rules(): Promise<HostTls | { refused: string; localFault?: string }>
}

/** All that one attempt has to do with. */
interface Job {
  lane: LaneInfo
  domain: string
  destination: Destination | null
  provider: string
  ready: Ready
  recipient: string
  stillOurs: () => Promise<void>
}

export function createTransport(parts: TransportParts): Transport {
  const { routing, clock } = parts
  const connect = parts.connect ?? connectSmtp
  const pool = new ConnectionPool(clock)
  const down = new DownHosts(clock)
  /** Addresses that offer CHUNKING and do not know BDAT. */
  const withoutChunks = new Set<string>()
  const destinations =
    routing.kind === 'direct'
      ? createDestinations({
          resolver: routing.resolver,
          clock,
          random: parts.random,
          allow: routing.allow,
          providers: parts.providers ?? PROVIDERS,
        })
      : null
  const relay = routing.kind === 'relay' ? relaySite(routing.connections) : null

  async function laneOf(delivery: Routed): Promise<LaneInfo> {
    const destination = (await destinations?.get(delivery.recipient_domain)) ?? null
    const source = parts.sourceOf?.(delivery, (ip) => reaches(ip, destination)) ?? null
    // One of the two, by the kind of routing.
    const { site, provider, limits } = (destination ?? relay) as ReturnType<typeof relaySite>
    return { name: `${source?.ip ?? 'any'}/${site}`, source, site, provider, limits }
  }

  function reaches(ip: string, destination: Destination | null): boolean {
    const from = parseIp(ip)?.family
    if (routing.kind === 'relay') return (parseIp(routing.host)?.family ?? from) === from
    if (destination?.found.kind !== 'hosts') return true
    return destination.found.hosts.some(({ addresses }) => addresses.some(({ family }) => family === from))
  }

  async function deliver(
    lane: LaneInfo,
    delivery: ClaimedDelivery,
    ready: Ready,
    stillOurs: () => Promise<void>,
  ): Promise<AttemptResult | NotTried> {
    const startedAt = clock.monotonic()
    const destination = (await destinations?.get(delivery.recipient_domain)) ?? null
    const job: Job = {
      lane,
      domain: delivery.recipient_domain,
      destination,
      provider: destination?.provider ?? lane.provider,
      ready,
      recipient: delivery.recipient,
      stillOurs,
    }
    const result = await attempt(job)
    if ('localFault' in result) {
      pool.shed()
      return result
    }
    return { ...result, sessionMs: clock.monotonic() - startedAt }
  }

  async function attempt(job: Job): Promise<AttemptResult | NotTried> {
    const { destination, domain } = job
    if (destination && destination.found.kind !== 'hosts') {
      const { found } = destination
      if (found.kind !== 'temporary' || found.localFault === undefined)
        return unsent(job, outcomeOfMx(found, domain))
      destinations?.forget(domain)
      return { localFault: found.localFault }
    }
    const reused = await attemptOnIdle(job)
    if (reused) return reused
    let failed: AttemptResult | null = null
    let shortage: string | null = null
    let localFault: string | null = null
    const failedBy = (result: AttemptResult) => {
      if (!failed || hopeOf(result) > hopeOf(failed)) failed = result
    }
    for (const target of inOrder(job, targetsOf(job))) {
      const asDown = down.whyDown(wayOf(job, target))
      if (asDown !== null) {
        failedBy(unsent(job, connectionFailure(`${asDown} (not tried again within a minute)`), target.name))
        continue
      }
      const rules = await target.rules()
      if ('refused' in rules) {
        if (rules.localFault !== undefined) return { localFault: rules.localFault }
        failedBy(unsent(job, noTls(rules.refused), target.name))
        continue
      }
      const key = keyOf(target.name, rules)
      const reused = await transactOnIdle(job, key)
      if (reused) return reused
      const opened = await open(job, target, rules)
      if ('cause' in opened) {
        shortage ??= shortageOf(opened.cause)
        localFault ??= localFaultOf(opened.cause)
        continue
      }
      if ('outcome' in opened) {
        failedBy({ ...unsent(job, opened.outcome, target.name), transcript: opened.transcript })
        continue
      }
      const { result, left } = await transact(job, opened, key)
      if (!left) return result
      if ('localFault' in result) return result
      down.refused(wayOf(job, target), 'the connection was closed')
      failedBy(result)
    }
    // Who could not be asked for want of a file might have taken the mail. Without a way to one of the addresses,
    // though, the others have to do: IPv6 that a firewall forbids must not make mail to a dead host wait for ever.
    if (shortage !== null && !(failed && isAnswer(failed))) return { localFault: shortage }
    if (localFault !== null && failed === null) return { localFault }
    return failed ?? unsent(job, connectionFailure('no address to connect to'))
  }

  /** Those that refused us lately come last, and only the one of them that did so first: some must learn that it has ended. */
  function inOrder(job: Job, targets: Target[]): Target[] {
    const refusedUntil = (target: Target) => down.refusedUntil(wayOf(job, target))
    const refusing = targets.filter((target) => refusedUntil(target) > 0)
    if (refusing.length === 0) return targets
    const [again] = refusing.sort((a, b) => refusedUntil(a) - refusedUntil(b))
    return [...targets.filter((target) => !refusing.includes(target)), ...(again ? [again] : [])]
  }

  /** On a connection that is open already; null: there is none, or it had been left by the server. */
  async function attemptOnIdle(job: Job): Promise<AttemptResult | NotTried | null> {
    for (const { name, rules } of preferredTargets(job)) {
      const found = await rules()
      if ('refused' in found) continue
      const result = await transactOnIdle(job, keyOf(name, found))
      if (result) return result
    }
    return null
  }

  async function transactOnIdle(job: Job, key: string): Promise<AttemptResult | NotTried | null> {
    const idle = pool.take(job.lane.name, key)
    if (!idle) return null
    idle.transcript.restart(clock.monotonic() - idle.openedAt)
    const { result, left } = await transact(job, idle, key)
    return left ? null : result
  }

  function targetsOf(job: Job): Target[] {
    if (routing.kind === 'relay') return [relayTarget(job, routing.host)]
    if (job.destination?.found.kind !== 'hosts') return []
    const { source } = job.lane
    const family = source ? parseIp(source.ip)?.family : undefined
    return job.destination.found.hosts
      .flatMap((host) =>
        host.addresses
          .filter((address) => family === undefined || address.family === family)
          .map(({ address }) => ({ address, name: host.exchange, rules: () => rulesOf(job, host) })),
      )
      .slice(0, ADDRESSES_PER_ATTEMPT_MAX)
  }

  function preferredTargets(job: Job): Pick<Target, 'name' | 'rules'>[] {
    if (routing.kind === 'relay') return [relayTarget(job, routing.host)]
    if (job.destination?.found.kind !== 'hosts') return []
    return preferred(job.destination.found.hosts).map((host) => ({
      name: host.exchange,
      rules: () => rulesOf(job, host),
    }))
  }

  const relayTarget = ({ ready }: Job, host: string): Target => ({
    address: host,
    name: host,
    rules: async () => senderTls(ready.tls),
  })

  async function rulesOf(
    { destination, domain, ready }: Job,
    host: Extract<MxResult, { kind: 'hosts' }>['hosts'][number],
  ): Promise<HostTls | { refused: string; localFault?: string }> {
    if (routing.kind === 'relay' || !destination) return senderTls(ready.tls)
    const key = `${host.exchange} ${ready.tls.required} ${ready.tls.verify}`
    const known = destination.tls.get(key)
    if (known) return known
    const { resolver, policies = null, port } = routing
    const asked = hostTls({ resolver, policies, port, clock }, domain, host, ready.tls).then((result) => {
      if ('refused' in result && result.localFault !== undefined) destination.tls.delete(key)
      else if ('refused' in result) {
        const { policy, result: why } = result
        parts.tlsResults?.record({
          policyDomain: policy === 'tlsa' ? host.exchange : domain,
          policyType: policy,
          mxHost: host.exchange,
          result: why,
        })
      }
      return result
    })
    destination.tls.set(key, asked)
    return asked
  }

  /** Connects with TLS as the rules say; a TLS fault is tried again in plain text unless TLS is required. */
  async function open(
    job: Job,
    target: Target,
    rules: HostTls,
  ): Promise<
    HeldConnection | { outcome: Outcome; transcript: AttemptResult['transcript'] } | { cause: unknown }
  > {
    await pool.makePlace(job.lane.name)
    const transcript = new TranscriptRecorder()
    const startedAt = clock.now()
    const begin = async (mode: ConnectOptions['tls']): Promise<HeldConnection> => {
      failPoint('connect-before')
      const connection = await connect(connectOptions(job, target, rules, mode, transcript))
      failPoint('connect-after')
      down.worked(wayOf(job, target))
      return { connection, name: target.name, openedAt: clock.monotonic(), transcript, used: 0 }
    }
    const failed = (failure: SmtpFailure, outcome: Outcome) => {
      if (failure.reason === 'local') return { cause: failure.cause }
      const way = wayOf(job, target)
      if (failure.stage === 'connect') down.failed(way, failure.message)
      // Another message may need no TLS, or other rules of it.
      else if (failure.stage === 'tls' || failure.stage === 'starttls') down.worked(way)
      else down.refused(way, failure.message)
      return { outcome, transcript: { startedAt, lines: transcript.take() } }
    }
    try {
      const held = await begin(rules.required ? 'required' : 'opportunistic')
      report(job, target, rules, held.connection, null)
      return held
    } catch (error) {
      const failure = asFailure(error)
      const tlsFault = failure.stage === 'tls' || failure.stage === 'starttls'
      if (!tlsFault) return failed(failure, outcomeOfFailure(failure))
      report(job, target, rules, null, failure)
      if (rules.required) {
        const why = failure.reply ? replyText(failure.reply) : failure.message
        return failed(failure, noTls(why))
      }
    }
    try {
      return await begin('none')
    } catch (error) {
      const failure = asFailure(error)
      return failed(failure, outcomeOfFailure(failure))
    }
  }

  function connectOptions(
    { lane: { source } }: Job,
    target: Target,
    rules: HostTls,
    mode: ConnectOptions['tls'],
    transcript: TranscriptRecorder,
  ): ConnectOptions {
    const { judge, verify } = rules
    return {
      host: target.address,
      port: routing.port,
      localAddress: source?.ip,
      heloName: source?.helo ?? parts.heloName,
      serverName: target.name,
      tls: mode,
      verify,
      tlsOptions: { ...parts.tlsOptions, ...(judge && { judge }) },
      transcript: transcript.add,
      chunking: !withoutChunks.has(target.address),
      clock,
      ...(routing.kind === 'relay' && routing.auth && { auth: routing.auth }),
    }
  }

  function report(
    { domain }: Job,
    target: Target,
    { policy }: HostTls,
    connection: SmtpConnection | null,
    failure: SmtpFailure | null,
  ): void {
    if (policy === 'none') return
    const missing = connection !== null && !connection.tls?.verified
    parts.tlsResults?.record({
      policyDomain: policy === 'tlsa' ? target.name : domain,
      policyType: policy === 'tlsa' ? 'tlsa' : 'sts',
      mxHost: target.name,
      result: failure
        ? resultType(failure)
        : missing && policy === 'sts-testing'
          ? connection.tls
            ? 'certificate-not-trusted'
            : 'starttls-not-supported'
          : 'success',
    })
  }

  /** One transaction; `left`: the server left before it judged anything, so that nothing was tried. */
  async function transact(
    job: Job,
    held: HeldConnection,
    key: string,
  ): Promise<{ result: AttemptResult | NotTried; left: boolean }> {
    const { connection, name, transcript } = held
    const { lane, ready } = job
    const startedAt = clock.now()
    const facts = () => ({
      attempted: true,
      mxHost: name,
      sendingIp: connection.localAddress,
      provider: job.provider,
      tls: connection.tls !== null,
      verified: connection.tls?.verified ?? false,
      utf8: connection.extensions.has('SMTPUTF8'),
      sessionMs: 0,
      transcript: { startedAt, lines: transcript.take() },
    })
    const giveBack = () => {
      const { messagesPerConnection } = lane.limits
      pool.give(lane.name, key, { ...held, used: held.used + 1 }, messagesPerConnection)
    }
    try {
      const { returnPath, utf8 } = ready
      const content = await contentFor(ready, connection)
      if (content === null) {
        const result = { ...facts(), outcome: NOT_CONVERTIBLE }
        giveBack()
        return { result, left: false }
      }
      const { message, sizeBytes } = withSource(content, ready.sourceHeader, connection.localAddress)
      const sent = await connection.send({
        returnPath,
        recipients: [job.recipient],
        message,
        sizeBytes,
        utf8,
        beforeFinalDot: async () => {
          await job.stillOurs()
          failPoint('dot-before')
        },
      })
      const reply = sent.data ?? sent.recipients[0]?.reply
      const outcome = reply ? outcomeOfReply(reply) : connectionFailure('no answer to the recipient')
      const result = { ...facts(), outcome }
      giveBack()
      return { result, left: false }
    } catch (error) {
      if (!(error instanceof SmtpFailure)) {
        connection.close()
        throw error
      }
      const shortage = error.stage === 'body' ? shortageOf(error.cause) : null
      const result =
        shortage === null ? { ...facts(), outcome: outcomeOfFailure(error) } : { localFault: shortage }
      if (error.stage === 'dot' && error.reason === 'unsupported') avoidChunks(connection.peer.host)
      if (connection.reusable) giveBack()
      else connection.close()
      return { result, left: hadLeft(error, held) }
    }
  }

  function avoidChunks(address: string): void {
    if (withoutChunks.size >= WITHOUT_CHUNKS_MAX) withoutChunks.clear()
    withoutChunks.add(address)
  }

  return { laneOf, deliver, close: () => pool.close() }
}

/**
 * The server left before it judged anything. An idle one says so with a 421, or just closes; a fresh one that closes
 * instead of an answer to MAIL can be no more use. What may have been sent is never sent to another host.
 */
function hadLeft({ stage, reason, reply, afterFinalDot }: SmtpFailure, { used }: HeldConnection): boolean {
  if (used === 0) return stage === 'mail' && reason === 'closed' && !afterFinalDot
  if (stage !== 'mail' && stage !== 'rset') return false
  return reason === 'closed' || reply?.code === 421
}

/** A server said something. */
const isAnswer = (result: AttemptResult) => hopeOf(result) > 1

/**
 * Of what several hosts came to, the one that leaves most hope is told: it is closest to the truth that the mail may go
 * later, and what a server says tells more than that it could not be reached.
 */
function hopeOf({ outcome }: AttemptResult): number {
  const { code } = outcome.kind === 'deferred' ? outcome.failure : { code: CODE_CONNECTION }
  if (code === CODE_CONNECTION) return 0
  if (code === CODE_NO_TLS) return 1
  return code >= 500 ? 2 : 3
}

/** A lane's connections to one host under the same TLS rules serve each other's messages. */
const keyOf = (host: string, { key }: HostTls) => `${host} ${key}`

/** What can be down: the way from a source to an address. */
const wayOf = ({ lane }: Job, { address }: Target) => `${lane.source?.ip ?? 'any'} ${address}`

type Content = Pick<Ready, 'message' | 'sizeBytes'>

/** Without 8BITMIME a client must not send bytes above 127 (RFC 6152 §3). Null: this message cannot go without. */
async function contentFor(ready: Ready, { extensions }: SmtpConnection): Promise<Content | null> {
  const { message, utf8, toSevenBit } = ready
  const asIs = extensions.has('8BITMIME') || utf8 || toSevenBit === undefined || !needs8bit(message)
  return asIs ? ready : toSevenBit()
}

/** RFC 3463 §3.7: conversion required but not supported. */
const NOT_CONVERTIBLE: Outcome = {
  kind: 'bounced',
  failure: {
    code: 554,
    enhanced: '5.6.3',
    message: 'the server takes no 8-bit mail, and the signature in this message forbids converting it',
    description: '',
  },
}

/** The message with the field that names the address it is sent from. */
function withSource(
  { message, sizeBytes }: Content,
  sourceHeader: string | null | undefined,
  ip: string | null,
): Content {
  if (!sourceHeader || ip === null) return { message, sizeBytes }
  const field = `${sourceHeader}: ${ip}`
  return {
    message: { ...message, headers: [...message.headers, field] },
    sizeBytes: sizeBytes + field.length + 2,
  }
}

/** An outcome before any message was sent. */
function unsent(job: Job, outcome: Outcome, mxHost: string | null = null): AttemptResult {
  return {
    outcome,
    attempted: true,
    mxHost,
    sendingIp: job.lane.source?.ip ?? null,
    provider: job.provider,
    tls: null,
    verified: null,
    utf8: null,
    sessionMs: 0,
    transcript: null,
  }
}

/** events.md: 498 `No MX`, temporary for what may change, permanent at once for NXDOMAIN and null MX. */
function outcomeOfMx(found: Exclude<MxResult, { kind: 'hosts' }>, domain: string): Outcome {
  const failure = (description: string): Failure => ({
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
      }
    case 'no-domain':
      return { kind: 'bounced', failure: failure('the domain does not exist') }
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
    const early = ['greeting', 'ehlo', 'auth', 'starttls', 'rset'].includes(failure.stage)
    const outcome = outcomeOfReply(failure.reply)
    return early && outcome.kind === 'bounced' ? { kind: 'deferred', failure: outcome.failure } : outcome
  }
  // Nothing of the content was sent as a whole: a file is missing, or shorter than it was.
  if (failure.stage === 'body' && failure.reason === 'message') return unprepared(CONTENT_MISSING)
  const permanent = ['address', 'too-large', 'message'].includes(failure.reason) || isMissingUtf8(failure)
  const cause: Failure = {
    code: permanent ? 554 : CODE_CONNECTION,
    enhanced: null,
    message: failure.message,
    description: '',
  }
  return permanent ? { kind: 'bounced', failure: cause } : { kind: 'deferred', failure: cause }
}

/** An address that is not ASCII fails for good where the peer cannot take it (messages.md rule 16). */
const isMissingUtf8 = (failure: SmtpFailure) => failure.stage === 'mail' && failure.reason === 'unsupported'

function noTls(message: string): Outcome {
  return {
    kind: 'deferred',
    failure: {
      code: CODE_NO_TLS,
      enhanced: null,
      message,
      description: 'TLS is required and was not to be had',
    },
  }
}

/** RFC 8460 §4.3. */
function resultType({ stage, reason, message }: SmtpFailure): string {
  if (stage === 'starttls') return 'starttls-not-supported'
  if (reason !== 'certificate') return 'validation-failure'
  if (/EXPIRED|not valid at this time/i.test(message)) return 'certificate-expired'
  if (/is not for/.test(message)) return 'certificate-host-mismatch'
  return /TLSA/.test(message) ? 'validation-failure' : 'certificate-not-trusted'
}
