/** How accounts stand (docs/api/standing.md). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendForm } from '../api.ts'
import { valueOrThrow } from '../queries.ts'

/** Prefix of every query about standings. */
export const STANDING_KEY = 'standing'
const REFRESH_MS = 15_000

const pathOf = (accountId: string) =>
  `/sendwright/v1/accounts/${encodeURIComponent(accountId)}/standing` as const

export const standingQuery = (accountId: string) =>
  queryOptions({
    queryKey: [STANDING_KEY, accountId],
    queryFn: async ({ signal }) => valueOrThrow(await getJson(pathOf(accountId), signal)),
    refetchInterval: REFRESH_MS,
  })

/** Without a domain: the account as a whole. */
export const releaseStanding = async (accountId: string, domain: string | undefined) =>
  valueOrThrow(await sendForm('POST', `${pathOf(accountId)}/release`, domain === undefined ? {} : { domain }))
