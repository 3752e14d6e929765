/** Removes the mailing lists of a closed account. Their members go first, in portions: a list may have a million. */
import { type RowParts, removeIndexedRows, removeRowsInPass } from '../../platform/store/account-rows.ts'
import type { ListStore } from './store.ts'

const LISTS = 100

export async function removeListsOf(
  parts: RowParts,
  lists: Pick<ListStore, 'page' | 'remove'>,
  accountId: string,
  signal: AbortSignal,
): Promise<void> {
  await removeRowsInPass(parts, 'list_expansions', 'id', accountId, signal)
  await removeRowsInPass(parts, 'list_uploads', 'id', accountId, signal)
  const trail = ['account_id', 'address_key', 'id'] as const
  await removeIndexedRows(parts, 'consent_trail', trail, 'account_id', accountId, signal)
  for (;;) {
    const some = await lists.page(accountId, { page: 'first', pivot: null, limit: LISTS })
    for (const list of some) {
      const key = ['list_id', 'address_key'] as const
      await removeIndexedRows(parts, 'list_members', key, 'list_id', list.id, signal)
      await lists.remove(list)
    }
    if (some.length < LISTS) return
  }
}
