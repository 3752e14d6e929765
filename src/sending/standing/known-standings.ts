/**
 * Who is stopped, by which policy senders are judged, and which addresses are spam traps: in memory, since the engine asks for
 * each attempt. Read again when another process announces a change, and every few seconds, so that none is missed.
 *
 * What the engine does with it:
 *
 * - held: mail waits until the hold is looked at again.
 * - slowed: each message gets a turn at even intervals. What comes before its turn waits for it, and passes then.
 * - a daily budget: mail beyond it waits for the next day, and comes back at different times of its first hour. All processes
 *   together keep the budget (day-limits.ts).
 */
import { type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createDayLimits, startOfDay } from '../../mail/deliver/attempt/day-limits.ts'
import { REASON_ACCOUNT_HELD, REASON_DAILY_BUDGET } from '../../mail/deliver/attempt/outcome.ts'
import type { Allowed, Standings } from '../../mail/deliver/contract.ts'
import type { AccountDirectory } from '../../people/accounts/account-directory.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import type { DeliveryRow, StandingRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import { addressKey } from '../../protocols/mime/address.ts'
import type { NewStepCount } from '../../watching/metrics/counting.ts'
import { stepCount } from './counts.ts'
import {
  DEFAULT_POLICY,
  dailyBudget,
  type GeneralPolicy,
  policyOfRow,
  type StandingPolicy,
} from './policy.ts'

const TOPIC = 'standings'
const READ_EVERY_MS = 5_000
/** Mail beyond budgets of the day before comes back within this time, one message after the other by steps around it. */
const BACK_WITHIN_MS = HOUR_MS
const BACK_STEP_MS = 997

type Delivery = Pick<DeliveryRow, 'account_id' | 'domain_id' | 'reason'>

/** An account or a domain that is slowed or held. */
interface Stopped {
  state: 'slowed' | 'held'
  until: number
  /** Milliseconds between two messages of all processes, while it is slowed. */
  intervalMs: number
  /** When the next one has its turn. All reads of the same standing share it: turns are taken while one is under way. */
  next: { at: number }
}

interface KnownParts extends Pick<Core, 'store' | 'clock'> {
  accounts: Pick<AccountDirectory, 'byId'>
  /** Processes that deliver. */
  deliverers(): number
  isUnknownUser(ruleId: string): boolean
  /** Mail stays on this machine, and says nothing about its sender. */
  isCaptured: boolean
}

export interface KnownStandings {
  engine: Standings
  /** Accounts and domains that are warned, slowed or held. */
  list(): readonly StandingRow[]
  general(): GeneralPolicy
  /** The policy of an account, and whether it is its own. */
  policyFor(accountId: string): StandingPolicy & { isOwn: boolean }
  /** What the counters count besides. */
  newStepCount: NewStepCount
  /** Messages of this day of accounts with a budget, by account. */
  usedToday(): Promise<ReadonlyMap<string, number>>
  /** Something was changed: here at once, on other nodes when they have confirmed it. */
  changed(): Promise<void>
  removeOldDays(): Promise<void>
  job: Job
  close(): Promise<void>
}

const NOTHING_TO_GIVE_BACK: Allowed = { giveBack() {} }

/** What each process has in memory of standings and policies. */
interface ReadStandings {
  rows: readonly StandingRow[]
  /** By id of an account, or of a domain. */
  stopped: ReadonlyMap<string, Stopped>
  policies: ReadonlyMap<string, GeneralPolicy>
  traps: ReadonlySet<string>
}

export async function openStandings(parts: KnownParts): Promise<KnownStandings> {
  const { store, clock, accounts } = parts
  const days = createDayLimits(store, clock, 'account_days')
  let read: ReadStandings = { rows: [], stopped: new Map(), policies: new Map(), traps: new Set() }
  /** How long after midnight the last message beyond a budget comes back. */
  let backAfter = 0

  let reading = Promise.resolve()
  /** One at a time: an older answer must not replace a newer one. */
  function refresh(): Promise<void> {
    const next = reading.then(async () => {
      read = await readStandings(store.db, read.stopped)
    })
    reading = next.catch(() => {})
    return next
  }

  const general = () => read.policies.get('') ?? DEFAULT_POLICY

  /** The account and the domain, if they are in this state. What is over need not be noted yet. */
  const inState = ({ account_id, domain_id }: Delivery, state: Stopped['state']): Stopped[] =>
    [read.stopped.get(account_id), read.stopped.get(domain_id)].filter(
      (found) => found !== undefined && found.state === state && found.until > clock.now(),
    ) as Stopped[]

  /** The slower one, if both are slowed; null: neither is, or what waited for its turn has it now. */
  function slowedOf(delivery: Delivery): Stopped | null {
    if (read.stopped.size === 0 || delivery.reason === REASON_ACCOUNT_HELD) return null
    const [one, other] = inState(delivery, 'slowed')
    return (other && one && other.intervalMs > one.intervalMs ? other : one) ?? null
  }

  /** The turn of one more message, which is taken. */
  function takeTurn(slowed: Stopped, now: number): number {
    const at = Math.max(slowed.next.at, now)
    slowed.next.at = at + slowed.intervalMs * Math.max(1, parts.deliverers())
    return at
  }

  function takeBudget(accountId: string): MaybePromise<Allowed | null> | undefined {
    const firstDay = general().newAccountDaily
    if (firstDay === 0) return undefined
    return whenKnown(accounts.byId(accountId), (account) => {
      if (account === null || account.parentId === null) return NOTHING_TO_GIVE_BACK
      const budget = dailyBudget(firstDay, account.createdAt, clock.now())
      return budget === null ? NOTHING_TO_GIVE_BACK : days.take(accountId, budget)
    })
  }

  const engine: Standings = {
    heldUntil(delivery) {
      if (read.stopped.size === 0) return null
      const held = inState(delivery, 'held')
      return held.length === 0 ? null : Math.max(...held.map(({ until }) => until))
    },
    take(delivery) {
      const slowed = slowedOf(delivery)
      const now = clock.now()
      if (slowed === null) return takeBudget(delivery.account_id)
      if (slowed.next.at > now) return null
      takeTurn(slowed, now)
      return takeBudget(delivery.account_id) ?? NOTHING_TO_GIVE_BACK
    },
    nextFree(delivery) {
      const now = clock.now()
      const slowed = slowedOf(delivery)
      if (slowed === null || slowed.next.at <= now) {
        backAfter = (backAfter + BACK_STEP_MS) % BACK_WITHIN_MS
        return { reason: REASON_DAILY_BUDGET, dueAt: startOfDay(now) + DAY_MS + backAfter }
      }
      return { reason: REASON_ACCOUNT_HELD, dueAt: Math.ceil(Math.min(takeTurn(slowed, now), slowed.until)) }
    },
  }

  const job = createJob({
    name: 'standings',
    everyMs: READ_EVERY_MS,
    // Each process has a copy in memory.
    scope: 'process',
    work: refresh,
  })

  await refresh()
  store.changes.follow(TOPIC, refresh)
  return {
    engine,
    job,
    list: () => read.rows,
    general,
    policyFor(accountId) {
      const own = read.policies.get(accountId)
      return own === undefined ? { ...general(), isOwn: false } : { ...own, isOwn: true }
    },
    newStepCount() {
      if (parts.isCaptured || [...read.policies.values(), general()].every(({ limits }) => limits === null))
        return null
      const isTrap = (address: string) => read.traps.size > 0 && read.traps.has(addressKey(address))
      return stepCount({ store, isTrap, isUnknownUser: parts.isUnknownUser })
    },
    usedToday: () => days.used(),
    async changed() {
      await refresh()
      await store.changes.announce(TOPIC, '')
    },
    removeOldDays: () => days.removeOld(),
    close: () => days.close(),
  }
}

/** `before`: what was stopped when the rows were read last; slowed senders keep their turns. */
async function readStandings(db: Store['db'], before: ReadStandings['stopped']): Promise<ReadStandings> {
  const rows = await db.selectFrom('standings').selectAll().where('state', '<>', 'good').execute()
  const domains = await db
    .selectFrom('standings')
    .innerJoin('domains', (join) =>
      join
        .onRef('domains.name', '=', 'standings.domain_name')
        .onRef('domains.account_id', '=', 'standings.account_id'),
    )
    .select(['domains.id', 'domains.account_id', 'domains.name'])
    .where('standings.state', '<>', 'good')
    .execute()
  // The domain may be another account's by now.
  const keyOf = (accountId: string, name: string) => `${accountId} ${name}`
  const idOf = new Map(domains.map(({ id, account_id, name }) => [keyOf(account_id, name), id]))
  const stopped = new Map<string, Stopped>()
  for (const row of rows) {
    const id = row.domain_name === '' ? row.account_id : idOf.get(keyOf(row.account_id, row.domain_name))
    if (id !== undefined && (row.state === 'slowed' || row.state === 'held'))
      stopped.set(id, stoppedOf(row, before.get(id)))
  }
  const own = await db.selectFrom('standing_policies').selectAll().execute()
  const policies = new Map(own.map((row) => [row.account_id, policyOfRow(row)]))
  const addresses = await db.selectFrom('spam_traps').select('address').execute()
  return { rows, stopped, policies, traps: new Set(addresses.map(({ address }) => address)) }
}

const stoppedOf = (row: StandingRow, before: Stopped | undefined): Stopped => ({
  state: row.state as Stopped['state'],
  until: Number(row.until_at),
  intervalMs: 60_000 / Math.max(1, Number(row.per_minute)),
  next: before?.state === row.state ? before.next : { at: 0 },
})
