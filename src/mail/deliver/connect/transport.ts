/**
 * From a prepared message to a server's answer.
 *
 * 1. The destination's hosts and the lane are found (routing.ts). A large message waits for memory; small ones never do.
 * 2. An idle connection of the lane to one of the domain's preferred hosts is used first, if it was opened under the
 *    TLS rules that apply to this message (connection-pool.ts).
 * 3. Else the addresses are tried in order until one completes a transaction: one that cannot be reached, greets with
 *    anything but 220, refuses EHLO or leaves before it answers MAIL is skipped (decision 55).
 * 4. Opening a connection, with TLS or without: opening.ts.
 * 5. One transaction with one recipient, whose replies become the result. Copies differ between recipients (return path,
 *    tracking), so several recipients in one transaction would gain nothing.
 */
import type { ByteBudget } from '../../../base/flow/byte-budget.ts'
import { failPoint } from '../../../base/flow/fail-point.ts'
import { connectionFaultOf, ProxyDown, shortageOf } from '../../../base/process/shortage.ts'
import { CODE } from '../../../protocols/smtp/codes.ts'
import type { SmtpConnection, Transaction, TransactionResult } from '../../../protocols/smtp/connection.ts'
import { needs8bit } from '../../../protocols/smtp/envelope.ts'
import { SmtpFailure } from '../../../protocols/smtp/failure.ts'
import {
  CODE_CONNECTION,
  CODE_NO_TLS,
  connectionFailure,
  noProtection,
  noSendingIp,
  noTls,
  notConvertible,
  type Outcome,
  outcomeOfFailure,
  outcomeOfMx,
  outcomeOfReply,
} from '../attempt/outcome.ts'
import { type AttemptResult, type NotTried, type Transport, unsent } from '../contract.ts'
import { NO_SOURCE, sourceIp } from '../lanes/lanes.ts'
import { ConnectionPool, type HeldConnection } from './connection-pool.ts'
import { Opener, type OpeningParts } from './opening.ts'
import type { HostTls } from './receiver-tls.ts'
import { type RelayFault, relayFaultOf, relayFaultOfReply, withoutBlame } from './relay-faults.ts'
import { type Attempt, Routing, type RoutingParts, type Target } from './routing.ts'

/** Up to this size a message is in memory as a whole; larger ones are read from the disk, piece by piece. */
const SMALL_MAX_BYTES = 512 * 1024
/** What a larger one takes while it is sent, however large it is or slow the server. */
const STREAMED_BYTES = 3 * 1024 * 1024
/** It took no connection lately. */
const UNREACHABLE: RelayFault = { isSure: false, mayMove: true }

/** Captured mail never leaves the machine. */
const withoutTls = (prepared: Attempt['prepared']): Attempt['prepared'] =>
  prepared.tls.required ? { ...prepared, tls: { required: false, verify: false } } : prepared

export interface TransportParts extends RoutingParts, OpeningParts {
  /** For large messages. */
  memory: ByteBudget
  /** Mail goes to the inbox of this process. */
  isCaptured: boolean
}

export function createTransport(parts: TransportParts): Transport {
  const { clock } = parts
  const pool = new ConnectionPool(clock)
  const routing = new Routing(parts)
  const opener = new Opener(parts, routing)
  const { transact, transactOnIdle } = createTransactions(clock, pool, opener)

  async function send(attempt: Attempt): Promise<AttemptResult | NotTried> {
    const early = withoutHosts(attempt)
    if (early !== null) {
      if ('localFault' in early) routing.destinations.forget(attempt.domain)
      return early
    }
    return (await sendOnOpenConnection(attempt)) ?? sendToHosts(attempt)
  }

  /** Null: no connection is open, or the server has left it. */
  async function sendOnOpenConnection(attempt: Attempt): Promise<AttemptResult | NotTried | null> {
    for (const { name, tlsRules } of routing.preferredHosts(attempt)) {
      const rules = await tlsRules()
      if ('refused' in rules) continue
      const result = await transactOnIdle(attempt, keyOf(name, rules))
      if (result) return result
    }
    return null
  }

  async function sendToHosts(attempt: Attempt): Promise<AttemptResult | NotTried> {
    const failures = new Failures()
    for (const target of routing.targetsOf(attempt)) {
      const result = await sendToHost(attempt, target, failures)
      if (result) return result
    }
    return failures.result() ?? notSent(attempt, connectionFailure('no address to connect to'))
  }

  /** Null: the next address is to be tried; why this one failed is in `failures`. */
  async function sendToHost(
    attempt: Attempt,
    target: Target,
    failures: Failures,
  ): Promise<AttemptResult | NotTried | null> {
    const downReason = routing.down.reason(attempt, target)
    if (downReason !== null)
      return failures.add(notSentAgain(attempt, target, downReason), attempt.relay && UNREACHABLE)
    const rules = await target.tlsRules()
    if ('refused' in rules) {
      if (rules.localFault !== undefined) return { localFault: rules.localFault }
      return failures.add(notSent(attempt, outcomeOfRefusal(attempt, rules), target.name))
    }
    const key = keyOf(target.name, rules)
    const reused = await transactOnIdle(attempt, key)
    if (reused) return reused
    await pool.makeRoom(attempt.lane.name)
    const opened = await opener.open(attempt, target, rules)
    if ('cause' in opened) return failures.addLocal(opened.cause)
    if ('outcome' in opened) {
      const result = notSent(attempt, opened.outcome, target.name, opened.transcript)
      return failures.add(result, faultOfOpening(attempt, opened.failure))
    }
    const { result, left } = await transact(attempt, opened, key)
    if (!left || 'localFault' in result) return result
    routing.down.refused(attempt, target, 'the connection was closed')
    return failures.add(result)
  }

  return {
    laneOf: (delivery) => routing.laneOf(delivery),
    limitsOf: (lane) => routing.limitsOf(lane),
    withoutRelay: (delivery, relay, sizeBytes) => routing.withoutRelay(delivery, relay, sizeBytes),
    shapingChanged: () => routing.destinations.forget(),
    async deliver(lane, delivery, prepared, beforeFinalDot) {
      const release = prepared.sizeBytes > SMALL_MAX_BYTES ? await parts.memory.take(STREAMED_BYTES) : null
      try {
        const startedAt = clock.monotonic()
        const relay = routing.relayOf(lane)
        const destination =
          lane.relay === null ? await routing.destinations.get(delivery.recipient_domain) : null
        const result = await send({
          lane,
          domain: delivery.recipient_domain,
          destination,
          relay,
          provider: destination?.provider ?? lane.provider,
          prepared: parts.isCaptured ? withoutTls(prepared) : prepared,
          recipient: delivery.recipient,
          beforeFinalDot,
        })
        if ('localFault' in result) pool.closeIdle()
        else result.sessionMs = clock.monotonic() - startedAt
        return result
      } finally {
        release?.()
      }
    },
    close: () => pool.close(),
  }
}

/** Sends messages on connections that are open. */
function createTransactions(clock: TransportParts['clock'], pool: ConnectionPool, opener: Opener) {
  async function transactOnIdle(attempt: Attempt, key: string): Promise<AttemptResult | NotTried | null> {
    const idle = pool.take(attempt.lane.name, key)
    if (!idle) return null
    idle.transcript.restart(clock.monotonic() - idle.openedAt)
    const { result, left } = await transact(attempt, idle, key)
    return left ? null : result
  }

  /** One message on an open connection, which is put into the pool under `key` or closed. */
  async function transact(attempt: Attempt, held: HeldConnection, key: string): Promise<Transacted> {
    const { connection } = held
    const startedAt = clock.now()
    try {
      const content = await contentFor(attempt.prepared, connection)
      const outcome =
        content === null
          ? notConvertible()
          : outcomeOfSent(await connection.send(transactionOf(attempt, content, connection)))
      const result = resultOf(attempt, held, startedAt, outcome)
      if (attempt.relay !== null) blameRelay(result, faultOfOutcome(outcome))
      keepIn(pool, attempt, held, key)
      return { result, left: false }
    } catch (error) {
      if (error instanceof SmtpFailure) return transactionFailed(attempt, held, key, startedAt, error)
      connection.close()
      throw error
    }
  }

  function transactionFailed(
    attempt: Attempt,
    held: HeldConnection,
    key: string,
    startedAt: number,
    failure: SmtpFailure,
  ): Transacted {
    const { connection } = held
    const shortage = failure.stage === 'body' ? shortageOf(failure.cause) : null
    const result =
      shortage === null
        ? resultOf(attempt, held, startedAt, outcomeOfFailure(failure))
        : { localFault: shortage }
    if (attempt.relay !== null && 'outcome' in result) blameRelay(result, relayFaultOf(failure))
    if (failure.stage === 'dot' && failure.reason === 'unsupported') opener.avoidChunks(connection.peer.host)
    if (connection.reusable) keepIn(pool, attempt, held, key)
    else connection.close()
    return { result, left: hasLeft(failure, held) }
  }

  return { transact, transactOnIdle }
}

/** Null: there are addresses to send from and to. */
function withoutHosts(attempt: Attempt): AttemptResult | NotTried | null {
  if (attempt.lane.source === NO_SOURCE) return notSent(attempt, noSendingIp())
  const found = attempt.destination?.found
  if (found === undefined || found.kind === 'hosts') return null
  if (found.kind === 'temporary' && found.localFault !== undefined) return { localFault: found.localFault }
  return notSent(attempt, outcomeOfMx(found, attempt.domain))
}

/** For the next message of the lane. */
function keepIn(pool: ConnectionPool, { lane }: Attempt, held: HeldConnection, key: string): void {
  pool.give(lane.name, key, { ...held, used: held.used + 1 }, lane.limits.messagesPerConnection)
}

const notSentAgain = (attempt: Attempt, { name }: Target, reason: string) =>
  notSent(attempt, connectionFailure(`${reason} (not tried again within a minute)`), name)

/** A relay is not to blame for lacking the TLS that only the sender of this message wants. */
function faultOfOpening({ relay, prepared }: Attempt, failure: SmtpFailure | null): RelayFault | null {
  if (failure === null) return null
  const isItsRule = relay?.tls === 'required' || relay?.tls === 'implicit'
  const isTlsFault = failure.stage === 'tls' || failure.stage === 'starttls'
  const { required } = prepared.tls
  const isSendersWish = required === 'requiretls' || (required && !isItsRule)
  return relay === null || (isTlsFault && isSendersWish) ? null : relayFaultOf(failure)
}

function faultOfOutcome(outcome: Outcome): RelayFault | null {
  if (outcome.kind !== 'deferred' && outcome.kind !== 'bounced') return null
  return relayFaultOfReply(outcome.failure.code, outcome.failure.message)
}

/** The message is not at fault: no reply to it is final. */
function blameRelay(result: AttemptResult, fault: RelayFault | null): void {
  if (fault === null) return
  result.relayFault = fault
  result.outcome = withoutBlame(result.outcome)
}

interface Transacted {
  result: AttemptResult | NotTried
  /** The server left before it judged anything: nothing was tried. */
  left: boolean
}

/** Why the addresses of one attempt failed. */
class Failures {
  #best: AttemptResult | null = null
  #shortage: string | null = null
  #localFault: string | null = null

  /** `relayFault` null: it is not a relay's. */
  add(result: AttemptResult, relayFault: RelayFault | null = null): null {
    if (relayFault !== null) result.relayFault = relayFault
    if (!this.#best || hopeOf(result) > hopeOf(this.#best)) this.#best = result
    return null
  }

  /** This machine could not connect. Without its proxy it reaches no other address either. */
  addLocal(cause: unknown): NotTried | null {
    if (cause instanceof ProxyDown) return { localFault: cause.message }
    this.#shortage ??= shortageOf(cause)
    this.#localFault ??= connectionFaultOf(cause)
    return null
  }

  result(): AttemptResult | NotTried | null {
    // A host that was not tried for lack of an open file might have taken the mail. One that this machine has no route
    // to does not count so: IPv6 that a firewall forbids must not make mail to a dead host wait for ever.
    if (this.#shortage !== null && !(this.#best && isAnswer(this.#best)))
      return { localFault: this.#shortage }
    if (this.#localFault !== null && this.#best === null) return { localFault: this.#localFault }
    return this.#best
  }
}

/** It is from a server. */
const isAnswer = (result: AttemptResult) => hopeOf(result) > 1

/**
 * Among several hosts' failures the one with the most hope is reported: it is the best guess whether the mail may be
 * delivered later, and a server's answer says more than a failure to reach it.
 */
function hopeOf({ outcome }: AttemptResult): number {
  // A final one of ours counts only if all hosts give it.
  if (outcome.kind !== 'deferred') return -1
  const { code } = outcome.failure
  if (code === CODE_CONNECTION) return 0
  if (code === CODE_NO_TLS) return 1
  return code >= 500 ? 2 : 3
}

/** The message goes only to servers that keep REQUIRETLS. */
const isOnward = ({ prepared }: Attempt) => prepared.tls.required === 'requiretls'

/** The rules of the host rule it out. */
const outcomeOfRefusal = (
  attempt: Attempt,
  { refused, isTemporary }: { refused: string; isTemporary?: true },
) => (isOnward(attempt) && !isTemporary ? noProtection('5.7.10', refused) : noTls(refused))

/** A lane's connections to one host under the same TLS rules serve each other's messages. */
const keyOf = (host: string, { key }: HostTls) => `${host} ${key}`

/** An outcome before any message was sent. */
const notSent = (
  { lane, provider }: Attempt,
  outcome: Outcome,
  mxHost: string | null = null,
  transcript: AttemptResult['transcript'] = null,
) => unsent(outcome, { mxHost, provider, attempted: true, sendingIp: sourceIp(lane), transcript })

function resultOf(
  { provider, lane }: Attempt,
  { connection, name, transcript }: HeldConnection,
  startedAt: number,
  outcome: Outcome,
): AttemptResult {
  const { localAddress, tls, extensions } = connection
  return {
    ...{ outcome, mxHost: name, attempted: true, provider },
    // Behind NAT or a proxy receivers see another address than the connection has here.
    sendingIp: sourceIp(lane) ?? localAddress,
    tls: tls !== null,
    verified: tls?.verified ?? false,
    utf8: extensions.has('SMTPUTF8'),
    sessionMs: 0,
    transcript: { startedAt, lines: transcript.take() },
  }
}

type Content = Pick<Attempt['prepared'], 'message' | 'sizeBytes'>

/**
 * The server left before it judged anything. An idle connection ends with a 421, or is just closed; a new one that is
 * closed in place of an answer to MAIL is no more use. What may have been sent is never sent to another host.
 */
function hasLeft({ stage, reason, reply, afterFinalDot }: SmtpFailure, { used }: HeldConnection): boolean {
  if (used === 0) return stage === 'mail' && reason === 'closed' && !afterFinalDot
  if (stage !== 'mail' && stage !== 'rset') return false
  return reason === 'closed' || reply?.code === CODE.leaving
}

/** Without 8BITMIME a client must not send bytes above 127 (RFC 6152 §3). Null: this message must not be converted. */
async function contentFor(
  prepared: Attempt['prepared'],
  { extensions }: SmtpConnection,
): Promise<Content | null> {
  const { message, utf8, toSevenBit } = prepared
  const asIs = extensions.has('8BITMIME') || utf8 || toSevenBit === undefined || !needs8bit(message)
  return asIs ? prepared : toSevenBit()
}

function transactionOf(
  { lane, prepared, recipient, relay, beforeFinalDot }: Attempt,
  content: Content,
  { localAddress }: SmtpConnection,
): Transaction {
  const { sourceHeader, sidField } = prepared
  const ip = sourceIp(lane) ?? localAddress
  const named = relay?.losesReturnPath ? withField(content, sidField) : content
  return {
    returnPath: relay?.returnPath ?? prepared.returnPath,
    recipients: [recipient],
    ...withField(named, sourceHeader && ip !== null ? `${sourceHeader}: ${ip}` : undefined),
    utf8: prepared.utf8,
    requireTls: prepared.tls.required === 'requiretls',
    beforeFinalDot: async () => {
      await beforeFinalDot()
      failPoint('dot-before')
    },
  }
}

function outcomeOfSent({ data, recipients }: TransactionResult): Outcome {
  const reply = data ?? recipients[0]?.reply
  return reply ? outcomeOfReply(reply, reply === data) : connectionFailure('no answer to the recipient')
}

/** The message with a field at the end of its header, outside its signatures; undefined: as it is. */
function withField({ message, sizeBytes }: Content, field: string | undefined): Content {
  if (field === undefined) return { message, sizeBytes }
  return {
    message: { ...message, headers: [...message.headers, field] },
    sizeBytes: sizeBytes + field.length + 2,
  }
}
