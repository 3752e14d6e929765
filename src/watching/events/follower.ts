/**
 * Reads all events in commit order and processes each exactly once.
 *
 * 1. The stored position is the follower's cursor; `settledPosition` is its limit: below that no event can appear any
 *    more (decision 7).
 * 2. A step reads some events after the cursor and passes them to `apply`, which returns statements.
 * 3. The statements and the new cursor are one transaction, which fails if another process has moved the cursor. So a
 *    crash loses both or neither, and of several processes on one database exactly one takes each step.
 *
 * Followers never block writers of events. Retention keeps events that a follower has not processed
 * (`event-retention.ts`).
 */
import { StaleWrite, type Statement, type Store } from '../../platform/store/store.ts'
import type { CommitPosition } from './search/page-request.ts'
import { settledPosition } from './search/walk.ts'

/** The columns that every follower reads; `FollowerSpec.columns` adds others. */
export interface FollowedKey {
  tx: number
  seq: number
}

interface FollowerSpec<Row extends FollowedKey> {
  /** Its row in `event_followers`, created by a migration. */
  name: string
  /** A list of SQL expressions over a row of `events`, in addition to `tx` and `seq`. */
  columns: string
  /** Events per step: reading them blocks other readers for a few milliseconds. */
  rowsMax: number
  /**
   * Returns the statements for the first `taken` of these events; 0: they wait for a later step. It is called again for the same events
   * after a failure, so it must have no other effect than its statements.
   */
  apply(rows: readonly Row[]): Promise<{ taken: number; statements: Statement[] }>
  /** The statements of the last `apply` were not committed: one of them, or the cursor, was stale. */
  overtaken?(): void
}

/** `more`: there may be more events. `done`: none left for now. `overtaken`: another process took this step. */
type StepResult = 'more' | 'done' | 'overtaken'

export interface EventFollower {
  step(): Promise<StepResult>
  /** Processes all events of a database that nobody writes to, settled or not. */
  stepToEnd(): Promise<void>
}

export function createEventFollower<Row extends FollowedKey>(
  store: Store,
  spec: FollowerSpec<Row>,
): EventFollower {
  const { name, rowsMax } = spec
  const end = { sqlite: 'seq < ?', postgres: '(tx, seq) < (?, ?)' }[store.kind]
  const after = { sqlite: 'seq > ?', postgres: '(tx, seq) > (?, ?)' }[store.kind]
  const order = { sqlite: 'seq', postgres: 'tx, seq' }[store.kind]
  const sql = `SELECT tx, seq, ${spec.columns} FROM events WHERE ${after} AND ${end} ORDER BY ${order} LIMIT ${rowsMax}`
  const valuesOf = ({ tx, seq }: CommitPosition) => (store.kind === 'sqlite' ? [seq] : [tx, seq])

  async function stepBelow(settled: CommitPosition): Promise<StepResult> {
    const cursor = await cursorOf(store, name)
    const values = [...valuesOf(cursor), ...valuesOf(settled)]
    const rows = (await store.read({ sql, values })) as unknown as Row[]
    if (rows.length === 0) return 'done'
    const { taken, statements } = await spec.apply(rows)
    if (taken === 0) return 'done'
    const last = rows[taken - 1]
    if (!last) throw new Error(`follower ${name} took ${taken} of ${rows.length} events`)
    try {
      await store.commit([advance(name, cursor, last), ...statements])
    } catch (error) {
      if (!(error instanceof StaleWrite)) throw error
      spec.overtaken?.()
      return 'overtaken'
    }
    return taken === rows.length && rows.length < rowsMax ? 'done' : 'more'
  }

  return {
    step: async () => stepBelow(await settledPosition(store)),
    async stepToEnd() {
      const all = { tx: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER }
      while ((await stepBelow(all)) !== 'done');
    },
  }
}

export async function cursorOf(store: Store, name: string): Promise<CommitPosition> {
  const sql = 'SELECT tx, seq FROM event_followers WHERE name = ?'
  const [row] = await store.read({ sql, values: [name] })
  if (!row) throw new Error(`There is no follower "${name}"`)
  return { tx: Number(row['tx']), seq: Number(row['seq']) }
}

const advance = (name: string, from: CommitPosition, to: CommitPosition): Statement => ({
  sql: 'UPDATE event_followers SET tx = ?, seq = ? WHERE name = ? AND tx = ? AND seq = ?',
  values: [to.tx, to.seq, name, from.tx, from.seq],
  expectRows: 1,
})

/** The position that every follower has reached. */
export async function followedPosition(store: Store): Promise<CommitPosition> {
  const row = await store.db
    .selectFrom('event_followers')
    .select(['tx', 'seq'])
    .orderBy('tx')
    .orderBy('seq')
    .limit(1)
    .executeTakeFirst()
  return row ? { tx: Number(row.tx), seq: Number(row.seq) } : { tx: Number.MAX_SAFE_INTEGER, seq: 0 }
}

/** Whether a follower with this cursor has processed the event at `position`. */
export const isProcessed = (position: CommitPosition, cursor: CommitPosition): boolean =>
  position.tx < cursor.tx || (position.tx === cursor.tx && position.seq <= cursor.seq)
