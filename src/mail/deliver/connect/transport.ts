/**
 * From a prepared message to a server's answer.
 *
 * 1. The destination's hosts and the lane are found (routes.ts).
 * 2. An idle connection of the lane to one of the domain's preferred hosts is used first, if it was opened under the
 *    TLS rules that apply to this message (connection-pool.ts).
 * 3. Else the addresses are tried in order until one completes a transaction: one that cannot be reached, greets with
 *    anything but 220, refuses EHLO or leaves before it answers MAIL is skipped (decision 55).
 * 4. Opening a connection, with TLS or without: opening.ts. One transaction on it: transaction.ts.
 */
import { localFaultOf, shortageOf } from '../../../base/process/shortage.ts'
import {
  CODE_CONNECTION,
  CODE_NO_TLS,
  connectionFailure,
  noSendingIp,
  noTls,
  type Outcome,
  outcomeOfMx,
} from '../attempt/outcome.ts'
import { Transactions } from '../attempt/transaction.ts'
import type { AttemptResult, NotTried, Transport } from '../contract.ts'
import { NO_SOURCE, sourceIp } from '../lanes/lanes.ts'
import { ConnectionPool } from './connection-pool.ts'
import { Opener, type OpeningParts } from './opening.ts'
import { type Job, type RouteParts, Routes, type Target } from './routes.ts'
import type { HostTls } from './tls-policy.ts'

export type TransportParts = RouteParts & OpeningParts

export function createTransport(parts: TransportParts): Transport {
  const { clock } = parts
  const pool = new ConnectionPool(clock)
  const routes = new Routes(parts)
  const opener = new Opener(parts, routes)
  const transactions = new Transactions(clock, pool, opener)

  async function send(job: Job): Promise<AttemptResult | NotTried> {
    const { destination, domain } = job
    if (job.lane.source === NO_SOURCE) return unsent(job, noSendingIp())
    if (destination && destination.found.kind !== 'hosts') {
      const { found } = destination
      if (found.kind !== 'temporary' || found.localFault === undefined)
        return unsent(job, outcomeOfMx(found, domain))
      routes.destinations?.forget(domain)
      return { localFault: found.localFault }
    }
    return (await sendOnOpenConnection(job)) ?? sendToHosts(job)
  }

  /** Null: no connection is open, or the server has left it. */
  async function sendOnOpenConnection(job: Job): Promise<AttemptResult | NotTried | null> {
    for (const { name, tlsRules } of routes.preferredHosts(job)) {
      const rules = await tlsRules()
      if ('refused' in rules) continue
      const result = await transactOnIdle(job, keyOf(name, rules))
      if (result) return result
    }
    return null
  }

  async function transactOnIdle(job: Job, key: string): Promise<AttemptResult | NotTried | null> {
    const idle = pool.take(job.lane.name, key)
    if (!idle) return null
    idle.transcript.restart(clock.monotonic() - idle.openedAt)
    const { result, left } = await transactions.transact(job, idle, key)
    return left ? null : result
  }

  async function sendToHosts(job: Job): Promise<AttemptResult | NotTried> {
    const failures = new Failures()
    for (const target of routes.targetsOf(job)) {
      const result = await sendToHost(job, target, failures)
      if (result) return result
    }
    return failures.result() ?? unsent(job, connectionFailure('no address to connect to'))
  }

  /** Null: the next address is to be tried; why this one failed is in `failures`. */
  async function sendToHost(
    job: Job,
    target: Target,
    failures: Failures,
  ): Promise<AttemptResult | NotTried | null> {
    const downReason = routes.downReason(job, target)
    if (downReason !== null) {
      const outcome = connectionFailure(`${downReason} (not tried again within a minute)`)
      return failures.add(unsent(job, outcome, target.name))
    }
    const rules = await target.tlsRules()
    if ('refused' in rules) {
      if (rules.localFault !== undefined) return { localFault: rules.localFault }
      return failures.add(unsent(job, noTls(rules.refused), target.name))
    }
    const key = keyOf(target.name, rules)
    const reused = await transactOnIdle(job, key)
    if (reused) return reused
    await pool.makeRoom(job.lane.name)
    const opened = await opener.open(job, target, rules)
    if ('cause' in opened) return failures.addLocal(opened.cause)
    if ('outcome' in opened) {
      const { outcome, transcript } = opened
      return failures.add({ ...unsent(job, outcome, target.name), transcript })
    }
    const { result, left } = await transactions.transact(job, opened, key)
    if (!left || 'localFault' in result) return result
    routes.refused(job, target, 'the connection was closed')
    return failures.add(result)
  }

  return {
    laneOf: (delivery) => routes.laneOf(delivery),
    limitsOf: (lane) => routes.limitsOf(lane),
    shapingChanged: () => routes.destinations?.forget(),
    async deliver(lane, delivery, prepared, beforeFinalDot) {
      const startedAt = clock.monotonic()
      const destination = (await routes.destinations?.get(delivery.recipient_domain)) ?? null
      const result = await send({
        lane,
        domain: delivery.recipient_domain,
        destination,
        provider: destination?.provider ?? lane.provider,
        prepared,
        recipient: delivery.recipient,
        beforeFinalDot,
      })
      if ('localFault' in result) pool.closeIdle()
      else result.sessionMs = clock.monotonic() - startedAt
      return result
    },
    close: () => pool.close(),
  }
}

/** Why the addresses of one attempt failed. */
class Failures {
  #best: AttemptResult | null = null
  #shortage: string | null = null
  #localFault: string | null = null

  add(result: AttemptResult): null {
    if (!this.#best || hopeOf(result) > hopeOf(this.#best)) this.#best = result
    return null
  }

  /** This machine could not connect. */
  addLocal(cause: unknown): null {
    this.#shortage ??= shortageOf(cause)
    this.#localFault ??= localFaultOf(cause)
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
 * Of several hosts' failures the one with the most hope is reported: it is the best guess whether the mail may be
 * delivered later, and a server's answer says more than a failure to reach it.
 */
function hopeOf({ outcome }: AttemptResult): number {
  const { code } = outcome.kind === 'deferred' ? outcome.failure : { code: CODE_CONNECTION }
  if (code === CODE_CONNECTION) return 0
  if (code === CODE_NO_TLS) return 1
  return code >= 500 ? 2 : 3
}

/** A lane's connections to one host under the same TLS rules serve each other's messages. */
const keyOf = (host: string, { key }: HostTls) => `${host} ${key}`

/** An outcome before any message was sent. */
function unsent(job: Job, outcome: Outcome, mxHost: string | null = null): AttemptResult {
  return {
    outcome,
    attempted: true,
    mxHost,
    sendingIp: sourceIp(job.lane),
    provider: job.provider,
    tls: null,
    verified: null,
    utf8: null,
    sessionMs: 0,
    transcript: null,
  }
}
