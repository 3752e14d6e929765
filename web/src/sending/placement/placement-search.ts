/** Search parameters of the page of inbox placement. */
export interface PlacementSearch {
  /** Default: tests. */
  view?: 'lists'
  /** Tests left out at the beginning. */
  skip?: string
  add?: 'yes'
}

export function readPlacementSearch(search: Record<string, unknown>): PlacementSearch {
  const { skip } = search
  return {
    ...(search['view'] === 'lists' && { view: 'lists' }),
    ...(typeof skip === 'string' && /^[1-9]\d{0,8}$/.test(skip) && { skip }),
    ...(search['add'] === 'yes' && { add: 'yes' }),
  }
}
