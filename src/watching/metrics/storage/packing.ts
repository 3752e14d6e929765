/**
 * Keeps packs few and large (packs.ts). Counting adds a small one for each domain of a step; they are merged where a domain
 * has many, and when the day is over. At the end of the time for which hours are kept they become days, then months
 * (metrics-logs.md section 4). Rows of all values, of releases before packs, become packs.
 *
 * Packs are never changed: a transaction removes some and adds others with the same sums.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { DAY_MS, HOUR_MS } from '../../../base/time/durations.ts'
import { commitUnlessStale } from '../../../platform/store/commits.ts'
import type { SqlValue, Statement, Store } from '../../../platform/store/store.ts'
import { COUNTERS, type Counts, type FigureValues, VALUE_NAMES } from '../counters.ts'
import { startOf, UNITS, type Unit } from '../intervals.ts'
import { ROW_KEY, WAIT_FOR_COUNTING } from './figure-rows.ts'
import {
  type DayOfScope,
  nameOf,
  type PackedEntry,
  type PackOfScope,
  PackReader,
  packStatement,
  WHOLE,
} from './packs.ts'
import { placesOf } from './places.ts'
import { KEPT_MS } from './removal.ts'
import { addCount, SPLIT_NUMBERS, UNIT_NUMBERS } from './splits.ts'

/** Entries of a pack: a few hundred kilobytes, unless nearly every entry has long tags of its own. */
const ENTRIES_MAX = 20_000
/** Packs with fewer entries are merged. */
const SMALL = ENTRIES_MAX / 2
/** Entries that are held at a time: some 30 MB, more if their texts are long. */
const HELD_MAX = 100_000
const HELD_MAX_BYTES = 32 * 1024 * 1024
/** Packs that one transaction replaces. */
const PARTS = 100
/** Entries after which others have a turn: about ten milliseconds. */
const ENTRIES_PER_TURN = 5_000
/** Rows of figures that become packs in one transaction: the writer is blocked for 20 milliseconds. */
const ROWS = 2_000
/** After them, so that others can write: after an upgrade there may be millions. */
const PAUSE_MS = 10
/** Scopes that are looked at in one read. */
const SCOPES = 200
/** A day's packs are merged when it is over, and again if events are counted late. */
const MERGED_FOR_MS = 3 * DAY_MS

/** Stops early when `signal` aborts; the next run continues. `now`: Unix milliseconds. */
export async function keepPacks(store: Store, now: number, signal?: AbortSignal): Promise<void> {
  const today = startOf('day', now)
  const times: Times = {
    merged: [today - MERGED_FOR_MS, today],
    hour: startOf('day', now - KEPT_MS.hour),
    day: startOf('month', now - KEPT_MS.day),
  }
  // Nodes of the release before read no packs.
  const { arePacked } = await placesOf(store)
  if (!arePacked) return
  const faults: unknown[] = []
  for (let scope = 0; !signal?.aborted; ) {
    const values = [times.hour, times.day, ...times.merged, scope]
    const tasks = await store.read({ sql: TASKS, values })
    for (const task of tasks) {
      scope = Number(task['no'])
      if (signal?.aborted) break
      // One domain's broken pack does not hold up the others.
      await work(store, { scope, task, times }, signal).catch((error) => faults.push(error))
    }
    if (tasks.length < SCOPES) break
  }
  if (faults.length > 0) throw new AggregateError(faults, `packs of ${faults.length} domains cannot be kept`)
}

interface Times {
  /** Small packs of these days are merged; the end is exclusive. */
  merged: readonly [number, number]
  /** Packs of hours, and of days, that begin earlier become longer. */
  hour: number
  day: number
}

/** What there is to do for each of the next domains. */
const TASKS = `SELECT no,
    EXISTS (SELECT 1 FROM figures WHERE scope = no AND split = ${SPLIT_NUMBERS.all}) AS has_rows,
    EXISTS (SELECT 1 FROM figure_packs WHERE scope = no AND unit = ${UNIT_NUMBERS.hour} AND start_at < ?) AS has_hours,
    EXISTS (SELECT 1 FROM figure_packs WHERE scope = no AND unit = ${UNIT_NUMBERS.day} AND start_at < ?) AS has_days,
    (SELECT count(*) - count(DISTINCT start_at) FROM figure_packs WHERE scope = no
      AND unit = ${UNIT_NUMBERS.hour} AND start_at >= ? AND start_at < ? AND entries < ${SMALL}) AS small
  FROM figure_scopes WHERE no > ? AND domain_name <> '' ORDER BY no LIMIT ${SCOPES}`

async function work(
  store: Store,
  { scope, task, times }: { scope: number; task: Record<string, unknown>; times: Times },
  signal?: AbortSignal,
): Promise<void> {
  if (task['has_rows']) for (const unit of UNITS) await packRows(store, scope, unit, signal)
  if (Number(task['small']) > 0)
    for (const start of await startsWithSmall(store, scope, times.merged))
      await mergeSmall(store, { scope, start })
  if (task['has_hours'] || task['has_rows'])
    await lengthen(store, { scope, unit: 'hour', longer: 'day', before: times.hour }, signal)
  if (task['has_hours'] || task['has_rows'] || task['has_days'])
    await lengthen(store, { scope, unit: 'day', longer: 'month', before: times.day }, signal)
}

/** Days from `from` to `to`, exclusive, with two small packs or more. */
async function startsWithSmall(
  store: Store,
  scope: number,
  [from, to]: readonly [number, number],
): Promise<number[]> {
  const rows = await store.read({
    sql: `SELECT start_at FROM figure_packs
      WHERE scope = ? AND unit = ${UNIT_NUMBERS.hour} AND start_at >= ? AND start_at < ? AND entries < ${SMALL}
      GROUP BY start_at HAVING count(*) > 1`,
    values: [scope, from, to],
  })
  return rows.map(({ start_at }) => Number(start_at))
}

/** Small packs of a domain's day from which on they are merged before the day is over. */
const MANY = 32
/** Days of domains that are remembered: 5 MB. */
const REMEMBERED_MAX = 50_000

/** Days that are merged before counting goes on. */
const MERGED_AT_A_TIME = 50
/**
 * Packs with fewer entries are merged each time. Larger ones are merged less often, so that no entry is written again and
 * again: every time that MANY have been merged so often.
 */
const TINY = 512
const TINY_MERGES = 8
/** A transaction with so many gets no further day. */
const COMMIT_BYTES = 4 * 1024 * 1024

/** How many packs this process has written of each domain's day. What it forgets is merged when the day is over. */
export class SmallPacks {
  readonly #written = new Map<string, number>()
  /** Each day once: packs cannot be removed twice in one transaction. */
  readonly #due = new Map<string, DayOfScope & { below: number }>()

  note(packs: readonly DayOfScope[]): void {
    if (this.#written.size > REMEMBERED_MAX) this.#written.clear()
    for (const { scope, start } of packs) {
      const name = `${scope} ${start}`
      const count = (this.#written.get(name) ?? 0) + 1
      this.#written.set(name, count)
      if (count % MANY > 0) continue
      const below = count % (MANY * TINY_MERGES) > 0 ? TINY : SMALL
      this.#due.set(name, { scope, start, below: Math.max(below, this.#due.get(name)?.below ?? 0) })
    }
  }

  /** Merges where there are many. Several days are one transaction, which costs more than the rest of a day. */
  async merge(store: Store, signal: AbortSignal): Promise<void> {
    let statements: Statement[] = []
    let bytes = 0
    const due = [...this.#due].slice(0, MERGED_AT_A_TIME)
    for (const [name] of due) this.#due.delete(name)
    // In one order on all nodes, so that two cannot lock each other out.
    due.sort(([, a], [, b]) => a.scope - b.scope || a.start - b.start)
    for (const [, { below, ...day }] of due) {
      if (signal.aborted) return
      const found = await mergingOf(store, day, below)
      statements.push(...(found?.statements ?? []))
      bytes += found?.bytes ?? 0
      if (bytes < COMMIT_BYTES) continue
      await commitUnlessStale(store, statements)
      statements = []
      bytes = 0
    }
    if (statements.length > 0) await commitUnlessStale(store, statements)
  }
}

/** Merges the small packs of a day's hours. */
async function mergeSmall(store: Store, day: DayOfScope): Promise<void> {
  for (;;) {
    const found = await mergingOf(store, day, SMALL)
    if (!found) return
    if (found.statements.length > 0) await commitUnlessStale(store, found.statements)
    if (found.isAll) return
  }
}

/**
 * Statements that merge the packs of a day's hours with fewer than `below` entries, and the bytes of those packs. Null: there
 * is nothing to merge.
 */
async function mergingOf(
  store: Store,
  { scope, start }: DayOfScope,
  below: number,
): Promise<{ statements: Statement[]; bytes: number; isAll: boolean } | null> {
  const found = await store.read({
    sql: `SELECT ${PART} FROM figure_packs
      WHERE scope = ? AND unit = ${UNIT_NUMBERS.hour} AND start_at = ? AND entries < ? LIMIT ${PARTS}`,
    values: [scope, start, below],
  })
  const parts = fitting(found.map(partOf))
  if (parts.length < 2) return null
  return {
    statements: await replacing(store, { scope, unit: 'hour', parts, longer: 'hour', start }),
    bytes: parts.reduce((sum, part) => sum + part.bytes, 0),
    isAll: found.length < PARTS,
  }
}

interface Lengthening {
  scope: number
  unit: 'hour' | 'day'
  longer: 'day' | 'month'
  /** Unix milliseconds: packs that begin before it become longer ones. */
  before: number
}

async function lengthen(store: Store, { scope, unit, longer, before }: Lengthening, signal?: AbortSignal) {
  while (!signal?.aborted) {
    const found = await store.read({
      sql: `SELECT ${PART} FROM figure_packs WHERE scope = ? AND unit = ? AND start_at < ?
        ORDER BY start_at LIMIT ${PARTS}`,
      values: [scope, UNIT_NUMBERS[unit], before],
    })
    const all = found.map(partOf)
    const [first] = all
    if (!first) return
    const start = startOf(longer, first.start)
    const parts = fitting(all.filter((part) => startOf(longer, part.start) === start))
    const statements = await replacing(store, { scope, unit, parts, longer, start })
    if (statements.length > 0) await commitUnlessStale(store, statements)
  }
}

interface Part {
  start: number
  part: number
  entries: number
  bytes: number
}

const PART = 'start_at, part, entries, length(packed) AS bytes'
const partOf = ({ start_at, part, entries, bytes }: Record<string, unknown>): Part => ({
  start: Number(start_at),
  part: Number(part),
  entries: Number(entries),
  bytes: Number(bytes),
})

/** The first of these that can be held together, at least one. */
function fitting(parts: readonly Part[]): Part[] {
  let [entries, bytes] = [0, 0]
  const end = parts.findIndex((part, at) => {
    entries += part.entries
    bytes += part.bytes
    return at > 0 && (entries > HELD_MAX || bytes > HELD_MAX_BYTES)
  })
  return end < 0 ? [...parts] : parts.slice(0, end)
}

interface Replacement {
  scope: number
  unit: Unit
  parts: readonly Part[]
  /** The unit of the new packs, and the start of their interval. */
  longer: Unit
  start: number
}

/** None if another process was faster. */
async function replacing(
  store: Store,
  { scope, unit, parts, longer, start }: Replacement,
): Promise<Statement[]> {
  const starts = parts.map((part) => part.start)
  const of = `FROM figure_packs WHERE scope = ? AND unit = ? AND start_at >= ? AND start_at <= ?
    AND part IN (${parts.map(() => '?')})`
  const values = [scope, UNIT_NUMBERS[unit], Math.min(...starts), Math.max(...starts)]
  values.push(...parts.map(({ part }) => part))
  const rows = await store.read({ sql: `SELECT packed ${of}`, values })
  if (rows.length < parts.length) return []
  const merged = new Merged(longer === 'hour')
  for (const row of rows) await merged.addPack(row['packed'] as Uint8Array)
  const removal = { sql: `DELETE ${of}`, values, expectRows: parts.length }
  return [removal, ...(await merged.statements({ scope, unit: longer, start }))]
}

/** Sums of entries. */
class Merged {
  readonly #entries = new Map<string, PackedEntry>()
  readonly #keepsHours: boolean

  constructor(keepsHours: boolean) {
    this.#keepsHours = keepsHours
  }

  async addPack(packed: Uint8Array): Promise<void> {
    const reader = new PackReader(packed)
    for (let read = 1; reader.next(); read++) {
      this.add(reader.entry())
      if (read % ENTRIES_PER_TURN === 0) await nextTurn()
    }
  }

  add({ hour, values, counts }: PackedEntry): void {
    const entry = { hour: this.#keepsHours ? hour : WHOLE, values, counts }
    const name = nameOf(entry.hour, values.tag, values)
    const found = this.#entries.get(name)
    if (!found) this.#entries.set(name, entry)
    else
      for (let at = 0; at < counts.length; at += 2)
        addCount(found.counts, counts[at] as number, counts[at + 1] as number)
  }

  async statements(of: Omit<PackOfScope, 'entries'>): Promise<Statement[]> {
    const entries = [...this.#entries.values()]
    const statements: Statement[] = []
    for (let at = 0; at < entries.length; at += ENTRIES_MAX) {
      const some = entries.slice(at, at + ENTRIES_MAX)
      statements.push(packStatement({ ...of, entries: some }))
      await nextTurn()
    }
    return statements
  }
}

const VALUES = VALUE_NAMES.join(', ')
const OF_ROWS = `scope = ? AND split = ${SPLIT_NUMBERS.all} AND unit = ?`
const CURSOR = `SELECT tx, seq FROM event_followers WHERE name = 'counters'`
/** Fails the transaction if events were counted since the cursor was read; until its end no others are counted. */
const UNCOUNTED = `${WAIT_FOR_COUNTING} AND tx = ? AND seq = ?`

async function packRows(store: Store, scope: number, unit: Unit, signal?: AbortSignal): Promise<void> {
  const container = unit === 'hour' ? 'day' : unit
  while (!signal?.aborted) {
    const [cursor] = await store.read({ sql: CURSOR, values: [] })
    const rows = await store.read({
      sql: `SELECT start_at, ${VALUES}, ${COUNTERS.join(', ')} FROM figures
        WHERE ${OF_ROWS} ORDER BY ${ROW_KEY} LIMIT ${ROWS}`,
      values: [scope, UNIT_NUMBERS[unit]],
    })
    const last = rows.at(-1)
    if (!cursor || !last) return
    const packs = new Map<number, Merged>()
    for (const row of rows) {
      const at = Number(row['start_at'])
      const start = startOf(container, at)
      const merged = packs.get(start) ?? new Merged(unit === 'hour')
      packs.set(start, merged)
      merged.add(entryOf(row as unknown as Row, unit === 'hour' ? (at - start) / HOUR_MS : WHOLE))
    }
    const added: Statement[] = []
    for (const [start, merged] of packs) added.push(...(await merged.statements({ scope, unit, start })))
    const upTo = ['start_at', ...VALUE_NAMES].map((name) => last[name] as SqlValue)
    await commitUnlessStale(store, [
      {
        sql: UNCOUNTED,
        values: [cursor['tx'] as SqlValue, cursor['seq'] as SqlValue],
        expectRows: 1,
      },
      {
        sql: `DELETE FROM figures WHERE ${OF_ROWS} AND (start_at, ${VALUES}) <= (${upTo.map(() => '?')})`,
        values: [scope, UNIT_NUMBERS[unit], ...upTo],
        expectRows: rows.length,
      },
      ...added,
    ])
    if (rows.length === ROWS) await sleep(PAUSE_MS)
  }
}

type Row = FigureValues & { [Name in keyof Counts]: unknown }

function entryOf(row: Row, hour: number): PackedEntry {
  const values = Object.fromEntries(VALUE_NAMES.map((name) => [name, row[name]])) as unknown as FigureValues
  const counts: number[] = []
  for (const [at, name] of COUNTERS.entries()) {
    const count = Number(row[name] ?? 0)
    if (count !== 0) counts.push(at, count)
  }
  return { hour, values, counts }
}
