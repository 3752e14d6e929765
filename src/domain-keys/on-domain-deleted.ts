import type { Kysely } from 'kysely'
import type { OnDomainDeleted } from '../domains/deletion.ts'
import { lockNames } from '../domains/name-lock.ts'
import type { Schema } from '../store/schema.ts'
import type { Store } from '../store/store.ts'
import type { SigningKeys } from './signing-keys.ts'

/** Removes the keys of a deleted domain, and those of its DKIM host when no other domain of the account uses it. */
export function removeKeys(store: Store, signingKeys: SigningKeys): OnDomainDeleted {
  return async (domain) => {
    for (const authority of new Set([domain.name, domain.dkimHost, domain.dkimAuthority])) {
      await store.transaction(async (tx) => {
        // A new domain that is to use these keys is seen here, or sees that they are gone.
        await lockNames(store, tx, authority)
        if (!(await isUsed(tx, domain.accountId, authority)))
          await tx
            .deleteFrom('dkim_keys')
            .where('account_id', '=', domain.accountId)
            .where('authority', '=', authority)
            .execute()
      })
      signingKeys.changed(authority)
    }
    await store.db.deleteFrom('sender_security').where('domain_id', '=', domain.id).execute()
  }
}

async function isUsed(db: Kysely<Schema>, accountId: string, authority: string): Promise<boolean> {
  const user = await db
    .selectFrom('domains')
    .select('id')
    .where('account_id', '=', accountId)
    .where((of) =>
      of.or([
        of('name', '=', authority),
        of('dkim_authority', '=', authority),
        of('signing_authority', '=', authority),
      ]),
    )
    .limit(1)
    .executeTakeFirst()
  return user !== undefined
}
