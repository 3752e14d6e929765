/**
 * Between which times the partitions of events lie (decision 151). Readers split the time that they search there, so
 * that each statement is planned for few partitions. What they find does not depend on it.
 */

/** Partitions are added every few days. */
const KEPT_MS = 60_000

/** By name of relation: its bounds as PostgreSQL writes them. */
export const PARTITIONS_OF = `SELECT c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bound
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = to_regclass`

/** Microseconds; `fromUs` null: from the beginning of time, `toUs` null: to its end. The end is exclusive. */
export interface Bounds {
  fromUs: number | null
  toUs: number | null
}

/** Reads `FOR VALUES FROM ('1') TO (MAXVALUE)`. */
export function parseBounds(text: string): Bounds {
  const found = /FROM \((?:'?(-?\d+)'?|MINVALUE)\) TO \((?:'?(-?\d+)'?|MAXVALUE)\)$/.exec(text)
  if (!found) throw new TypeError(`These are no bounds of a partition: ${text}`)
  const [, from, to] = found
  return { fromUs: from === undefined ? null : Number(from), toUs: to === undefined ? null : Number(to) }
}

export type EventBounds = ReturnType<typeof createEventBounds>

interface Known {
  begun: readonly number[]
  /** Object ids of all partitions, in order. */
  oids: readonly number[]
  later: { oids: readonly number[]; fromUs: number } | null
}

const CURRENT = `SELECT string_agg(inhrelid::bigint::text, ',' ORDER BY inhrelid) AS oids,
    coalesce(sum(pg_relation_size(inhrelid)) FILTER (WHERE inhrelid::bigint = ANY (?::bigint[])), 0) AS bytes
  FROM pg_inherits WHERE inhparent = to_regclass('events')`

export function createEventBounds(
  read: (sql: string, values?: readonly string[]) => Promise<Record<string, unknown>[]>,
) {
  let kept: { known: Promise<Known>; until: number } | null = null
  const readKnown = async (): Promise<Known> => {
    const rows = await read(
      `SELECT *, to_regclass(name)::oid::bigint AS oid, extract(epoch FROM clock_timestamp()) * 1000 AS now
        FROM (${PARTITIONS_OF}('events')) AS partitions`,
    )
    const all = rows
      .map((row) => {
        const fromUs = parseBounds(String(row['bound'])).fromUs ?? Number.NEGATIVE_INFINITY
        return { oid: Number(row['oid']), fromUs, isBegun: fromUs <= Number(row['now']) * 1000 }
      })
      .sort((a, b) => a.fromUs - b.fromUs)
    const later = all.filter(({ isBegun }) => !isBegun)
    return {
      begun: all
        .filter(({ isBegun, fromUs }) => isBegun && Number.isFinite(fromUs))
        .map(({ fromUs }) => fromUs),
      oids: all.map(({ oid }) => oid).sort((a, b) => a - b),
      later: later[0] ? { oids: later.map(({ oid }) => oid), fromUs: later[0].fromUs } : null,
    }
  }
  const current = (): Promise<Known> => {
    if (kept && performance.now() < kept.until) return kept.known
    const known = readKnown()
    const reading = { known, until: performance.now() + KEPT_MS }
    kept = reading
    known.catch(() => {
      if (kept === reading) kept = null
    })
    return known
  }
  return {
    /** When the partitions begin, in Unix microseconds, in their order; without the first, and without those of the future. */
    begun: async (): Promise<readonly number[]> => (await current()).begun,
    /**
     * Where the partitions of the future begin, if no event was ever written into them; else null. What is committed before
     * the call counts: partitions and their sizes are those of the call.
     */
    async emptyFrom(): Promise<number | null> {
      const { oids, later } = await current()
      if (!later) return null
      const [row] = await read(CURRENT, [`{${later.oids.join()}}`])
      if (row?.['oids'] === oids.join()) return Number(row['bytes']) === 0 ? later.fromUs : null
      // Partitions were added or dropped.
      kept = null
      return null
    },
  }
}
