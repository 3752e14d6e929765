/**
 * Which opens and clicks are unique: one per message, recipient and bot class within seven days, starting with the one
 * that counts (tags-stats.md section 5). Found from the events themselves, so it holds for any time that they are kept;
 * in the first seven of these days an earlier visit may be gone.
 */

import { DAY_MS } from '../../base/time/durations.ts'
import type { Store } from '../../platform/store/store.ts'
import { SAME_TIME } from '../events/kept/time-parts.ts'
import type { ReadRow } from '../events/search/walk.ts'

const UNIQUE_FOR_US = 7 * DAY_MS * 1000

const BOT = {
  sqlite: `json_extract(payload_json, '$."client-info".bot')`,
  postgres: `payload_json::json -> 'client-info' ->> 'bot'`,
} as const

interface Visit {
  seq: number
  us: number
  key: string
}

/** The `seq` of those of these opens and clicks that are unique. */
export async function uniqueAmong(store: Store, visits: readonly ReadRow[]): Promise<ReadonlySet<number>> {
  const messages = [...new Set(visits.flatMap(({ payload }) => messageIdOf(payload) ?? []))]
  if (messages.length === 0) return new Set()
  const list = store.kind === 'sqlite' ? 'json_each(?)' : 'json_array_elements_text(?::json)'
  const rows = await store.read({
    // `|| ''` leaves only the index by message id.
    sql: `SELECT events.seq, events.timestamp_us, events.account_id, events.domain_name, events.event,
        events.message_id, events.recipient, ${BOT[store.kind]} AS bot
      FROM event_keys CROSS JOIN events
      WHERE event_keys.message_id IN (SELECT value FROM ${list}) AND event_keys.event || '' IN ('opened', 'clicked')
        AND events.seq = event_keys.seq ${SAME_TIME[store.kind]} AND events.recipient IN (SELECT value FROM ${list})
      ORDER BY event_keys.timestamp_us, event_keys.seq`,
    values: [
      JSON.stringify(messages),
      JSON.stringify([...new Set(visits.map(({ row }) => row.recipient ?? ''))]),
    ],
  })
  return firstOfEach(rows.map(visitOf))
}

const messageIdOf = (payload: Readonly<Record<string, unknown>>): string | null => {
  const { message } = payload as { message?: { headers?: { 'message-id'?: unknown } } }
  const id = message?.headers?.['message-id']
  return typeof id === 'string' ? id : null
}

const visitOf = (row: Record<string, unknown>): Visit => ({
  seq: Number(row['seq']),
  us: Number(row['timestamp_us']),
  key: JSON.stringify(
    ['account_id', 'domain_name', 'event', 'message_id', 'recipient', 'bot'].map((name) => row[name]),
  ),
})

/** `visits`: in order of time. */
function firstOfEach(visits: readonly Visit[]): Set<number> {
  const counted = new Map<string, number>()
  const firsts = new Set<number>()
  for (const { seq, us, key } of visits) {
    const before = counted.get(key)
    if (before !== undefined && us < before + UNIQUE_FOR_US) continue
    counted.set(key, us)
    firsts.add(seq)
  }
  return firsts
}
