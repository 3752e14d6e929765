/**
 * Which names an account may claim (domains.md rule 14): none below a verified domain of another account, unless that domain's
 * owner asks for it. What a name is used for later goes by `ownerOf`, whatever was claimed before.
 */

import { BadRequest } from '../../../base/process/errors.ts'
import { invalidChoice } from '../../../base/values.ts'
import type { Db } from '../../../platform/store/store.ts'
import type { OwnHosts } from '../dns/own-hosts.ts'
import { isBelow } from './domain-names.ts'
import { namesUpToRoot } from './name-owner.ts'

/** Who asks for a name. */
export interface Claimant {
  accountId: string
  /** Set while a parent account acts as this subaccount. */
  parentAccountId?: string | undefined
}

export const TAKEN = 'This domain name is already taken'

interface Holder {
  name: string
  account_id: string
  type: string
  verified: number
}

/** The domains at or above a name, nearest first. */
async function holdersOf(db: Db, name: string): Promise<Holder[]> {
  const rows = await db
    .selectFrom('domains')
    .select(['name', 'account_id', 'type', 'verified'])
    .where('name', 'in', namesUpToRoot(name))
    .execute()
  return rows.sort((a, b) => b.name.length - a.name.length)
}

const isProven = ({ verified, type }: Holder) => verified === 1 || type === 'sandbox'

/**
 * Accounts that may give away names below their verified domain: its owner, and the parent of that. So a parent account
 * gives its subaccounts names below its own domain by creating them on their behalf.
 * @throws BadRequest for a name below the domain of somebody else
 */
export async function checkBelow(db: Db, claimant: Claimant, name: string): Promise<void> {
  const owner = (await holdersOf(db, name)).find(isProven)
  if (owner === undefined || owner.account_id === claimant.accountId) return
  const asking = claimant.parentAccountId ?? claimant.accountId
  if (owner.account_id === asking) return
  const account = await db
    .selectFrom('accounts')
    .select('parent_id')
    .where('id', '=', owner.account_id)
    .executeTakeFirst()
  if (account?.parent_id !== asking)
    throw new BadRequest(`${TAKEN}: ${owner.name} belongs to another account`)
}

/** @throws BadRequest for a host that is not at or below a domain of the account, or that another one has proven */
export async function checkReturnPathHost(db: Db, accountId: string, host: string) {
  const holders = await holdersOf(db, host)
  const owner = holders.find(isProven) ?? holders[0]
  if (owner?.account_id !== accountId) throw invalidChoice('mailfrom_host', host)
}

/** @throws BadRequest for a host of the service, or one that is the verified domain of another account */
export async function checkTrackingHost(
  db: Db,
  ownHosts: OwnHosts,
  { accountId, webPrefix, name }: { accountId: string; webPrefix: string; name: string },
): Promise<void> {
  const host = `${webPrefix}.${name}`
  const refused = (why: string) => new BadRequest(`Cannot use web_prefix "${webPrefix}": ${host} ${why}`)
  if (ownHosts.has(host)) throw refused('is a host name of this service')
  const [nearest] = await holdersOf(db, host)
  if (nearest?.name === host && isProven(nearest) && nearest.account_id !== accountId)
    throw refused('belongs to another account')
}

/** Whether a name below `domain` belongs to another account, which has verified it or one in between. */
export async function isTakenBelow(db: Db, accountId: string, domain: string, name: string) {
  const owner = (await holdersOf(db, name)).find(isProven)
  return owner !== undefined && isBelow(owner.name, domain) && owner.account_id !== accountId
}
