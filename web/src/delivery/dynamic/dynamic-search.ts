import { searchTexts } from '../../shared/search-texts.ts'

export const VIEWS = ['domains', 'pools', 'history'] as const
export type DynamicView = (typeof VIEWS)[number]
export const SORTS = ['name', 'bounce_rate', 'complaint_rate'] as const
const WINDOWS = ['enroll', 'sets'] as const

/** Search parameters of the page of dynamic pools. */
export interface DynamicSearch {
  view?: DynamicView
  /** Band of the domains that are shown. */
  pool?: string
  sort?: string
  /** Filters the history. */
  domain?: string
  at?: string
  open?: (typeof WINDOWS)[number]
  /** The domain that leaves; its window is open. */
  leave?: string
}

export function readDynamicSearch(search: Record<string, unknown>): DynamicSearch {
  const view = VIEWS.find((each) => each === search['view'] && each !== 'domains')
  const open = WINDOWS.find((each) => each === search['open'])
  return {
    ...searchTexts(search, ['pool', 'sort', 'domain', 'at', 'leave']),
    ...(view && { view }),
    ...(open && { open }),
  }
}
