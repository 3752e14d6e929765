/** Relays and relay rules (docs/api/relays.md). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { valueOrThrow } from '../../queries.ts'

export type Relay = Api.Relay
export type RelayRule = Api.RelayRule
export type Login = NonNullable<Relay['login']>

const BASE = '/sendwright/v1/relays'
const RULES = '/sendwright/v1/relay-rules'
const pathOf = (name: string) => `${BASE}/${encodeURIComponent(name)}` as const

/** Prefix of every query about relays. */
export const RELAYS_KEY = 'relays'
/** In place of a relay: the recipients' own servers. */
export const DIRECT = 'direct'

export const relaysQuery = queryOptions({
  queryKey: [RELAYS_KEY, 'list'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(BASE, signal)).items,
})

export const rulesQuery = queryOptions({
  queryKey: [RELAYS_KEY, 'rules'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(RULES, signal)).items,
})

/** A relay with its secrets, as it is sent; those that are left out stay. */
export interface GivenRelay
  extends Pick<Relay, 'host' | 'port' | 'tls' | 'allow_unverified' | 'limits' | 'alters'> {
  return_path: Relay['return_path']
  offered_to: Relay['offered_to']
  login: GivenLogin | null
}

interface GivenLogin extends Pick<Login, 'mechanism' | 'username'> {
  password?: string
  oauth?: Pick<NonNullable<Login['oauth']>, 'token_url' | 'client_id' | 'scope' | 'grant' | 'client_auth'> & {
    client_secret?: string
    refresh_token?: string
  }
}

export const createRelay = async (name: string, relay: GivenRelay) =>
  valueOrThrow(await sendJson('POST', BASE, { name, ...relay }))

export const replaceRelay = async (name: string, relay: GivenRelay) =>
  valueOrThrow(await sendJson('PUT', pathOf(name), relay))

export const removeRelay = async (name: string) => valueOrThrow(await sendJson('DELETE', pathOf(name)))

export const setRules = async (items: readonly RelayRule[]) =>
  valueOrThrow(await sendJson('PUT', RULES, { items }))
