import { searchTexts } from '../shared/search-texts.ts'
import { ACTIONS, FILTERS, type QueueAction, type QueueFilter } from './delivery-api.ts'

export const VIEWS = ['lanes', 'destinations', 'senders'] as const
export type View = (typeof VIEWS)[number]

/** Search parameters of the page. With `act` the window for an action on the queue is open. */
export interface DeliverySearch extends QueueFilter {
  view?: View
  /** Part of a name in the list. */
  q?: string
  act?: QueueAction
  /** Target of a move. */
  pool?: string
  /** Site of the window that stops all mail to it. */
  stop?: string
  /** Site of the window for its limits. */
  limits?: string
}

/** Search parameters of the page of providers. */
export type ProvidersSearch = Pick<DeliverySearch, 'q' | 'stop' | 'limits'>

export const readProvidersSearch = (search: Record<string, unknown>): ProvidersSearch =>
  searchTexts(search, ['q', 'stop', 'limits'])

export function readDeliverySearch(search: Record<string, unknown>): DeliverySearch {
  const view = VIEWS.find((value) => value === search['view'] && value !== 'lanes')
  const act = ACTIONS.find((value) => value === search['act'])
  return {
    ...searchTexts(search, ['q', 'pool', 'stop', 'limits', ...FILTERS]),
    ...(view && { view }),
    ...(act && { act }),
  }
}

/** Search parameters of a list with a form for a new item. */
export interface AddSearch {
  add?: 'yes'
}

export const readAddSearch = ({ add }: Record<string, unknown>): AddSearch => (add === 'yes' ? { add } : {})

/** Search parameters of the page of relays. */
export interface RelaysSearch extends AddSearch {
  /** Name of the relay whose form is open. */
  edit?: string
  /** That of the relay to pause, and of the one to test. */
  pause?: string
  test?: string
}

export const readRelaysSearch = (search: Record<string, unknown>): RelaysSearch => ({
  ...searchTexts(search, ['edit', 'pause', 'test']),
  ...readAddSearch(search),
})

/** Search parameters of the page of an address. */
export interface IpSearch extends AddSearch {
  /** Part of a domain's name. */
  q?: string
  at?: string
}

export const readIpSearch = (search: Record<string, unknown>): IpSearch => ({
  ...searchTexts(search, ['q', 'at']),
  ...readAddSearch(search),
})

/** The filter of the action in the URL. */
export const filterOf = (search: DeliverySearch): QueueFilter => searchTexts({ ...search }, FILTERS)
