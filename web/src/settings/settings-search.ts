import { searchTexts } from '../shared/search-texts.ts'

/** Search parameters of a list with a form. */
export interface ListSearch {
  /** The form for a new item is open. */
  add?: 'yes'
}

export const readListSearch = ({ add }: Record<string, unknown>): ListSearch => (add === 'yes' ? { add } : {})

export const AUDIT_FILTERS = ['subject', 'action', 'user_id', 'key_id', 'remote_address'] as const
export type AuditFilter = (typeof AUDIT_FILTERS)[number]

export interface AuditSearch extends Partial<Record<AuditFilter, string>> {
  /** Query string of the page of the list (shared/paging.ts). */
  at?: string
}

export const readAuditSearch = (search: Record<string, unknown>): AuditSearch =>
  searchTexts(search, [...AUDIT_FILTERS, 'at'])

/** Search parameters of the page of retention. */
export interface RetentionSearch {
  /** Without it: of the account. */
  domain?: string
}

export const readRetentionSearch = (search: Record<string, unknown>): RetentionSearch =>
  searchTexts(search, ['domain'])

/** Search parameters of the page of subaccounts. */
export interface SubaccountsSearch extends ListSearch {
  /** Part of a name. */
  q?: string
  state?: string
  at?: string
}

export const readSubaccountsSearch = (search: Record<string, unknown>): SubaccountsSearch => ({
  ...searchTexts(search, ['q', 'state', 'at']),
  ...readListSearch(search),
})

/** Search parameters of the page of one subaccount. */
export interface SubaccountSearch {
  /** The form to disable it is open. */
  disable?: 'yes'
}

export const readSubaccountSearch = ({ disable }: Record<string, unknown>): SubaccountSearch =>
  disable === 'yes' ? { disable } : {}

/** Search parameters of a list with a form, also for one of its items. */
export interface EditSearch extends ListSearch {
  edit?: string
}

export const readEditSearch = (search: Record<string, unknown>): EditSearch => ({
  ...searchTexts(search, ['edit']),
  ...readListSearch(search),
})
