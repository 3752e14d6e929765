/**
 * The domains that an account monitors: its sending domains, and others that it has shown to be its own by a TXT record (monitoring.md section
 * 2). The record is looked for as soon as the account says so, and then for a day.
 */

import { randomBytes } from 'node:crypto'
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../base/time/durations.ts'
import { quotable } from '../../base/values.ts'
import type { Core } from '../../core.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import { lockedAccount } from '../../platform/store/account-rows.ts'
import { countOf } from '../../platform/store/count.ts'
import { inList } from '../../platform/store/lists.ts'
import type { MonitoredDomainRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import type { Resolver } from '../../protocols/dns/resolver.ts'
import { hostNameOf } from '../../sending/domains/names/domain-names.ts'
import { isWatchable } from './subjects.ts'

/** Besides the sending domains. */
const ADDED_MAX = 100
const LOOKED_FOR_MS = DAY_MS
const LOOK_EVERY_MS = 10 * MINUTE_MS
/** At once: zones of strangers may not answer, and must not hold up those of others. */
const LOOKS_PER_STEP = 50
const LOOK_MS = 10 * SECOND_MS
const TXT_PREFIX = 'sendwright-verification='

export interface MonitoredDomain {
  accountId: string
  name: string
  /** Unix milliseconds. */
  createdAt: number
  /** Null: a sending domain. */
  added: MonitoredDomainRow | null
}

interface DomainQuery {
  after?: DomainPlace | undefined
  name?: string | undefined
  limit: number
}

export interface DomainPlace {
  name: string
  accountId: string
}

interface MonitoredDomainParts extends Pick<Core, 'store' | 'clock'> {
  resolver: Pick<Resolver, 'query'>
  /** Another domain is watched. */
  changed(): void
}

export function createMonitoredDomains(
  { store, clock, resolver, changed }: MonitoredDomainParts,
  lookMs = LOOK_MS,
) {
  const { db } = store
  const now = () => Math.floor(clock.now())

  const list = (accountIds: readonly string[], asked: DomainQuery) => listDomains(store, accountIds, asked)

  /** @throws NotFound */
  async function one(accountId: string, name: string): Promise<MonitoredDomain> {
    const [found] = await list([accountId], { name: name.toLowerCase(), limit: 1 })
    if (found === undefined) throw new NotFound('Domain not found')
    return found
  }

  /** Verified already, if the account sends from it; the same as before, if it was added before. @throws BadRequest */
  async function add(accountId: string, text: string): Promise<MonitoredDomain> {
    const name = hostNameOf(text)
    if (name === null) throw new BadRequest(`${quotable(text)} is not a domain`)
    await lockedAccount(store, accountId, async (tx) => {
      const own = tx.selectFrom('monitored_domains').where('account_id', '=', accountId)
      const before = await own.selectAll().where('name', '=', name).executeTakeFirst()
      if (before !== undefined && Number(before.is_removed) === 0) return
      // One that was removed is monitored again.
      await tx
        .deleteFrom('monitored_domains')
        .where('account_id', '=', accountId)
        .where('name', '=', name)
        .execute()
      const sending = await tx
        .selectFrom('domains')
        .select('id')
        .where('account_id', '=', accountId)
        .where('name', '=', name)
        .where('state', '=', 'active')
        .executeTakeFirst()
      if (sending !== undefined) return
      if (!isWatchable(name)) throw new BadRequest(`${quotable(text)} is not a domain that lists could have`)
      const count = await countOf(own.where('is_removed', '=', 0))
      if (count >= ADDED_MAX)
        throw new BadRequest(`an account may add at most ${ADDED_MAX} domains to its sending domains`)
      await tx
        .insertInto('monitored_domains')
        .values(newRow(accountId, name, now()))
        .execute()
    })
    return one(accountId, name)
  }

  /** A sending domain is no longer monitored; any other is forgotten. @throws NotFound */
  async function remove(accountId: string, text: string): Promise<string> {
    const { name, added } = await one(accountId, text)
    await lockedAccount(store, accountId, async (tx) => {
      await tx
        .deleteFrom('monitored_domains')
        .where('account_id', '=', accountId)
        .where('name', '=', name)
        .execute()
      if (added === null)
        await tx
          .insertInto('monitored_domains')
          .values({ ...newRow(accountId, name, now()), is_removed: 1, txt_record: '' })
          .execute()
    })
    return name
  }

  /** Looks for the TXT record from now on. @throws NotFound */
  async function verify(accountId: string, text: string): Promise<void> {
    const { name, added } = await one(accountId, text)
    if (added === null || added.verified_at !== null) return
    await db
      .updateTable('monitored_domains')
      .set({ next_look_at: now(), looked_until: now() + LOOKED_FOR_MS })
      .where('account_id', '=', accountId)
      .where('name', '=', name)
      .execute()
    job.wake()
  }

  /** Forgets that a sending domain was removed. One that was added stays. */
  async function domainDeleted({ accountId, name }: { accountId: string; name: string }): Promise<void> {
    await db
      .deleteFrom('monitored_domains')
      .where('account_id', '=', accountId)
      .where('name', '=', name)
      .where('is_removed', '=', 1)
      .execute()
  }

  const job = verificationJob({ store, clock, resolver, changed }, lookMs)

  return { list, one, add, remove, verify, domainDeleted, job }
}

export type MonitoredDomains = ReturnType<typeof createMonitoredDomains>

/** By name and account, after a place; at most `limit`. `accountIds`: whose. */
async function listDomains(
  store: Store,
  accountIds: readonly string[],
  { after, name, limit }: DomainQuery,
): Promise<MonitoredDomain[]> {
  const { db } = store
  const [sending, added] = await Promise.all([
    db
      .selectFrom('domains as d')
      .select(['d.account_id', 'd.name', 'd.created_at'])
      .where('d.account_id', 'in', inList(store, accountIds))
      .where('d.state', '=', 'active')
      .$if(name !== undefined, (rows) => rows.where('d.name', '=', name ?? ''))
      .$if(after !== undefined, (rows) => rows.where('d.name', '>=', after?.name ?? ''))
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('monitored_domains as m')
              .select('m.name')
              .whereRef('m.account_id', '=', 'd.account_id')
              .whereRef('m.name', '=', 'd.name')
              .where('m.is_removed', '=', 1),
          ),
        ),
      )
      .orderBy('d.name')
      .limit(limit + 1)
      .execute(),
    db
      .selectFrom('monitored_domains')
      .selectAll()
      .where('account_id', 'in', inList(store, accountIds))
      .where('is_removed', '=', 0)
      .$if(name !== undefined, (rows) => rows.where('name', '=', name ?? ''))
      .$if(after !== undefined, (rows) => rows.where('name', '>=', after?.name ?? ''))
      .orderBy('name')
      .orderBy('account_id')
      .limit(limit + accountIds.length)
      .execute(),
  ])
  const found = new Map<string, MonitoredDomain>()
  for (const row of added) found.set(`${row.name} ${row.account_id}`, addedDomain(row))
  // A domain that the account sends from by now needs no record.
  for (const { account_id: accountId, name, created_at } of sending)
    found.set(`${name} ${accountId}`, { accountId, name, createdAt: Number(created_at), added: null })
  const place = (one: DomainPlace) => `${one.name} ${one.accountId}`
  return [...found.values()]
    .filter((one) => after === undefined || place(one) > place(after))
    .sort((one, other) => (place(one) < place(other) ? -1 : 1))
    .slice(0, limit)
}

/** Looks for the TXT records that are due. */
function verificationJob(
  { store: { db }, clock, resolver, changed }: MonitoredDomainParts,
  lookMs: number,
): Job {
  const now = () => Math.floor(clock.now())

  async function isPublished(
    { name, txt_record }: MonitoredDomainRow,
    ending: AbortSignal,
  ): Promise<boolean> {
    const signal = AbortSignal.any([ending, AbortSignal.timeout(lookMs)])
    try {
      const answer = await resolver.query(name, 'TXT', { fresh: true, signal })
      return answer.records.includes(txt_record)
    } catch (error) {
      if (!signal.aborted) throw error
      return false
    }
  }

  async function look(row: MonitoredDomainRow, ending: AbortSignal): Promise<boolean> {
    const isFound = await isPublished(row, ending)
    if (ending.aborted) return false
    const isOver = now() + LOOK_EVERY_MS > Number(row.looked_until)
    const next = isFound || isOver ? null : now() + LOOK_EVERY_MS
    await db
      .updateTable('monitored_domains')
      .set({ next_look_at: next, ...(isFound && { verified_at: now() }) })
      .where('account_id', '=', row.account_id)
      .where('name', '=', row.name)
      .where('txt_record', '=', row.txt_record)
      .execute()
    return isFound
  }

  return createJob({
    name: 'monitored-domain-verification',
    everyMs: MINUTE_MS,
    scope: 'database',
    async work(signal) {
      const due = await db
        .selectFrom('monitored_domains')
        .selectAll()
        .where('next_look_at', '<=', now())
        .orderBy('next_look_at')
        .limit(LOOKS_PER_STEP)
        .execute()
      if ((await Promise.all(due.map((row) => look(row, signal)))).includes(true)) changed()
      return due.length === LOOKS_PER_STEP ? 'more' : undefined
    },
  })
}

const addedDomain = (row: MonitoredDomainRow): MonitoredDomain => ({
  ...{ accountId: row.account_id, name: row.name, createdAt: Number(row.created_at), added: row },
})

const newRow = (account_id: string, name: string, now: number): MonitoredDomainRow => ({
  ...{ account_id, name, is_removed: 0, txt_record: `${TXT_PREFIX}${randomBytes(20).toString('hex')}` },
  ...{ verified_at: null, next_look_at: null, looked_until: null, created_at: now },
})
