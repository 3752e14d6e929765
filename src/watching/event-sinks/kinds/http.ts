/**
 * Batches of events over HTTP: lines of JSON, as ClickHouse's `FORMAT JSONEachRow` takes them, a JSON array, or the lines of
 * Elasticsearch's bulk operation. Any 2xx means that all of them were taken.
 */
import { isPlainObject } from '../../../base/values.ts'
import { isOwnMachine } from '../shown-sink.ts'
import { AT_ONCE, compressed, type SinkEvent, type SinkKind } from '../sink.ts'

/** A batch may be inserted into a table before it is answered. */
const TOTAL_MAX_MS = 30_000
/** Elasticsearch answers 100 to 300 bytes for each event. */
const ANSWER_MAX_BYTES = 512 * 1024
const QUOTED_LENGTH = 200

const FORMATS = {
  'json-lines': {
    contentType: 'application/x-ndjson',
    body: (events: readonly SinkEvent[]) => events.map(({ json }) => `${json}\n`).join(''),
  },
  'json-array': {
    contentType: 'application/json',
    body: (events: readonly SinkEvent[]) => `[${events.map(({ json }) => json).join(',')}]`,
  },
  // `create` leaves a document alone that is there already: it answers 409, and repeats change nothing.
  'elasticsearch-bulk': {
    contentType: 'application/x-ndjson',
    body: (events: readonly SinkEvent[]) =>
      events.map(({ id, json }) => `{"create":{"_id":${JSON.stringify(id)}}}\n${json}\n`).join(''),
  },
} as const

/**
 * Compression is two fifths of a sink's processor time, which a connection within one machine does not repay. Processor time of an
 * event from the row to the answer, 1.1 KB, SQLite, medians of five turns: 24 us compressed, 16 us as it is, 9 us of both the reading.
 */
export const httpSink: SinkKind = {
  ...AT_ONCE,
  needs: ['url'],
  takes: ['url', 'format', 'gzip'],
  secret: 'allowed',
  async open({ settings, secret, client }) {
    const { url = '', format = 'json-lines', gzip: isPacked = !isOwnMachine(new URL(url).host) } = settings
    const { contentType, body } = FORMATS[format]
    const headers = {
      'content-type': contentType,
      ...(isPacked && { 'content-encoding': 'gzip' }),
      ...(secret !== '' && { authorization: secret }),
    }
    return {
      async send(events) {
        const text = Buffer.from(body(events))
        const outcome = await client.send({
          ...{ url, headers },
          body: isPacked ? await compressed(text) : text,
          totalMs: TOTAL_MAX_MS,
          responseBytes: ANSWER_MAX_BYTES,
        })
        if (outcome.kind !== 'answered') throw new Error(outcome.why)
        const { status, reason } = outcome
        const answer = outcome.body.toString()
        if (status < 200 || status > 299)
          throw new Error(`${status} ${reason} ${answer.slice(0, QUOTED_LENGTH)}`.trim())
        const fault = format === 'elasticsearch-bulk' ? bulkFault(answer, events.length) : null
        if (fault !== null) throw new Error(fault)
      },
      close() {},
    }
  },
}

/** Why some documents of a bulk request were not taken; null: all were, or were there before. */
export function bulkFault(answer: string, count: number): string | null {
  let parsed: unknown
  try {
    parsed = JSON.parse(answer)
  } catch {
    return 'the answer to the bulk request is not JSON'
  }
  if (!isPlainObject(parsed)) return 'the answer to the bulk request is not an object'
  if (parsed['errors'] === false) return null
  const items = Array.isArray(parsed['items']) ? (parsed['items'] as unknown[]) : []
  for (const item of items) {
    const { status, error } = (
      isPlainObject(item) && isPlainObject(item['create']) ? item['create'] : {}
    ) as {
      status?: unknown
      error?: unknown
    }
    const isTaken = status === 409 || (typeof status === 'number' && status < 300)
    if (!isTaken)
      return `a document was refused: ${JSON.stringify(error ?? status ?? null).slice(0, QUOTED_LENGTH)}`
  }
  return items.length === count ? null : 'the answer to the bulk request does not name all documents'
}
