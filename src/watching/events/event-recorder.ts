/**
 * The one way to write events. A writer hands in the events of its transaction and gets every statement that belongs
 * to them: the rows of the events and those of the areas that have an interest in them (webhook posts, classified
 * failures). No writer knows these areas, and none can leave one out.
 *
 * What may happen later reads committed events instead (follower.ts).
 */
import { insertMany, type Statement } from '../../platform/store/store.ts'
import { type EventRecord, recipientHash, tagsJson } from './event.ts'

/** The rows that an area adds to the transaction of events. Answers from memory; usually there are none. */
export type EventInterest = (events: readonly EventRecord[]) => readonly Statement[]

export interface EventRecorder {
  /**
   * All rows of these events, for the transaction of what they report. The order of events (`tx`, `seq`) is given by
   * the database; the rows of their tags are written by a trigger, on SQLite with the index (indexing.ts).
   */
  statements(events: readonly EventRecord[]): Statement[]
}

/** `interests` may grow until the first event is written. */
export function createEventRecorder(interests: readonly EventInterest[] = []): EventRecorder {
  return {
    statements(events) {
      const statements = insertMany('events', events.map(eventRow))
      for (const interest of interests) statements.push(...interest(events))
      return statements
    },
  }
}

function eventRow(event: EventRecord) {
  const recipient = event.recipient?.toLowerCase() ?? null
  return {
    id: event.id,
    account_id: event.accountId,
    domain_name: event.domainName,
    event: event.event,
    timestamp_us: event.timestampUs,
    recipient,
    message_id: event.messageId,
    payload_json: payloadText(event.payload),
    tags_json: tagsJson(event.payload['tags']),
    recipient_hash: recipient === null ? null : recipientHash(event.domainName, recipient),
  }
}

/** A JSON escape; longer than one character: NUL or a lone surrogate. */
const ESCAPE = /\\(u0000|ud[89a-f][\da-f]{2}|.)/g

/**
 * Variables and subjects may contain NUL and lone surrogates, which PostgreSQL cannot extract from JSON: they would break
 * the index of opens and clicks, and every query that reads the payload.
 */
function payloadText(payload: object): string {
  const text = JSON.stringify(payload)
  if (!text.includes('\\u')) return text
  return text.replaceAll(ESCAPE, (match, escaped: string) => (escaped.length > 1 ? '\ufffd' : match))
}
