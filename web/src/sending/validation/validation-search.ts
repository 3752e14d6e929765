import { searchText } from '../../shared/page/search.ts'

/** Search parameters of the page of validation. */
export interface ValidationSearch {
  /** An address that is validated at once. */
  address?: string
  at?: string
  add?: 'yes'
}

export function readValidationSearch(search: Record<string, unknown>): ValidationSearch {
  const [address, at] = [searchText(search['address']), searchText(search['at'])]
  return {
    ...(address !== undefined && { address }),
    ...(at !== undefined && { at }),
    ...(search['add'] === 'yes' && { add: 'yes' }),
  }
}
