/**
 * Group commit on PostgreSQL. Waiting units share one transaction on one connection. Its statements are pipelined, and
 * rows for the same insert-only table are joined into one statement: for 16 accepted messages 3 statements and one commit
 * instead of 48 and 16. If anything in a group fails, its units are run again one by one, so that a failing unit is rolled
 * back alone. A group that lost its connection before the COMMIT is run again once, on another one. One whose COMMIT was cut
 * off may be on disk: nothing of it is run again.
 */
import type pg from 'pg'
import {
  type SqlValue,
  StaleWrite,
  type Statement,
  type StatementResult,
  type Store,
  StoreUnavailable,
  type WaitingUnit,
} from '../store.ts'

/** Units per group; a group that fails costs as many transactions. */
const GROUP_UNITS_MAX = 64
/** Concurrent groups, each on its own connection: while one waits for the disk, others run their statements. */
const GROUPS_MAX = 4
/**
 * Units that must wait for another group to begin beside those in flight. Each group costs PostgreSQL a transaction and a
 * sync, so few units wait until no group is in flight, and share one; but not longer than WAIT_MAX_MS, as a group may wait for
 * a lock or a slow disk. A unit that finds none in flight never waits.
 */
const FURTHER_UNITS_MIN = 8
const WAIT_MAX_MS = 10
/** Rows per joined insert, 26 values each; a power of two. */
const JOINED_ROWS_MAX = 64

/**
 * Inserts into tables to which units only add: their rows may be inserted before the unit's other statements. (In other
 * tables a row could be removed by a DELETE of the same unit that should have run before it.)
 */
const JOINABLE =
  /^INSERT INTO (?:messages|deliveries|events|transcripts|outgoing_posts) \([\w, ]+\) VALUES (\((?:[?, ]|time_from_now\(\?\))+\))$/

/**
 * Groups lock rows in the order of their units, so two groups, or a group and a single unit, may deadlock. PostgreSQL
 * detects that after a second and fails one side, which is then run again.
 */
const DEADLOCK_TRIES_MAX = 3
const DEADLOCK = '40P01'

/** A connection that is lost before the commit may be the last one to a server that another has replaced. */
const CONNECTION_TRIES_MAX = 2

const isDeadlock = (error: unknown) => (error as { code?: string }).code === DEADLOCK

/** The connection was lost during COMMIT (see its cause): whether the units are on disk is unknown. */
class CommitCutOff extends Error {}

interface GroupParts {
  connect(): Promise<pg.PoolClient>
  /** Calls `send`; what it sends on the connection leaves in one write. */
  inOneWrite<T>(client: pg.PoolClient, send: () => T): T
  prepare(statement: Statement): pg.QueryConfig
  toStoreError(error: unknown): unknown
  isConnectionFault(error: unknown): boolean
}

export function createGroupCommit(parts: GroupParts): Store['commit'] {
  const jobs: WaitingUnit[] = []
  const priorityJobs: WaitingUnit[] = []
  let running = 0
  /** When the first of the waiting units came; on `performance.now`. */
  let waitingSince = 0
  let willLook = false

  const waiting = () => priorityJobs.length + jobs.length
  const waitLeftMs = () => waitingSince + WAIT_MAX_MS - performance.now()

  function mayBegin(): boolean {
    if (waiting() === 0 || running === GROUPS_MAX) return false
    return running === 0 || waiting() >= FURTHER_UNITS_MIN || waitLeftMs() <= 0
  }

  function pump(): void {
    while (mayBegin()) {
      const group = priorityJobs.splice(0, GROUP_UNITS_MAX)
      group.push(...jobs.splice(0, GROUP_UNITS_MAX - group.length))
      running++
      void commitGroup(group).finally(() => {
        running--
        pump()
      })
    }
    if (willLook || waiting() === 0 || running === GROUPS_MAX) return
    willLook = true
    setTimeout(look, Math.max(1, waitLeftMs()))
  }

  function look(): void {
    willLook = false
    pump()
  }

  async function commitGroup(group: readonly WaitingUnit[]): Promise<void> {
    if (group.length > 1 && (await commitTogether(group))) return
    for (const job of group) await commitAlone(job)
  }

  /** False if one of them may have failed by itself: then nothing was written. */
  async function commitTogether(group: readonly WaitingUnit[]): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        const results = await transact(parts, joined(group.map(({ unit }) => unit)))
        for (const [at, job] of group.entries()) job.resolve(results[at] as StatementResult[])
        return true
      } catch (error) {
        const isLost = parts.isConnectionFault(error)
        if (isLost && tries < CONNECTION_TRIES_MAX) continue
        // Each alone would wait as long for a server that does not answer.
        if (!isLost && !(error instanceof CommitCutOff) && !(error instanceof StoreUnavailable)) return false
        for (const job of group) job.reject(toStoreError(error))
        return true
      }
    }
  }

  async function commitAlone({ unit, resolve, reject }: WaitingUnit): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        const [results] = await transact(parts, apart(unit))
        return resolve(results as StatementResult[])
      } catch (error) {
        if (isDeadlock(error) && tries < DEADLOCK_TRIES_MAX) continue
        if (parts.isConnectionFault(error) && tries < CONNECTION_TRIES_MAX) continue
        return reject(toStoreError(error))
      }
    }
  }

  const toStoreError = (error: unknown) =>
    parts.toStoreError(error instanceof CommitCutOff ? error.cause : error)

  return (unit, order) =>
    new Promise((resolve, reject) => {
      const queue = order === 'first' ? priorityJobs : jobs
      queue.push({ unit, resolve, reject })
      if (waiting() === 1) waitingSince = performance.now()
      // Units committed in the same turn of the event loop form one group.
      if (waiting() === 1 || waiting() === FURTHER_UNITS_MIN) setImmediate(pump)
    })
}

/** Statements to run, and where each original statement finds its result. */
interface Plan {
  statements: Statement[]
  /** Per unit and statement: index in `statements`, and how many of its rows are this one's (null: the whole result). */
  sources: { at: number; rows: number | null }[][]
}

const apart = (unit: readonly Statement[]): Plan => ({
  statements: [...unit],
  sources: [unit.map((_, at) => ({ at, rows: null }))],
})

function joined(units: readonly (readonly Statement[])[]): Plan {
  /** Each becomes one statement, or one joined insert. */
  const slots: { statement: Statement; row: string | null; values: SqlValue[]; rows: number }[] = []
  const open = new Map<string, number>()
  const sources = units.map((unit) =>
    unit.map((statement) => {
      const row = statement.expectRows === undefined ? (JOINABLE.exec(statement.sql)?.[1] ?? null) : null
      const slot = slots[open.get(statement.sql) ?? slots.length]
      if (row !== null && slot) {
        slot.values.push(...statement.values)
        slot.rows++
        return { at: slots.indexOf(slot), rows: 1 }
      }
      const at = slots.push({ statement, row, values: [...statement.values], rows: 1 }) - 1
      if (row !== null) open.set(statement.sql, at)
      return { at, rows: row === null ? null : 1 }
    }),
  )
  const statements: Statement[] = []
  const startOf = Array<number>(slots.length)
  for (const [at, slot] of inLockOrder(slots)) {
    startOf[at] = statements.length
    statements.push(...(slot.row === null ? [slot.statement] : inChunks(slot.statement.sql, slot.row, slot)))
  }
  return {
    statements,
    sources: sources.map((unit) => unit.map(({ at, rows }) => ({ at: startOf[at] as number, rows }))),
  }
}

/** The slots with their indexes, those with a `lockKey` last and sorted by it. */
function inLockOrder<T extends { statement: Statement }>(slots: readonly T[]): [number, T][] {
  const keyOf = ([, { statement }]: [number, T]) => statement.lockKey ?? ''
  const all = [...slots.entries()]
  const locking = all.filter((entry) => keyOf(entry) !== '')
  if (locking.length === 0) return all
  locking.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : 0))
  return [...all.filter((entry) => keyOf(entry) === ''), ...locking]
}

/** Splits into inserts whose row counts are powers of two, so that few texts are prepared per connection. */
function inChunks(
  sql: string,
  row: string,
  { values, rows }: { values: SqlValue[]; rows: number },
): Statement[] {
  const width = values.length / rows
  const statements: Statement[] = []
  for (let from = 0; from < rows; ) {
    let count = JOINED_ROWS_MAX
    while (count > rows - from) count /= 2
    const chunk = values.slice(from * width, (from + count) * width)
    statements.push({ sql: sql + `, ${row}`.repeat(count - 1), values: chunk })
    from += count
  }
  return statements
}

/** Runs the plan as one transaction; resolves to the results per unit. */
async function transact(parts: GroupParts, { statements, sources }: Plan): Promise<StatementResult[][]> {
  const client = await parts.connect()
  let broken: Error | undefined
  try {
    const sent = parts.inOneWrite(client, () => [
      client.query('BEGIN'),
      ...statements.map((statement) => client.query(parts.prepare(statement))),
    ])
    const [begun, ...settled] = await Promise.allSettled(sent)
    if (begun?.status === 'rejected') throw begun.reason
    const results = statements.map((statement, at) => resultOf(statement, settled[at]))
    await client.query('COMMIT').catch((error: unknown) => {
      throw parts.isConnectionFault(error) ? new CommitCutOff('Commit cut off', { cause: error }) : error
    })
    return sources.map((unit) =>
      unit.map(({ at, rows }) =>
        rows === null
          ? { rows: results[at]?.rows ?? [], affected: results[at]?.rowCount ?? 0 }
          : { rows: [], affected: rows },
      ),
    )
  } catch (error) {
    const fault = error instanceof CommitCutOff ? error.cause : error
    if (parts.isConnectionFault(fault)) broken = fault as Error
    else await client.query('ROLLBACK').catch((fault) => (broken = fault))
    throw error
  } finally {
    client.release(broken)
  }
}

/**
 * Asked in the order of the statements, the first fault is thrown. A statement that touched too few rows counts before
 * errors of later ones: a unit that is written a second time, because its first commit had no answer, is stale; that its
 * inserts collide with their own rows follows from that.
 */
function resultOf(
  statement: Statement,
  ended: PromiseSettledResult<pg.QueryResult> | undefined,
): pg.QueryResult {
  if (ended === undefined) throw new Error('A statement has no result')
  if (ended.status === 'rejected') throw ended.reason
  const affected = ended.value.rowCount ?? 0
  if (statement.expectRows !== undefined && affected !== statement.expectRows)
    throw new StaleWrite(statement, affected)
  return ended.value
}
