/**
 * Click targets that are too long for a link: stored before the message is sent, under an id derived from account
 * and URL, so that a retry and the next newsletter use the same row.
 */

import { hash } from 'node:crypto'
import { bytesToId } from '../../../base/ids.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import { removeRows } from '../../../platform/store/commits.ts'
import type { Statement, Store } from '../../../platform/store/store.ts'

export type StoredLinks = ReturnType<typeof createStoredLinks>

/** A link works for at least a year after sending (tracking.md rule 9), plus a month's margin. */
export const KEPT_MS = 400 * DAY_MS
/** Ids that this process knows to be stored: about 5 MB. Evicting one costs a statement. */
const REMEMBERED_MAX = 20_000
const ID_BYTES = 16
/** Statements in one unit, which keeps the writer busy for some milliseconds. */
const KEEP_CHUNK = 200

const KEEP = `INSERT INTO tracking_links (id, account_id, url, created_at, used_at) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at WHERE tracking_links.used_at < excluded.used_at`

/** The id of a URL of an account: SHA-256 cut to 128 bits. */
export function linkIdOf(accountId: string, url: string): string {
  const digest = hash('sha256', `${accountId}\n${url}`, 'buffer')
  return bytesToId(digest.subarray(0, ID_BYTES))
}

export function createStoredLinks(store: Store, clock: Clock) {
  /** By id: the day that its row was last marked with. */
  const known = new Map<string, number>()

  function remember(ids: readonly string[], day: number): void {
    for (const id of ids) {
      known.delete(id)
      known.set(id, day)
    }
    for (const oldest of known.keys()) {
      if (known.size <= REMEMBERED_MAX) return
      known.delete(oldest)
    }
  }

  return {
    /** Stores the URLs and resolves to their ids, in the same order, once they are on disk. */
    async keep(accountId: string, urls: readonly string[]): Promise<string[]> {
      const now = Math.floor(clock.now())
      const day = now - (now % DAY_MS)
      const links = urls.map((url) => ({ id: linkIdOf(accountId, url), url }))
      const fresh = new Map(links.filter(({ id }) => known.get(id) !== day).map((link) => [link.id, link]))
      // The same order everywhere, so that two processes that store the same rows cannot deadlock.
      const statements = [...fresh.values()]
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .map(({ id, url }): Statement => ({ sql: KEEP, values: [id, accountId, url, now, day] }))
      for (let at = 0; at < statements.length; at += KEEP_CHUNK) {
        await store.commit(statements.slice(at, at + KEEP_CHUNK))
      }
      remember([...fresh.keys()], day)
      return links.map(({ id }) => id)
    },
    /** The URL stored under an id, or null. */
    async urlOf(linkId: string): Promise<string | null> {
      const row = await store.db
        .selectFrom('tracking_links')
        .select('url')
        .where('id', '=', linkId)
        .executeTakeFirst()
      return row?.url ?? null
    },
    /** Removes links that no message has used for 400 days. */
    removeOld(signal?: AbortSignal): Promise<void> {
      const old = { where: 'used_at < ? ORDER BY used_at', values: [Math.floor(clock.now() - KEPT_MS)] }
      return removeRows(store, { from: 'tracking_links', key: 'id', ...old }, signal)
    },
  }
}
