/**
 * Maintains the counters: a follower counts each event exactly once, shortly after its commit and despite crashes
 * (decision 31). Writers of events are not involved.
 */
import type { Clock } from '../base/clock.ts'
import { pause } from '../base/pause.ts'
import { createEventFollower, type EventFollower, type FollowedKey } from '../events/follower.ts'
import type { Statement, Store } from '../store/store.ts'
import { countersOf, type IsRateLimit, type Payload, payloadColumn } from './counters.ts'
import { valuesOfEvent } from './event-values.ts'
import { placesOf, unmoved } from './places.ts'
import { createTally } from './tally.ts'
import { uniqueVisits, visitKey } from './unique-visits.ts'

export interface StepLimits {
  /** The more events a step has, the fewer rows it writes for each: of 1,000 domains 2.2 with 2,000 events, 1.7 with 8,000. */
  events: number
  /** Rows per transaction; a step that needs more takes fewer events. */
  rows: number
}

/**
 * On SQLite 2,000 events occupy the only reader for about 12 ms, 5,000 rows the only writer for 15 to 25 ms. On PostgreSQL
 * nobody else waits for these rows; a step's events need some 20 MB of memory.
 */
export const STEP_LIMITS: Readonly<Record<Store['kind'], StepLimits>> = {
  sqlite: { events: 2_000, rows: 5_000 },
  postgres: { events: 8_000, rows: 24_000 },
}
/** Between steps of a backlog, so that others can read and write. */
const PAUSE_MS = 10

interface FollowedEvent extends FollowedKey {
  account_id: string
  domain_name: string
  event: string
  timestamp_us: number
  recipient: string | null
  message_id: string | null
  tags_json: string | null
  /** Null for a plain event. */
  payload_json: string | null
}

interface ParsedEvent {
  row: FollowedEvent
  /** Null for a plain event. */
  payload: Payload | null
  /** Key of an open or click; null for other events. */
  visit: string | null
}

export interface Counting {
  follower: EventFollower
  /** Counts all new events and returns their number. Stops early when `signal` aborts; the next run continues. */
  run(signal: AbortSignal): Promise<number>
}

export function createCounting(
  store: Store,
  clock: Clock,
  isRateLimit: IsRateLimit,
  limits: StepLimits = STEP_LIMITS[store.kind],
): Counting {
  let counted = 0
  const follower = createEventFollower<FollowedEvent>(store, {
    name: 'counters',
    columns: `account_id, domain_name, event, timestamp_us, recipient, message_id, tags_json, ${payloadColumn(store.kind)}`,
    rowsMax: limits.events,
    async apply(rows) {
      const step = await count(store, rows, isRateLimit, limits.rows)
      counted += step.taken
      return step
    },
  })
  return {
    follower,
    async run(signal) {
      counted = 0
      while (!signal.aborted && (await follower.step()) === 'more') await pause(clock, PAUSE_MS, signal)
      return counted
    },
  }
}

async function count(
  store: Store,
  rows: readonly FollowedEvent[],
  isRateLimit: IsRateLimit,
  rowsMax: number,
): Promise<{ taken: number; statements: Statement[] }> {
  const events = rows.map(parse)
  const visits = await uniqueVisits(
    store,
    events.flatMap(({ visit }) => visit ?? []),
  )
  const { written } = await placesOf(store)
  const tally = createTally(written)
  let taken = 0
  for (const { row, payload, visit } of events) {
    if (tally.size > rowsMax) break
    taken++
    const counters = [...countersOf(row.event, payload, isRateLimit)]
    if (counters.length === 0) continue
    const at = Math.floor(Number(row.timestamp_us) / 1000)
    if (visit !== null && visits.isFirst(visit, at))
      counters.push(row.event === 'opened' ? 'opened_unique' : 'clicked_unique')
    const tags = coversAllMail(row) ? await tagsOfMessage(store, row) : parseTags(row.tags_json)
    const values = valuesOfEvent(row.event, row.recipient, payload)
    tally.add({ accountId: row.account_id, domainName: row.domain_name, tags, values, at, counters })
  }
  return { taken, statements: [unmoved(written), ...tally.statements(), ...visits.statements()] }
}

function parse(row: FollowedEvent): ParsedEvent {
  const { event, payload_json: text } = row
  const payload = text === null ? null : (JSON.parse(text) as ParsedEvent['payload'])
  if (event !== 'opened' && event !== 'clicked') return { row, payload, visit: null }
  const client = payload?.['client-info'] as { bot?: unknown } | undefined
  const visit = visitKey({
    accountId: row.account_id,
    domainName: row.domain_name,
    event,
    messageId: row.message_id,
    recipient: row.recipient,
    bot: String(client?.bot ?? ''),
  })
  return { row, payload, visit }
}

/** An unsubscribe from all mail (tracking.md rule 18). */
const coversAllMail = (row: FollowedEvent) => row.event === 'unsubscribed' && row.tags_json === '["*"]'

/** `|| ''` excludes the other indexes: by domain and event SQLite would read all accepted mail of the domain. */
const FIRST_TAGS = `SELECT tags_json FROM events WHERE seq = (SELECT seq FROM (
  SELECT seq, timestamp_us FROM event_keys
  WHERE message_id = ? AND account_id || '' = ? AND domain_name || '' = ? AND event || '' = 'accepted'
  ORDER BY timestamp_us LIMIT 1) AS first)`

/** The tags of the message's first event, while that is kept. */
async function tagsOfMessage(store: Store, row: FollowedEvent): Promise<string[]> {
  if (row.message_id === null) return []
  const [sent] = await store.read({
    sql: FIRST_TAGS,
    values: [row.message_id, row.account_id, row.domain_name],
  })
  return parseTags((sent?.['tags_json'] ?? null) as string | null)
}

const parseTags = (json: string | null): string[] =>
  json === null ? [] : [...new Set<string>(JSON.parse(json))]
