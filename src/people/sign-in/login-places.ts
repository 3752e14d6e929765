/**
 * The networks from which each SMTP login or user succeeded. Failed guesses from such a network do not lock the login
 * out there (decision 50), even after a restart, so they are stored in the database.
 */

import { remember } from '../../base/flow/cache.ts'
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { Store } from '../../platform/store/store.ts'

export type LoginPlaces = ReturnType<typeof createLoginPlaces>

/** A network is forgotten when the login was not used there for this long. */
const KNOWN_FOR_MS = 90 * DAY_MS
/** A network in use is written again once a day. */
const NOTE_EVERY_MS = DAY_MS
/** Networks per login; a laptop that travels has a few dozen. */
const PLACES_PER_LOGIN_MAX = 200
const REMEMBERED_MAX = 10_000

/** `table`: of SMTP logins, or of users by their addresses. */
export function createLoginPlaces(
  store: Store,
  clock: Clock,
  table: 'login_places' | 'user_places' = 'login_places',
) {
  /** When a network was last written. */
  const notedAt = new Map<string, number>()
  const isFresh = (key: string) => (notedAt.get(key) ?? -Infinity) > clock.now() - NOTE_EVERY_MS

  return {
    async isKnown(login: string, network: string): Promise<boolean> {
      if (notedAt.has(`${network} ${login}`)) return true
      const row = await store.db
        .selectFrom(table)
        .select('last_at')
        .where('login', '=', login)
        .where('network', '=', network)
        .executeTakeFirst()
      return row !== undefined && row.last_at > clock.now() - KNOWN_FOR_MS
    },
    /** Records a successful login. Never rejects: a full disk must not lock anyone out. */
    async note(login: string, network: string): Promise<void> {
      const key = `${network} ${login}`
      if (isFresh(key)) return
      const now = Math.floor(clock.now())
      remember(notedAt, REMEMBERED_MAX, key, now)
      await write(login, network, now).catch(() => {})
    },
  }

  async function write(login: string, network: string, now: number): Promise<void> {
    await store.transaction(async (tx) => {
      await tx
        .insertInto(table)
        .values({ login, network, last_at: now })
        .onConflict((conflict) => conflict.columns(['login', 'network']).doUpdateSet({ last_at: now }))
        .execute()
      const newest = tx
        .selectFrom(table)
        .select('network')
        .where('login', '=', login)
        .orderBy('last_at', 'desc')
        .limit(PLACES_PER_LOGIN_MAX)
      await tx
        .deleteFrom(table)
        .where('login', '=', login)
        .where((eb) => eb.or([eb('last_at', '<=', now - KNOWN_FOR_MS), eb('network', 'not in', newest)]))
        .execute()
    })
  }
}
