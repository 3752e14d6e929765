/** The span of an acceptance. Its name is kept with the message, so that attempts continue its trace (decision 131). */
import type { Clock } from '../../base/time/clock.ts'
import type { Tracing } from '../../platform/traces/tracing.ts'
import type { MessageOrigin } from './new-record.ts'

/** @param accept stores the message with the given traceparent among its options */
export async function traceAcceptance<Acceptance extends { id: string }>(
  tracing: Tracing,
  clock: Clock,
  { domain, method, traceparent }: MessageOrigin & { traceparent?: string | undefined },
  recipients: number,
  accept: (traceparent: string) => Promise<Acceptance>,
): Promise<Acceptance> {
  const span = tracing.begin({
    name: 'accept message',
    // Of SMTP submission nothing comes before it.
    kind: method === 'smtp' ? 'server' : 'internal',
    parent: traceparent,
    at: clock.now(),
  })
  const attributes = {
    'sendwright.account.id': domain.accountId,
    'sendwright.domain': domain.name,
    'sendwright.method': method,
    'sendwright.recipients': recipients,
  }
  try {
    const acceptance = await accept(span.traceparent)
    span.end(clock.now(), { ...attributes, 'messaging.message.id': acceptance.id.slice(1, -1) }, false)
    return acceptance
  } catch (error) {
    // Its text may show addresses.
    const type = error instanceof Error ? error.name : 'Error'
    span.end(clock.now(), { ...attributes, 'error.type': type }, true)
    throw error
  }
}
