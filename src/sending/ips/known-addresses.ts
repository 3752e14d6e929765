/**
 * The address book of this process: in memory, since each delivery asks for it, and read again when the version in the
 * database has changed. All changes go through `change`.
 */

import type { Clock } from '../../base/time/clock.ts'
import { HOUR_MS } from '../../base/time/durations.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Db, Store, Tx } from '../../platform/store/store.ts'
import type { SendingAddresses } from '../domains/create-domain.ts'
import { type AddressBook, type BookRows, createBook, mayUse, poolFor, SHARED } from './address-book.ts'
import { noteConfigured } from './configured.ts'

/** A process notes every hour what its configuration names (checks.ts). */
const UNSEEN_MS = 3 * HOUR_MS
const TOPIC = 'addresses'

export type KnownAddresses = Awaited<ReturnType<typeof openAddresses>>

type Settings = Pick<Config, 'sourceAddresses' | 'requireFcrdns' | 'delivery'>

export async function openAddresses(store: Store, clock: Clock, config: Settings, firstAccountId: string) {
  let current: AddressBook | null = null

  const bookOf = (rows: BookRows) =>
    createBook(rows, {
      configured: config.sourceAddresses,
      // Only receivers that see the address look at its name.
      requireFcrdns: config.delivery.kind === 'direct' ? config.requireFcrdns : 'off',
      seenSince: clock.now() - UNSEEN_MS,
    })

  /** An older book replaces no newer one: of two reads that overlap, the one that began earlier may end later. */
  async function reload(): Promise<AddressBook> {
    const read = bookOf(await readRows(store.db))
    if (current === null || Number(read.version) >= Number(current.version)) current = read
    return current
  }

  const first = await reload()
  const known = {
    book: (): AddressBook => current ?? first,
    /**
     * Runs a change of addresses, pools, delegations, warm-ups or the addresses of domains: one at a time in all processes,
     * with the book as it is then.
     */
    async change<T>(run: (tx: Tx) => Promise<T>): Promise<T> {
      const result = await store.transaction(async (tx) => {
        // First, for its row lock.
        const { version } = await tx
          .updateTable('ip_changes')
          .set((eb) => ({ version: eb('version', '+', 1) }))
          .where('id', '=', 1)
          .returning('version')
          .executeTakeFirstOrThrow()
        // Not the new version: the transaction may fail.
        const before = String(Number(version) - 1)
        if (before !== current?.version) current = bookOf({ ...(await readRows(tx)), version: before })
        return run(tx)
      })
      await reload()
      void store.changes.announce(TOPIC, '')
      return result
    },
    /** Reads the book again if it has changed. */
    async refresh(): Promise<void> {
      if ((await readVersion(store.db)) !== current?.version) await reload()
    },
    /** Reads it again: addresses may have fallen out of use by time. */
    reload: async (): Promise<void> => void (await reload()),
  }
  store.changes.follow(TOPIC, known.refresh)
  await noteConfigured(known.change, config.sourceAddresses, firstAccountId, clock.now())
  return known
}

/** What the creation of a domain asks. */
export const addressesForDomains = ({ book }: KnownAddresses): SendingAddresses => ({
  isAssigned: async (accountId, ip) => mayUse(book(), accountId, ip),
  hasPool: async (accountId, poolId) =>
    poolId !== SHARED && (poolFor(book(), accountId, poolId) ?? []).length > 0,
})

async function readVersion(db: Db): Promise<string> {
  const query = db.selectFrom('ip_changes').select('version').where('id', '=', 1)
  return String((await query.executeTakeFirstOrThrow()).version)
}

/** Reads the version first: a change made meanwhile is read again. */
async function readRows(db: Db): Promise<BookRows> {
  const version = await readVersion(db)
  const [ips, pools, members, dynamicPools, dynamicMembers, delegations, exclusions, warmups, blocks] =
    await Promise.all([
      db.selectFrom('ips').selectAll().orderBy('ip').execute(),
      db
        .selectFrom('ip_pools')
        .select(['id', 'account_id', 'name'])
        .where('id', 'in', db.selectFrom('ip_pool_members').select('pool_id'))
        .execute(),
      db.selectFrom('ip_pool_members').selectAll().execute(),
      db.selectFrom('dynamic_pools').selectAll().execute(),
      db.selectFrom('dynamic_pool_members').selectAll().execute(),
      db.selectFrom('ip_pool_delegations').selectAll().execute(),
      db.selectFrom('shared_ip_exclusions').selectAll().execute(),
      db.selectFrom('ip_warmups').selectAll().execute(),
      db.selectFrom('ip_blocks').selectAll().where('cleared_at', 'is', null).execute(),
    ])
  return {
    version,
    ips,
    pools,
    members,
    dynamicPools,
    dynamicMembers,
    delegations,
    exclusions,
    warmups,
    blocks,
  }
}
