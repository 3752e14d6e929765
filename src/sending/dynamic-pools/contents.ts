/** The addresses of an account's dynamic pools (dynamic-pools.md section 5 rules 12 to 16). */

import { randomHex } from '../../base/ids.ts'
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { Tx } from '../../platform/store/store.ts'
import type { Address, AddressBook } from '../ips/address-book.ts'
import type { KnownAddresses } from '../ips/known-addresses.ts'
import { notOwned, noWarmAddress, ownAddress } from '../ips/rules.ts'
import { BANDS, type Band } from './bands.ts'
import { poolsOf, presentPools } from './pool-rules.ts'
import type { POOL_OVERVIEW } from './shapes.ts'

/** Changes throw BadRequest for what an account may not do, and then change nothing. */
export type PoolContents = ReturnType<typeof createContents>

interface ContentParts {
  clock: Clock
  known: KnownAddresses
  /** Addresses are used by a pool now; may start their warm-up. */
  assigned(tx: Tx, accountId: string, ips: readonly string[]): Promise<void>
}

export function createContents({ clock, known, assigned }: ContentParts) {
  const now = () => Math.floor(clock.now())

  async function addMembers(tx: Tx, accountId: string, poolId: string, ips: readonly string[]) {
    if (ips.length === 0) return
    await tx
      .insertInto('dynamic_pool_members')
      .values(ips.map((ip) => ({ ip, pool_id: poolId, added_at: now() })))
      .execute()
    await assigned(tx, accountId, ips)
  }

  async function removeMembers(tx: Tx, ips: readonly string[]): Promise<void> {
    if (ips.length > 0) await tx.deleteFrom('dynamic_pool_members').where('ip', 'in', ips).execute()
  }

  return {
    /** Replaces all of them, and creates the pools. */
    set: (accountId: string, ips: Readonly<Record<Band, readonly string[]>>) =>
      known.change(async (tx) => {
        const book = known.book()
        const sets = readSets(book, accountId, ips)
        const pools = presentPools(book, accountId)
        const ids = new Map(BANDS.map((band) => [band, pools.get(band)?.id ?? randomHex(12)]))
        for (const [band, id] of ids)
          if (!pools.has(band))
            await tx.insertInto('dynamic_pools').values({ id, account_id: accountId, band }).execute()
        await tx
          .deleteFrom('dynamic_pool_members')
          .where('pool_id', 'in', [...ids.values()])
          .execute()
        for (const band of BANDS) {
          await addMembers(tx, accountId, ids.get(band) as string, sets.get(band) ?? [])
          await checkWarm(tx, ids.get(band) as string, band)
        }
      }),
    /** @throws NotFound for an unknown address */
    add: (accountId: string, band: Band, text: string) =>
      known.change(async (tx) => {
        const book = known.book()
        const pool = poolsOf(book, accountId).get(band)
        const address = ownAddress(book, accountId, text)
        if (address.poolId === pool?.id) return
        if (address.poolId !== null) throw inPool(book, address)
        await addMembers(tx, accountId, pool?.id as string, [address.ip])
      }),
    edit: (accountId: string, band: Band, added: readonly string[], removed: readonly string[]) =>
      known.change(async (tx) => {
        const book = known.book()
        const id = poolsOf(book, accountId).get(band)?.id as string
        const toAdd = owned(book, accountId, added).filter((address) => address.poolId !== id)
        const toRemove = owned(book, accountId, removed)
        const other = toAdd.find(({ poolId }) => poolId !== null)
        if (other !== undefined) throw inPool(book, other)
        const names = new Set(owned(book, accountId, added).map(({ ip }) => ip))
        if (toRemove.some(({ ip }) => names.has(ip)))
          throw new BadRequest('an IP cannot be added and removed')
        await removeMembers(
          tx,
          toRemove.filter(({ poolId }) => poolId === id).map(({ ip }) => ip),
        )
        await addMembers(
          tx,
          accountId,
          id,
          toAdd.map(({ ip }) => ip),
        )
        await checkWarm(tx, id, band)
      }),
    /** Moves an address from whichever of the pools it is in; null: into none. @throws NotFound as `add` */
    place: (accountId: string, text: string, band: Band | null) =>
      known.change(async (tx) => {
        const book = known.book()
        const pools = poolsOf(book, accountId)
        const { ip, poolId } = ownAddress(book, accountId, text)
        const from = [...pools].find(([, { id }]) => id === poolId)
        if (poolId !== null && from === undefined) throw new BadRequest('ip is already in an IP pool')
        const to = band === null ? null : (pools.get(band)?.id as string)
        if (poolId === to) return
        await removeMembers(tx, [ip])
        if (to !== null) await addMembers(tx, accountId, to, [ip])
        if (from !== undefined) await checkWarm(tx, from[1].id, from[0])
      }),
    /** Removes the pools. @throws BadRequest while a domain is enrolled in them */
    remove: (accountId: string) =>
      known.change(async (tx) => {
        const enrolled = await tx
          .selectFrom('dynamic_pool_domains')
          .innerJoin('domains', 'domains.id', 'domain_id')
          .select('domain_id')
          .where('owner_id', '=', accountId)
          .limit(1)
          .executeTakeFirst()
        if (enrolled !== undefined)
          throw new BadRequest('all domains must be removed from dynamic IP pools first')
        const pools = tx.selectFrom('dynamic_pools').select('id').where('account_id', '=', accountId)
        await tx.deleteFrom('dynamic_pool_members').where('pool_id', 'in', pools).execute()
        await tx.deleteFrom('dynamic_pools').where('account_id', '=', accountId).execute()
        await tx.deleteFrom('dynamic_pool_tasks').where('account_id', '=', accountId).execute()
      }),
  }
}

/** @throws BadRequest, also for an unknown address: then nothing may be changed (rule 12) */
function owned(book: AddressBook, accountId: string, texts: readonly string[]): Address[] {
  const found = texts.map((text) => {
    try {
      return ownAddress(book, accountId, text)
    } catch (error) {
      throw error instanceof NotFound ? notOwned() : error
    }
  })
  return [...new Set(found)]
}

function readSets(
  book: AddressBook,
  accountId: string,
  ips: Readonly<Record<Band, readonly string[]>>,
): Map<Band, string[]> {
  const sets = new Map(BANDS.map((band) => [band, owned(book, accountId, ips[band])]))
  const all = [...sets.values()].flat()
  if (new Set(all).size < all.length) throw inOther()
  const inDedicated = all.find(({ poolId }) => poolId !== null && !book.dynamicPools.has(poolId))
  if (inDedicated !== undefined) throw inPool(book, inDedicated)
  return new Map([...sets].map(([band, addresses]) => [band, addresses.map(({ ip }) => ip)]))
}

const inOther = () => new BadRequest('ip is already in a dynamic IP pool')
const inPool = (book: AddressBook, { poolId }: Address) =>
  book.dynamicPools.has(poolId ?? '') ? inOther() : new BadRequest('ip is already in an IP pool')

/** After all other changes of a call. @throws BadRequest when every address of the pool is on warm-up */
async function checkWarm(tx: Tx, poolId: string, band: Band): Promise<void> {
  const warm = await tx
    .selectFrom('dynamic_pool_members')
    .select('ip')
    .where('pool_id', '=', poolId)
    .where('ip', 'not in', tx.selectFrom('ip_warmups').select('ip'))
    .limit(1)
    .executeTakeFirst()
  if (warm === undefined) throw noWarmAddress(band)
}

/** What operations show of the pools. */
export function overviewOf(book: AddressBook, accountId: string): Of<typeof POOL_OVERVIEW> {
  const pools = presentPools(book, accountId)
  const ips = (band: Band) => (pools.get(band)?.addresses ?? []).map(({ ip }) => ip)
  return {
    new_senders: ips('dynamic_new'),
    good_reputation: ips('dynamic_good'),
    poor_reputation: ips('dynamic_poor'),
    pools: BANDS.flatMap((band) => {
      const pool = pools.get(band)
      if (pool === undefined) return []
      return { account_id: accountId, id: pool.id, name: band, enabled: true, ips: ips(band) }
    }),
  }
}
