/** The operations on subaccounts (docs/api/accounts.md section 3). */
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { followJson, getJson, sendAs, sendForm, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { valueOrThrow } from '../../queries.ts'

export const FEATURES = [
  'sending',
  'validations',
  'validations_bulk',
  'email_preview',
  'inbox_placement',
] as const
export type Feature = (typeof FEATURES)[number]

export type Subaccount = Api.Subaccount

/** Prefix of every query about subaccounts. */
export const SUBACCOUNTS_KEY = 'subaccounts'
export const PAGE_SIZE = 50 // about three screens

const BASE = '/v5/accounts/subaccounts'
const pathOf = (id: string) => `${BASE}/${encodeURIComponent(id)}` as const

/** `state`: `enabled`, `disabled`, `closed` with all others, or '' for open and disabled ones. */
export function subaccountsPath(filter: string, state: string): string {
  const query = new URLSearchParams({ limit: String(PAGE_SIZE), sort: 'asc' })
  if (filter !== '') query.set('filter', filter)
  if (state === 'closed') query.set('closed', 'true')
  else if (state !== '') query.set('enabled', String(state === 'enabled'))
  return `${BASE}?${query}`
}

export const subaccountsQuery = (path: string) =>
  queryOptions({
    queryKey: [SUBACCOUNTS_KEY, path],
    queryFn: async ({ signal }) =>
      valueOrThrow(await followJson<'GET /v5/accounts/subaccounts'>(path, signal)),
    placeholderData: keepPreviousData,
  })

export const subaccountQuery = (id: string) =>
  queryOptions({
    queryKey: [SUBACCOUNTS_KEY, 'one', id],
    queryFn: async ({ signal }) => valueOrThrow(await getJson(pathOf(id), signal)).subaccount,
  })

export const createSubaccount = async (name: string) =>
  valueOrThrow(await sendForm('POST', BASE, { name })).subaccount

export const disableSubaccount = async (id: string, why: { reason: string; note: string }) =>
  valueOrThrow(await sendForm('POST', `${pathOf(id)}/disable`, why))

export const enableSubaccount = async (id: string) =>
  valueOrThrow(await sendJson('POST', `${pathOf(id)}/enable`))

/** The subaccount to close is the one that the request acts for. */
export const closeSubaccount = async (id: string) => valueOrThrow(await sendAs(id, 'DELETE', BASE))

export const setFeature = async (id: string, feature: Feature, enabled: boolean) =>
  valueOrThrow(await sendForm('PUT', `${pathOf(id)}/features`, { [feature]: JSON.stringify({ enabled }) }))
