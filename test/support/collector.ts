/** A collector of traces for tests: OTLP over HTTP, in JSON. */
import type { TestContext } from 'node:test'
import { createReceiver, type Receiver } from './http-receiver.ts'

export interface CollectedSpan {
  traceId: string
  spanId: string
  /** Empty: the span began the trace. */
  parentSpanId: string
  name: string
  kind: 'internal' | 'server' | 'client'
  attributes: Record<string, string | number | boolean>
  /** Milliseconds. */
  startedAt: number
  endedAt: number
  isFailed: boolean
}

export interface Collector {
  url: string
  receiver: Receiver
  /** All spans so far, in the order of their beginning. */
  spans(): CollectedSpan[]
}

interface OtlpValue {
  stringValue?: string
  intValue?: number | string
  doubleValue?: number
  boolValue?: boolean
}

interface OtlpSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: { key: string; value: OtlpValue }[]
  status: { code?: number }
}

interface OtlpRequest {
  resourceSpans: { scopeSpans: { spans: OtlpSpan[] }[] }[]
}

const KINDS = ['internal', 'internal', 'server', 'client'] as const
const STATUS_ERROR = 2

export async function createCollector(t: TestContext): Promise<Collector> {
  const receiver = await createReceiver()
  t.after(() => receiver.close())
  return {
    url: `http://${receiver.host}:${receiver.port}`,
    receiver,
    spans: () =>
      receiver.posts
        .flatMap(({ body }) => (body as OtlpRequest).resourceSpans)
        .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
        .map(spanOf)
        .sort((a, b) => a.startedAt - b.startedAt),
  }
}

const spanOf = (span: OtlpSpan): CollectedSpan => ({
  traceId: span.traceId,
  spanId: span.spanId,
  parentSpanId: span.parentSpanId ?? '',
  name: span.name,
  kind: KINDS[span.kind] ?? 'internal',
  attributes: Object.fromEntries(span.attributes.map(({ key, value }) => [key, plain(value)])),
  startedAt: Number(span.startTimeUnixNano) / 1e6,
  endedAt: Number(span.endTimeUnixNano) / 1e6,
  isFailed: span.status.code === STATUS_ERROR,
})

const plain = ({ stringValue, intValue, doubleValue, boolValue }: OtlpValue) =>
  stringValue ?? boolValue ?? doubleValue ?? Number(intValue)
