/** The span of one POST of the queue. */
import type { Tracing } from '../traces/tracing.ts'
import type { HttpOutcome } from './http-client.ts'

/** The URL may have secrets in its path: of it only the host is shown. `at`: when it ended, in Unix milliseconds. */
export function tracePost(
  tracing: Tracing,
  post: {
    kind: string
    url: string
    traceparent: string | undefined
    attempt: { number: number; outcome: HttpOutcome; status: string }
    at: number
  },
): void {
  const { kind, url, traceparent, attempt, at } = post
  const { outcome } = attempt
  const span = tracing.begin({
    name: `post ${kind}`,
    kind: 'client',
    parent: traceparent,
    at: at - outcome.durationMs,
  })
  const attributes = {
    'http.request.method': 'POST',
    'http.response.status_code': outcome.kind === 'answered' ? outcome.status : undefined,
    'server.address': URL.canParse(url) ? new URL(url).hostname : undefined,
    'sendwright.attempt': attempt.number,
    'sendwright.outcome': attempt.status,
  }
  span.end(at, attributes, attempt.status !== 'ok')
}
