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
