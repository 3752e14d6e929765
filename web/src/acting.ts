/**
 * The subaccount that this page acts for: `?account=<id>` of its URL, which every link of the dashboard keeps. It is fixed
 * as long as the page is loaded, as is the account of the session: switching loads the page anew, so that no data of one
 * account can be shown as another's.
 */
const PARAMETER = 'account'

const idIn = (search: string) => {
  const id = new URLSearchParams(search).get(PARAMETER) ?? ''
  return /^[0-9a-f]{24}$/.test(id) ? id : undefined
}

/** Undefined: the account of the session itself. */
export const actingFor = typeof window === 'undefined' ? undefined : idIn(window.location.search)

export const ACTING_HEADER = 'X-Service-On-Behalf-Of'

/** Headers that a request for that account needs; a browser cannot add them to a link or to an event stream. */
export const actingHeaders: Readonly<Record<string, string>> =
  actingFor === undefined ? {} : { [ACTING_HEADER]: actingFor }

/** Search parameters of a page, without the account; values are texts. */
export function readSearch(text: string): Record<string, string> {
  const search = Object.fromEntries(new URLSearchParams(text))
  delete search[PARAMETER]
  return search
}

/** The query string of a page with these parameters; empty and absent ones are left out, the account is kept. */
export function writeSearch(search: Readonly<Record<string, unknown>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(search)) if (value) query.set(name, String(value))
  if (actingFor !== undefined) query.set(PARAMETER, actingFor)
  return query.size > 0 ? `?${query}` : ''
}

/** Loads the start page for a subaccount; undefined: for the account of the session. */
export function actFor(subaccountId: string | undefined): void {
  window.location.assign(subaccountId === undefined ? '/' : `/?${PARAMETER}=${subaccountId}`)
}
