import type { Db, Store } from '../../../platform/store/store.ts'
import type { OnDomainDeleted } from '../deletion.ts'
import { lockNames } from '../names/name-lock.ts'
import type { SigningKeys } from './signing-keys.ts'

/** Removes the keys of a deleted domain, and those of its DKIM host if no other domain of the account uses it. */
export function removeKeys(store: Store, signingKeys: SigningKeys): OnDomainDeleted {
  return async (domain) => {
    for (const authority of new Set([domain.name, domain.dkimHost, domain.dkimAuthority])) {
      await store.transaction(async (tx) => {
        // A new domain that will use these keys is either visible here, or sees that they are gone.
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

async function isUsed(db: Db, accountId: string, authority: string): Promise<boolean> {
  const user = await db
    .selectFrom('domains')
    .select('id')
    .where('account_id', '=', accountId)
    .where((eb) =>
      eb.or([
        eb('name', '=', authority),
        eb('dkim_authority', '=', authority),
        eb('signing_authority', '=', authority),
      ]),
    )
    .limit(1)
    .executeTakeFirst()
  return user !== undefined
}
