/** Pools of an account's dedicated addresses (ips-pools.md section 3). */
import { randomHex } from '../../../base/ids.ts'
import { BadRequest, NotFound } from '../../../base/process/errors.ts'
import type { Core } from '../../../core.ts'
import { countOf } from '../../../platform/store/count.ts'
import type { Store, Tx } from '../../../platform/store/store.ts'
import type { Domain } from '../../domains/domain.ts'
import type { Address, AddressBook } from '../address-book.ts'
import { setDomainAddresses, settingsOfRow } from '../domains/domain-settings.ts'
import type { KnownAddresses } from '../known-addresses.ts'
import {
  inherited,
  isEnrolled,
  leastUsedShared,
  ownAddress,
  poolNotFound,
  replacementAddress,
} from '../rules.ts'
import type { Replacement } from '../tasks/task-steps.ts'
import { type IpTasks, newReference } from '../tasks/tasks.ts'
import { linkedDomains, type PoolRow, poolOf, poolsOf } from './pool-store.ts'

interface PoolChange {
  name: string | undefined
  description: string | undefined
  addIps: readonly string[]
  removeIps: readonly string[]
  /** Ids or names. */
  linkDomains: readonly string[]
  unlinkDomains: readonly string[]
}

/** All throw NotFound for a pool that the account has not. Strings that are resolved are reference ids. */
export type Pools = ReturnType<typeof createPools>

interface PoolParts extends Pick<Core, 'store' | 'clock' | 'domains'> {
  known: KnownAddresses
  tasks: IpTasks
  assigned(tx: Tx, accountId: string, ips: readonly string[]): Promise<void>
}

/** A list is one answer. */
const POOLS_MAX = 200
/** Domains linked or unlinked by one call. */
const DOMAINS_MAX = 1_000
const NAME_LENGTH_MAX = 255
const TEXT_LENGTH_MAX = 1_000

export function createPools(parts: PoolParts) {
  const { store, clock, known, domains } = parts
  const inheritedOf = (accountId: string) => known.book().inherited.get(accountId)
  const now = () => Math.floor(clock.now())

  async function addMembers(tx: Tx, accountId: string, id: string, ips: readonly string[]): Promise<void> {
    const added = ips
      .map((ip) => ownAddress(known.book(), accountId, ip))
      .filter((address) => isNewIn(id, address))
    const rows = new Map(added.map(({ ip }) => [ip, { ip, pool_id: id, linked_at: now() }]))
    if (rows.size === 0) return
    await tx
      .insertInto('ip_pool_members')
      .values([...rows.values()])
      .execute()
    await parts.assigned(tx, accountId, [...rows.keys()])
  }

  return {
    list: (accountId: string) => poolsOf(store.db, accountId, inheritedOf(accountId)),
    read: (accountId: string, id: string) => knownPool(store.db, known.book(), accountId, id),
    domains: ({ id, isInherited }: PoolRow, accountId: string, after: string, limit: number) =>
      linkedDomains(store.db, id, isInherited ? accountId : null, after, limit),
    create(accountId: string, name: string, description: string, ips: readonly string[]): Promise<string> {
      checkTexts(name, description)
      const id = randomHex(12)
      return known.change(async (tx) => {
        await checkRoom(tx, accountId)
        await tx
          .insertInto('ip_pools')
          .values({ id, account_id: accountId, name, description, created_at: now() })
          .execute()
        await addMembers(tx, accountId, id, ips)
        return id
      })
    },
    async edit(accountId: string, id: string, change: PoolChange): Promise<void> {
      if (change.linkDomains.length + change.unlinkDomains.length > DOMAINS_MAX)
        throw new BadRequest(`at most ${DOMAINS_MAX} domains may be changed by one call`)
      const changed = await known.change(async (tx) => {
        const found = await ownPool(tx, known.book(), accountId, id)
        const linked = await ownDomains(tx, accountId, change.linkDomains)
        const unlinked = await ownDomains(tx, accountId, change.unlinkDomains)
        if (!changesAnything(found, change, linked, unlinked)) throw new BadRequest('nothing to update')
        const { name = found.name, description = found.description } = change
        checkTexts(name, description)
        await tx.updateTable('ip_pools').set({ name, description }).where('id', '=', id).execute()
        await addMembers(tx, accountId, id, change.addIps)
        await removeMembers(tx, known.book(), accountId, found, change.removeIps)
        await unlinkDomains(tx, known.book(), id, unlinked)
        await linkDomains(tx, id, linked)
        await checkNotEmpty(tx, known.book(), accountId, id)
        return [...linked, ...unlinked]
      })
      for (const domain of changed) domains.changed(domain)
    },
    async addIps(accountId: string, id: string, ips: readonly string[]): Promise<string> {
      await known.change(async (tx) => {
        await ownPool(tx, known.book(), accountId, id)
        await addMembers(tx, accountId, id, ips)
      })
      return newReference(clock)
    },
    async removeIp(accountId: string, id: string, ip: string): Promise<string> {
      await known.change(async (tx) => {
        await removeMembers(tx, known.book(), accountId, await ownPool(tx, known.book(), accountId, id), [ip])
        await checkNotEmpty(tx, known.book(), accountId, id)
      })
      return newReference(clock)
    },
    async remove(accountId: string, id: string, to: { ip: string | undefined; poolId: string | undefined }) {
      const replacement = await known.change(async (tx) =>
        replacementOf(tx, known.book(), accountId, await ownPool(tx, known.book(), accountId, id), to),
      )
      const task = {
        kind: 'unlink',
        poolId: id,
        accountId: null,
        to: replacement,
        deletesPool: true,
      } as const
      return parts.tasks.add(accountId, task)
    },
  }
}

async function knownPool(db: Tx | Store['db'], book: AddressBook, accountId: string, id: string) {
  const found = await poolOf(db, accountId, id, book.inherited.get(accountId))
  if (found === null) throw poolNotFound()
  return found
}

/** @throws Forbidden for an inherited one (rule 7) */
async function ownPool(db: Tx | Store['db'], book: AddressBook, accountId: string, id: string) {
  const found = await knownPool(db, book, accountId, id)
  if (found.isInherited) throw inherited()
  return found
}

async function removeMembers(
  tx: Tx,
  book: AddressBook,
  accountId: string,
  found: PoolRow,
  ips: readonly string[],
): Promise<void> {
  const removed = new Set(ips.map((ip) => ownAddress(book, accountId, ip).ip))
  for (const ip of removed)
    if (!found.members.some((member) => member.ip === ip)) throw new NotFound('ip not found')
  if (removed.size === 0) return
  await tx
    .deleteFrom('ip_pool_members')
    .where('pool_id', '=', found.id)
    .where('ip', 'in', [...removed])
    .execute()
}

/** Rule 6; after all other changes of the call. */
async function checkNotEmpty(tx: Tx, book: AddressBook, accountId: string, id: string): Promise<void> {
  const after = await knownPool(tx, book, accountId, id)
  if (after.isLinked && after.members.length === 0)
    throw new BadRequest('pool is linked to domains and must have at least one IP')
}

/** What sends instead of a pool that is removed. @throws BadRequest, NotFound */
async function replacementOf(
  tx: Tx,
  book: AddressBook,
  accountId: string,
  found: PoolRow,
  to: { ip: string | undefined; poolId: string | undefined },
): Promise<Replacement> {
  const { ip, poolId } = to
  if (ip !== undefined && poolId !== undefined)
    throw new BadRequest('only one of ip and pool_id may be provided')
  if (ip === 'shared') {
    await leastUsedShared(tx, book, accountId)
    return 'shared'
  }
  if (ip !== undefined) return { ip: await replacementAddress(tx, book, accountId, ip) }
  if (poolId === undefined) {
    if (found.members.length > 0) throw new BadRequest('replacement IP or pool is required')
    return 'default'
  }
  const other = await ownPool(tx, book, accountId, poolId)
  if (other.members.length === 0 || other.id === found.id)
    throw new BadRequest('replacement pool must be another one with at least one IP')
  return { pool: other.id }
}

/** @throws BadRequest at the limit */
async function checkRoom(tx: Tx, accountId: string): Promise<void> {
  const count = await countOf(tx.selectFrom('ip_pools').where('account_id', '=', accountId))
  if (count >= POOLS_MAX) throw new BadRequest(`The account has its maximum of ${POOLS_MAX} IP pools`)
}

async function ownDomains(tx: Tx, accountId: string, names: readonly string[]): Promise<Domain[]> {
  const found: Domain[] = []
  for (const name of new Set(names.map((one) => one.toLowerCase()))) {
    const row = await tx
      .selectFrom('domains')
      .selectAll()
      .where((eb) => eb.or([eb('name', '=', name), eb('id', '=', name)]))
      .where('account_id', '=', accountId)
      .executeTakeFirst()
    if (row === undefined) throw new NotFound('Domain not found')
    found.push(settingsOfRow(row))
  }
  return found
}

async function linkDomains(tx: Tx, id: string, linked: readonly Domain[]): Promise<void> {
  if (linked.some(({ dynamicPoolId }) => dynamicPoolId !== null)) throw isEnrolled()
  for (const domain of linked) await setDomainAddresses(tx, domain, { ips: null, poolId: id })
}

/** Rule 3. */
async function unlinkDomains(tx: Tx, book: AddressBook, id: string, unlinked: readonly Domain[]) {
  for (const domain of unlinked) {
    if (domain.sendingPoolId !== id) continue
    const ip = await leastUsedShared(tx, book, domain.accountId)
    await setDomainAddresses(tx, domain, { ips: [ip], poolId: null })
  }
}

/** @throws BadRequest for one that is in another pool (rule 1) */
function isNewIn(id: string, { poolId }: Address): boolean {
  if (poolId !== null && poolId !== id) throw new BadRequest('ip is already in an IP pool')
  return poolId === null
}

function checkTexts(name: string, description: string): void {
  if (name.length > NAME_LENGTH_MAX || /\p{Cc}/u.test(name))
    throw new BadRequest(`name must have 1 to ${NAME_LENGTH_MAX} characters and no control characters`)
  if (description.length > TEXT_LENGTH_MAX || description.includes('\0'))
    throw new BadRequest(`description must have at most ${TEXT_LENGTH_MAX} characters`)
}

/** Rule 4. */
function changesAnything(
  found: PoolRow,
  { name = found.name, description = found.description, addIps, removeIps }: PoolChange,
  linked: readonly Domain[],
  unlinked: readonly Domain[],
): boolean {
  const isMember = (ip: string) => found.members.some((member) => member.ip === ip)
  return (
    name !== found.name ||
    description !== found.description ||
    addIps.some((ip) => !isMember(ip)) ||
    removeIps.length > 0 ||
    linked.some(({ sendingPoolId }) => sendingPoolId !== found.id) ||
    unlinked.some(({ sendingPoolId }) => sendingPoolId === found.id)
  )
}
