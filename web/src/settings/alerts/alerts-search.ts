import { searchTexts } from '../../shared/search-texts.ts'

export const VIEWS = ['hits', 'alerts', 'channels'] as const
export type AlertView = (typeof VIEWS)[number]

/** Search parameters of the page of alerts. */
export interface AlertsSearch {
  view?: AlertView
  /** The form for a new alert or channel is open. */
  add?: 'yes'
  /** Name of the alert, or id of the channel, whose form is open. */
  edit?: string
}

export function readAlertsSearch(search: Record<string, unknown>): AlertsSearch {
  const view = VIEWS.find((each) => each === search['view'] && each !== 'hits')
  return {
    ...searchTexts(search, ['edit']),
    ...(view && { view }),
    ...(search['add'] === 'yes' && { add: 'yes' }),
  }
}
