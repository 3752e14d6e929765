import { searchTexts } from '../../shared/search-texts.ts'

/** Search parameters of the page about receivers. */
export interface ReceiversSearch {
  /** The type of reports; absent: all. */
  type?: string
  at?: string
}

export const readReceiversSearch = (search: Record<string, unknown>): ReceiversSearch =>
  searchTexts(search, ['type', 'at'])
