/**
 * How many messages addresses on warm-up may still send in this hour, in all and to each provider, over all processes
 * (decisions 74 and 114).
 *
 * 1. A process takes a few messages at a time from the rows of the address and of the provider, by statements that fail if a
 *    limit of the hour or of the window would be passed, or if the rest is kept for other providers. So the limits hold
 *    exactly, and a process that dies loses those few.
 * 2. It spends them without the database. One that no server got is given back.
 * 3. When the rows have none left, the address has no room for the provider until the next hour, or until its stage changes.
 * 4. What waits is spread over the hours to come, as many for each as it has room for.
 */

import { HOUR_MS } from '../../../base/time/durations.ts'
import type { Core } from '../../../core.ts'
import type { Allowances, Allowed } from '../../../mail/deliver/contract.ts'
import type { IpWarmupRow } from '../../../platform/store/schema.ts'
import {
  insert,
  type SqlValue,
  StaleWrite,
  type Statement,
  type Store,
} from '../../../platform/store/store.ts'
import type { AddressBook } from '../address-book.ts'
import { hourlyLimit, hourOf, limitOf, newProvider, WINDOW_MS } from './plan.ts'

export interface WarmupAllowances extends Allowances {
  /** `site` null: for some provider. */
  hasRoom(ip: string, site: string | null): boolean
  /** A message went elsewhere, or waits. */
  diverted(ip: string, site: string): void
  /** Writes what has been diverted, and gives back what was taken for hours that are over. */
  flush(): Promise<void>
  /** Gives back everything. */
  close(): Promise<void>
}

interface AllowanceParts extends Pick<Core, 'store' | 'clock'> {
  plan: readonly number[]
  book(): AddressBook
  /** The provider that a site's messages count for. */
  providerOf(site: string): string
}

/** Sites that no shaping names have one plan together: their number has no bound. */
export const OTHERS = '*'

/** Share of an hour's messages that a process takes at a time: four of them leave 2 % unused at the most. */
const SHARE_AT_A_TIME = 1 / 200
/** Hours ahead that waiting messages are spread over: by then the stage may have another limit. */
const HOURS_AHEAD = 24

/** What this process knows of an address. */
interface Address {
  ip: string
  stage: number
  windowAt: number
  hourlyLimit: number
  limit: number
  hourAt: number
  /** By all providers. */
  isUsedUp: boolean
  /** Waiting messages by the hour that they wait for. */
  booked: Map<number, number>
  providers: Map<string, Held>
}

/** What this process holds of an address for one provider; an hour's figures are those of the address's hour. */
interface Held {
  provider: string
  /** Null: not read yet. */
  stage: number | null
  hasRow: boolean
  hourlyLimit: number
  limit: number
  left: number
  isUsedUp: boolean
  diverted: number
  /** Taken in earlier hours of the window and not used. */
  unused: number
  booked: Map<number, number>
  taking: Promise<void> | null
}

const OF_HOUR = (column: string) => `CASE WHEN hour_started_at = ? THEN ${column} ELSE 0 END`

const TAKE = `UPDATE ip_warmups SET
    hour_used = ${OF_HOUR('hour_used')} + ?, hour_diverted = ${OF_HOUR('hour_diverted')}, hour_started_at = ?,
    window_used = window_used + ?, updated_at = ?
  WHERE ip = ? AND stage = ? AND window_started_at = ? AND hour_started_at <= ?
    AND ${OF_HOUR('hour_used')} + ? <= ? AND window_used + ? <= ?`

const WANTED = 'wanted_before + window_used + window_diverted'
/**
 * Half of an hour's messages is kept for providers, for each the part that its messages had of those of a day or two. The
 * cast makes it a whole number: SQLite has numbers from here with a fraction.
 */
const KEPT = `SELECT CAST(? * (${WANTED}) / (2 * NULLIF((
      SELECT CAST(SUM(${WANTED}) AS BIGINT) FROM ip_warmup_providers WHERE ip = ?
    ), 0)) AS BIGINT) AS part, ${OF_HOUR('hour_used')} AS used
  FROM ip_warmup_providers WHERE ip = ? AND provider <> ?`

/** After TAKE in one unit: the row of the address has these messages already. */
const TAKE_OF_PROVIDER = `UPDATE ip_warmup_providers SET
    hour_used = ${OF_HOUR('hour_used')} + ?, hour_diverted = ${OF_HOUR('hour_diverted')}, hour_started_at = ?,
    window_used = window_used + ?
  WHERE ip = ? AND provider = ? AND stage = ? AND hour_started_at <= ?
    AND ${OF_HOUR('hour_used')} + ? <= ? AND window_used + ? <= ?
    AND (SELECT hour_used FROM ip_warmups WHERE ip = ?)
      + COALESCE((SELECT SUM(CASE WHEN part > used THEN part - used ELSE 0 END) FROM (${KEPT}) AS kept), 0) <= ?`

const GIVE_BACK = `UPDATE ip_warmups SET
    hour_used = CASE WHEN hour_started_at = ? THEN hour_used - ? ELSE hour_used END, window_used = window_used - ?
  WHERE ip = ? AND stage = ? AND window_started_at = ?`

const GIVE_BACK_OF_PROVIDER = `UPDATE ip_warmup_providers SET
    hour_used = CASE WHEN hour_started_at = ? THEN hour_used - ? ELSE hour_used END, window_used = window_used - ?
  WHERE ip = ? AND provider = ?`

const DIVERT = `UPDATE ip_warmups SET
    hour_used = ${OF_HOUR('hour_used')}, hour_diverted = ${OF_HOUR('hour_diverted')} + ?, hour_started_at = ?
  WHERE ip = ? AND hour_started_at <= ?`

const DIVERT_OF_PROVIDER = `UPDATE ip_warmup_providers SET
    hour_used = ${OF_HOUR('hour_used')}, hour_diverted = ${OF_HOUR('hour_diverted')} + ?, hour_started_at = ?,
    window_diverted = window_diverted + ?
  WHERE ip = ? AND provider = ? AND hour_started_at <= ?`

const NOT_LIMITED: Allowed = { giveBack() {} }

export function createAllowances(parts: AllowanceParts): WarmupAllowances {
  const { store, clock, plan, book, providerOf } = parts
  const addresses = new Map<string, Address>()

  /** Undefined: the address is not on warm-up. */
  function addressOf(ip: string): Address | undefined {
    const row = book().warmups.get(ip)
    const limit = row && limitOf(plan, Number(row.stage))
    if (row === undefined || limit === undefined) {
      if (addresses.size > 0) addresses.delete(ip)
      return undefined
    }
    const hourAt = hourOf(clock.now())
    let known = addresses.get(ip)
    if (known?.stage !== Number(row.stage) || known.windowAt !== Number(row.window_started_at)) {
      known = newAddress(row, limit, hourAt)
      addresses.set(ip, known)
    }
    beginHour(known, hourAt)
    return known
  }

  function heldOf(address: Address, site: string): Held {
    const provider = providerOf(site)
    let held = address.providers.get(provider)
    if (held === undefined) {
      held = newHeld(provider, address)
      address.providers.set(provider, held)
    }
    return held
  }

  /** One at a time for an address and a provider: the others wait for its result. */
  function takeSome(address: Address, held: Held): Promise<void> {
    held.taking ??= fetchSome(address, held).finally(() => {
      held.taking = null
    })
    return held.taking
  }

  async function fetchSome(address: Address, held: Held): Promise<void> {
    const { hourAt } = address
    if (held.stage === null) await readStage(store.db, plan, address.ip, held)
    const ofHour = Math.min(address.hourlyLimit, held.hourlyLimit)
    const wanted = Math.max(1, Math.floor((ofHour * SHARE_AT_A_TIME) / address.providers.size))
    let failed: 'address' | 'provider' | null = null
    for (const count of new Set([wanted, 1])) {
      failed = await takeFromDatabase(store, address, held, hourAt, count, Math.floor(clock.now()))
      if (failed !== null) continue
      if (address.hourAt === hourAt) held.left += count
      else held.unused += count
      return
    }
    if (address.hourAt === hourAt) (failed === 'address' ? address : held).isUsedUp = true
  }

  async function takeOne(ip: string, site: string): Promise<Allowed | null> {
    for (;;) {
      const address = addressOf(ip)
      if (address === undefined) return NOT_LIMITED
      const held = heldOf(address, site)
      if (held.left > 0) return spend(address, held)
      if (address.isUsedUp || held.isUsedUp) return null
      await takeSome(address, held)
    }
  }

  async function flushOne(address: Address, held: Held, all: boolean): Promise<void> {
    const { hourAt } = address
    const { diverted, unused } = held
    held.diverted = 0
    held.unused = 0
    if (diverted > 0) await failing(store, diversion(address, held, diverted, Math.floor(clock.now())))
    const { left } = held
    if (all) held.left = 0
    // What an earlier hour has left counts for the window only.
    await giveBack(store, address, held, -1, unused)
    if (all) await giveBack(store, address, held, hourAt, left)
  }

  async function flush(all: boolean): Promise<void> {
    for (const address of addresses.values()) {
      beginHour(address, hourOf(clock.now()))
      for (const held of address.providers.values()) await flushOne(address, held, all)
    }
  }

  return {
    hasRoom(ip, site) {
      const address = addressOf(ip)
      if (address === undefined || (site === null && !address.isUsedUp)) return true
      if (site === null) return [...address.providers.values()].some(({ left }) => left > 0)
      const held = heldOf(address, site)
      return held.left > 0 || !(address.isUsedUp || held.isUsedUp)
    },
    diverted(ip, site) {
      const address = addressOf(ip)
      if (address) heldOf(address, site).diverted++
    },
    take(ip, site) {
      const address = addressOf(ip)
      if (address === undefined) return undefined
      const held = heldOf(address, site)
      if (held.left > 0) return spend(address, held)
      return address.isUsedUp || held.isUsedUp ? null : takeOne(ip, site)
    },
    nextFree(ip, site, until) {
      const address = addressOf(ip)
      return address === undefined ? clock.now() : bookedHour(address, heldOf(address, site), until)
    },
    flush: () => flush(false),
    close: () => flush(true),
  }
}

/** Whose limit leaves no room for so many; null: they are taken. */
async function takeFromDatabase(
  store: Store,
  address: Address,
  held: Held,
  hourAt: number,
  count: number,
  now: number,
): Promise<'address' | 'provider' | null> {
  const { ip, stage, windowAt, hourlyLimit: hourly, limit } = address
  const { provider } = held
  // Until its stage is judged.
  if (now >= windowAt + WINDOW_MS) return 'address'
  const ofAddress = exactly(TAKE, [
    ...[hourAt, count, hourAt, hourAt, count, now],
    ...[ip, stage, windowAt, hourAt],
    ...[hourAt, count, hourly, count, limit],
  ])
  const ofProvider = exactly(TAKE_OF_PROVIDER, [
    ...[hourAt, count, hourAt, hourAt, count],
    ...[ip, provider, held.stage, hourAt],
    ...[hourAt, count, held.hourlyLimit, count, held.limit],
    ...[ip, hourly, ip, hourAt, ip, provider, hourly],
  ])
  const missing = held.hasRow ? [] : [rowFor(ip, provider, now)]
  const failed = await failing(store, [ofAddress, ...missing, ofProvider])
  if (failed !== null) return failed === ofAddress ? 'address' : 'provider'
  held.hasRow = true
  return null
}

/** `hourAt`: the hour that it was taken in, if that goes on. */
async function giveBack(store: Store, address: Address, { provider }: Held, hourAt: number, count: number) {
  if (count === 0) return
  const { ip, stage, windowAt } = address
  await failing(store, [
    exactly(GIVE_BACK, [hourAt, count, count, ip, stage, windowAt]),
    { sql: GIVE_BACK_OF_PROVIDER, values: [hourAt, count, count, ip, provider] },
  ])
}

/** Resolves the statement that affected no row, if one had to; then the unit has changed nothing. */
async function failing(store: Store, unit: readonly Statement[]): Promise<Statement | null> {
  try {
    await store.commit(unit)
    return null
  } catch (error) {
    if (error instanceof StaleWrite) return error.statement
    throw error
  }
}

/** The stage of a provider changes together with the window of the address only. */
async function readStage(db: Store['db'], plan: readonly number[], ip: string, held: Held): Promise<void> {
  const row = await db
    .selectFrom('ip_warmup_providers')
    .select('stage')
    .where('ip', '=', ip)
    .where('provider', '=', held.provider)
    .executeTakeFirst()
  held.stage = Number(row?.stage ?? 1)
  held.hasRow = row !== undefined
  held.limit = limitOf(plan, held.stage) ?? held.limit
  held.hourlyLimit = hourlyLimit(held.limit)
}

const exactly = (sql: string, values: SqlValue[]): Statement => ({ sql, values, expectRows: 1 })

/** Only after a statement that finds the row of the address: a cancelled warm-up must get none. */
function rowFor(ip: string, provider: string, now: number): Statement {
  const { sql, values } = insert('ip_warmup_providers', newProvider(ip, provider, now))
  return { sql: `${sql} ON CONFLICT (ip, provider) DO NOTHING`, values }
}

/** Counts `count` messages that went elsewhere in the hour of the address. */
const diversion = ({ ip, hourAt }: Address, { provider }: Held, count: number, now: number): Statement[] => [
  exactly(DIVERT, [hourAt, hourAt, count, hourAt, ip, hourAt]),
  rowFor(ip, provider, now),
  { sql: DIVERT_OF_PROVIDER, values: [hourAt, hourAt, count, hourAt, count, ip, provider, hourAt] },
]

const newAddress = (row: IpWarmupRow, limit: number, hourAt: number): Address => ({
  ip: row.ip,
  stage: Number(row.stage),
  windowAt: Number(row.window_started_at),
  hourlyLimit: hourlyLimit(limit),
  limit,
  hourAt,
  isUsedUp: false,
  booked: new Map(),
  providers: new Map(),
})

/** Until its stage is read it is taken for that of the address. */
const newHeld = (provider: string, { limit, hourlyLimit: hourly }: Address): Held => ({
  ...{ provider, stage: null, hasRow: false, limit, hourlyLimit: hourly },
  ...{ left: 0, isUsedUp: false, diverted: 0, unused: 0 },
  booked: new Map(),
  taking: null,
})

function beginHour(address: Address, hourAt: number): void {
  if (address.hourAt >= hourAt) return
  address.hourAt = hourAt
  address.isUsedUp = false
  dropBooked(address.booked, hourAt)
  for (const held of address.providers.values()) {
    held.unused += held.left
    held.left = 0
    held.isUsedUp = false
    held.diverted = 0
    dropBooked(held.booked, hourAt)
  }
}

function dropBooked(booked: Map<number, number>, hourAt: number): void {
  for (const hour of booked.keys()) if (hour <= hourAt) booked.delete(hour)
}

function spend(address: Address, held: Held): Allowed {
  const { hourAt } = address
  held.left--
  let isBack = false
  return {
    giveBack() {
      if (isBack) return
      isBack = true
      if (address.hourAt === hourAt) held.left++
      else held.unused++
    },
  }
}

/** The first hour with room for one more that waits. */
function bookedHour(address: Address, held: Held, until: number): number {
  const last = address.hourAt + HOURS_AHEAD * HOUR_MS
  const isFull = ({ booked, hourlyLimit: hourly }: Address | Held, hour: number) =>
    (booked.get(hour) ?? 0) >= hourly
  let hour = address.hourAt + HOUR_MS
  while (hour < last && (isFull(address, hour) || isFull(held, hour))) hour += HOUR_MS
  if (hour < until) for (const { booked } of [address, held]) booked.set(hour, (booked.get(hour) ?? 0) + 1)
  return hour
}
