/**
 * A reader of all events in the order of their commits, that takes each into account exactly once.
 *
 * 1. The stored place says how far it is; `settledPlace` how far it may go: below that no event can appear any more
 *    (decision 7).
 * 2. A step reads some events behind the place, and asks `apply` what follows from them.
 * 3. What follows and the new place are one transaction, which is refused if the place is another one meanwhile. So a
 *    crash takes both or neither, and of several processes over one database one takes each step.
 *
 * Nothing of it stands in the way of those who write events. Retention leaves what a follower has not seen
 * (`retention.ts`).
 */
import { StaleWrite, type Statement, type Store } from '../store/store.ts'
import type { CommitPlace } from './page-request.ts'
import { settledPlace } from './query.ts'

/** Of an event, what every follower needs; the other columns are those it asked for. */
export interface FollowedKey {
  tx: number
  seq: number
}

export interface FollowerSpec<Row extends FollowedKey> {
  /** Its row of `event_followers`, which a migration made. */
  name: string
  /** A list of SQL expressions over a row of `events`, beside `tx` and `seq`. */
  columns: string
  /** Events of one step: reading them holds up other readers for some milliseconds. */
  rowsMax: number
  /**
   * What follows from the first `taken` of these events, at least one. Called again for the same events after a
   * failure, so nothing but the statements may tell that it was called.
   */
  apply(rows: readonly Row[]): Promise<{ taken: number; statements: Statement[] }>
}

/** `more`: there may be more to do at once. `done`: nothing left for now. `overtaken`: another process did it. */
export type StepResult = 'more' | 'done' | 'overtaken'

export interface EventFollower {
  step(): Promise<StepResult>
  /** Steps to the end of a database that nobody writes to, settled or not. */
  stepToEnd(): Promise<void>
}

export function createEventFollower<Row extends FollowedKey>(
  store: Store,
  spec: FollowerSpec<Row>,
): EventFollower {
  const { name, rowsMax } = spec
  const end = { sqlite: 'seq < ?', postgres: '(tx, seq) < (?, ?)' }[store.kind]
  const behind = { sqlite: 'seq > ?', postgres: '(tx, seq) > (?, ?)' }[store.kind]
  const order = { sqlite: 'seq', postgres: 'tx, seq' }[store.kind]
  const sql = `SELECT tx, seq, ${spec.columns} FROM events WHERE ${behind} AND ${end} ORDER BY ${order} LIMIT ${rowsMax}`
  const valuesOf = ({ tx, seq }: CommitPlace) => (store.kind === 'sqlite' ? [seq] : [tx, seq])

  async function stepBelow(settled: CommitPlace): Promise<StepResult> {
    const place = await placeOf(store, name)
    const values = [...valuesOf(place), ...valuesOf(settled)]
    const rows = (await store.read({ sql, values })) as unknown as Row[]
    if (rows.length === 0) return 'done'
    const { taken, statements } = await spec.apply(rows)
    const last = rows[taken - 1]
    if (!last) throw new Error(`follower ${name} took ${taken} of ${rows.length} events`)
    try {
      await store.commit([advance(name, place, last), ...statements])
    } catch (error) {
      if (error instanceof StaleWrite) return 'overtaken'
      throw error
    }
    return taken === rows.length && rows.length < rowsMax ? 'done' : 'more'
  }

  return {
    step: async () => stepBelow(await settledPlace(store)),
    async stepToEnd() {
      const all = { tx: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER }
      while ((await stepBelow(all)) !== 'done');
    },
  }
}

async function placeOf(store: Store, name: string): Promise<CommitPlace> {
  const sql = 'SELECT tx, seq FROM event_followers WHERE name = ?'
  const [row] = await store.read({ sql, values: [name] })
  if (!row) throw new Error(`There is no follower "${name}"`)
  return { tx: Number(row['tx']), seq: Number(row['seq']) }
}

const advance = (name: string, from: CommitPlace, to: CommitPlace): Statement => ({
  sql: 'UPDATE event_followers SET tx = ?, seq = ? WHERE name = ? AND tx = ? AND seq = ?',
  values: [to.tx, to.seq, name, from.tx, from.seq],
  expectRows: 1,
})

/** The place that every follower has reached. */
export async function followedPlace(store: Store): Promise<CommitPlace> {
  const row = await store.db
    .selectFrom('event_followers')
    .select(['tx', 'seq'])
    .orderBy('tx')
    .orderBy('seq')
    .limit(1)
    .executeTakeFirst()
  return row ? { tx: Number(row.tx), seq: Number(row.seq) } : { tx: Number.MAX_SAFE_INTEGER, seq: 0 }
}

/** Whether an event at `at` is taken into account by a follower that has reached `place`. */
export const isBehind = (at: CommitPlace, place: CommitPlace): boolean =>
  at.tx < place.tx || (at.tx === place.tx && at.seq <= place.seq)
