/**
 * How many messages of a limit are left on this day (UTC), over all processes, as warm-up allowances are counted
 * (sending/ips/warmup/allowances.ts): a process takes a few at a time from the row of the day, by a statement that fails if the
 * limit would be passed, and spends them without the database. One that dies loses those few; at a stop they are given back.
 * Relays have such limits, and new accounts.
 */
import type { MaybePromise } from '../../../base/flow/cache.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import { StaleWrite, type Store } from '../../../platform/store/store.ts'
import type { Allowed } from '../contract.ts'

export type DayLimits = ReturnType<typeof createDayLimits>

/** The share of a day's messages that is taken at a time: four processes leave 2 % unused at the most. */
const SHARE_AT_A_TIME = 1 / 200
const TAKEN_MAX = 1_000
/** Rows of days before are removed after this time. */
const KEPT_MS = 30 * DAY_MS

const statementsOn = (table: string) => ({
  newDay: `INSERT INTO ${table} (name, day_at, used) VALUES (?, ?, 0) ON CONFLICT (name, day_at) DO NOTHING`,
  take: `UPDATE ${table} SET used = used + ? WHERE name = ? AND day_at = ? AND used + ? <= ?`,
  giveBack: `UPDATE ${table} SET used = used - ? WHERE name = ? AND day_at = ?`,
})

/** What this process holds of a day. */
interface Held {
  dayAt: number
  limit: number
  left: number
  isUsedUp: boolean
  taking: Promise<void> | null
}

export const startOfDay = (now: number): number => Math.floor(now / DAY_MS) * DAY_MS

/** `table`: where the days of these names are. */
export function createDayLimits(store: Store, clock: Clock, table: 'relay_days' | 'account_days') {
  const sql = statementsOn(table)
  const byName = new Map<string, Held>()

  function heldOf(name: string, limit: number): Held {
    const dayAt = startOfDay(clock.now())
    const known = byName.get(name)
    if (known?.dayAt === dayAt) {
      // A higher limit leaves room again.
      if (known.limit < limit) known.isUsedUp = false
      known.limit = limit
      return known
    }
    const held: Held = { dayAt, limit, left: 0, isUsedUp: false, taking: null }
    byName.set(name, held)
    return held
  }

  async function fetchSome(name: string, held: Held): Promise<void> {
    const { dayAt, limit } = held
    const wanted = Math.min(TAKEN_MAX, Math.max(1, Math.floor(limit * SHARE_AT_A_TIME)))
    for (const count of new Set([wanted, 1])) {
      try {
        await store.commit([
          { sql: sql.newDay, values: [name, dayAt] },
          { sql: sql.take, values: [count, name, dayAt, count, limit], expectRows: 1 },
        ])
        held.left += count
        return
      } catch (error) {
        if (!(error instanceof StaleWrite)) throw error
      }
    }
    held.isUsedUp = true
  }

  function spend(held: Held): Allowed {
    held.left--
    let isBack = false
    return {
      giveBack() {
        if (!isBack) held.left++
        isBack = true
      },
    }
  }

  async function takeOne(name: string, held: Held): Promise<Allowed | null> {
    while (held.left === 0) {
      if (held.isUsedUp) return null
      held.taking ??= fetchSome(name, held).finally(() => {
        held.taking = null
      })
      await held.taking
    }
    return spend(held)
  }

  return {
    /** Whether all messages of this day are used, as far as this process knows. */
    isUsedUp(name: string, limit: number): boolean {
      const { left, isUsedUp } = heldOf(name, limit)
      return isUsedUp && left === 0
    },
    /** As `Allowances.take`. */
    take(name: string, limit: number): MaybePromise<Allowed | null> {
      const held = heldOf(name, limit)
      return held.left > 0 ? spend(held) : takeOne(name, held)
    },
    /** Messages of this day by name, over all processes; those that a process has taken and not sent count. */
    async used(): Promise<ReadonlyMap<string, number>> {
      const rows = await store.db
        .selectFrom(table)
        .selectAll()
        .where('day_at', '=', startOfDay(clock.now()))
        .execute()
      return new Map(rows.map(({ name, used }) => [name, Number(used) - (byName.get(name)?.left ?? 0)]))
    },
    async removeOld(): Promise<void> {
      await store.db
        .deleteFrom(table)
        .where('day_at', '<', Math.floor(clock.now()) - KEPT_MS)
        .execute()
    },
    /** Gives back what is left. */
    async close(): Promise<void> {
      const held = [...byName].filter(([, { left }]) => left > 0)
      byName.clear()
      if (held.length > 0)
        await store.commit(
          held.map(([name, { left, dayAt }]) => ({ sql: sql.giveBack, values: [left, name, dayAt] })),
        )
    },
  }
}
