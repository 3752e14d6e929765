/** The tables of the POST queue: pending POSTs, and the leases of lanes. */
import { createHash } from 'node:crypto'
import { newId } from '../../base/ids.ts'
import type { OutgoingPostRow } from '../store/schema.ts'
import { insertMany, type LeaseTimes, type SqlValue, type Statement, type Store } from '../store/store.ts'

/** The lanes of a crashed process wait at most this long. */
export const LANE_LEASE_MS = 30_000
/** Later than any lease. */
const VOID = 1e15

export interface NewPost {
  kind: string
  /** Owner of the URL. */
  accountId: string
  url: string
  /** `laneOf(url)`. */
  lane: string
  subject: string
}

/** The lane of a URL: 22 characters, so that the index stays small. */
export function laneOf(url: string): string {
  return createHash('sha256').update(url).digest('base64url').slice(0, 22)
}

/** Inserts new POSTs, due at once. */
export function postStatements(posts: readonly NewPost[], now: number): Statement[] {
  return insertMany(
    'outgoing_posts',
    posts.map((post) => rowOf(post, now)),
  )
}

const rowOf = (post: NewPost, now: number): OutgoingPostRow => ({
  id: newId(now),
  kind: post.kind,
  account_id: post.accountId,
  lane: post.lane,
  url: post.url,
  subject: post.subject,
  attempts: 0,
  due_at: Math.floor(now),
  created_at: Math.floor(now),
})

/** `?` is added to the new lease's end: Citus calls no functions where rows are in conflict. */
const acquireStatement = ({ sql }: LeaseTimes) =>
  `INSERT INTO outgoing_leases (lane, owner, token, until_at) VALUES (?, ?, ?, ${sql})
  ON CONFLICT (lane) DO UPDATE SET owner = excluded.owner, token = excluded.token, until_at = excluded.until_at
  WHERE outgoing_leases.until_at < excluded.until_at + ? OR outgoing_leases.owner = excluded.owner
  RETURNING token`

const LEASE_HELD = 'EXISTS (SELECT 1 FROM outgoing_leases WHERE lane = ? AND token = ?)'

export type PostRows = ReturnType<typeof createPostRows>

/** `owner` identifies this process. On SQLite no other process can hold a lane, so leases of earlier runs are void. */
export function createPostRows(store: Store, owner: string) {
  const times = store.leaseTimes
  const execute = async (sql: string, values: SqlValue[]) => {
    const [result] = await store.commit([{ sql, values }])
    return result?.rows ?? []
  }
  return {
    /** Lanes whose oldest row falls due before `until`, with that time. One index lookup per lane, however many rows it has. */
    dueLanes: (until: number) => dueLanes(store, until),
    /** Rows of a lane that are due, oldest first. */
    due: (lane: string, now: number, limit: number) =>
      store.db
        .selectFrom('outgoing_posts')
        .selectAll()
        .where('lane', '=', lane)
        .where('due_at', '<=', Math.floor(now))
        .orderBy('due_at')
        .orderBy('id')
        .limit(limit)
        .execute(),
    /** Takes the lane's lease and resolves to its token; null: another process has it. */
    async acquire(lane: string, now: number): Promise<string | null> {
      const token = newId()
      // On SQLite every lease can be taken over.
      const voidBefore = store.kind === 'sqlite' ? VOID : -LANE_LEASE_MS
      const until = times.value(now, LANE_LEASE_MS)
      const rows = await execute(acquireStatement(times), [lane, owner, token, until, voidBefore])
      return rows.length > 0 ? token : null
    },
    async renew(now: number): Promise<void> {
      const until = times.value(now, LANE_LEASE_MS)
      await execute(`UPDATE outgoing_leases SET until_at = ${times.sql} WHERE owner = ?`, [until, owner])
    },
    async release(lanes: readonly string[]): Promise<void> {
      if (lanes.length === 0) return
      await store.commit(
        lanes.map((lane) => ({
          sql: 'DELETE FROM outgoing_leases WHERE lane = ? AND owner = ?',
          values: [lane, owner],
        })),
      )
    },
    async releaseAll(): Promise<void> {
      await execute('DELETE FROM outgoing_leases WHERE owner = ?', [owner])
    },
    /** Removes a row; fails (`expectRows`) unless the token still holds the lane's lease. */
    remove: (row: OutgoingPostRow, token: string): Statement => ({
      sql: `DELETE FROM outgoing_posts WHERE id = ? AND ${LEASE_HELD}`,
      values: [row.id, row.lane, token],
      expectRows: 1,
    }),
    /** Schedules the next attempt and counts the last one; fenced in the same way. */
    postpone: (row: OutgoingPostRow, token: string, dueAt: number) =>
      change(row, token, row.attempts + 1, dueAt),
    /** Postpones without counting an attempt. */
    defer: (row: OutgoingPostRow, token: string, dueAt: number) => change(row, token, row.attempts, dueAt),
  }
}

const change = (row: OutgoingPostRow, token: string, attempts: number, dueAt: number): Statement => ({
  sql: `UPDATE outgoing_posts SET attempts = ?, due_at = ? WHERE id = ? AND ${LEASE_HELD}`,
  values: [attempts, Math.floor(dueAt), row.id, row.lane, token],
  expectRows: 1,
})

/**
 * Skips from lane to lane in the index: a lane with 100,000 rows costs as much as one with a single row.
 * (`SELECT DISTINCT lane` would read all of them.)
 */
function dueLanes(store: Store, until: number): Promise<{ lane: string; due_at: number }[]> {
  return store.db
    .withRecursive('known', (db) =>
      db
        .selectNoFrom((eb) =>
          eb
            .selectFrom('outgoing_posts')
            .select((posts) => posts.fn.min('lane').as('lane'))
            .as('lane'),
        )
        .unionAll(
          db
            .selectFrom('known')
            .where('known.lane', 'is not', null)
            .select((eb) =>
              eb
                .selectFrom('outgoing_posts')
                .whereRef('outgoing_posts.lane', '>', eb.ref('known.lane'))
                .select((posts) => posts.fn.min('outgoing_posts.lane').as('lane'))
                .as('lane'),
            ),
        ),
    )
    .with('waiting', (db) =>
      db
        .selectFrom('known')
        .where('known.lane', 'is not', null)
        .select((eb) => [
          eb.ref('known.lane').$notNull().as('lane'),
          eb
            .selectFrom('outgoing_posts')
            .whereRef('outgoing_posts.lane', '=', eb.ref('known.lane'))
            .select((posts) => posts.fn.min('outgoing_posts.due_at').as('due_at'))
            .$asScalar()
            .$notNull()
            .as('due_at'),
        ]),
    )
    .selectFrom('waiting')
    .selectAll()
    .where('due_at', '<=', Math.floor(until))
    .execute()
}
