import { searchTexts } from '../shared/search-texts.ts'

export interface RoutesSearch {
  /** Query string of the page of the list (shared/paging.ts). */
  at?: string
  /** Address in the tester. */
  address?: string
  /** The form for a new route is open. */
  add?: 'yes'
  /** Id of the route whose form is open. */
  edit?: string
}

export function readRoutesSearch(search: Record<string, unknown>): RoutesSearch {
  return {
    ...searchTexts(search, ['at', 'address', 'edit']),
    ...(search['add'] === 'yes' && { add: 'yes' as const }),
  }
}
