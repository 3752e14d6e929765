/** The operations of the public API about SMTP logins (docs/api/accounts.md section 6). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendForm, sendJson } from '../../api.ts'
import { valueOrThrow } from '../../queries.ts'
import { DOMAINS_KEY } from '../domain-queries.ts'

export interface Login {
  /** The full address. */
  login: string
  /** RFC 1123 or RFC 3339. */
  created_at: string
}

export const LOGINS_PAGE_SIZE = 50 // about three screens

const path = (domain: string) => `/v3/domains/${encodeURIComponent(domain)}/credentials`

export const loginsPath = (domain: string) => `${path(domain)}?limit=${LOGINS_PAGE_SIZE}&skip=0`

export const loginsQuery = (ofPage: string) =>
  queryOptions({
    queryKey: [DOMAINS_KEY, 'logins', ofPage],
    queryFn: async ({ signal }) =>
      valueOrThrow(await getJson<{ items: Login[]; total_count: number }>(ofPage, signal)),
  })

/** What a change answers; `credentials` by login, if the service generated the password. */
interface Generated {
  message: string
  credentials?: Readonly<Record<string, string>>
}

/** The password is generated if it is empty; then the answer has it, this once. */
export const createLogin = async (domain: string, login: string, password: string) =>
  valueOrThrow(
    await sendForm<Generated>('POST', path(domain), { login, ...(password !== '' && { password }) }),
  )

/** Generates another password. */
export const resetPassword = async (domain: string, login: string) =>
  valueOrThrow(await sendForm<Generated>('PUT', `${path(domain)}/${encodeURIComponent(login)}`, {}))

export const deleteLogin = async (domain: string, login: string) =>
  valueOrThrow(await sendJson<{ message: string }>('DELETE', `${path(domain)}/${encodeURIComponent(login)}`))
