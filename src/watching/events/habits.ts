/**
 * When and where recipients read their mail, derived from the opens and clicks of people (messages.md rules 44 and 45);
 * those of programs do not count. Only events of mail from the sending domain are used: other domains' events belong to
 * those domains.
 */
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import type { SqlValue, Statement, Store } from '../../platform/store/store.ts'
import { recipientHash } from './event.ts'

interface SendingDomain {
  accountId: string
  name: string
}

/** How far back visits count for habits; the retention of events may be shorter. */
const SINCE_MS = 90 * DAY_MS
/** Opens and clicks that make a habit. */
const VISITS_MIN = 5
/** Per address the newest opens, and as many clicks, are used: a habit is what is usual now. */
const VISITS_MAX = 30
/** Addresses in one query of two SELECTs each: SQLite joins at most 500 (SQLITE_MAX_COMPOUND_SELECT). */
const ADDRESSES_PER_QUERY = 125
const WEEK_HOURS = 168

/** Must be written exactly as in the index `events_human` (migration 0016), or the index is not used. */
const HUMAN = {
  sqlite: `event IN ('opened', 'clicked') AND json_extract(payload_json, '$."client-info".bot') = ''`,
  postgres: `event IN ('opened', 'clicked') AND (payload_json::json -> 'client-info' ->> 'bot') = ''`,
} as const

const ZONE = {
  sqlite: "json_extract(payload_json, '$.geolocation.timezone')",
  postgres: "payload_json::json -> 'geolocation' ->> 'timezone'",
} as const

export type Habits = ReturnType<typeof createHabits>

export function createHabits({ store, clock }: { store: Store; clock: Clock }) {
  const { kind } = store

  /** The newest visits of each address, `max` of each kind: rows of `recipient` and `found`. */
  const newestVisits = async (domain: SendingDomain, addresses: readonly string[], query: VisitQuery) => {
    const keys = addresses.map((address) => ({ address, hash: recipientHash(domain.name, address) }))
    if (kind === 'postgres') return store.read(onPostgres(domain, keys, query))
    const rows: Record<string, unknown>[] = []
    for (let at = 0; at < keys.length; at += ADDRESSES_PER_QUERY) {
      const batch = keys.slice(at, at + ADDRESSES_PER_QUERY)
      rows.push(...(await store.read(onSqlite(domain, batch, query))))
    }
    return rows
  }

  return {
    /**
     * Per address the best time within the window, in Unix milliseconds: the hour of the week with most of its opens and
     * clicks. Addresses with fewer than 5, or none in these hours, are left out.
     */
    async bestTimes(
      domain: SendingDomain,
      addresses: readonly string[],
      window: { from: number; to: number },
    ): Promise<Map<string, number>> {
      const rows = await newestVisits(domain, addresses, {
        column: `timestamp_us / ${HOUR_MS * 1000} % ${WEEK_HOURS}`,
        events: ['opened', 'clicked'],
        max: VISITS_MAX,
        sinceMs: Math.floor(clock.now() - SINCE_MS),
      })
      const byAddress = new Map<string, Map<number, number>>()
      for (const { recipient, found, visits } of rows) {
        const hours = byAddress.get(recipient as string) ?? new Map<number, number>()
        const hour = Number(found)
        byAddress.set(recipient as string, hours.set(hour, (hours.get(hour) ?? 0) + Number(visits)))
      }
      const times = new Map<string, number>()
      for (const [address, hours] of byAddress) {
        const time = bestHour(hours, window)
        if (time !== null) times.set(address, time)
      }
      return times
    },
    /** Per address the IANA time zone of its last click; unknown ones are left out. */
    async timeZones(domain: SendingDomain, addresses: readonly string[]): Promise<Map<string, string>> {
      const rows = await newestVisits(domain, addresses, {
        column: ZONE[kind],
        events: ['clicked'],
        max: 1,
        sinceMs: 0,
      })
      const known = rows.filter(({ found }) => typeof found === 'string' && found !== 'Unknown')
      return new Map(known.map(({ recipient, found }) => [recipient as string, found as string]))
    },
  }
}

interface VisitQuery {
  /** The SQL expression to read from each event, in the dialect of the database. */
  column: string
  events: readonly ('opened' | 'clicked')[]
  max: number
  sinceMs: number
}

interface Key {
  address: string
  hash: number
}

/**
 * One statement with one SELECT per address and event; each stops at its limit. INDEXED BY, because SQLite would
 * otherwise read all opens of the domain in order of time.
 */
function onSqlite({ name, accountId }: SendingDomain, keys: readonly Key[], query: VisitQuery): Statement {
  const { column, events, max, sinceMs } = query
  const selects = keys.flatMap(() =>
    events.map(
      (event) => `SELECT * FROM (SELECT recipient, ${column} AS found FROM events INDEXED BY events_human
        WHERE recipient_hash = ? AND event = '${event}' AND ${HUMAN.sqlite} AND timestamp_us >= ?
          AND recipient = ? AND domain_name = ? AND account_id = ?
        ORDER BY timestamp_us DESC LIMIT ${max})`,
    ),
  )
  const values = keys.flatMap(({ address, hash }) =>
    events.flatMap(() => [hash, sinceMs * 1000, address, name, accountId]),
  )
  return { sql: counted(selects.join('\nUNION ALL ')), values }
}

/** PostgreSQL would plan each part of a compound SELECT, a third of a millisecond each: here one part covers all addresses. */
function onPostgres({ name, accountId }: SendingDomain, keys: readonly Key[], query: VisitQuery): Statement {
  const { column, events, max, sinceMs } = query
  const values: SqlValue[] = []
  const selects = events.map((event) => {
    values.push(JSON.stringify(keys), sinceMs * 1000, name, accountId)
    return `SELECT newest.* FROM json_to_recordset(?::json) AS wanted(hash bigint, address text)
      CROSS JOIN LATERAL (SELECT recipient, ${column} AS found FROM events
        WHERE recipient_hash = wanted.hash AND event = '${event}' AND ${HUMAN.postgres} AND timestamp_us >= ?
          AND recipient = wanted.address AND domain_name = ? AND account_id = ?
        ORDER BY timestamp_us DESC LIMIT ${max}) AS newest`
  })
  return { sql: counted(selects.join('\nUNION ALL ')), values }
}

const counted = (visits: string) =>
  `SELECT recipient, found, count(*) AS visits FROM (${visits}) AS visits GROUP BY recipient, found`

/**
 * The time within the window (both ends inclusive) whose hour of the week has most visits; the earliest of equal ones.
 * `visits`: their count by hour of the week, starting at the epoch. Null: fewer than 5, or none in these hours. The
 * current hour starts at the beginning of the window.
 */
export function bestHour(
  visits: ReadonlyMap<number, number>,
  window: { from: number; to: number },
): number | null {
  const total = [...visits.values()].reduce((sum, count) => sum + count, 0)
  if (total < VISITS_MIN) return null
  let best: { time: number; count: number } | null = null
  const first = Math.floor(window.from / HOUR_MS)
  for (let hour = first; hour < first + WEEK_HOURS && hour * HOUR_MS <= window.to; hour++) {
    const count = visits.get(hour % WEEK_HOURS) ?? 0
    if (count > (best?.count ?? 0)) best = { time: Math.max(hour * HOUR_MS, window.from), count }
  }
  return best?.time ?? null
}
