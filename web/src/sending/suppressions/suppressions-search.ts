import { searchText } from '../../shared/page/search.ts'

export const KINDS = ['bounces', 'complaints', 'unsubscribes', 'whitelists'] as const
export type Kind = (typeof KINDS)[number]

/** Search parameters of the page of suppressions. */
export interface SuppressionsSearch {
  domain?: string
  /** Default `bounces`. */
  kind?: Kind
  /** Beginning of the address. */
  q?: string
  /** Query string of the page of the list. */
  at?: string
  /** The form that is open. */
  open?: 'add' | 'import'
}

export function readSuppressionsSearch(search: Record<string, unknown>): SuppressionsSearch {
  const [domain, q, at] = [searchText(search['domain']), searchText(search['q']), searchText(search['at'])]
  const kind = KINDS.find((name) => name === search['kind'])
  const { open } = search
  return {
    ...(domain !== undefined && { domain }),
    ...(kind !== undefined && { kind }),
    ...(q !== undefined && { q }),
    ...(at !== undefined && { at }),
    ...((open === 'add' || open === 'import') && { open }),
  }
}
