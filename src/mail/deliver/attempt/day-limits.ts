/**
 * How many messages a relay may still get on this day (UTC), over all processes, as warm-up allowances are counted
 * (sending/ips/warmup/allowances.ts): a process takes a few at a time from the row of the day, by a statement that fails if the
 * limit would be passed, and spends them without the database. One that dies loses those few; at a stop they are given back.
 */
import type { MaybePromise } from '../../../base/flow/cache.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import { StaleWrite, type Store } from '../../../platform/store/store.ts'
import type { Allowed } from '../contract.ts'

export type DayLimits = ReturnType<typeof createDayLimits>

/** Of a day's messages, at a time: four processes leave 2 % unused at the most. */
const SHARE_AT_A_TIME = 1 / 200
const TAKEN_MAX = 1_000
/** Rows of days before are removed after this time. */
const KEPT_MS = 30 * DAY_MS

const NEW_DAY = `INSERT INTO relay_days (name, day_at, used) VALUES (?, ?, 0) ON CONFLICT (name, day_at) DO NOTHING`
const TAKE = `UPDATE relay_days SET used = used + ? WHERE name = ? AND day_at = ? AND used + ? <= ?`
const GIVE_BACK = `UPDATE relay_days SET used = used - ? WHERE name = ? AND day_at = ?`

/** What this process holds of a relay's day. */
interface Held {
  dayAt: number
  limit: number
  left: number
  isUsedUp: boolean
  taking: Promise<void> | null
}

export const startOfDay = (now: number): number => Math.floor(now / DAY_MS) * DAY_MS

export function createDayLimits(store: Store, clock: Clock) {
  const byRelay = new Map<string, Held>()

  function heldOf(name: string, limit: number): Held {
    const dayAt = startOfDay(clock.now())
    const known = byRelay.get(name)
    if (known?.dayAt === dayAt) {
      // A higher limit leaves room again.
      if (known.limit < limit) known.isUsedUp = false
      known.limit = limit
      return known
    }
    const held: Held = { dayAt, limit, left: 0, isUsedUp: false, taking: null }
    byRelay.set(name, held)
    return held
  }

  async function fetchSome(name: string, held: Held): Promise<void> {
    const { dayAt, limit } = held
    const wanted = Math.min(TAKEN_MAX, Math.max(1, Math.floor(limit * SHARE_AT_A_TIME)))
    for (const count of new Set([wanted, 1])) {
      try {
        await store.commit([
          { sql: NEW_DAY, values: [name, dayAt] },
          { sql: TAKE, values: [count, name, dayAt, count, limit], expectRows: 1 },
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
    /** As `Relays.take`. */
    take(name: string, limit: number): MaybePromise<Allowed | null> {
      const held = heldOf(name, limit)
      return held.left > 0 ? spend(held) : takeOne(name, held)
    },
    /** Messages of this day by relay, over all processes; those that a process has taken and not sent count. */
    async used(): Promise<ReadonlyMap<string, number>> {
      const rows = await store.db
        .selectFrom('relay_days')
        .selectAll()
        .where('day_at', '=', startOfDay(clock.now()))
        .execute()
      return new Map(rows.map(({ name, used }) => [name, Number(used) - (byRelay.get(name)?.left ?? 0)]))
    },
    async removeOld(): Promise<void> {
      await store.db
        .deleteFrom('relay_days')
        .where('day_at', '<', Math.floor(clock.now()) - KEPT_MS)
        .execute()
    },
    /** Gives back what is left. */
    async close(): Promise<void> {
      const held = [...byRelay].filter(([, { left }]) => left > 0)
      byRelay.clear()
      if (held.length > 0)
        await store.commit(
          held.map(([name, { left, dayAt }]) => ({ sql: GIVE_BACK, values: [left, name, dayAt] })),
        )
    },
  }
}
