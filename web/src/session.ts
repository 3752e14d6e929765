/** Who is signed in, and what it may do: the dashboard shows only what the rights table allows. */
import { queryOptions, useQuery } from '@tanstack/react-query'
import type { Access, RightsArea } from '../../src/platform/http/rights/rights.ts'
import { getJson } from './api.ts'
import type * as Api from './api-types.ts'
import { writeDates } from './base/format.ts'
import { valueOrThrow } from './queries.ts'

export type Session = Api.CallerIdentity

/** What a page, an entry or a button takes. */
export interface Need {
  area: RightsArea
  /** Default `read`. */
  access?: Access
  /** `parent`: accounts that are no subaccount; `first`: the operator's account. */
  only?: 'parent' | 'first'
}

/** Keys, and links of the operator, belong to nobody who could have chosen. */
const NO_CHOICE = { language: null, time_zone: null }

export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: async ({ signal }) => {
    const session = valueOrThrow(await getJson('/sendwright/v1/session', signal))
    writeDates(session.user ?? NO_CHOICE)
    return session
  },
})

export function may(session: Session, need: Need | undefined): boolean {
  if (need === undefined) return true
  if (need.only === 'first' && !session.account.is_first) return false
  if (need.only === 'parent' && session.account.parent_id !== null) return false
  return session.rights[need.area].includes(need.access === 'write' ? 'W' : 'R')
}

/** The session, which is known wherever pages are shown (session-gate.tsx). */
export function useSession(): Session {
  const { data } = useQuery(sessionQuery)
  if (data === undefined) throw new Error('Cannot read the session: no page is shown without one')
  return data
}

/** Whether the caller may do this. */
export const useMay = (need: Need) => may(useSession(), need)
