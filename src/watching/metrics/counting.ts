/**
 * Maintains the counters: a follower counts each event exactly once, shortly after its commit and despite crashes
 * (decision 31). Writers of events are not involved.
 */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { pause } from '../../base/flow/pause.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { EventRow } from '../../platform/store/schema.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import { createEventFollower } from '../events/follower.ts'
import { countersOf, type IsRateLimit, type Payload, payloadColumn, valuesOfEvent } from './counters.ts'
import { createFigureStore, type FigureStore } from './storage/figure-store.ts'
import { uniqueVisits, type Visit, visitKey } from './unique-visits.ts'

interface StepLimits {
  /** The more events a step has, the fewer rows it writes for each: of 1,000 domains 1.2 with 4,000 events, 0.9 with 8,000. */
  events: number
  /** Rows per transaction; a step that needs more takes fewer events. */
  rows: number
}

/**
 * On SQLite 5,000 events occupy the only reader for about 25 ms, and their rows the only writer for 35. On PostgreSQL
 * nobody else waits for these rows; a step's events need some 20 MB of memory.
 */
export const STEP_LIMITS: Readonly<Record<Store['kind'], StepLimits>> = {
  sqlite: { events: 5_000, rows: 8_000 },
  postgres: { events: 12_000, rows: 24_000 },
}
/** After which others have a turn: some ten milliseconds. */
const EVENTS_PER_TURN = 1_000
/** Between steps of a backlog, so that others can read and write. */
const PAUSE_MS = 10

/** The message of a visit or an unsubscribe; null for other events. */
const MESSAGE_ID = `CASE WHEN event IN ('opened', 'clicked', 'unsubscribed') THEN message_id END AS message_id`

interface FollowedEvent extends Omit<EventRow, 'id' | 'recipient_hash' | 'payload_json'> {
  /** Null for a plain event. */
  payload_json: string | null
}

/** An event that is counted once; `at`: Unix milliseconds. */
export interface CountedEvent {
  accountId: string
  domainName: string
  event: string
  recipient: string | null
  /** Null for a plain accepted event. */
  payload: Payload | null
  at: number
}

/** What another area counts of one step, with the commit that moves the position. */
export interface StepCount {
  add(event: CountedEvent): void
  statements(): Promise<Statement[]>
}

/** Makes the count of a step; null: nothing is counted now. */
export type NewStepCount = () => StepCount | null

export function createCounting(
  store: Store,
  clock: Clock,
  isRateLimit: IsRateLimit,
  figures = createFigureStore(store),
  limits: StepLimits = STEP_LIMITS[store.kind],
  also: NewStepCount = () => null,
) {
  let counted = 0
  const follower = createEventFollower<FollowedEvent>(store, {
    name: 'counters',
    columns: `account_id, domain_name, event, timestamp_us, recipient, ${MESSAGE_ID}, tags_json, ${payloadColumn(store.kind)}`,
    rowsMax: limits.events,
    async apply(rows) {
      const { taken, statements } = await count({ store, figures, isRateLimit, limits, also }, rows)
      counted += taken
      return { taken, statements }
    },
    overtaken: figures.forget,
  })
  return {
    follower,
    /** Counts all new events and returns their number. Stops early when `signal` aborts; the next run continues. */
    async run(signal: AbortSignal): Promise<number> {
      counted = 0
      while (!signal.aborted) {
        const result = await follower.step()
        await figures.tidy(signal)
        if (result !== 'more') break
        await pause(clock, PAUSE_MS, signal)
      }
      return counted
    },
  }
}

interface Parts {
  store: Store
  figures: FigureStore
  isRateLimit: IsRateLimit
  limits: StepLimits
  also: NewStepCount
}

/** Payloads are parsed one after the other: those of all events of a step would be ten megabytes that outlive each other. */
async function count(
  { store, figures, isRateLimit, limits, also }: Parts,
  rows: readonly FollowedEvent[],
): Promise<{ taken: number; statements: Statement[] }> {
  const keys: (string | null)[] = []
  for (const row of rows) {
    if (keys.length % EVENTS_PER_TURN === 0) await nextTurn()
    keys.push(isVisit(row) ? keyOf(row) : null)
  }
  const visits = await uniqueVisits(
    store,
    keys.filter((key) => key !== null),
  )
  const others = also()
  let taken = 0
  const statements = await figures.add(async (add) => {
    for (const row of rows) {
      if (taken % EVENTS_PER_TURN === 0) await nextTurn()
      const key = keys[taken++] ?? null
      const payload = payloadOf(row)
      const counters = countersOf(row.event, payload, isRateLimit)
      if (counters.length === 0) continue
      const { account_id: accountId, domain_name: domainName, event, recipient } = row
      const at = Math.floor(Number(row.timestamp_us) / 1000)
      others?.add({ accountId, domainName, event, recipient, payload, at })
      const isFirst = key !== null && visits.isFirst(key, at)
      const tags = coversAllMail(row) ? await tagsOfMessage(store, row) : parseTags(row.tags_json)
      const size = add({
        accountId,
        domainName,
        tags,
        values: valuesOfEvent(event, recipient, payload),
        at,
        counters: isFirst ? [...counters, event === 'opened' ? 'opened_unique' : 'clicked_unique'] : counters,
      })
      if (size > limits.rows) break
    }
  })
  return {
    taken,
    statements: [...statements, ...visits.statements(), ...((await others?.statements()) ?? [])],
  }
}

const isVisit = ({ event }: FollowedEvent) => event === 'opened' || event === 'clicked'

const payloadOf = ({ payload_json: text }: FollowedEvent): Payload | null =>
  text === null ? null : (JSON.parse(text) as Payload)

/** The key by which opens and clicks are unique. */
function keyOf(row: FollowedEvent): string {
  const client = payloadOf(row)?.['client-info'] as { bot?: unknown } | undefined
  return visitKey({
    accountId: row.account_id,
    domainName: row.domain_name,
    event: row.event as Visit['event'],
    messageId: row.message_id,
    recipient: row.recipient,
    bot: String(client?.bot ?? ''),
  })
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
