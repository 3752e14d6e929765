/** The span of an attempt to deliver, made when its result is known. */
import type { Tracing } from '../../../platform/traces/tracing.ts'
import type { ClaimedDelivery } from '../claim/queue.ts'
import type { AttemptResult } from '../contract.ts'
import type { Outcome } from './outcome.ts'

/** `sizeBytes` null: the message was not sent. `traceparent`: the span to continue. `at`: when the result was known. */
export function traceAttempt(
  tracing: Tracing,
  delivery: ClaimedDelivery,
  lane: string,
  result: AttemptResult,
  { sizeBytes, traceparent, at }: { sizeBytes: number | null; traceparent: string; at: number },
): void {
  const { outcome, mxHost, sendingIp, tls, verified } = result
  const began = at - result.sessionMs
  const span = tracing.begin({
    name: sizeBytes === null ? 'end delivery unsent' : 'deliver message',
    kind: sizeBytes === null ? 'internal' : 'client',
    parent: traceparent,
    at: began,
  })
  const attributes = {
    'sendwright.delivery.id': delivery.id,
    'sendwright.recipient.domain': delivery.recipient_domain,
    'sendwright.attempt': delivery.attempts + (result.attempted ? 1 : 0),
    'sendwright.lane': lane,
    'sendwright.provider': result.provider,
    'sendwright.outcome': outcome.kind,
    'sendwright.waited_ms': Math.max(0, Math.round(began - delivery.due_at)),
    'sendwright.age_ms': Math.max(0, Math.round(began - delivery.created_at)),
    'sendwright.bytes': sizeBytes ?? undefined,
    'server.address': mxHost ?? undefined,
    'network.local.address': sendingIp ?? undefined,
    'sendwright.tls': tls ?? undefined,
    'sendwright.tls.verified': verified ?? undefined,
    ...replyOf(outcome),
  }
  span.end(at, attributes, outcome.kind === 'deferred' || outcome.kind === 'bounced')
}

/** Codes only: the texts of servers repeat addresses. */
function replyOf(outcome: Outcome) {
  if (outcome.kind === 'rejected') return {}
  const { code, enhanced } = outcome.kind === 'delivered' ? outcome : outcome.failure
  if (code <= 0) return {}
  return {
    'smtp.reply.code': code,
    'smtp.reply.class': `${Math.floor(code / 100)}xx`,
    'smtp.reply.enhanced_code': enhanced ?? undefined,
  }
}
