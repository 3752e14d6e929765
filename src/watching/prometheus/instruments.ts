/**
 * What this process has done since its start, as counters and histograms in memory. A counter's child for one set of
 * labels is looked up once and kept: the library's own look-up costs more than the rest of an observation.
 */
import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client'
import type { Core } from '../../core.ts'
import type { Answered } from '../../platform/http/exchange.ts'
import type { Tracing } from '../../platform/traces/tracing.ts'
import type { EventRecord } from '../events/event.ts'

/** Seconds. Accepting takes a millisecond, a large report some seconds. */
const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
/** Seconds. A server of a provider answers in a second, a greylisting or tarpitting one in minutes. */
const SESSION_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
/** In place of an operation: pages of the dashboard, and paths that do not exist. */
const NO_OPERATION = 'none'
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Gauges of the library with the suffix of counters; each is the sum of one that stays. */
const MISNAMED = ['handles', 'requests', 'resources'].map((what) => `nodejs_active_${what}_total`)

export function createInstruments({ tracing, lostLogLines }: Pick<Core, 'tracing' | 'lostLogLines'>) {
  const registry = new Registry()
  const registers = [registry]
  let followsProcess = false
  const requests = new Histogram({
    name: 'sendwright_http_request_duration_seconds',
    help: 'HTTP requests by operationId, from the end of their header to the end of the answer.',
    labelNames: ['operation', 'method', 'status'] as const,
    buckets: REQUEST_BUCKETS,
    registers,
  })
  const events = new Counter({
    name: 'sendwright_events_total',
    help: 'Events that this process wrote, by provider of the recipient and, for failed, by severity and reason.',
    labelNames: ['event', 'severity', 'reason', 'provider'] as const,
    registers,
  })
  const sessions = new Histogram({
    name: 'sendwright_smtp_attempt_duration_seconds',
    help: 'Attempts to deliver, from the wait for a connection to the last reply.',
    labelNames: ['event', 'provider'] as const,
    buckets: SESSION_BUCKETS,
    registers,
  })
  new Counter({
    name: 'sendwright_log_lines_lost_total',
    help: 'Lines of the log that could not be written.',
    registers,
    collect() {
      this.reset()
      this.inc(lostLogLines())
    },
  })
  if (tracing !== undefined) countSpans(registry, tracing)
  const requestsOf = keptBy((operation: string, method: string, status: string) =>
    requests.labels({ operation, method, status }),
  )
  const eventsOf = keptBy((event: string, severity: string, reason: string, provider: string) =>
    events.labels({ event, severity, reason, provider }),
  )
  const sessionsOf = keptBy((event: string, provider: string) => sessions.labels({ event, provider }))

  return {
    registry,
    /** Adds CPU, memory, event loop and the like, once. To measure the loop's delay, the library wakes it a hundred times a second. */
    followProcess(): void {
      if (followsProcess) return
      followsProcess = true
      collectDefaultMetrics({ register: registry })
      for (const name of MISNAMED) registry.removeSingleMetric(name)
    },
    answered({ operation = NO_OPERATION, method, status, durationMs }: Answered): void {
      const known = METHODS.has(method) ? method : 'other'
      requestsOf(operation, known, String(status)).observe(durationMs / 1000)
    },
    recorded(written: readonly EventRecord[]): [] {
      for (const { event, payload } of written) {
        const provider = textOf(payload['recipient-provider'])
        eventsOf(event, textOf(payload['severity']), textOf(payload['reason']), provider).inc()
        const seconds = sessionSeconds(payload['delivery-status'])
        if (seconds !== null) sessionsOf(event, provider).observe(seconds)
      }
      return []
    },
  }
}

function countSpans(registry: Registry, tracing: Tracing): void {
  new Counter({
    name: 'sendwright_trace_spans_total',
    help: 'Spans of traces: sent, not taken by the collector (failed), dropped because too many waited.',
    labelNames: ['result'] as const,
    registers: [registry],
    collect() {
      this.reset()
      for (const [result, count] of Object.entries(tracing.counts())) this.labels({ result }).inc(count)
    },
  })
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : '')

/** Null where no server was asked. */
function sessionSeconds(status: unknown): number | null {
  const seconds = (status as { 'session-seconds'?: number } | undefined)?.['session-seconds']
  return typeof seconds === 'number' && seconds > 0 ? seconds : null
}

/** `make`, with its results kept by its arguments, none of which contains a line feed. */
function keptBy<A extends string[], R>(make: (...labels: A) => R): (...labels: A) => R {
  const kept = new Map<string, R>()
  return (...labels) => {
    const key = labels.join('\n')
    let found = kept.get(key)
    if (found === undefined) {
      found = make(...labels)
      kept.set(key, found)
    }
    return found
  }
}
