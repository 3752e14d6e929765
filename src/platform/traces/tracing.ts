/**
 * Traces, as the rest of the service sees them: spans with a parent, and the parent's name as text, which is kept with a
 * message in the queue. Without the setting there is no `Tracing`, and no place that would use one does anything. How
 * spans leave the process is in open-telemetry.ts (decision 131).
 */

export interface Tracing {
  begin(start: SpanStart): TraceSpan
  /** Spans since the start of this process, by what became of them. */
  counts(): SpanCounts
  /** Sends what is left, for a few seconds at most. Never rejects. */
  close(): Promise<void>
}

interface SpanStart {
  /** One of few: never with values of a request in it. */
  name: string
  kind: SpanKind
  /** A traceparent; undefined or not valid: the span begins a trace of its own. */
  parent: string | undefined
  /** Unix milliseconds. */
  at: number
}

export type SpanKind = 'server' | 'client' | 'internal'

export interface TraceSpan {
  /** Names this span to its children, also if the trace is not sampled. */
  readonly traceparent: string
  /** Once. `at`: Unix milliseconds. `isFailed`: the span's status is an error. */
  end(at: number, attributes: SpanAttributes, isFailed: boolean): void
}

/** Undefined: left out. Never bodies, secrets, or addresses of people. */
type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>

export interface SpanCounts {
  sent: number
  /** The collector did not take them. */
  failed: number
  /** The queue was full. */
  dropped: number
}

interface ParentContext {
  /** 32 hexadecimal digits. */
  traceId: string
  /** 16 hexadecimal digits. */
  spanId: string
  isSampled: boolean
}

/** Later versions may append fields (W3C Trace Context, section 2.2.2); more than any would need. */
const TRACEPARENT_LENGTH_MAX = 256

/**
 * Reads a traceparent (W3C Trace Context, section 2.2), from anybody.
 * @returns null if it is not a valid one; the trace is to be begun anew then
 */
export function readTraceparent(text: unknown): ParentContext | null {
  if (typeof text !== 'string' || text.length > TRACEPARENT_LENGTH_MAX) return null
  const match = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(text)
  if (match === null) return null
  const [, version, traceId = '', spanId = '', flags = '', more] = match
  if (version === 'ff' || (version === '00' && more !== undefined)) return null
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** The text form, in version 00. */
export const traceparentOf = ({ traceId, spanId, isSampled }: ParentContext): string =>
  `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
