/** The span of an HTTP request. */
import type { Clock } from '../../../base/time/clock.ts'
import type { Tracing } from '../../traces/tracing.ts'
import type { Exchange } from '../exchange.ts'
import type { Operation } from '../operation.ts'
import type { Caller } from '../rights/auth.ts'

/**
 * Begins the span of a request whose caller is known, so that strangers can neither fill the collector nor decide what is
 * sampled. It continues the caller's trace, began when the request's header had arrived, and ends with the answer.
 */
export function traceRequest(
  tracing: Tracing,
  { method, path: route, id }: Operation,
  exchange: Exchange,
  caller: Caller,
  clock: Clock,
): void {
  const { arrival, headers } = exchange
  const span = tracing.begin({
    name: `${method} ${route}`,
    kind: 'server',
    parent: headers['traceparent'] as string | undefined,
    at: clock.now() - (performance.now() - exchange.startedAt),
  })
  exchange.span = span
  let isEnded = false
  const end = (status: number | undefined) => {
    if (isEnded) return
    isEnded = true
    const attributes = {
      'http.request.method': exchange.method,
      'http.route': route,
      'http.response.status_code': status,
      'sendwright.operation': id,
      'sendwright.request.id': exchange.id,
      'sendwright.account.id': caller.accountId,
    }
    span.end(clock.now(), attributes, status === undefined || status >= 500)
  }
  arrival.onAnswered(() => end(exchange.status))
  // Without an answer: the client has left.
  arrival.onEnd(() => end(undefined))
}
