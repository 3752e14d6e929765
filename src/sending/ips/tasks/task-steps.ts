/** One step of each kind of task: a portion of domains in one transaction. */

import type { DomainRow } from '../../../platform/store/schema.ts'
import type { Tx } from '../../../platform/store/store.ts'
import type { Domain } from '../../domains/domain.ts'
import { type AddressBook, mayUse, poolFor, SHARED, sharedFor } from '../address-book.ts'
import { addressesOf, completed, linkedPool, withAddress } from '../domains/domain-addresses.ts'
import { type DomainAddresses, setDomainAddresses, settingsOfRow } from '../domains/domain-settings.ts'
import type { KnownAddresses } from '../known-addresses.ts'
import { leastUsedShared } from '../rules.ts'

/** What the domains of a pool get instead: `default`: what their account has. */
export type Replacement = { pool: string } | { ip: string } | 'shared' | 'default'

export type Task =
  | { kind: 'assign'; ip: string }
  | { kind: 'unassign'; ip: string; alternative: string | null }
  /** `accountId`: its domains only; `deletesPool`: the pool goes when no domain is linked to it. */
  | { kind: 'unlink'; poolId: string; accountId: string | null; to: Replacement; deletesPool: boolean }

export interface StepParts {
  known: KnownAddresses
  assigned(tx: Tx, accountId: string, ips: readonly string[]): Promise<void>
}

interface StepContext {
  tx: Tx
  /** That the task belongs to. */
  accountId: string
  position: string
  /** The step adds domains whose settings it changed, and names of those it could not change. */
  changed: Domain[]
  skipped: string[]
}

/** Domains in one transaction: some tens of milliseconds. */
const PORTION = 100

/** Does a step. @returns the position of the next one; null: the task is done */
export function steps(parts: StepParts, task: Task, context: StepContext): Promise<string | null> {
  const { accountId, tx } = context
  const book = parts.known.book()
  switch (task.kind) {
    case 'assign':
      return eachDomain(parts, context, async (domain) =>
        mayUse(book, accountId, task.ip) ? withAddress(book, domain, task.ip) : null,
      )
    case 'unassign':
      return eachDomain(parts, context, async (domain) => {
        const ips = addressesOf(book, domain)
        return ips.includes(task.ip) ? without(tx, book, domain, ips, task) : null
      })
    case 'unlink':
      return unlinkSome(parts, task, context)
  }
}

/** In the order of names; those with a linked pool or in dynamic pools are left out. */
async function eachDomain(
  parts: StepParts,
  { tx, accountId, position, changed, skipped }: StepContext,
  settingsFor: (domain: Domain) => Promise<DomainAddresses | null | 'skipped'>,
): Promise<string | null> {
  const rows = await tx
    .selectFrom('domains')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('name', '>', position)
    .orderBy('name')
    .limit(PORTION)
    .execute()
  for (const row of rows) {
    const domain = settingsOfRow(row)
    if (domain.dynamicPoolId !== null || linkedPool(parts.known.book(), domain) !== null) continue
    const settings = await settingsFor(domain)
    if (settings === 'skipped') skipped.push(domain.name)
    else if (settings !== null) await apply(parts, tx, domain, settings, changed)
  }
  return rows.length < PORTION ? null : (rows.at(-1) as DomainRow).name
}

async function apply(parts: StepParts, tx: Tx, domain: Domain, settings: DomainAddresses, changed: Domain[]) {
  await setDomainAddresses(tx, domain, settings)
  await parts.assigned(tx, domain.accountId, settings.ips ?? [])
  changed.push(domain)
}

async function without(
  tx: Tx,
  book: AddressBook,
  domain: Domain,
  ips: readonly string[],
  { ip, alternative }: { ip: string; alternative: string | null },
): Promise<DomainAddresses | 'skipped'> {
  const left = ips.filter((one) => one !== ip)
  if (alternative === null) return left.length === 0 ? 'skipped' : { ips: left, poolId: null }
  const other = await usable(tx, book, domain.accountId, alternative)
  const all = [...new Set([...left, ...(other === null ? [] : [other])])]
  if (all.length === 0) return 'skipped'
  return { ips: await completed(tx, book, domain.accountId, all), poolId: null }
}

/** The address to use for `shared` or an address; null: it is not the account's any more. */
async function usable(tx: Tx, book: AddressBook, accountId: string, text: string): Promise<string | null> {
  if (text !== SHARED) return mayUse(book, accountId, text) ? text : null
  const hasShared = sharedFor(book, accountId).some(({ isEnabled }) => isEnabled)
  return hasShared ? leastUsedShared(tx, book, accountId) : null
}

async function unlinkSome(
  parts: StepParts,
  { poolId, accountId, to, deletesPool }: Extract<Task, { kind: 'unlink' }>,
  { tx, changed }: StepContext,
): Promise<string | null> {
  let query = tx.selectFrom('domains').selectAll().where('sending_pool_id', '=', poolId)
  if (accountId !== null) query = query.where('account_id', '=', accountId)
  const rows = await query.orderBy('id').limit(PORTION).execute()
  const book = parts.known.book()
  for (const row of rows) {
    const domain = settingsOfRow(row)
    await apply(parts, tx, domain, await replaced(tx, book, domain.accountId, to), changed)
  }
  if (rows.length === PORTION) return ''
  if (deletesPool) {
    await tx.deleteFrom('ip_pool_members').where('pool_id', '=', poolId).execute()
    await tx.deleteFrom('ip_pool_delegations').where('pool_id', '=', poolId).execute()
    await tx.deleteFrom('ip_pools').where('id', '=', poolId).execute()
  }
  return null
}

/** What the account cannot use is replaced by what it has. */
async function replaced(
  tx: Tx,
  book: AddressBook,
  accountId: string,
  to: Replacement,
): Promise<DomainAddresses> {
  if (to === 'default') return { ips: null, poolId: null }
  if (typeof to === 'object' && 'pool' in to)
    return { ips: null, poolId: poolFor(book, accountId, to.pool) === null ? null : to.pool }
  const ip = await usable(tx, book, accountId, to === 'shared' ? SHARED : to.ip)
  return { ips: ip === null ? null : [ip], poolId: null }
}
