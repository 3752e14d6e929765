/**
 * A month of two addresses on warm-up beside two warm ones, by a clock that is stepped: the engine, the choice of the
 * address, allowances and stages are the service's own, the providers are SMTP sinks that refuse what a strict provider
 * would. Figures of the reputation come from what the providers answered.
 */
import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import pino from 'pino'
import { newId } from '../../src/base/ids.ts'
import { createAccountDirectory } from '../../src/people/accounts/account-directory.ts'
import type { Store } from '../../src/platform/store/store.ts'
import { createWarmups } from '../../src/sending/ips/warmup/warmups.ts'
import { noCounts } from '../../src/watching/metrics/counters.ts'
import type { Figures } from '../../src/watching/metrics/figures.ts'
import { createAddressRig } from './address-rig.ts'
import { createTestClock, type TestClock } from './clock.ts'
import { type Watched, watched } from './engine-rig.ts'
import { jobContext } from './job-context.ts'
import { seedQueue } from './seed-queue.ts'
import { ownAddress } from './service.ts'
import type { Sink } from './smtp-sink.ts'

const HOUR_MS = 3_600_000
const DAY_HOURS = 24
/** ips-pools.md section 4. */
const FULL_PLAN = [
  1_000, 2_000, 4_000, 8_000, 14_000, 20_000, 30_000, 45_000, 65_000, 95_000, 140_000, 200_000, 300_000,
  450_000, 650_000,
]
export const FULL_DAY = 200_000
/** Their parts of the mail. */
export const PROVIDERS = [
  { name: 'alpha', part: 0.4 },
  { name: 'beta', part: 0.3 },
  { name: 'gamma', part: 0.2 },
  { name: 'delta', part: 0.1 },
] as const
const DOMAINS_PER_PROVIDER = 5
/** Of a day's mail, by hour of UTC: little at night, twice the mean before noon. */
const HOURS = [1, 1, 1, 1, 1, 2, 3, 5, 7, 8, 8, 8, 7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2]
const HOURS_TOTAL = HOURS.reduce((total, part) => total + part, 0)
/** A strict provider takes this many connections of one address, and messages on each. */
const CONNECTIONS = 5
const MESSAGES_PER_CONNECTION = 20
const DEADLINE_MS = 8 * HOUR_MS
const ACCOUNT = 'first'
const [COLD_ONE, COLD_TWO] = [0, 1]

export interface DayFigures {
  day: number
  /** By address: two cold ones, then two warm ones. */
  sent: number[]
  /** Limits of the stages of the cold ones when the day began; null: warm. */
  limits: (number | null)[]
  /** What each provider got from each of the cold ones, and the limit of its own stage when the day began; null: warm. */
  byProvider: { sent: number; limit: number | null }[][]
}

export interface MonthFigures {
  days: DayFigures[]
  accepted: number
  delivered: number
  /** Ended in another way. */
  failed: number
  /** Delivered after their deadline. */
  late: number
  /** Refused by a provider because a cold address sent more than its day's budget there. */
  overBudget: number
  /** Other refusals. */
  refused: number
  /** Messages of a day above the limit that an address had with a provider. */
  overPlan: number
  /** The longest that a message waited, in milliseconds. */
  longestMs: number
}

export interface MonthOptions {
  days: number
  /** Messages and limits are this part of the full ones. */
  scale: number
  store: Store
  note?(text: string): void
}

export async function simulateMonth(options: MonthOptions): Promise<MonthFigures> {
  const { days, scale, note } = options
  const idle = watched(options.store)
  const { store } = idle
  const clock = createTestClock(Date.UTC(2026, 5, 1))
  const plan = FULL_PLAN.map((limit) => Math.max(1, Math.round(limit * scale)))
  const ips = Array.from({ length: 4 }, ownAddress).sort() // as the engine has them
  const cold = [ips[COLD_ONE] as string, ips[COLD_TWO] as string]
  const month: MonthFigures = {
    ...{ days: [], accepted: 0, delivered: 0, failed: 0, late: 0, overBudget: 0, refused: 0, longestMs: 0 },
    overPlan: 0,
  }
  let open = 0
  const rig = await createAddressRig({
    ...{ store, clock, accountId: ACCOUNT, ips, plan },
    sites: PROVIDERS.map(({ name }) => ({ name, domains: domainsOf(name), limits: LIMITS })),
    engine: {
      consequences(delivery, _events, outcome) {
        if (outcome.kind === 'deferred') return []
        open--
        month[outcome.kind === 'delivered' ? 'delivered' : 'failed']++
        if (clock.now() > delivery.expires_at) month.late++
        month.longestMs = Math.max(month.longestMs, clock.now() - (delivery.expires_at - DEADLINE_MS))
        return []
      },
    },
  })
  const { known, allowances, sources, engine } = rig
  const providers = strictProviders(clock, plan, cold, rig.sinks)
  const log = pino({ level: 'silent' })
  const accounts = createAccountDirectory(store, clock)
  const warmups = createWarmups({ store, clock, log, known, accounts, figures: providers.figures, plan })
  const counted = remainders()
  const keysOf = sources.keysFor(
    { accountId: ACCOUNT, sendingIps: null, sendingPoolId: null, dynamicPoolId: null },
    NOTHING_REQUESTED,
  )

  /** The hour's mail, split among providers, their domains and the shares of the set. */
  async function seedHour(hour: number): Promise<void> {
    const inHour = FULL_DAY * scale * ((HOURS[hour % DAY_HOURS] ?? 0) / HOURS_TOTAL)
    for (const { name, part } of PROVIDERS)
      for (const recipientDomain of domainsOf(name)) {
        const count = counted(recipientDomain, (inHour * part) / DOMAINS_PER_PROVIDER)
        const byKey = Map.groupBy(Array.from({ length: count }, newId), keysOf)
        for (const [sourceKey, { length }] of byKey) {
          const dueAt = clock.now()
          const seed = { accountId: ACCOUNT, domainId: 'd', recipientDomain, count: length, sourceKey }
          await seedQueue(store, { ...seed, dueAt, expiresAt: dueAt + DEADLINE_MS })
        }
        open += count
        month.accepted += count
      }
    engine.wake()
  }

  try {
    for (const ip of cold) await warmups.start(ACCOUNT, ip)
    warmups.job.start(jobContext(store, { clock, log }))
    await engine.start()
    for (let hour = 0; hour < days * DAY_HOURS || open > 0; hour++) {
      if (hour >= days * DAY_HOURS + 24) break
      if (hour % DAY_HOURS === 0 && hour < days * DAY_HOURS) {
        month.days.push({
          day: hour / DAY_HOURS + 1,
          sent: ips.map(() => 0),
          limits: ips.map((ip) => limitNow(ip)),
          byProvider: await Promise.all(cold.map(providersNow)),
        })
      }
      if (hour < days * DAY_HOURS) await seedHour(hour)
      await settle(clock, idle)
      await allowances.flush()
      const today = month.days.at(-1) as DayFigures
      if (hour % DAY_HOURS === DAY_HOURS - 1 && hour < days * DAY_HOURS) {
        providers.endDay(ips, today)
        for (const { sent, limit } of today.byProvider.flat())
          month.overPlan += Math.max(0, sent - (limit ?? sent))
        note?.(
          `day ${today.day}: ${today.sent.join(', ')}; ${month.delivered} of ${month.accepted} delivered`,
        )
      }
      // To the beginning of the next hour, and over it.
      clock.leap(HOUR_MS - (clock.now() % HOUR_MS))
      await clock.advance(1)
      await judged()
    }
    month.overBudget = providers.overBudget()
    month.refused = providers.refused()
    return month
  } finally {
    await warmups.job.stop()
    await rig.close()
  }

  function limitNow(ip: string): number | null {
    const row = known.book().warmups.get(ip)
    return row === undefined ? null : (plan[Number(row.stage) - 1] ?? null)
  }

  async function providersNow(ip: string): Promise<DayFigures['byProvider'][number]> {
    const rows = await warmups.providersOf(ip)
    const stageOf = (name: string) => Number(rows.find(({ provider }) => provider === name)?.stage ?? 1)
    return PROVIDERS.map(({ name }) => ({
      sent: 0,
      limit: limitNow(ip) === null ? null : (plan[stageOf(name) - 1] ?? null),
    }))
  }

  /** Stages whose 24 hours are over have been judged. */
  async function judged(): Promise<void> {
    const isDue = () =>
      [...known.book().warmups.values()].some(
        (row) => Number(row.window_started_at) + DAY_HOURS * HOUR_MS <= clock.now(),
      )
    for (let tries = 0; isDue(); tries++) {
      assert.ok(tries < 10_000, 'the stages are not judged')
      warmups.job.wake()
      await turn()
      await known.refresh()
    }
  }
}

const NOTHING_REQUESTED = { ip: null, pool: null }

/** Whole numbers whose sum follows that of the given ones. */
function remainders(): (key: string, count: number) => number {
  const left = new Map<string, number>()
  return (key, count) => {
    const sum = (left.get(key) ?? 0) + count
    // Sums of tenths are not exact.
    const whole = Math.floor(sum + 1e-9)
    left.set(key, sum - whole)
    return whole
  }
}

const DUE = `SELECT CASE WHEN EXISTS (SELECT 1 FROM deliveries WHERE state = 'sending')
  OR EXISTS (SELECT 1 FROM deliveries WHERE state IN ('scheduled', 'queued') AND due_at <= ?) THEN 1 ELSE 0 END AS is_due`

/**
 * Lets time pass until nothing is due any more, or being sent. It passes only while the database is idle: on a slow machine
 * leases would end during a write otherwise.
 */
export async function settle(clock: TestClock, { store, quiet }: Watched): Promise<void> {
  for (;;) {
    for (let turns = 0; turns < 5; turns++) {
      await quiet()
      await clock.advance(5)
      await turn()
    }
    const [row] = await store.read({ sql: DUE, values: [Math.round(clock.now())] })
    if (Number(row?.['is_due']) === 0) return
  }
}

const LIMITS = {
  connections: CONNECTIONS,
  messagesPerConnection: MESSAGES_PER_CONNECTION,
  messagesPerSecond: null,
}

const domainsOf = (provider: string) =>
  Array.from({ length: DOMAINS_PER_PROVIDER }, (_, at) => `${provider}${at}.example`)

interface Providers {
  figures: Figures
  overBudget(): number
  refused(): number
  endDay(ips: readonly string[], into: DayFigures): void
}

/**
 * Strict providers. From an address that is new to it, one takes on the n-th day since the first mail no more than the
 * n-th stage of the plan, and no more than five connections with twenty messages each from any.
 */
function strictProviders(
  clock: TestClock,
  plan: readonly number[],
  cold: readonly string[],
  sinks: ReadonlyMap<string, Sink>,
): Providers {
  const started = clock.now()
  const taken = new Map<string, number>()
  const ofHours = new Map<string, Map<number, number>>()
  let [overBudget, refused, day] = [0, 0, 0]

  function budgetOf(ip: string): number {
    const days = Math.floor((clock.now() - started) / (DAY_HOURS * HOUR_MS))
    return cold.includes(ip) ? (plan[days] ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY
  }

  for (const [name, sink] of sinks) {
    const onConnection = new Map<number, number>()
    sink.on('MAIL', ({ remoteAddress, connection }) => {
      const messages = (onConnection.get(connection) ?? 0) + 1
      onConnection.set(connection, messages)
      if (messages > MESSAGES_PER_CONNECTION) {
        refused++
        return '421 4.7.0 too many messages on one connection'
      }
      if ((taken.get(`${name} ${remoteAddress}`) ?? 0) < budgetOf(remoteAddress)) return '250 2.1.0 Ok'
      overBudget++
      return '421 4.7.28 unusual rate of mail from this new address'
    })
    sink.on('DATA-DOT', (session) => {
      const { remoteAddress } = session
      const key = `${name} ${remoteAddress}`
      taken.set(key, (taken.get(key) ?? 0) + 1)
      const hours = ofHours.get(remoteAddress) ?? new Map<number, number>()
      ofHours.set(remoteAddress, hours)
      const hour = Math.floor(clock.now() / HOUR_MS)
      hours.set(hour, (hours.get(hour) ?? 0) + 1)
      // Only counted: a month of messages would fill the memory.
      sink.messages.length = 0
      sink.commands.length = 0
      return '250 2.0.0 Ok'
    })
  }
  return {
    figures: {
      async read({ startMs, filter }) {
        const [ip] = filter.flatMap(({ values }) => values)
        const hours = [...(ofHours.get(ip ?? '') ?? [])]
        const from = Math.floor(startMs / HOUR_MS)
        const delivered = hours.reduce((sum, [hour, count]) => sum + (hour >= from ? count : 0), 0)
        return [{ values: [ip ?? ''], counts: { ...noCounts(), delivered_smtp: delivered } }]
      },
    },
    overBudget: () => overBudget,
    refused: () => refused,
    endDay(ips, into) {
      day++
      assert.equal(into.day, day)
      for (const [at, ip] of ips.entries()) {
        const counts = PROVIDERS.map(({ name }) => taken.get(`${name} ${ip}`) ?? 0)
        into.sent[at] = counts.reduce((sum, count) => sum + count, 0)
        for (const [nth, one] of (into.byProvider[at] ?? []).entries()) one.sent = counts[nth] ?? 0
      }
      taken.clear()
    },
  }
}
