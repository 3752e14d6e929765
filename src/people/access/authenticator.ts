/** Who a caller is (an API key, a session, or the command line on this machine), and from which addresses it may call. */
import {
  type Cache,
  createCache,
  type MaybePromise,
  remember,
  type SharedCache,
  whenKnown,
} from '../../base/flow/cache.ts'
import { anyCidrContains, type Cidr, parseCidr } from '../../base/net/ip.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { FailedAttempts } from '../../platform/http/limits/failed-attempts.ts'
import type { Authenticator, Caller } from '../../platform/http/rights/auth.ts'
import { ACCOUNT_ID, type AccountDirectory, isClosed } from '../accounts/account-directory.ts'
import { isPublicKey, type Keys, LOCAL_KEY_ID, type PublicKeys } from '../keys/api-keys.ts'
import type { FailedSignIns } from '../sign-in/failed-sign-ins.ts'
import type { Sessions } from '../sign-in/sessions.ts'
import type { CallerAddressStore } from './caller-address-store.ts'

interface AuthenticatorParts {
  accounts: Pick<AccountDirectory, 'byId'>
  keys: Keys
  publicKeys: PublicKeys
  sessions: Sessions
  allowedCallers: AllowedCallers
  /** Authenticates the command line on this machine, as admin of the first account; only through its own socket. */
  local: (secret: string) => boolean
  firstAccountId: string
}

export function createAuthenticator(parts: AuthenticatorParts): Authenticator {
  const { accounts, keys, publicKeys, sessions, allowedCallers, local, firstAccountId } = parts
  /** Keys and sessions of a closed account stop with it; their rows are removed later. */
  const unlessClosed = (caller: Caller | null): MaybePromise<Caller | null> =>
    caller === null
      ? null
      : whenKnown(accounts.byId(caller.accountId), (account) => (isClosed(account) ? null : caller))

  return {
    key(secret, isLocal) {
      if (isLocal && local(secret))
        return { accountId: firstAccountId, keyId: LOCAL_KEY_ID, role: 'admin', kind: 'user' }
      if (isPublicKey(secret)) return publicKeys.authenticate(secret)
      return whenKnown(keys.authenticate(secret), unlessClosed)
    },
    async session(cookie, isUse) {
      const session = await sessions.find(cookie, isUse)
      if (!session) return null
      const { accountId, id, role, keyId: sessionKeyId, user } = session
      return unlessClosed({
        accountId,
        keyId: id,
        role,
        kind: 'session',
        sessionKeyId,
        ...(user && { userId: user.id, sessionUser: user }),
      })
    },
    subaccount(caller, id) {
      if (!ACCOUNT_ID.test(id)) return null
      return whenKnown(accounts.byId(id), (child) =>
        child === null || child.parentId !== caller.accountId || isClosed(child)
          ? null
          : { ...caller, accountId: id, parentAccountId: caller.accountId },
      )
    },
    addressAllowed: (caller, address) =>
      !isBoundToAddresses(caller) || allowedCallers.allows(caller.accountId, address),
  }
}

/** Wrong keys and cookies cost time, and are noted in the audit log. */
export function auditedAttempts(
  attempts: FailedAttempts,
  failed: Pick<FailedSignIns, 'note'>,
): FailedAttempts {
  return {
    ...attempts,
    wrongKey(address: string) {
      failed.note({ remoteAddress: address, way: 'api' })
      attempts.wrongKey(address)
    },
  }
}

export type AllowedCallers = ReturnType<typeof createAllowedCallers>

/** accounts.md section 8 rule 6. */
const REMEMBER_MS = 5_000
const ACCOUNTS_MAX = 10_000
/** Answers kept per list: comparing an address with 200 networks takes some 50 µs. */
const ANSWERS_MAX = 1_000

/** Null: no list. */
type List = { networks: readonly Cidr[]; answers: Map<string, boolean> } | null

/**
 * Whether an address may use the keys and SMTP logins of an account (accounts.md section 8).
 *
 * An account without a list of its own uses that of its parent; without any list every address may call. Lists are in
 * memory: a change takes effect at once in this process, in others when theirs are too old.
 */
export function createAllowedCallers(
  store: Pick<CallerAddressStore, 'list'>,
  accounts: Pick<AccountDirectory, 'byId'>,
  clock: Clock,
  changes: SharedCache['changes'],
) {
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
    /** Synchronous while the list is in memory. */
    allows: (accountId: string, address: string): MaybePromise<boolean> =>
      whenKnown(lists.get(accountId), (list) => listAllows(list, address)),
    // Of all accounts: those of its children may depend on it.
    /** Must be called after every change of an account's list. */
    changed: (): void => lists.forget(),
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
