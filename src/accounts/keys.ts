/**
 * API keys. A secret has 128 bits or more, so what is stored is its HMAC under the sealing secret and its last
 * four characters (auth-limits.md section 2 rule 1); the secret itself is shown once.
 */

import { type Cache, createCache, type MaybePromise } from '../base/cache.ts'
import type { Clock } from '../base/clock.ts'
import { BadRequest, Forbidden, NotFound } from '../base/errors.ts'
import { randomHex } from '../base/ids.ts'
import { remember } from '../base/remember.ts'
import type { Caller, Role } from '../http/auth.ts'
import type { ApiKeyRow } from '../store/schema.ts'
import type { Sealer } from '../store/sealing.ts'
import type { Store } from '../store/store.ts'

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
  /** Unix milliseconds; null: never. */
  expiresAt: number | null
}

export interface Keys {
  /** The holder of a secret, or null if it is unknown, disabled or expired. */
  authenticate(secret: string): MaybePromise<Caller | null>
  /** Makes a key; `secret` is given only for the operator's own first key. */
  create(key: NewKey, secret?: string): Promise<{ row: ApiKeyRow; secret: string }>
  list(
    accountId: string,
    filter: { domainName?: string | undefined; kind?: string | undefined },
  ): Promise<ApiKeyRow[]>
  remove(accountId: string, id: string): Promise<void>
}

/** A deleted or expired key stops this much later at the most on other nodes (accounts.md section 4 rule 9). */
const REMEMBER_MS = 5_000
const REMEMBERED_MAX = 10_000
const KEYS_PER_ACCOUNT_MAX = 100
/** An HMAC for each call would be 3 % of accepting a message. */
const DIGESTS_MAX = 1_000
/** Longer passwords than any secret of ours are refused before they are hashed. */
const SECRET_LENGTH_MAX = 256

export function createKeys(store: Store, sealer: Sealer, clock: Clock): Keys {
  const compute = (secret: string) => sealer.mac('api-key', secret).toString('hex')
  /** Of secrets that were right: a client sends the same one thousands of times a second. */
  const digests = new Map<string, string>()
  const digest = (secret: string) => digests.get(secret) ?? compute(secret)
  const byDigest: Cache<ApiKeyRow | null> = createCache({
    clock,
    ttlMs: REMEMBER_MS,
    entriesMax: REMEMBERED_MAX,
    load: async (hmac) =>
      (await store.db
        .selectFrom('api_keys')
        .selectAll()
        .where('secret_hmac', '=', hmac)
        .executeTakeFirst()) ?? null,
  })
  function holder(secret: string, hmac: string, row: ApiKeyRow | null): Caller | null {
    // In whatever time: nobody can come closer to an HMAC letter by letter.
    if (!row || row.secret_hmac !== hmac) return null
    if (!digests.has(secret)) remember(digests, DIGESTS_MAX, secret, hmac)
    if (row.disabled_reason !== null || (row.expires_at !== null && row.expires_at <= clock.now()))
      return null
    return {
      accountId: row.account_id,
      keyId: row.id,
      kind: row.kind as KeyKind,
      role: row.role as Role,
      ...(row.domain_name && { domain: row.domain_name }),
    }
  }

  return {
    authenticate(secret) {
      if (secret.length > SECRET_LENGTH_MAX) return null
      const hmac = digest(secret)
      const row = byDigest.get(hmac)
      return row instanceof Promise
        ? row.then((found) => holder(secret, hmac, found))
        : holder(secret, hmac, row)
    },
    async create(key, given) {
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
        created_at: now,
        updated_at: now,
      }
      await store.transaction(async (tx) => {
        const { count } = await tx
          .selectFrom('api_keys')
          .select((of) => of.fn.countAll<number>().as('count'))
          .where('account_id', '=', key.accountId)
          .executeTakeFirstOrThrow()
        if (Number(count) >= KEYS_PER_ACCOUNT_MAX)
          throw new Forbidden('could not create key, account limit reached')
        await tx.insertInto('api_keys').values(row).execute()
      })
      byDigest.forget(row.secret_hmac)
      return { row, secret }
    },
    async list(accountId, { domainName, kind }) {
      let query = store.db.selectFrom('api_keys').selectAll().where('account_id', '=', accountId)
      if (domainName) query = query.where('domain_name', '=', domainName.toLowerCase())
      if (kind) query = query.where('kind', '=', kind)
      return query.orderBy('created_at').orderBy('id').execute()
    },
    async remove(accountId, id) {
      const removed = await store.transaction(async (tx) => {
        const rows = await tx.selectFrom('api_keys').selectAll().where('account_id', '=', accountId).execute()
        const row = rows.find((candidate) => candidate.id === id)
        if (!row) throw new NotFound('no key matching id')
        const otherAdmins = rows.filter(
          (other) => other.id !== id && other.role === 'admin' && other.kind === 'user',
        )
        if (row.role === 'admin' && otherAdmins.length === 0)
          throw new BadRequest('cannot delete the last admin key')
        await tx.deleteFrom('api_keys').where('id', '=', id).execute()
        return row
      })
      byDigest.forget(removed.secret_hmac)
    },
  }
}
