/** The operations of the public API behind a domain's settings (docs/api/domains.md, tracking.md). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendForm } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { valueOrThrow } from '../../queries.ts'
import { DOMAINS_KEY } from '../domain-queries.ts'

const segment = encodeURIComponent
const trackingPath = (name: string) => `/v3/domains/${segment(name)}/tracking` as const

export type Tracking = Api.Tracking

export const trackingQuery = (name: string) =>
  queryOptions({
    queryKey: [DOMAINS_KEY, 'tracking', name],
    queryFn: async ({ signal }) => valueOrThrow(await getJson(trackingPath(name), signal)).tracking,
  })

/** Fields that are absent stay as they are. */
export type Fields = Readonly<Record<string, string>>

export const setTracking = async (name: string, kind: keyof Tracking, fields: Fields) =>
  valueOrThrow(await sendForm('PUT', `${trackingPath(name)}/${kind}`, fields))

export const setConnection = async (name: string, fields: Fields) =>
  valueOrThrow(await sendForm('PUT', `/v3/domains/${segment(name)}/connection`, fields))

export const updateDomain = async (name: string, fields: Fields) =>
  valueOrThrow(await sendForm('PUT', `/v4/domains/${segment(name)}`, fields))

const topicsPath = (name: string) => `/sendwright/v1/domains/${segment(name)}/topics` as const

export type DomainTopics = Api.DomainTopics

export const topicsQuery = (name: string) =>
  queryOptions({
    queryKey: [DOMAINS_KEY, 'topics', name],
    queryFn: async ({ signal }) => valueOrThrow(await getJson(topicsPath(name), signal)),
  })

export const setTopics = async (name: string, fields: Fields) =>
  valueOrThrow(await sendForm('PUT', topicsPath(name), fields))

const certificatePath = (host: string) => `/v2/x509/${segment(host)}` as const
const ORDER_REFRESH_MS = 5_000 // an order takes some seconds

export type Certificate = { status: Api.TrackingCertificate['status'] | 'none'; error?: string | null }

export const certificateQuery = (host: string) =>
  queryOptions({
    queryKey: [DOMAINS_KEY, 'certificate', host],
    queryFn: async ({ signal }): Promise<Certificate> => {
      const answer = await getJson(`${certificatePath(host)}/status`, signal)
      if (!answer.ok && answer.failure.status === 404) return { status: 'none' }
      return valueOrThrow(answer)
    },
    refetchInterval: ({ state }) => (state.data?.status === 'processing' ? ORDER_REFRESH_MS : false),
  })

/** Orders the first certificate of the host, or one in place of an expired one. */
export const orderCertificate = async (host: string, isRenewal: boolean) =>
  valueOrThrow(await sendForm(isRenewal ? 'PUT' : 'POST', certificatePath(host), {}))

/** The MTA-STS policy that is published for the domain, with its records and its certificate. */
export const policyQuery = (name: string) =>
  queryOptions({
    queryKey: [DOMAINS_KEY, 'mta-sts', name],
    queryFn: async ({ signal }) =>
      valueOrThrow(await getJson(`/sendwright/v1/domains/${segment(name)}/mta-sts`, signal)),
  })
