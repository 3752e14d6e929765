/**
 * Whether an address may use the keys and SMTP logins of an account (accounts.md section 8).
 *
 * An account without a list of its own uses that of its parent; without any list every address may call. Lists are in
 * memory: a change takes effect at once in this process, in others when theirs are too old.
 */
import {
  type Cache,
  createCache,
  type MaybePromise,
  type SharedCache,
  whenKnown,
} from '../../base/flow/cache.ts'
import { remember } from '../../base/flow/remember.ts'
import { anyCidrContains, type Cidr, parseCidr } from '../../base/net/ip.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { AccountDirectory } from '../accounts/account-directory.ts'
import { LOCAL_KEY_ID } from '../keys/local-key.ts'
import type { CallerAddressStore } from './store.ts'

export interface AllowedCallers {
  /** Synchronous while the list is in memory. */
  allows(accountId: string, address: string): MaybePromise<boolean>
  /** Must be called after every change of an account's list. */
  changed(): void
}

/** accounts.md section 8 rule 6. */
const REMEMBER_MS = 5_000
const ACCOUNTS_MAX = 10_000
/** Answers kept per list: comparing an address with 200 networks takes some 50 µs. */
const ANSWERS_MAX = 1_000

/** Null: no list. */
type List = { networks: readonly Cidr[]; answers: Map<string, boolean> } | null

export function createAllowedCallers(
  store: Pick<CallerAddressStore, 'list'>,
  accounts: Pick<AccountDirectory, 'byId'>,
  clock: Clock,
  changes: SharedCache['changes'],
): AllowedCallers {
  const lists: Cache<List> = createCache({
    clock,
    ttlMs: REMEMBER_MS,
    entriesMax: ACCOUNTS_MAX,
    shared: { changes: changes, topic: 'caller-addresses' },
    load: effectiveList,
  })

  async function effectiveList(accountId: string): Promise<List> {
    const own = await store.list(accountId)
    const parentId = own.length > 0 ? null : ((await accounts.byId(accountId))?.parentId ?? null)
    const entries = parentId === null ? own : await store.list(parentId)
    if (entries.length === 0) return null
    return { networks: networksOf(entries), answers: new Map() }
  }

  return {
    allows: (accountId, address) => whenKnown(lists.get(accountId), (list) => listAllows(list, address)),
    // Of all accounts: those of its children may depend on it.
    changed: () => lists.forget(),
  }
}

const networksOf = (entries: readonly { address: string }[]) =>
  entries.flatMap(({ address }) => parseCidr(address) ?? [])

function listAllows(list: List, address: string): boolean {
  if (list === null) return true
  const known = list.answers.get(address)
  return known ?? remember(list.answers, ANSWERS_MAX, address, anyCidrContains(list.networks, address))
}

/** Whether a list with these entries lets an address call. */
export const entriesAllow = (entries: readonly { address: string }[], address: string): boolean =>
  entries.length === 0 || anyCidrContains(networksOf(entries), address)

/**
 * Whether the account's list of addresses applies to the caller: to its API keys, but not to browser sessions and web keys
 * of people, who move, nor to the command line on this machine, which ends a lockout. A parent that acts for the account is
 * bound to its own list.
 */
export const isBoundToAddresses = ({ kind, keyId, parentAccountId }: Caller): boolean =>
  kind !== 'session' && kind !== 'web' && keyId !== LOCAL_KEY_ID && parentAccountId === undefined
