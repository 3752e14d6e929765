/**
 * How many messages addresses on warm-up may still send in this hour, over all processes (decision 74).
 *
 * 1. A process takes a few messages at a time from the row of the address, by a statement that fails if the limit of the
 *    hour or of the window would be passed. So the limits hold exactly, and a process that dies loses those few.
 * 2. It spends them without the database. One that no server got is given back.
 * 3. When the row has none left, the address has no room until the next hour, or until its stage changes.
 * 4. What waits is spread over the hours to come, as many for each as it has room for.
 */
import type { Clock } from '../../base/clock.ts'
import type { Allowances, Allowed } from '../../delivery/contract.ts'
import type { IpWarmupRow } from '../../store/schema.ts'
import type { SqlValue, Store } from '../../store/store.ts'
import type { AddressBook } from '../address-book.ts'
import { HOUR_MS, hourlyLimit, hourOf, limitOf, WINDOW_MS } from './plan.ts'

export interface WarmupAllowances extends Allowances {
  hasRoom(ip: string): boolean
  /** A message went elsewhere, or waits. */
  diverted(ip: string): void
  /** Writes what has been diverted, and gives back what was taken for hours that are over. */
  flush(): Promise<void>
  /** Gives back everything. */
  close(): Promise<void>
}

export interface AllowanceParts {
  store: Store
  clock: Clock
  plan: readonly number[]
  book(): AddressBook
}

/** Share of an hour's messages that a process takes at a time: four of them leave 2 % unused at the most. */
const SHARE_AT_A_TIME = 1 / 200
/** Hours ahead that waiting messages are spread over: by then the stage may have another limit. */
const HOURS_AHEAD = 24

/** What this process holds of an address. */
interface Held {
  stage: number
  windowAt: number
  hourlyLimit: number
  limit: number
  /** The hour of the next three. */
  hourAt: number
  left: number
  isUsedUp: boolean
  diverted: number
  /** Taken in earlier hours of the window and not used. */
  unused: number
  /** Waiting messages by the hour that they wait for. */
  booked: Map<number, number>
  taking: Promise<void> | null
}

const OF_HOUR = (column: string) => `CASE WHEN hour_started_at = ? THEN ${column} ELSE 0 END`

const TAKE = `UPDATE ip_warmups SET
    hour_used = ${OF_HOUR('hour_used')} + ?, hour_diverted = ${OF_HOUR('hour_diverted')}, hour_started_at = ?,
    window_used = window_used + ?, updated_at = ?
  WHERE ip = ? AND stage = ? AND window_started_at = ? AND hour_started_at <= ?
    AND ${OF_HOUR('hour_used')} + ? <= ? AND window_used + ? <= ?`

const GIVE_BACK = `UPDATE ip_warmups SET
    hour_used = CASE WHEN hour_started_at = ? THEN hour_used - ? ELSE hour_used END, window_used = window_used - ?
  WHERE ip = ? AND stage = ? AND window_started_at = ?`

const DIVERT = `UPDATE ip_warmups SET
    hour_used = ${OF_HOUR('hour_used')}, hour_diverted = ${OF_HOUR('hour_diverted')} + ?, hour_started_at = ?
  WHERE ip = ? AND hour_started_at <= ?`

const NOT_LIMITED: Allowed = { giveBack() {} }

export function createAllowances(parts: AllowanceParts): WarmupAllowances {
  const { store, clock, plan, book } = parts
  const held = new Map<string, Held>()

  async function affected(sql: string, values: SqlValue[]): Promise<boolean> {
    const [result] = await store.commit([{ sql, values }])
    return (result?.affected ?? 0) > 0
  }

  /** Undefined: the address is not on warm-up. */
  function heldOf(ip: string): Held | undefined {
    const row = book().warmups.get(ip)
    const limit = row && limitOf(plan, Number(row.stage))
    if (row === undefined || limit === undefined) {
      if (held.size > 0) held.delete(ip)
      return undefined
    }
    let known = held.get(ip)
    if (known?.stage !== Number(row.stage) || known.windowAt !== Number(row.window_started_at)) {
      known = newHeld(row, limit, hourOf(clock.now()))
      held.set(ip, known)
    }
    beginHour(known, hourOf(clock.now()))
    return known
  }

  /** One statement at a time for an address: the others wait for its result. */
  function takeSome(ip: string, known: Held): Promise<void> {
    known.taking ??= fetchSome(ip, known).finally(() => {
      known.taking = null
    })
    return known.taking
  }

  async function fetchSome(ip: string, known: Held): Promise<void> {
    const { hourAt, hourlyLimit: hourly } = known
    const wanted = Math.max(1, Math.floor(hourly * SHARE_AT_A_TIME))
    for (const count of new Set([wanted, 1])) {
      if (!(await take(ip, known, count))) continue
      if (known.hourAt === hourAt) known.left += count
      else known.unused += count
      return
    }
    known.isUsedUp = known.hourAt === hourAt
  }

  async function take(
    ip: string,
    { stage, windowAt, hourAt, hourlyLimit: hourly, limit }: Held,
    count: number,
  ): Promise<boolean> {
    const now = Math.floor(clock.now())
    // Until its stage is judged.
    if (now >= windowAt + WINDOW_MS) return false
    return affected(TAKE, [
      ...[hourAt, count, hourAt, hourAt, count, now],
      ...[ip, stage, windowAt, hourAt],
      ...[hourAt, count, hourly, count, limit],
    ])
  }

  async function takeOne(ip: string): Promise<Allowed | null> {
    for (;;) {
      const known = heldOf(ip)
      if (known === undefined) return NOT_LIMITED
      if (known.left > 0) return spend(known)
      if (known.isUsedUp) return null
      await takeSome(ip, known)
    }
  }

  async function giveBack(ip: string, known: Held, count: number): Promise<void> {
    if (count === 0) return
    const { stage, windowAt, hourAt } = known
    await affected(GIVE_BACK, [hourAt, count, count, ip, stage, windowAt])
  }

  async function flushOne(ip: string, known: Held, all: boolean): Promise<void> {
    const { diverted, unused, hourAt } = known
    known.diverted = 0
    known.unused = 0
    if (diverted > 0) await affected(DIVERT, [hourAt, hourAt, diverted, hourAt, ip, hourAt])
    const { left } = known
    if (all) known.left = 0
    // What an earlier hour has left counts for the window only.
    await giveBack(ip, { ...known, hourAt: -1 }, unused)
    if (all) await giveBack(ip, known, left)
  }

  async function flush(all: boolean): Promise<void> {
    for (const [ip, known] of held) {
      beginHour(known, hourOf(clock.now()))
      await flushOne(ip, known, all)
    }
  }

  return {
    hasRoom(ip) {
      const known = heldOf(ip)
      return known === undefined || known.left > 0 || !known.isUsedUp
    },
    diverted(ip) {
      const known = heldOf(ip)
      if (known) known.diverted++
    },
    take(ip) {
      const known = heldOf(ip)
      if (known === undefined) return undefined
      if (known.left > 0) return spend(known)
      return known.isUsedUp ? null : takeOne(ip)
    },
    nextFree(ip) {
      const known = heldOf(ip)
      return known === undefined ? clock.now() : bookedHour(known)
    },
    flush: () => flush(false),
    close: () => flush(true),
  }
}

const newHeld = (row: IpWarmupRow, limit: number, hourAt: number): Held => ({
  stage: Number(row.stage),
  windowAt: Number(row.window_started_at),
  hourlyLimit: hourlyLimit(limit),
  limit,
  ...{ hourAt, left: 0, isUsedUp: false, diverted: 0, unused: 0 },
  booked: new Map(),
  taking: null,
})

function beginHour(known: Held, hourAt: number): void {
  if (known.hourAt >= hourAt) return
  known.unused += known.left
  known.hourAt = hourAt
  known.left = 0
  known.isUsedUp = false
  known.diverted = 0
  for (const hour of known.booked.keys()) if (hour <= hourAt) known.booked.delete(hour)
}

function spend(known: Held): Allowed {
  const { hourAt } = known
  known.left--
  let isBack = false
  return {
    giveBack() {
      if (isBack) return
      isBack = true
      if (known.hourAt === hourAt) known.left++
      else known.unused++
    },
  }
}

/** The first hour with room for one more that waits. */
function bookedHour(known: Held): number {
  const last = known.hourAt + HOURS_AHEAD * HOUR_MS
  let hour = known.hourAt + HOUR_MS
  while (hour < last && (known.booked.get(hour) ?? 0) >= known.hourlyLimit) hour += HOUR_MS
  known.booked.set(hour, (known.booked.get(hour) ?? 0) + 1)
  return hour
}
