/** The counts of the overview; `good`: more of it is better. */
export const COUNTS = [
  { id: 'accepted', metric: 'accepted_count', color: 2, good: true },
  { id: 'delivered', metric: 'delivered_count', color: 1, good: true },
  { id: 'bounced', metric: 'bounced_count', color: 3, good: false },
  { id: 'complained', metric: 'complained_count', color: 5, good: false },
  { id: 'opened', metric: 'unique_opened_count', color: 4, good: true },
  { id: 'clicked', metric: 'unique_clicked_count', color: 6, good: true },
] as const

export type CountId = (typeof COUNTS)[number]['id']

export interface OverviewSearch {
  /** The count whose curve is shown. */
  curve?: CountId
}

export function readOverviewSearch(search: Record<string, unknown>): OverviewSearch {
  const count = COUNTS.find(({ id }) => id === search['curve'])
  return count === undefined ? {} : { curve: count.id }
}
