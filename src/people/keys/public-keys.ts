/**
 * The public key of an account: it may be seen by everybody, and authenticates the validation of addresses only
 * (accounts.md section 4 rule 11). An account has one at most.
 */
import { type Cache, createCache, type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import { randomHex } from '../../base/ids.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import type { Store } from '../../platform/store/store.ts'

export interface PublicKeys {
  /** The holder; null for anything else, and for the key of a closed account. */
  authenticate(secret: string): MaybePromise<Caller | null>
  /** Replaces the account's key, which stops at once here and within seconds on other nodes. Resolves to the new one. */
  regenerate(accountId: string): Promise<string>
}

const PUBLIC_KEY = /^pubkey-[0-9a-f]{32}$/
const CACHED_MS = 5_000
const CACHED_MAX = 10_000

export const isPublicKey = (secret: string): boolean => PUBLIC_KEY.test(secret)

interface Holder {
  id: string
  account_id: string
}

export function createPublicKeys(store: Store, sealer: Sealer, clock: Clock): PublicKeys {
  const digest = (secret: string) => sealer.mac('public-key', secret).toString('hex')
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
    authenticate(secret) {
      if (!isPublicKey(secret)) return null
      return whenKnown(byDigest.get(digest(secret)), (found) =>
        found === null
          ? null
          : { accountId: found.account_id, keyId: found.id, kind: 'public', role: 'basic' },
      )
    },
    async regenerate(accountId) {
      const secret = `pubkey-${randomHex(16)}`
      const row = {
        id: `${randomHex(4)}-${randomHex(4)}`,
        secret_hmac: digest(secret),
        created_at: Math.floor(clock.now()),
      }
      await store.db
        .insertInto('public_keys')
        .values({ account_id: accountId, ...row })
        .onConflict((conflict) => conflict.column('account_id').doUpdateSet(row))
        .execute()
      byDigest.forget()
      return secret
    },
  }
}
