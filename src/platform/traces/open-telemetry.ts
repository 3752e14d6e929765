/**
 * Spans on their way to a collector: OTLP over HTTP, in JSON, by the OpenTelemetry libraries. Imported only where tracing
 * is switched on. A span that has ended waits in a bounded queue; a collector that is slow or gone costs spans, never
 * mail.
 */
import {
  type Context,
  SpanKind as OtelKind,
  ROOT_CONTEXT,
  type Span,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'
import { REASON_LENGTH_MAX } from '../../base/process/fault-log.ts'
import { VERSION } from '../../base/process/version.ts'
import { readTraceparent, type SpanCounts, type SpanKind, type Tracing, traceparentOf } from './tracing.ts'

interface TracingOptions {
  /** Address of the collector for traces, with `/v1/traces`. */
  url: string
  headers: Readonly<Record<string, string>>
  /** Share of the traces that begin here, 0 to 1; a trace of a caller is sampled as the caller says. */
  share: number
  /** Names this process. */
  instance: string
  log: Logger
  /** Between two posts to the collector; default SEND_EVERY_MS. */
  sendEveryMs?: number
}

/** About a kilobyte each. A message has three or more: this is a second at 4,000 messages a second. */
export const WAITING_MAX = 16_384
/** In one post; about 500 KB of JSON. */
const BATCH_MAX = 512
const SEND_EVERY_MS = 1_000
/** For one post with its repetitions; a batch that took longer is lost. */
const POST_MAX_MS = 5_000
/** A stop of the service waits no longer than this for the collector. */
const CLOSE_MAX_MS = 3_000
const LOG_EVERY_MS = 60_000
/** A message id or a host name may be longer than is useful. */
const VALUE_LENGTH_MAX = 256

const KINDS: Record<SpanKind, OtelKind> = {
  server: OtelKind.SERVER,
  client: OtelKind.CLIENT,
  internal: OtelKind.INTERNAL,
}

export function openTracing(options: TracingOptions): Tracing {
  const { url, headers, share, instance } = options
  const counts: SpanCounts = { sent: 0, failed: 0, dropped: 0 }
  const exporter = new OTLPTraceExporter({
    url,
    headers: { ...headers },
    timeoutMillis: POST_MAX_MS,
    // A stop sends all that waits at once, beside the post in progress.
    concurrencyLimit: 1 + WAITING_MAX / BATCH_MAX,
  })
  const processor = boundedProcessor(options, exporter, counts)
  const provider = new TracerProvider({
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
    resource: resourceFromAttributes({
      'service.name': 'sendwright',
      'service.version': VERSION,
      'service.instance.id': instance,
    }),
    spanLimits: { attributeValueLengthLimit: VALUE_LENGTH_MAX },
    spanProcessors: [processor],
  })
  const tracer = provider.getTracer('sendwright', VERSION)
  return {
    begin({ name, kind, parent, at }) {
      const span = tracer.startSpan(name, { kind: KINDS[kind], startTime: timeOf(at) }, contextOf(parent))
      return {
        traceparent: nameOf(span),
        end(endedAt, attributes, isFailed) {
          span.setAttributes(attributes)
          if (isFailed) span.setStatus({ code: SpanStatusCode.ERROR })
          span.end(timeOf(Math.max(at, endedAt)))
        },
      }
    },
    counts: () => ({ ...counts }),
    async close() {
      let timer: NodeJS.Timeout | undefined
      const tooLong = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, CLOSE_MAX_MS)
      })
      await Promise.race([provider.shutdown().catch(() => {}), tooLong])
      clearTimeout(timer)
    },
  }
}

/** Batches spans as the library does, and counts those that its queue has no room for. */
function boundedProcessor(
  { log, sendEveryMs = SEND_EVERY_MS }: TracingOptions,
  exporter: SpanExporter,
  counts: SpanCounts,
): SpanProcessor {
  let waiting = 0
  let loggedAt = Number.NEGATIVE_INFINITY
  const counted: SpanExporter = {
    export(spans, done) {
      waiting -= spans.length
      exporter.export(spans, (result) => {
        // ExportResultCode.SUCCESS
        const isSent = result.code === 0
        counts[isSent ? 'sent' : 'failed'] += spans.length
        if (!isSent) logFailure(result.error)
        done(result)
      })
    },
    shutdown: () => exporter.shutdown(),
  }
  function logFailure(error: Error | undefined): void {
    const now = performance.now()
    if (now - loggedAt < LOG_EVERY_MS) return
    loggedAt = now
    const reason = error?.message.slice(0, REASON_LENGTH_MAX)
    log.warn({ reason, ...counts }, 'the collector takes no traces')
  }
  const batches = new BatchSpanProcessor({
    exporter: counted,
    maxQueueSize: WAITING_MAX,
    maxExportBatchSize: BATCH_MAX,
    scheduledDelayMillis: sendEveryMs,
    exportTimeoutMillis: 2 * POST_MAX_MS,
  })
  return {
    onStart: (span, context) => batches.onStart(span, context),
    onEnd(span) {
      if (waiting >= WAITING_MAX) {
        counts.dropped++
        return
      }
      waiting++
      batches.onEnd(span)
    },
    forceFlush: () => batches.forceFlush(),
    shutdown: () => batches.shutdown(),
  }
}

/** A number would be taken for one of `performance.now()` if it is before the start of the process. */
function timeOf(ms: number): [seconds: number, nanoseconds: number] {
  const seconds = Math.floor(ms / 1000)
  return [seconds, Math.floor((ms - seconds * 1000) * 1_000_000)]
}

function contextOf(parent: string | undefined): Context {
  const found = parent === undefined ? null : readTraceparent(parent)
  if (found === null) return ROOT_CONTEXT
  const { traceId, spanId, isSampled } = found
  const traceFlags = isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true })
}

function nameOf(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext()
  return traceparentOf({ traceId, spanId, isSampled: (traceFlags & TraceFlags.SAMPLED) !== 0 })
}
