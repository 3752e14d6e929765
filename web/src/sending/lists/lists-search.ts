import { searchText } from '../../shared/page/search.ts'

/** Search parameters of the page of mailing lists. */
export interface ListsSearch {
  /** Whole address of a list. */
  q?: string
  /** Lists left out at the beginning. */
  skip?: string
  add?: 'yes'
}

/** Search parameters of the page of one list. */
export interface ListSearch {
  /** Whole address of a member. */
  q?: string
  subscribed?: 'yes' | 'no' | 'pending'
  at?: string
  open?: 'add' | 'import' | 'edit' | 'consent'
}

export function readListsSearch(search: Record<string, unknown>): ListsSearch {
  const [q, skip] = [searchText(search['q']), searchText(search['skip'])]
  return {
    ...(q !== undefined && { q }),
    ...(skip !== undefined && /^\d{1,9}$/.test(skip) && { skip }),
    ...(search['add'] === 'yes' && { add: 'yes' }),
  }
}

export function readListSearch(search: Record<string, unknown>): ListSearch {
  const [q, at] = [searchText(search['q']), searchText(search['at'])]
  const { subscribed, open } = search
  return {
    ...(q !== undefined && { q }),
    ...((subscribed === 'yes' || subscribed === 'no' || subscribed === 'pending') && { subscribed }),
    ...(at !== undefined && { at }),
    ...((open === 'add' || open === 'import' || open === 'edit' || open === 'consent') && { open }),
  }
}
