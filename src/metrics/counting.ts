/**
 * Keeps the counters: a follower of the events adds each of them once, a moment after its commit, whatever happens
 * in between (decision 31). Whoever writes events knows nothing of it.
 */
import type { Clock } from '../base/clock.ts'
import { createEventFollower, type EventFollower, type FollowedKey } from '../events/follower.ts'
import type { Statement, Store } from '../store/store.ts'
import { countersOf, payloadColumn } from './counters.ts'
import { createTally } from './tally.ts'
import { uniqueVisits, visitKey } from './unique-visits.ts'

/** Reading these takes SQLite's only reader about 2 ms. */
const EVENTS_PER_STEP = 250
/** Counter rows of one transaction, about 3 ms of SQLite's only writer; a step with more takes fewer events. */
const ROWS_PER_STEP = 300
/** Between steps while there is a backlog: others read and write meanwhile. */
const PAUSE_MS = 10

interface FollowedEvent extends FollowedKey {
  account_id: string
  domain_name: string
  event: string
  timestamp_us: number
  recipient: string | null
  message_id: string | null
  tags_json: string | null
  /** Null: nothing in it counts. */
  payload_json: string | null
}

/** An event with what it counts as. */
interface Counted {
  row: FollowedEvent
  /** Null: not needed. */
  payload: Record<string, unknown> | null
  /** Of an open or click; null: another event. */
  visit: string | null
}

export interface Counting {
  follower: EventFollower
  /** Counts what there is to count. Ends early when `signal` aborts; the next run goes on. */
  run(signal: AbortSignal): Promise<void>
}

export function createCounting(store: Store, clock: Clock): Counting {
  const follower = createEventFollower<FollowedEvent>(store, {
    name: 'counters',
    columns: `account_id, domain_name, event, timestamp_us, recipient, message_id, tags_json, ${payloadColumn(store.kind)}`,
    rowsMax: EVENTS_PER_STEP,
    apply: (rows) => count(store, rows),
  })
  return {
    follower,
    async run(signal) {
      while (!signal.aborted && (await follower.step()) === 'more') await pause(clock, signal)
    },
  }
}

function pause(clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      timer.cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = clock.setTimer(PAUSE_MS, end)
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
  })
}

async function count(
  store: Store,
  rows: readonly FollowedEvent[],
): Promise<{ taken: number; statements: Statement[] }> {
  const all = rows.map(countedOf)
  const visits = await uniqueVisits(
    store,
    all.flatMap(({ visit }) => visit ?? []),
  )
  const tally = createTally()
  let taken = 0
  for (const { row, payload, visit } of all) {
    if (tally.size > ROWS_PER_STEP) break
    taken++
    const counters = [...countersOf(row.event, payload)]
    if (counters.length === 0) continue
    const at = Math.floor(Number(row.timestamp_us) / 1000)
    if (visit !== null && visits.isFirst(visit, at))
      counters.push(row.event === 'opened' ? 'opened_unique' : 'clicked_unique')
    const tags = namesNoTags(row) ? await tagsOfMessage(store, row) : parseTags(row.tags_json)
    tally.add({ accountId: row.account_id, domainName: row.domain_name, tags, at, counters })
  }
  return { taken, statements: [...tally.statements(), ...visits.statements()] }
}

function countedOf(row: FollowedEvent): Counted {
  const { event, payload_json: text } = row
  const payload = text === null ? null : (JSON.parse(text) as Counted['payload'])
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

/** An unsubscribe from everything (tracking.md rule 18). */
const namesNoTags = (row: FollowedEvent) => row.event === 'unsubscribed' && row.tags_json === '["*"]'

/** Two texts joined are no column with an index: by domain and event SQLite would read all that the domain accepted. */
const FIRST_TAGS = `SELECT tags_json FROM events WHERE seq = (SELECT seq FROM (
  SELECT seq, timestamp_us FROM event_keys
  WHERE message_id = ? AND account_id || '' = ? AND domain_name || '' = ? AND event || '' = 'accepted'
  ORDER BY timestamp_us LIMIT 1) AS first)`

/** As its first event names them, as long as that is kept. */
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
