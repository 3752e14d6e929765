/** An account's key for signing webhooks (accounts.md section 1). */

import { randomHex } from '../../base/ids.ts'
import { BadRequest } from '../../base/process/errors.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import type { Store } from '../../platform/store/store.ts'
import type { SigningKeys } from './payload.ts'
import { SIGNING_KEY } from './shapes.ts'

const api = operationsOf({ tag: 'Account', auth: { area: 'account' } })
const PATH = '/v5/accounts/http_signing_key'

/** The purpose that the key is sealed under; new accounts have a key. */
const PURPOSE = 'webhook-signing-key'

export function openSigningKey(sealer: Sealer, sealed: Uint8Array): string {
  return sealer.open(PURPOSE, sealed).toString()
}

/** @throws BadRequest if the account has none */
export async function readSigningKey(store: Store, sealer: Sealer, accountId: string): Promise<string> {
  const row = await store.db
    .selectFrom('accounts')
    .select('signing_key_sealed')
    .where('id', '=', accountId)
    .executeTakeFirst()
  if (!row?.signing_key_sealed.byteLength) throw new BadRequest('could not get HSK for account')
  return openSigningKey(sealer, row.signing_key_sealed)
}

/** The keys that sign what an account is sent. @throws if the account is gone */
export async function signingKeysOf(
  store: Store,
  sealer: Sealer,
  accountId: string,
): Promise<SigningKeys & { parentId: string | null }> {
  const row = await store.db
    .selectFrom('accounts')
    .leftJoin('accounts as parents', 'parents.id', 'accounts.parent_id')
    .select(['accounts.signing_key_sealed as own', 'parents.signing_key_sealed as parent'])
    .select('parents.id as parentId')
    .where('accounts.id', '=', accountId)
    .executeTakeFirstOrThrow()
  return {
    own: openSigningKey(sealer, row.own),
    parent: row.parent === null ? null : openSigningKey(sealer, row.parent),
    parentId: row.parentId,
  }
}

/** Replaces the key; all later signatures use the new one, including those of retries. */
export async function regenerateSigningKey(store: Store, sealer: Sealer, accountId: string): Promise<string> {
  const key = `key-${randomHex(16)}`
  await store.db
    .updateTable('accounts')
    .set({ signing_key_sealed: sealer.seal(PURPOSE, key) })
    .where('id', '=', accountId)
    .execute()
  return key
}

export function signingKeyRoutes({ store, sealer }: { store: Store; sealer: Sealer }): Operation[] {
  return [
    api.get(PATH, {
      answers: { 200: SIGNING_KEY },
      id: 'readSigningKey',
      summary: 'Read the key that webhooks are signed with',
      handler: async ({ caller }) => ({
        message: 'success',
        http_signing_key: await readSigningKey(store, sealer, caller.accountId),
      }),
    }),
    api.post(PATH, {
      answers: { 200: SIGNING_KEY },
      id: 'regenerateSigningKey',
      summary: 'Replace the key that webhooks are signed with',
      handler: async ({ caller }) => ({
        message: 'regenerated HTTP signing key for account',
        http_signing_key: await regenerateSigningKey(store, sealer, caller.accountId),
      }),
    }),
  ]
}
