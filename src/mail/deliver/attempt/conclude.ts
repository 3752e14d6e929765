/** From an attempt's result to the delivery's new state and its events. Pure. */
import {
  deliveredEvent,
  type EventMessage,
  type EventRecord,
  failedEvent,
  rejectedEvent,
} from '../../../watching/events/event.ts'
import type { ClaimedDelivery, Settlement } from '../claim/queue.ts'
import type { AttemptResult, DeliveryParts } from '../contract.ts'
import { providerOfDomain } from '../shaping/provider-names.ts'
import { CODE_TOO_OLD, type Failure, type Outcome, REASON_DEAD_MAILBOX, type Verdict } from './outcome.ts'
import { nextStep } from './schedule.ts'

/** Facts from the preparation that the outcome needs. */
export interface AttemptFacts {
  primaryDkim: string | null
  /** The sender set the window: it ends the delivery, not the last retry. */
  windowIsSenders: boolean
  /** It is tried at another relay at once. Absent: it is not. */
  isMoved?: boolean
}

interface Conclusion {
  end: Settlement
  events: EventRecord[]
  /** Where the failure is final. */
  suppression: Verdict['suppression']
}

/** `now`, and all times in the result, are Unix milliseconds. */
export function conclude(
  delivery: ClaimedDelivery,
  about: EventMessage,
  result: AttemptResult,
  { primaryDkim, windowIsSenders, isMoved = false }: AttemptFacts,
  now: number,
  rules: Pick<DeliveryParts, 'retryScheduleMs' | 'random' | 'judge' | 'poolOf'>,
): Conclusion {
  const to = { recipient: delivery.recipient, recipientDomain: delivery.recipient_domain }
  const domain = delivery.recipient_domain.toLowerCase()
  const attempts = delivery.attempts + (result.attempted ? 1 : 0)
  const facts = (code: number, message: string, description: string, enhanced: string | null) => ({
    sendingIp: result.sendingIp,
    sendingPool: result.sendingIp === null ? null : rules.poolOf(result.sendingIp),
    primaryDkim,
    recipientProvider: result.provider === 'Other' ? providerOfDomain(domain) : result.provider,
    status: {
      code,
      'attempt-no': attempts,
      message,
      description,
      'session-seconds': Math.round(result.sessionMs) / 1000,
      ...(enhanced && { 'enhanced-code': enhanced }),
      ...(result.mxHost && { 'mx-host': result.mxHost }),
      ...(result.tls !== null && { tls: result.tls }),
      ...(result.verified !== null && { 'certificate-verified': result.verified }),
      ...(result.utf8 !== null && { utf8: result.utf8 }),
    },
  })
  const { outcome } = result
  switch (outcome.kind) {
    case 'delivered': {
      const { code: lastCode, message: lastReply, enhanced } = outcome
      const event = deliveredEvent(about, to, facts(lastCode, lastReply, '', enhanced), now)
      return concluded('delivered', '', event, { lastCode, lastReply })
    }
    case 'rejected': {
      const event = rejectedEvent(about, outcome.reason, outcome.description, now)
      return concluded('rejected', outcome.reason, event, { lastCode: null, lastReply: null })
    }
    case 'suppressed':
    case 'refused':
    case 'bounced':
    case 'deferred':
      return failed(outcome)
  }

  function concluded(
    state: Settlement['state'],
    reason: string,
    event: EventRecord,
    last: Pick<Settlement, 'lastCode' | 'lastReply'>,
    suppression: Verdict['suppression'] = null,
    dueAt = now,
  ): Conclusion {
    return { end: { state, attempts, dueAt, reason, ...last }, events: [event], suppression }
  }

  function failed(failure: Extract<Outcome, { failure: Failure }>): Conclusion {
    const { code, enhanced, message, description } = failure.failure
    const judged = (permanent: boolean) =>
      rules.judge(
        failure.failure,
        { recipients: [delivery.recipient], senders: [about.summary.sender] },
        permanent,
      )
    const common = facts(code, message, description, enhanced)
    const last = { lastCode: code > 0 ? code : null, lastReply: message || description }
    if (failure.kind === 'suppressed' || failure.kind === 'refused') {
      const { kind, reason } = failure
      const state = kind === 'refused' ? 'rejected' : kind
      const event = failedEvent(about, to, { ...common, severity: 'permanent', reason }, now)
      return concluded(state, reason, event, last)
    }
    if (failure.kind === 'bounced') {
      const { reason, ruleId, suppression } = judged(true)
      const type = reason === REASON_DEAD_MAILBOX ? ('hard' as const) : ('soft' as const)
      const status = { ...common.status, 'bounce-type': type }
      const event = failedEvent(about, to, { ...common, status, severity: 'permanent', reason, ruleId }, now)
      return concluded('bounced', reason, event, last, suppression)
    }
    const next =
      isMoved && now < delivery.expires_at
        ? ({ kind: 'retry', at: now } as const)
        : nextStep(now, attempts, delivery.expires_at, rules.retryScheduleMs, rules.random(), windowIsSenders)
    if (next.kind === 'give-up') {
      const old = facts(CODE_TOO_OLD, 'Too old', '', null)
      const status = {
        ...old.status,
        'bounce-type': 'soft' as const,
        // No server has answered where the window ended before the first attempt.
        ...(code > 0 && { 'last-code': code, 'last-message': message }),
      }
      const { ruleId, suppression } = judged(true)
      const given = { ...old, status, severity: 'permanent', reason: 'old', ruleId } as const
      return concluded('expired', 'old', failedEvent(about, to, given, now), last, suppression)
    }
    const retrySeconds = next.kind === 'retry' ? { 'retry-seconds': Math.round((next.at - now) / 1000) } : {}
    const status = { ...common.status, ...retrySeconds }
    const { reason, ruleId } = judged(false)
    const event = failedEvent(about, to, { ...common, status, severity: 'temporary', reason, ruleId }, now)
    return concluded('queued', reason, event, last, null, next.at)
  }
}
