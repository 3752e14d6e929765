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
}

export function readDeliverySearch(search: Record<string, unknown>): DeliverySearch {
  const view = VIEWS.find((value) => value === search['view'] && value !== 'lanes')
  const act = ACTIONS.find((value) => value === search['act'])
  return {
    ...searchTexts(search, ['q', 'pool', ...FILTERS]),
    ...(view && { view }),
    ...(act && { act }),
  }
}

/** The filter of the action in the URL. */
export const filterOf = (search: DeliverySearch): QueueFilter => searchTexts({ ...search }, FILTERS)
