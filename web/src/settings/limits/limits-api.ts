/** Monthly limits (docs/api/accounts.md section 5) and rate limits of accounts (docs/api/own-operations.md section 10). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendForm, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { valueOrThrow } from '../../queries.ts'

export type Limit = Api.MessageLimit

export const LIMITS_KEY = 'message-limits'
/** Lowest limit of an account, and of a subaccount. */
export const LIMIT_MIN = { own: 1_000, subaccount: 1 } as const

const OWN = '/v5/accounts/limit/custom'
/** Undefined: of the account that the pages are of. */
const pathOf = (subaccountId: string | undefined) =>
  subaccountId === undefined
    ? (`${OWN}/monthly` as const)
    : (`/v5/accounts/subaccounts/${encodeURIComponent(subaccountId)}/limit/custom/monthly` as const)

/** Null: there is none. */
export const limitQuery = (subaccountId: string | undefined) =>
  queryOptions({
    queryKey: [LIMITS_KEY, subaccountId ?? ''],
    async queryFn({ signal }) {
      const answer = await getJson(pathOf(subaccountId), signal)
      return !answer.ok && answer.failure.status === 404 ? null : valueOrThrow(answer)
    },
  })

export const setLimit = async (subaccountId: string | undefined, limit: string) =>
  valueOrThrow(await sendForm('PUT', pathOf(subaccountId), { limit }))

export const removeLimit = async (subaccountId: string | undefined) =>
  valueOrThrow(await sendJson('DELETE', pathOf(subaccountId)))

/** Lifts the stop of a reached limit. */
export const liftStop = async () => valueOrThrow(await sendJson('PUT', `${OWN}/enable`))

export const setStrict = async (enabled: boolean) =>
  valueOrThrow(
    await sendForm('PUT', '/v5/accounts/features', {
      strict_parameters: JSON.stringify({ enabled }),
    }),
  )

export type RateLimit = Api.AccountRateLimit

export const RATES_KEY = 'rate-limits'
const ratesPath = (accountId: string) =>
  `/sendwright/v1/accounts/${encodeURIComponent(accountId)}/rate-limits` as const

export const rateLimitsQuery = (accountId: string) =>
  queryOptions({
    queryKey: [RATES_KEY, accountId],
    queryFn: async ({ signal }) => valueOrThrow(await getJson(ratesPath(accountId), signal)).items,
  })

export const setRateLimit = async (accountId: string, name: string, count: string) =>
  valueOrThrow(await sendForm('PUT', `${ratesPath(accountId)}/${name}`, { count }))

export const resetRateLimit = async (accountId: string, name: string) =>
  valueOrThrow(await sendJson('DELETE', `${ratesPath(accountId)}/${name}`))
