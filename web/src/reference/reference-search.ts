import { searchTexts } from '../shared/search-texts.ts'

export interface ReferenceSearch {
  /** Words of the operations in the list. */
  q?: string
  /** Language of the code; absent: curl. */
  code?: string
}

export const readReferenceSearch = (search: Record<string, unknown>): ReferenceSearch =>
  searchTexts(search, ['q', 'code'])
