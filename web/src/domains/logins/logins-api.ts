/** The operations of the public API about SMTP logins (docs/api/accounts.md section 6). */
import { queryOptions } from '@tanstack/react-query'
import { followJson, sendForm, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { valueOrThrow } from '../../queries.ts'
import { DOMAINS_KEY } from '../domain-queries.ts'

export type Login = Api.SmtpCredential

export const LOGINS_PAGE_SIZE = 50 // about three screens

const path = (domain: string) => `/v3/domains/${encodeURIComponent(domain)}/credentials` as const

export const loginsPath = (domain: string) => `${path(domain)}?limit=${LOGINS_PAGE_SIZE}&skip=0`

export const loginsQuery = (ofPage: string) =>
  queryOptions({
    queryKey: [DOMAINS_KEY, 'logins', ofPage],
    queryFn: async ({ signal }) =>
      valueOrThrow(await followJson<'GET /v3/domains/{}/credentials'>(ofPage, signal)),
  })

/** The password is generated if it is empty; then the answer has it, this once. */
export const createLogin = async (domain: string, login: string, password: string) =>
  valueOrThrow(await sendForm('POST', path(domain), { login, ...(password !== '' && { password }) }))

/** Generates another password. */
export const resetPassword = async (domain: string, login: string) =>
  valueOrThrow(await sendForm('PUT', `${path(domain)}/${encodeURIComponent(login)}`, {}))

export const deleteLogin = async (domain: string, login: string) =>
  valueOrThrow(await sendJson('DELETE', `${path(domain)}/${encodeURIComponent(login)}`))
