/** The operations of the public API that the pages of settings use (docs/api/accounts.md, own-operations.md). */
import { queryOptions } from '@tanstack/react-query'
import type { UserRole } from '../../../src/http/rights.ts'
import { getJson, type Page, sendForm, sendJson } from '../api.ts'
import { valueOrThrow } from '../queries.ts'

const OWN = '/sendwright/v1'
const segment = encodeURIComponent

export const KEYS_KEY = 'api-keys'
export const USERS_KEY = 'users'

export interface ApiKey {
  id: string
  description: string
  kind: 'user' | 'domain' | 'web'
  role: string
  /** `2006-01-02T15:04:05` in UTC. */
  created_at: string
  expires_at?: string
  is_disabled: boolean
  domain_name: string | null
}

/** The API's times of keys and users are UTC without a zone. */
export const utc = (time: string) => (/(?:Z|[+-]\d\d:?\d\d)$/.test(time) ? time : `${time}Z`)

export const KEY_ROLES = ['admin', 'developer', 'support', 'basic', 'sending'] as const
export type KeyRole = (typeof KEY_ROLES)[number]

export const keysQuery = queryOptions({
  queryKey: [KEYS_KEY],
  queryFn: async ({ signal }) => valueOrThrow(await getJson<{ items: ApiKey[] }>('/v1/keys', signal)).items,
})

export interface NewKey {
  role: KeyRole
  description: string
  /** Of a sending key. */
  domain: string
  /** Seconds; '' never ends. */
  expiration: string
}

/** A sending key is one of kind `domain`. Answers with the secret, which is shown only this once. */
export const createKey = async ({ role, description, domain, expiration }: NewKey) =>
  valueOrThrow(
    await sendForm<{ key: ApiKey & { secret: string } }>('POST', '/v1/keys', {
      role,
      ...(role === 'sending' && { kind: 'domain', domain_name: domain }),
      ...(description !== '' && { description }),
      ...(expiration !== '' && { expiration }),
    }),
  ).key

export const deleteKey = async (id: string) =>
  valueOrThrow(await sendJson<{ message: string }>('DELETE', `/v1/keys/${segment(id)}`))

export interface User {
  id: string
  activated: boolean
  name: string
  email: string
  role: UserRole
  is_disabled: boolean
  is_master: boolean
  tfa_active: boolean
}

export const USERS_MAX = 1000 // an account has no more

export const usersQuery = queryOptions({
  queryKey: [USERS_KEY],
  queryFn: async ({ signal }) =>
    valueOrThrow(await getJson<{ users: User[] }>(`/v5/users?limit=${USERS_MAX}`, signal)).users,
})

export const inviteUser = async (user: { email: string; name: string; role: UserRole }) =>
  valueOrThrow(await sendForm<User>('POST', '/v5/users', { ...user }))

export const inviteAgain = async (id: string) =>
  valueOrThrow(await sendJson<User>('POST', `${OWN}/users/${segment(id)}/invitation`))

export const setRole = async (id: string, role: UserRole) =>
  valueOrThrow(await sendForm<User>('PUT', `/v5/users/${segment(id)}`, { role }))

export const removeUser = async (id: string) =>
  valueOrThrow(await sendJson<{ message: string }>('DELETE', `/v5/users/${segment(id)}`))

export interface AuditEntry {
  id: string
  key_id: string | null
  user_id: string | null
  parent_account_id: string | null
  remote_address: string | null
  request_id: string | null
  action: string
  subject: string | null
  /** Null: the process ended before the call finished. */
  status: number | null
  detail: unknown
  /** RFC 3339. */
  created_at: string
}

export const AUDIT_PAGE_SIZE = 50 // about three screens

export const auditPath = (filters: Readonly<Record<string, string>>) =>
  `${OWN}/audit?${new URLSearchParams({ limit: String(AUDIT_PAGE_SIZE), ...filters })}`

export const auditQuery = (path: string) =>
  queryOptions({
    queryKey: ['audit', path],
    queryFn: async ({ signal }) => valueOrThrow(await getJson<Page<AuditEntry>>(path, signal)),
  })

export interface SystemCheck {
  name: string
  state: 'ok' | 'warning' | 'failed'
  sentence: string
  checked_at: string
}

export const checksQuery = queryOptions({
  queryKey: ['system-checks'],
  queryFn: async ({ signal }) =>
    valueOrThrow(await getJson<{ items: SystemCheck[] }>(`${OWN}/system/checks`, signal)).items,
})

export interface SizeKind {
  kind: string
  bytes: number
  rows: number
  growth_bytes_per_day: number | null
  kept_days: number | null
  limit_bytes: number | null
}

export interface Job {
  name: string
  interval_seconds: number
  running: boolean
  last_started_at: string | null
  last_ended_at: string | null
  last_error: string | null
}

export interface SystemDetails {
  version: string
  mode: string
  database: string
  uptime_seconds: number
  /** Null before the first measurement; absent for others than admins of the first account. */
  storage?: {
    measured_at: string
    disk: {
      free_bytes: number
      reserved_bytes: number
      growth_bytes_per_day: number | null
      full_at: string | null
    }
    kinds: SizeKind[]
  } | null
  jobs?: Job[]
}

const SYSTEM_REFRESH_MS = 10_000

export const systemDetailsQuery = queryOptions({
  queryKey: ['system-details'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson<SystemDetails>(`${OWN}/system`, signal)),
  refetchInterval: SYSTEM_REFRESH_MS,
})
