/** Relays and relay rules (docs/api/relays.md). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendForm, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { valueOrThrow } from '../../queries.ts'
import { secondsTo, untilIn } from '../../shared/orders-api.ts'
import { REFRESH_MS } from '../delivery-api.ts'

export type Relay = Api.Relay
export type RelayRule = Api.RelayRule
export type RelayTest = Api.RelayTest
export type SnsTopic = Api.SnsTopic
export type Login = NonNullable<Relay['login']>

const BASE = '/sendwright/v1/relays'
const RULES = '/sendwright/v1/relay-rules'
const TOPICS = '/sendwright/v1/sns/topics'
const topicPath = (arn: string) => `${TOPICS}/${encodeURIComponent(arn)}` as const
const pathOf = (name: string) => `${BASE}/${encodeURIComponent(name)}` as const

/** Prefix of every query about relays. */
export const RELAYS_KEY = 'relays'
/** In place of a relay: the recipients' own servers. */
export const DIRECT = 'direct'

export const relaysQuery = queryOptions({
  queryKey: [RELAYS_KEY, 'list'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(BASE, signal)).items,
  refetchInterval: REFRESH_MS,
})

export const rulesQuery = queryOptions({
  queryKey: [RELAYS_KEY, 'rules'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(RULES, signal)).items,
})

export const topicsQuery = queryOptions({
  queryKey: [RELAYS_KEY, 'topics'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(TOPICS, signal)).items,
})

export const addTopic = async (arn: string) => valueOrThrow(await sendJson('PUT', topicPath(arn)))

export const removeTopic = async (arn: string) => valueOrThrow(await sendJson('DELETE', topicPath(arn)))

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

/** `seconds` '': until somebody ends it. */
export const pauseRelay = async (name: string, reason: string, seconds: string) =>
  valueOrThrow(await sendForm('PUT', `${pathOf(name)}/pause`, { reason, ...untilIn(seconds) }))

/** The pause as it was. */
export const pauseAgain = (name: string, { reason, until }: NonNullable<Relay['pause']>) =>
  pauseRelay(name, reason, secondsTo(until))

export const resumeRelay = async (name: string) =>
  valueOrThrow(await sendJson('DELETE', `${pathOf(name)}/pause`))

const TEST_TIMEOUT_MS = 180_000 // the service gives each of a dozen steps 15 seconds

export const testRelay = async (name: string, message: { from: string; to: string }) =>
  valueOrThrow(await sendJson('POST', `${pathOf(name)}/test`, message, TEST_TIMEOUT_MS))

export const setRules = async (items: readonly RelayRule[]) =>
  valueOrThrow(await sendJson('PUT', RULES, { items }))
