/**
 * From which networks each SMTP login was right. Guessing from such a network does not shut the login out there
 * (decision 50), also after a restart, which is why this is in the database.
 */
import type { Clock } from '../base/clock.ts'
import { remember } from '../base/remember.ts'
import type { Store } from '../store/store.ts'

export interface LoginPlaces {
  isKnown(login: string, network: string): Promise<boolean>
  /** The login was right just now. Never rejects: a full disk must not keep anybody out. */
  note(login: string, network: string): Promise<void>
}

const DAY_MS = 24 * 3_600_000
/** A place is forgotten when the login was not used there for so long. */
const KNOWN_FOR_MS = 90 * DAY_MS
/** A place in use is written down again once a day. */
const NOTE_EVERY_MS = DAY_MS
/** Of one login; a laptop that travels has a few dozen. */
const PLACES_PER_LOGIN_MAX = 200
const REMEMBERED_MAX = 10_000

export function createLoginPlaces(store: Store, clock: Clock): LoginPlaces {
  /** When a place was last written down or read. */
  const notedAt = new Map<string, number>()
  const isFresh = (key: string) => (notedAt.get(key) ?? -Infinity) > clock.now() - NOTE_EVERY_MS

  return {
    async isKnown(login, network) {
      if (notedAt.has(`${network} ${login}`)) return true
      const row = await store.db
        .selectFrom('login_places')
        .select('last_at')
        .where('login', '=', login)
        .where('network', '=', network)
        .executeTakeFirst()
      return row !== undefined && row.last_at > clock.now() - KNOWN_FOR_MS
    },
    async note(login, network) {
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
        .insertInto('login_places')
        .values({ login, network, last_at: now })
        .onConflict((conflict) => conflict.columns(['login', 'network']).doUpdateSet({ last_at: now }))
        .execute()
      const newest = tx
        .selectFrom('login_places')
        .select('network')
        .where('login', '=', login)
        .orderBy('last_at', 'desc')
        .limit(PLACES_PER_LOGIN_MAX)
      await tx
        .deleteFrom('login_places')
        .where('login', '=', login)
        .where((is) => is.or([is('last_at', '<=', now - KNOWN_FOR_MS), is('network', 'not in', newest)]))
        .execute()
    })
  }
}
