/** Warm-ups: start, pause, cancel, and the change of stages (ips-pools.md section 4). */

import { BadRequest, NotFound } from '../../../base/process/errors.ts'
import { MINUTE_MS } from '../../../base/time/durations.ts'
import type { Core } from '../../../core.ts'
import { createJob, type Job } from '../../../platform/jobs/job.ts'
import type { IpWarmupProviderRow, IpWarmupRow } from '../../../platform/store/schema.ts'
import type { Tx } from '../../../platform/store/store.ts'
import { countOf, type FigureRow, type Figures, rateOf } from '../../../watching/metrics/figures.ts'
import type { Address, AddressBook } from '../address-book.ts'
import type { KnownAddresses } from '../known-addresses.ts'
import { noWarmAddress, ownAddress } from '../rules.ts'
import {
  advanced,
  isCompleted,
  limitOf,
  newWarmup,
  nextOfProvider,
  type Reputation,
  repeated,
  WINDOW_MS,
} from './plan.ts'
import { removeWarmups } from './removal.ts'

export type Warmups = ReturnType<typeof createWarmups>

interface WarmupParts extends Pick<Core, 'store' | 'clock' | 'log' | 'accounts'> {
  known: KnownAddresses
  figures: Figures
  plan: readonly number[]
}

const LOOK_EVERY_MS = MINUTE_MS
/** Judged in one run. */
const BATCH = 100

const warmupNotFound = () => new NotFound('warmup not found')

export function createWarmups(parts: WarmupParts) {
  const { store, clock, known } = parts
  const now = () => Math.floor(clock.now())

  /** @throws NotFound */
  async function read(accountId: string, text: string): Promise<IpWarmupRow> {
    const { ip } = ownAddress(known.book(), accountId, text)
    const row = await store.db.selectFrom('ip_warmups').selectAll().where('ip', '=', ip).executeTakeFirst()
    if (row === undefined) throw warmupNotFound()
    return row
  }

  return {
    list: (accountId: string, after: string, limit: number): Promise<IpWarmupRow[]> =>
      store.db
        .selectFrom('ip_warmups')
        .selectAll()
        .where('account_id', '=', accountId)
        .where('ip', '>', after)
        .orderBy('ip')
        .limit(limit)
        .execute(),
    read,
    /** @throws BadRequest when it is in progress */
    async start(accountId: string, text: string): Promise<void> {
      const { ip } = ownAddress(known.book(), accountId, text)
      const volume = await volumeSent(parts, accountId, ip)
      await known.change(async (tx) => {
        const address = ownAddress(known.book(), accountId, ip)
        if (address.isWarming) throw new BadRequest('warmup is already in progress')
        checkPoolStaysWarm(known.book(), address)
        await tx
          .insertInto('ip_warmups')
          .values(newWarmup(ip, accountId, volume, now()))
          .execute()
      })
    },
    /** @throws NotFound when there is none */
    async cancel(accountId: string, text: string): Promise<void> {
      const { ip } = await read(accountId, text)
      await known.change((tx) => removeWarmups(tx, { ip }))
    },
    /**
     * While it is paused no stage is completed; what the present one allows is sent.
     * @throws NotFound when there is none, BadRequest when it is so already
     */
    async setPaused(accountId: string, text: string, isPaused: boolean): Promise<void> {
      const { ip } = await read(accountId, text)
      await known.change(async (tx) => {
        if (await setPausedAt(tx, ip, isPaused ? now() : null)) return
        if (!known.book().warmups.has(ip)) throw warmupNotFound()
        throw new BadRequest(isPaused ? 'warmup is already paused' : 'warmup is not paused')
      })
    },
    /** By the name of the provider. */
    providersOf: (ip: string): Promise<IpWarmupProviderRow[]> =>
      store.db
        .selectFrom('ip_warmup_providers')
        .selectAll()
        .where('ip', '=', ip)
        .orderBy('provider')
        .execute(),
    /** Starts those of addresses that were requested for it and are used for the first time. */
    async assigned(tx: Tx, accountId: string, ips: readonly string[]): Promise<void> {
      if (ips.length === 0) return
      const fresh = await tx
        .updateTable('ips')
        .set({ warms_when_assigned: 0 })
        .where('ip', 'in', ips)
        .where('account_id', '=', accountId)
        .where('warms_when_assigned', '=', 1)
        .returning('ip')
        .execute()
      for (const { ip } of fresh)
        if (!known.book().warmups.has(ip))
          await tx
            .insertInto('ip_warmups')
            .values(newWarmup(ip, accountId, 0, now()))
            .execute()
    },
    job: stagesJob(parts),
  }
}

/** Whether that has changed anything. */
async function setPausedAt(tx: Tx, ip: string, at: number | null): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('ip_warmups')
    .set({ paused_at: at })
    .where('ip', '=', ip)
    .where('paused_at', at === null ? 'is not' : 'is', null)
    .executeTakeFirst()
  return Number(numUpdatedRows) > 0
}

/** dynamic-pools.md rule 16. @throws BadRequest */
function checkPoolStaysWarm(book: AddressBook, { ip, poolId }: Address): void {
  const pool = book.dynamicPools.get(poolId ?? '')
  if (pool !== undefined && !pool.addresses.some((other) => other.ip !== ip && !other.isWarming))
    throw noWarmAddress(pool.name)
}

/** Judges stages whose window has ended. */
function stagesJob(parts: WarmupParts): Job {
  const { store, clock, log, known, plan } = parts

  async function work(signal: AbortSignal): Promise<{ againInMs: number }> {
    const rows = await store.db
      .selectFrom('ip_warmups')
      .selectAll()
      .where('window_started_at', '<=', Math.floor(clock.now()) - WINDOW_MS)
      .orderBy('window_started_at')
      .limit(BATCH)
      .execute()
    for (const row of rows) if (!signal.aborted) await judge(row)
    return { againInMs: await untilNext() }
  }

  async function judge(row: IpWarmupRow): Promise<void> {
    const reputation = await reputationOf(parts, row)
    await known.change(async (tx) => {
      const present = await tx
        .selectFrom('ip_warmups')
        .selectAll()
        .where('ip', '=', row.ip)
        .executeTakeFirst()
      // Cancelled or judged meanwhile.
      if (present === undefined || Number(present.window_started_at) !== Number(row.window_started_at)) return
      const next = nextState(present, reputation)
      const stage = Number(present.stage)
      log.info(
        { ip: row.ip, stage, next: next?.stage ?? stage, ...reputation },
        'a stage of a warm-up was judged',
      )
      if (next === null) return removeWarmups(tx, { ip: row.ip })
      // First: processes change rows of providers only while they hold the row of the address.
      await tx.updateTable('ip_warmups').set(next).where('ip', '=', row.ip).execute()
      await judgeProviders(tx, { ...present, ...next }, reputation)
    })
  }

  /** By the same rule as the address; a provider's stage never passes that of the address. */
  async function judgeProviders(tx: Tx, address: IpWarmupRow, reputation: Reputation): Promise<void> {
    const { ip } = address
    const rows = await tx.selectFrom('ip_warmup_providers').selectAll().where('ip', '=', ip).execute()
    for (const row of rows) {
      const stage = Number(row.stage)
      const limit = limitOf(plan, stage) ?? 0
      const mayAdvance = address.paused_at === null && stage < Number(address.stage)
      const isDone = mayAdvance && isCompleted(limit, Number(row.window_used), reputation)
      await tx
        .updateTable('ip_warmup_providers')
        .set(nextOfProvider(row, isDone, Math.floor(clock.now())))
        .where('ip', '=', ip)
        .where('provider', '=', row.provider)
        .execute()
    }
  }

  /** Null: the address is warm. */
  function nextState(row: IpWarmupRow, reputation: Reputation): Partial<IpWarmupRow> | null {
    const now = Math.floor(clock.now())
    const limit = limitOf(plan, Number(row.stage))
    if (limit === undefined) return null
    if (row.paused_at !== null) return repeated(row, now)
    if (!isCompleted(limit, Number(row.window_used), reputation)) return repeated(row, now)
    return Number(row.stage) >= plan.length ? null : advanced(row, limit, now)
  }

  async function untilNext(): Promise<number> {
    const next = await store.db
      .selectFrom('ip_warmups')
      .select((of) => of.fn.min('window_started_at').as('at'))
      .executeTakeFirst()
    return next?.at == null ? LOOK_EVERY_MS : Math.max(1, Number(next.at) + WINDOW_MS - clock.now())
  }

  return createJob({ name: 'ip-warmups', everyMs: LOOK_EVERY_MS, scope: 'database', work })
}

/** Figures of all accounts that may have sent from it. */
async function figuresOf(
  { accounts, figures }: WarmupParts,
  accountId: string,
  ip: string,
  startMs: number,
  endMs: number,
  resolution: 'hour' | 'month',
): Promise<FigureRow | undefined> {
  const [row] = await figures.read({
    accountIds: [accountId, ...(await accounts.childrenOf(accountId))],
    ...{ startMs, endMs, resolution, dimensions: ['ip'] },
    filter: [{ attribute: 'ip', comparator: '=', values: [ip] }],
    metrics: ['delivered_count', 'processed_count', 'bounce_rate', 'complained_rate'],
  })
  return row
}

async function reputationOf(parts: WarmupParts, row: IpWarmupRow): Promise<Reputation> {
  const now = parts.clock.now()
  const found = await figuresOf(parts, row.account_id, row.ip, now - WINDOW_MS, now, 'hour')
  if (found === undefined) return { processed: 0, bounceRate: 0, complainedRate: 0 }
  const { counts } = found
  return {
    processed: countOf('processed_count', counts),
    bounceRate: rateOf('bounce_rate', counts),
    complainedRate: rateOf('complained_rate', counts),
  }
}

/** Messages delivered from the address since it is known. */
async function volumeSent(parts: WarmupParts, accountId: string, ip: string): Promise<number> {
  const row = await parts.store.db
    .selectFrom('ips')
    .select('created_at')
    .where('ip', '=', ip)
    .executeTakeFirstOrThrow()
  const { clock } = parts
  const found = await figuresOf(parts, accountId, ip, Number(row.created_at), clock.now(), 'month')
  return found === undefined ? 0 : countOf('delivered_count', found.counts)
}
