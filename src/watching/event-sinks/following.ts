/**
 * Sends events to sinks, each at its own place in their order and at its own pace.
 *
 * One process at a time does it, in turns of some seconds; within a turn each sink goes on by itself, so that none waits for
 * another. A step reads events after the sink's place, sends them, and commits the new place once the sink has confirmed
 * them: what is interrupted before is sent again, with the same ids in the same order. A sink that fails is tried again after
 * growing waits. Delivery never waits for a sink; retention does, until the sink is `behind_max_seconds` behind. What is older
 * is then skipped, and counted.
 */
import { pause } from '../../base/flow/pause.ts'
import { printableLine } from '../../base/printable.ts'
import { MINUTE_MS, SECOND_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { EventRow, EventSinkRow } from '../../platform/store/schema.ts'
import type { Statement } from '../../platform/store/store.ts'
import { createEventFollower, type EventFollower } from '../events/follower.ts'
import { followerOf, KINDS, type KnownSinks, settingsOf, stopOf } from './known-sinks.ts'
import { BEHIND_DEFAULT_SECONDS } from './shapes.ts'
import { sinkWarning } from './shown-sink.ts'
import type { SinkConnection, SinkEvent, SinkSettings } from './sink.ts'

const TURN_MS = 20 * SECOND_MS
/** Between looks at the list of sinks, and for new events. */
const TICK_MS = SECOND_MS
const RETRY_MIN_MS = SECOND_MS
const RETRY_MAX_MS = MINUTE_MS
/** JSON of one step, if it has more than one event. */
const BYTES_MAX = 4 * 2 ** 20
const ERROR_LENGTH_MAX = 300
const ERROR_DEPTH_MAX = 10

const COLUMNS = `id, account_id, domain_name, event, timestamp_us, message_id, payload_json,
  (SELECT parent_id FROM accounts WHERE accounts.id = events.account_id) AS parent_id`

type EventToSend = Omit<EventRow, 'recipient' | 'tags_json' | 'recipient_hash'> & { parent_id: string | null }

interface FollowingParts extends Pick<Core, 'store' | 'clock' | 'log'> {
  known: Pick<KnownSinks, 'list' | 'open' | 'shownError'>
}

/** A sink while this process sends to it. */
interface Running {
  row: EventSinkRow
  follower: EventFollower
  connection: SinkConnection | null
  failures: number
  /** Monotonic time of its next step. */
  dueAt: number
  busy: Promise<void> | null
}

export type Following = ReturnType<typeof createFollowing>

export function createFollowing(parts: FollowingParts) {
  const { store, clock, log, known } = parts
  const all = new Map<string, Running>()

  async function close(sink: Running): Promise<void> {
    const { connection } = sink
    sink.connection = null
    try {
      await connection?.close()
    } catch (error) {
      log.debug({ err: error, sink: sink.row.name }, 'a connection to an event sink did not close')
    }
  }

  /** Begins with new sinks, and anew with changed ones; leaves removed ones. */
  async function refresh(): Promise<void> {
    const rows = await known.list()
    for (const [name, sink] of all) {
      if (rows.some((row) => row.name === name)) continue
      all.delete(name)
      await sink.busy
      await close(sink)
    }
    for (const row of rows) {
      const sink = all.get(row.name)
      if (sink?.row.updated_at === row.updated_at) {
        sink.row = row
        continue
      }
      if (sink) {
        await sink.busy
        await close(sink)
      }
      all.set(row.name, begin(row))
    }
  }

  function begin(row: EventSinkRow): Running {
    const sink: Running = {
      ...{ row, connection: null, failures: 0, dueAt: clock.monotonic(), busy: null },
      follower: createEventFollower<EventToSend>(store, {
        name: followerOf(row.name),
        columns: COLUMNS,
        rowsMax: KINDS[row.kind].eventsMax,
        apply: (rows) => apply(sink, rows),
      }),
    }
    return sink
  }

  async function apply(sink: Running, rows: readonly EventToSend[]) {
    const { row } = sink
    const settings = settingsOf(row)
    const overdue = countOverdue(row, settings, rows, clock.now())
    if (overdue > 0) {
      const skipped = selected(settings, rows.slice(0, overdue))
      if (skipped.length > 0)
        log.warn({ sink: row.name, events: skipped.length }, 'events skipped for a sink')
      return { taken: overdue, statements: skipped.length > 0 ? [skipStatement(row.name, skipped)] : [] }
    }
    if (settings.paused) return { taken: 0, statements: [] }
    const taken = fitting(rows)
    const events = selected(settings, rows.slice(0, taken))
    if (events.length === 0) return { taken, statements: [] }
    sink.connection ??= await open(row)
    await sink.connection.send(events)
    return { taken, statements: [sentStatement(row.name, events.length, clock.now())] }
  }

  function open(row: EventSinkRow) {
    const warning = sinkWarning(row, settingsOf(row))
    if (warning !== null) log.warn({ sink: row.name }, warning)
    return known.open(row)
  }

  /** Steps until there is nothing more for now, or `until`; never rejects. */
  async function advance(sink: Running, until: number, signal: AbortSignal): Promise<void> {
    // One that is paused is only looked at for what it may miss.
    const everyMs = settingsOf(sink.row).paused ? MINUTE_MS : KINDS[sink.row.kind].everyMs
    try {
      while (!signal.aborted && clock.monotonic() < until) {
        const result = await sink.follower.step()
        sink.failures = 0
        if (result !== 'more') break
      }
      sink.dueAt = clock.monotonic() + everyMs
    } catch (error) {
      sink.dueAt = clock.monotonic() + Math.min(RETRY_MIN_MS * 2 ** sink.failures++, RETRY_MAX_MS)
      await close(sink)
      await noteFailure(parts, sink.row, error)
    }
  }

  async function closeAll(): Promise<void> {
    await Promise.all([...all.values()].map(close))
    all.clear()
  }

  return {
    /** One turn. Resolves at once where there are no sinks. Connections stay open for the next one. */
    async turn(signal: AbortSignal): Promise<'more' | undefined> {
      const until = clock.monotonic() + TURN_MS
      while (!signal.aborted) {
        await refresh()
        if (all.size === 0) return undefined
        const now = clock.monotonic()
        if (now >= until) break
        for (const sink of all.values()) {
          if (sink.busy !== null || sink.dueAt > now) continue
          sink.busy = advance(sink, until, signal).finally(() => {
            sink.busy = null
          })
        }
        await pause(clock, TICK_MS, signal)
      }
      await Promise.all([...all.values()].map(({ busy }) => busy))
      // It stops, or another process goes on.
      if (signal.aborted) await closeAll()
      return 'more'
    },
    stop: closeAll,
  }
}

async function noteFailure(
  { store, clock, log, known }: FollowingParts,
  row: EventSinkRow,
  error: unknown,
): Promise<void> {
  const { name } = row
  const said = innermost(error).message
  const words = printableLine(known.shownError(row, said)).slice(0, ERROR_LENGTH_MAX)
  log.warn({ sink: name, error: words }, 'an event sink took nothing')
  const sql = `UPDATE event_sinks SET failing_since = COALESCE(failing_since, ?), last_error = ? WHERE name = ?`
  try {
    await store.commit([{ sql, values: [Math.floor(clock.now()), words, name] }])
  } catch (writing) {
    log.error({ err: writing, sink: name }, 'the failure of an event sink was not written')
  }
}

/** What others only wrap: clients of brokers say how often they tried, and several addresses of a host have no message. */
function innermost(error: unknown): Error {
  let found = error instanceof Error ? error : new Error(String(error))
  for (let depth = 0; depth < ERROR_DEPTH_MAX; depth++) {
    const inner = found instanceof AggregateError ? found.errors[0] : found.cause
    if (!(inner instanceof Error)) break
    found = inner
  }
  return found
}

/**
 * The first so many are too old to be sent. A sink that works and was made later than an event gets it however old it is: it
 * asked for the oldest.
 */
function countOverdue(
  row: EventSinkRow,
  { behind_max_seconds: seconds = BEHIND_DEFAULT_SECONDS }: SinkSettings,
  rows: readonly EventToSend[],
  now: number,
): number {
  const oldest = (now - seconds * SECOND_MS) * 1000
  const takes = stopOf(row) === null
  const firstInTime = rows.findIndex(
    ({ timestamp_us: at }) => at >= oldest || (takes && at < row.created_at * 1000),
  )
  return firstInTime === -1 ? rows.length : firstInTime
}

/** How many of them go into one step by their size; at least one. */
function fitting(rows: readonly EventToSend[]): number {
  let bytes = 0
  for (const [index, { payload_json: json }] of rows.entries()) {
    bytes += json.length
    if (bytes > BYTES_MAX) return Math.max(index, 1)
  }
  return rows.length
}

/** Events that the sink wants. An event of a closed account is emptied before it is removed: it has no account. */
function selected(settings: SinkSettings, rows: readonly EventToSend[]): SinkEvent[] {
  const { accounts, domains, events } = settings
  const isIn = (wanted: readonly string[] | undefined, value: string) => !wanted || wanted.includes(value)
  const withOwner = createOwnerAdder()
  return rows
    .filter(
      (row) =>
        row.account_id !== '' &&
        isIn(accounts, row.account_id) &&
        isIn(domains, row.domain_name) &&
        isIn(events, row.event),
    )
    .map((row) => ({
      id: row.id,
      type: row.event,
      accountId: row.account_id,
      domainName: row.domain_name,
      messageId: row.message_id,
      at: Math.floor(row.timestamp_us / 1000),
      json: withOwner(row),
    }))
}

/** Returns what adds account and domain as `eventDataOf` of webhooks does; the stored text is not parsed for it. */
function createOwnerAdder() {
  const known = new Map<string, string>()
  return ({ payload_json: json, account_id: id, parent_id: parent, domain_name: name }: EventToSend) => {
    const key = `${id} ${name}`
    let owner = known.get(key)
    if (owner === undefined) {
      const account = { id, ...(parent !== null && { 'parent-id': parent }) }
      owner = JSON.stringify({ account, domain: { name } }).slice(1)
      known.set(key, owner)
    }
    const open = json.slice(0, json.lastIndexOf('}'))
    return open.trimEnd() === '{' ? `{${owner}` : `${open},${owner}`
  }
}

const sentStatement = (name: string, count: number, now: number): Statement => ({
  sql: 'UPDATE event_sinks SET sent = sent + ?, sent_at = ?, failing_since = NULL, last_error = NULL WHERE name = ?',
  values: [count, Math.floor(now), name],
})

function skipStatement(name: string, skipped: readonly SinkEvent[]): Statement {
  const times = skipped.map(({ at }) => at)
  return {
    sql: 'UPDATE event_sinks SET skipped = skipped + ?, skipped_from = COALESCE(skipped_from, ?), skipped_to = ? WHERE name = ?',
    values: [skipped.length, Math.min(...times), Math.max(...times), name],
  }
}
