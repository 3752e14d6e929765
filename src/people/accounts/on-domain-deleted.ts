import type { Store } from '../../platform/store/store.ts'
import type { OnDomainDeleted } from '../../sending/domains/deletion.ts'

/** Removes the sending keys of a deleted domain: creating a domain under its name again must not revive them. */
export function removeSendingKeys(store: Store): OnDomainDeleted {
  return async (domain) => {
    await store.db
      .deleteFrom('api_keys')
      .where('account_id', '=', domain.accountId)
      .where('kind', '=', 'domain')
      .where('domain_name', '=', domain.name)
      .execute()
  }
}
