/** The operations of the public API that the pages of settings use (docs/api/accounts.md, own-operations.md). */
import { queryOptions } from '@tanstack/react-query'
import type { UserRole } from '../../../src/platform/http/rights/rights.ts'
import { followJson, getJson, sendForm, sendJson } from '../api.ts'
import type * as Api from '../api-types.ts'
import { valueOrThrow } from '../queries.ts'
import type { AuditSearch } from './settings-search.ts'

const OWN = '/sendwright/v1'
const segment = encodeURIComponent

export const KEYS_KEY = 'api-keys'
export const USERS_KEY = 'users'

export type ApiKey = Api.ApiKey

/** The API's times of keys and users are UTC without a zone. */
export const utc = (time: string) => (/(?:Z|[+-]\d\d:?\d\d)$/.test(time) ? time : `${time}Z`)

export const KEY_ROLES = ['admin', 'developer', 'support', 'basic', 'sending'] as const
export type KeyRole = (typeof KEY_ROLES)[number]

export const keysQuery = queryOptions({
  queryKey: [KEYS_KEY],
  queryFn: async ({ signal }) => valueOrThrow(await getJson('/v1/keys', signal)).items,
})

export interface NewKey {
  role: KeyRole
  description: string
  /** Used for a sending key only. */
  domain: string
  /** Seconds; '' never ends. */
  expiration: string
}

/** A sending key is one of kind `domain`. Answers with the secret, which is shown only this once. */
export const createKey = async ({ role, description, domain, expiration }: NewKey) =>
  valueOrThrow(
    await sendForm('POST', '/v1/keys', {
      role,
      ...(role === 'sending' && { kind: 'domain', domain_name: domain }),
      ...(description !== '' && { description }),
      ...(expiration !== '' && { expiration }),
    }),
  ).key

export const deleteKey = async (id: string) =>
  valueOrThrow(await sendJson('DELETE', `/v1/keys/${segment(id)}`))

export type User = Api.User

export const USERS_MAX = 1000 // an account has no more

export const usersQuery = queryOptions({
  queryKey: [USERS_KEY],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(`/v5/users?limit=${USERS_MAX}`, signal)).users,
})

export const inviteUser = async (user: { email: string; name: string; role: UserRole }) =>
  valueOrThrow(await sendForm('POST', '/v5/users', { ...user }))

export const inviteAgain = async (id: string) =>
  valueOrThrow(await sendJson('POST', `${OWN}/users/${segment(id)}/invitation`))

export const setRole = async (id: string, role: UserRole) =>
  valueOrThrow(await sendForm('PUT', `/v5/users/${segment(id)}`, { role }))

export const resetSecondFactor = async (id: string) =>
  valueOrThrow(await sendJson('DELETE', `${OWN}/users/${segment(id)}/totp`))

export const removeUser = async (id: string) =>
  valueOrThrow(await sendJson('DELETE', `/v5/users/${segment(id)}`))

export type AuditEntry = Api.AuditEntry

export const AUDIT_PAGE_SIZE = 50 // about three screens

/** `from`, `to`: first and last day in the reader's zone. */
export function auditPath({ from, to, ...filters }: Omit<AuditSearch, 'at'>): string {
  const [after, before] = [dayStart(from, 0), dayStart(to, 1)]
  const times = { ...(after !== undefined && { after }), ...(before !== undefined && { before }) }
  return `${OWN}/audit?${new URLSearchParams({ limit: String(AUDIT_PAGE_SIZE), ...filters, ...times })}`
}

/** Start of the day so many days later, in Unix seconds; undefined for what is no day. */
function dayStart(day: string | undefined, later: number): string | undefined {
  const date = new Date(`${day}T00:00:00`)
  date.setDate(date.getDate() + later)
  const ms = date.getTime()
  return Number.isFinite(ms) ? String(Math.floor(ms / 1000)) : undefined
}

export const auditActionsQuery = queryOptions({
  queryKey: ['audit', 'actions'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(`${OWN}/audit/actions`, signal)).items,
})

export const auditQuery = (path: string) =>
  queryOptions({
    queryKey: ['audit', path],
    queryFn: async ({ signal }) => valueOrThrow(await followJson<'GET /sendwright/v1/audit'>(path, signal)),
  })

export type SystemCheck = Api.SystemCheck

export const checksQuery = queryOptions({
  queryKey: ['system-checks'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(`${OWN}/system/checks`, signal)).items,
})

export type SizeKind = Api.StorageUse['kinds'][number]

export type Job = Api.PeriodicJob

export type SystemDetails = Api.System

const SYSTEM_REFRESH_MS = 10_000

export const systemDetailsQuery = queryOptions({
  queryKey: ['system-details'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(`${OWN}/system`, signal)),
  refetchInterval: SYSTEM_REFRESH_MS,
})
