/**
 * API keys. A secret has at least 128 bits, so only its HMAC under the sealing secret and its last four characters
 * are stored (auth-limits.md section 2 rule 1); the secret itself is shown once.
 */

import type { Transaction } from 'kysely'
import { type Cache, createCache, type MaybePromise, remember, whenKnown } from '../../base/flow/cache.ts'
import { randomHex } from '../../base/ids.ts'
import { BadRequest, Forbidden, present } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { Role } from '../../platform/http/rights/rights.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import { lockedAccount } from '../../platform/store/account-rows.ts'
import { type Entry, enter, entriesOf, leave, leaveStatements } from '../../platform/store/pods/entries.ts'
import type { ApiKeyRow, Schema } from '../../platform/store/schema.ts'
import { equalSecrets, type Sealer } from '../../platform/store/secrets/sealing.ts'
import { StaleWrite, type Store } from '../../platform/store/store.ts'
import type { OnDomainDeleted } from '../../sending/domains/deletion.ts'

export type KeyKind = 'user' | 'domain' | 'web'

export const KEY_KINDS: readonly KeyKind[] = ['domain', 'user', 'web']
export const KEY_ROLES: readonly Role[] = ['admin', 'basic', 'sending', 'developer', 'support']

export interface NewKey {
  accountId: string
  kind: KeyKind
  role: Role
  description: string
  domainName: string | null
  requestor: string | null
  userName: string | null
  /** Owner of the key, a user of the account. */
  userId?: string | null
  /** Unix milliseconds; null: never. */
  expiresAt: number | null
}

export type Keys = ReturnType<typeof createKeys>

/** A deleted or expired key stops working on other nodes after at most this time (accounts.md section 4 rule 9). */
const CACHED_MS = 5_000
const CACHED_MAX = 10_000
const KEYS_PER_ACCOUNT_MAX = 100
/** With the expired ones, which are kept for 30 days. */
const LISTED_KEYS_MAX = 1_000
/** Without this cache the HMAC of each call would cost 3 % of accepting a message. */
const DIGESTS_MAX = 1_000
/** Longer passwords cannot be a secret of ours; they are refused before hashing. */
const SECRET_LENGTH_MAX = 256

/** What the holder of an API key or a public key is found by: `secret_hmac` of its row. */
export const keyDigest = (sealer: Pick<Sealer, 'mac'>, secret: string): string =>
  sealer.mac(isPublicKey(secret) ? 'public-key' : 'api-key', secret).toString('hex')

export function createKeys(store: Store, sealer: Sealer, clock: Clock) {
  const compute = (secret: string) => keyDigest(sealer, secret)
  /** Digests of valid secrets: a client sends the same one thousands of times a second. */
  const digests = new Map<string, string>()
  const digest = (secret: string) => digests.get(secret) ?? compute(secret)
  const byDigest: Cache<ApiKeyRow | null> = createCache({
    clock,
    ttlMs: CACHED_MS,
    entriesMax: CACHED_MAX,
    shared: { changes: store.changes, topic: 'api-keys' },
    load: async (hmac) =>
      (await store.db
        .selectFrom('api_keys')
        .selectAll()
        .where('secret_hmac', '=', hmac)
        .executeTakeFirst()) ?? null,
  })
  function holder(secret: string, hmac: string, row: ApiKeyRow | null): Caller | null {
    // Need not be constant-time: an HMAC cannot be guessed letter by letter.
    if (!row || row.secret_hmac !== hmac) return null
    if (!digests.has(secret)) remember(digests, DIGESTS_MAX, secret, hmac)
    if (!isUsable(row, clock.now())) return null
    return {
      accountId: row.account_id,
      keyId: row.id,
      kind: row.kind as KeyKind,
      role: row.role as Role,
      ...(row.domain_name && { domain: row.domain_name }),
      ...(row.user_id && { userId: row.user_id }),
    }
  }

  return {
    /** The holder of a secret, or null if it is unknown, disabled or expired. */
    authenticate(secret: string): MaybePromise<Caller | null> {
      if (secret.length > SECRET_LENGTH_MAX) return null
      const hmac = digest(secret)
      return whenKnown(byDigest.get(hmac), (row) => holder(secret, hmac, row))
    },
    /** Creates a key; `secret` is given only for the operator's own first key. */
    async create(key: NewKey, given?: string): Promise<{ row: ApiKeyRow; secret: string }> {
      const id = `${randomHex(4)}-${randomHex(4)}`
      const secret = given ?? `${randomHex(16)}-${id}`
      const now = Math.floor(clock.now())
      const row: ApiKeyRow = {
        id,
        account_id: key.accountId,
        kind: key.kind,
        role: key.role,
        secret_hmac: digest(secret),
        secret_end: secret.slice(-4),
        description: key.description,
        domain_name: key.domainName,
        requestor: key.requestor,
        user_name: key.userName,
        expires_at: key.expiresAt,
        disabled_reason: null,
        user_id: key.userId ?? null,
        created_at: now,
        updated_at: now,
      }
      await lockedAccount(store, key.accountId, async (tx) => {
        await checkRoom(store, tx, key.accountId, now)
        await tx.insertInto('api_keys').values(row).execute()
        await enter(store, tx, keyEntries([row]))
      }).catch((error: unknown) => {
        throw error instanceof StaleWrite ? new BadRequest('another pod has this API key') : error
      })
      byDigest.forget(row.secret_hmac)
      return { row, secret }
    },
    async list(
      accountId: string,
      { domainName, kind }: { domainName?: string | undefined; kind?: string | undefined },
    ): Promise<ApiKeyRow[]> {
      let query = store.db.selectFrom('api_keys').selectAll().where('account_id', '=', accountId)
      if (domainName) query = query.where('domain_name', '=', domainName.toLowerCase())
      if (kind) query = query.where('kind', '=', kind)
      return query.orderBy('created_at').orderBy('id').execute()
    },
    async remove(accountId: string, id: string): Promise<void> {
      const removed = await lockedAccount(store, accountId, async (tx) => {
        const rows = await tx.selectFrom('api_keys').selectAll().where('account_id', '=', accountId).execute()
        const row = present(
          rows.find((candidate) => candidate.id === id),
          'no key matching id',
        )
        const admins = rows.filter((other) => isAdminKey(other) && isUsable(other, clock.now()))
        if (admins.length === 1 && admins[0] === row) throw new BadRequest('cannot delete the last admin key')
        await tx.deleteFrom('api_keys').where('id', '=', id).execute()
        await leave(store, tx, keyEntries([row]))
        return row
      })
      byDigest.forget(removed.secret_hmac)
    },
  }
}

const keyEntries = (rows: readonly Pick<ApiKeyRow, 'secret_hmac'>[]): Entry[] =>
  entriesOf(
    'key',
    rows.map((row) => row.secret_hmac),
  )

/** Why a key does not work any more; null: it works. `now`: Unix milliseconds. */
export function disabledReason(
  { disabled_reason, expires_at }: Pick<ApiKeyRow, 'disabled_reason' | 'expires_at'>,
  now: number,
): string | null {
  return disabled_reason ?? (expires_at !== null && expires_at <= now ? 'expired' : null)
}

const isUsable = (row: ApiKeyRow, now: number) => disabledReason(row, now) === null

const isAdminKey = ({ kind, role }: ApiKeyRow) => kind === 'user' && role === 'admin'

/**
 * Keys that do not work do not count towards the limit, but the list stays bounded: the ones that expired first are
 * removed early. @throws Forbidden
 */
async function checkRoom(
  store: Store,
  tx: Transaction<Schema>,
  accountId: string,
  now: number,
): Promise<void> {
  const rows = await tx
    .selectFrom('api_keys')
    .select(['id', 'secret_hmac', 'disabled_reason', 'expires_at'])
    .where('account_id', '=', accountId)
    .orderBy('expires_at')
    .execute()
  const unusable = rows.filter((row) => disabledReason(row, now) !== null)
  if (rows.length - unusable.length >= KEYS_PER_ACCOUNT_MAX)
    throw new Forbidden('could not create key, account limit reached')
  if (rows.length < LISTED_KEYS_MAX) return
  const surplus = unusable.slice(0, rows.length - LISTED_KEYS_MAX + 1)
  const ids = surplus.map(({ id }) => id)
  await tx.deleteFrom('api_keys').where('id', 'in', ids).execute()
  await leave(store, tx, keyEntries(surplus))
}

/**
 * The public key of an account: it may be seen by everybody, and authenticates the validation of addresses only
 * (accounts.md section 4 rule 11). An account has one at most.
 */
export type PublicKeys = ReturnType<typeof createPublicKeys>

const PUBLIC_KEY = /^pubkey-[0-9a-f]{32}$/

export const isPublicKey = (secret: string): boolean => PUBLIC_KEY.test(secret)

interface Holder {
  id: string
  account_id: string
}

export function createPublicKeys(store: Store, sealer: Sealer, clock: Clock) {
  const digest = (secret: string) => keyDigest(sealer, secret)
  const byDigest: Cache<Holder | null> = createCache({
    clock,
    ttlMs: CACHED_MS,
    entriesMax: CACHED_MAX,
    shared: { changes: store.changes, topic: 'public-keys' },
    load: async (hmac) =>
      (await store.db
        .selectFrom('public_keys')
        .innerJoin('accounts', 'accounts.id', 'public_keys.account_id')
        .select(['public_keys.id', 'account_id'])
        .where('secret_hmac', '=', hmac)
        .where('accounts.status', '<>', 'closed')
        .executeTakeFirst()) ?? null,
  })

  return {
    /** The holder; null for anything else, and for the key of a closed account. */
    authenticate(secret: string): MaybePromise<Caller | null> {
      if (!isPublicKey(secret)) return null
      return whenKnown(byDigest.get(digest(secret)), (found) =>
        found === null
          ? null
          : { accountId: found.account_id, keyId: found.id, kind: 'public', role: 'basic' },
      )
    },
    /** Replaces the account's key, which stops at once here and within seconds on other nodes. Resolves to the new one. */
    async regenerate(accountId: string): Promise<string> {
      const secret = `pubkey-${randomHex(16)}`
      const row = {
        id: `${randomHex(4)}-${randomHex(4)}`,
        secret_hmac: digest(secret),
        created_at: Math.floor(clock.now()),
      }
      await lockedAccount(store, accountId, async (tx) => {
        const former = await tx
          .selectFrom('public_keys')
          .select('secret_hmac')
          .where('account_id', '=', accountId)
          .execute()
        await tx
          .insertInto('public_keys')
          .values({ account_id: accountId, ...row })
          .onConflict((conflict) => conflict.column('account_id').doUpdateSet(row))
          .execute()
        await leave(store, tx, keyEntries(former))
        await enter(store, tx, keyEntries([row]))
      })
      byDigest.forget()
      return secret
    },
  }
}

/** accounts.md section 4 rule 8. */
const EXPIRED_KEYS_KEPT_MS = 30 * DAY_MS
/** Removed at a time: each takes its sessions and links with it. */
const STEP_ROWS = 500

/**
 * Expired keys stay in the list for a while, so that people see why a client stopped; then they are removed.
 */
export function keyRetention(store: Store, clock: Clock): Job {
  return createJob({
    name: 'key-retention',
    everyMs: HOUR_MS,
    scope: 'database',
    async work() {
      const rows = await store.db
        .selectFrom('api_keys')
        .select(['id', 'secret_hmac'])
        .where('expires_at', '<', Math.floor(clock.now() - EXPIRED_KEYS_KEPT_MS))
        .orderBy('expires_at')
        .limit(STEP_ROWS)
        .execute()
      if (rows.length === 0) return undefined
      const ids = rows.map(({ id }) => id)
      await store.commit([
        store.statement(store.db.deleteFrom('api_keys').where('id', 'in', ids)),
        ...leaveStatements(store, keyEntries(rows)),
      ])
      return rows.length === STEP_ROWS ? 'more' : undefined
    },
  })
}

const PURPOSE = 'local-administration'

/** The key id of the local key. */
export const LOCAL_KEY_ID = 'local'

/**
 * Access for the command line: whoever can read the sealing secret on this machine administers the service, so a
 * key derived from it needs no database row and no set-up.
 */
export function localKeySecret(sealer: Sealer): string {
  return `local-${sealer.mac(PURPOSE, 'admin').toString('hex')}`
}

/** Whether a secret is the local key. */
export function localKey(sealer: Sealer): (secret: string) => boolean {
  const expected = localKeySecret(sealer)
  return (secret) => equalSecrets(secret, expected)
}

/** For what proves access to this machine, never an API key or a session. @throws Forbidden */
export function requireLocalKey(caller: Caller): void {
  if (caller.keyId !== LOCAL_KEY_ID)
    throw new Forbidden(undefined, { why: 'only a command on the machine itself may do this' })
}

/** Removes the sending keys of a deleted domain: creating a domain under its name again must not revive them. */
export function removeSendingKeys(store: Store): OnDomainDeleted {
  return async (domain) => {
    await store.transaction(async (tx) => {
      const removed = await tx
        .deleteFrom('api_keys')
        .where('account_id', '=', domain.accountId)
        .where('kind', '=', 'domain')
        .where('domain_name', '=', domain.name)
        .returning('secret_hmac')
        .execute()
      await leave(store, tx, keyEntries(removed))
    })
  }
}
