/** The operations on retention (docs/api/retention.md): of the account, or of one of its domains. */
import { queryOptions } from '@tanstack/react-query'
import { getJson, getText, sendForm } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { valueOrThrow } from '../../queries.ts'

export const RETENTION_KEY = 'retention'
export type Retention = Api.Retention

const OWN = '/sendwright/v1'
const ofDomain = (domain: string) => `${OWN}/domains/${encodeURIComponent(domain)}/retention` as const

/** `domain`: '' is the account. */
export const retentionQuery = (domain: string) =>
  queryOptions({
    queryKey: [RETENTION_KEY, domain],
    queryFn: async ({ signal }) =>
      valueOrThrow(
        await (domain === '' ? getJson(`${OWN}/retention`, signal) : getJson(ofDomain(domain), signal)),
      ).items,
  })

export const policyQuery = (domain: string) =>
  queryOptions({
    queryKey: [RETENTION_KEY, domain, 'policy'],
    queryFn: async ({ signal }) =>
      valueOrThrow(
        await getText(domain === '' ? `${OWN}/retention/policy` : `${ofDomain(domain)}/policy`, signal),
      ),
  })

/** `days`: a number, or `default`. */
export const setRetention = async (domain: string, kind: string, days: string) =>
  valueOrThrow(
    await (domain === ''
      ? sendForm('PUT', `${OWN}/retention`, { [kind]: days })
      : sendForm('PUT', ofDomain(domain), { [kind]: days })),
  )
