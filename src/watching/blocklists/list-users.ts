/**
 * Which destinations refuse mail by which list: as the table says, and as their own refusals have named it. A refusal also
 * makes the address due in that list.
 */
import { remember } from '../../base/flow/cache.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { BlocklistUserRow } from '../../platform/store/schema.ts'
import type { Statement } from '../../platform/store/store.ts'
import type { Refusal } from '../../sending/ips/blocks/blocks.ts'
import type { Blocklist } from './lists.ts'

/** A destination that has not named a list for this long uses it no more. */
export const USER_KEPT_MS = 90 * DAY_MS
/** Anybody may run a server that names a list in its refusals. */
const USERS_MAX = 10_000
/** A refusal of the same kind within this time writes nothing. */
const QUIET_MS = HOUR_MS
const REMEMBERED_MAX = 1_000
/** What is read of a reply. */
const REPLY_LENGTH_MAX = 1_000

interface UserParts extends Pick<Core, 'store' | 'clock' | 'log'> {
  lists: readonly Blocklist[]
  /** An address is due. */
  wake(): void
}

export function createListUsers({ store, clock, log, lists, wake }: UserParts) {
  const lately = new Map<string, number>()
  let writing = Promise.resolve()
  const now = () => Math.floor(clock.now())

  function note({ ip, site, provider }: Refusal, { zone }: Blocklist): void {
    const key = `${zone} ${site} ${ip}`
    const last = lately.get(key)
    if (last !== undefined && clock.monotonic() - last < QUIET_MS) return
    lately.delete(key)
    remember(lately, REMEMBERED_MAX, key, clock.monotonic())
    writing = writing
      .then(async () => {
        const [, due] = await store.commit([
          userStatement({ list: zone, site, provider, seen_at: now() }),
          dueStatement(zone, ip, now()),
        ])
        if (due?.affected) wake()
      })
      .catch((error: unknown) =>
        log.error({ err: error, list: zone, site }, 'cannot record who uses a blocklist'),
      )
  }

  return {
    /** Lists that the reply names. Never throws. */
    refused(refusal: Refusal): void {
      const reply = refusal.reply.slice(0, REPLY_LENGTH_MAX)
      for (const list of lists) if (list.tests.ipv4 && list.words.test(reply)) note(refusal, list)
    },
    /** By list. */
    async read(): Promise<Map<string, BlocklistUserRow[]>> {
      const rows = await store.db.selectFrom('blocklist_users').selectAll().execute()
      const learnt = Map.groupBy(rows, ({ list }) => list)
      return new Map(
        lists.map(({ zone, usedBy = [] }) => {
          const known = usedBy.map((user) => ({ list: zone, ...user, seen_at: 0 }))
          const all = [...known, ...(learnt.get(zone) ?? [])]
          return [zone, [...new Map(all.map((user) => [user.site, user])).values()]]
        }),
      )
    },
    /** Resolves when what was noted is on disk, or could not be written. */
    written: () => writing,
  }
}

export type ListUsers = ReturnType<typeof createListUsers>

const userStatement = ({ list, site, provider, seen_at }: BlocklistUserRow): Statement => ({
  sql: `INSERT INTO blocklist_users (list, site, provider, seen_at)
    SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT)
    WHERE (SELECT count(*) FROM blocklist_users) < ${USERS_MAX}
    ON CONFLICT (list, site) DO UPDATE SET provider = excluded.provider, seen_at = excluded.seen_at`,
  values: [list, site, provider, seen_at],
})

const dueStatement = (list: string, ip: string, now: number): Statement => ({
  sql: 'UPDATE blocklist_checks SET next_at = ? WHERE list = ? AND subject = ? AND next_at > ?',
  values: [now, list, ip, now],
})
