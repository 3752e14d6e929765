/** The operations of the public API that the domain pages use, and the response fields that they show. */
import { type Answer, getJson, getText, sendJson } from '../api.ts'
import type * as Api from '../api-types.ts'

export type ListedDomain = Api.Answers['GET /v4/domains']['items'][number]

/** With the members of `h:extended`. */
export type DomainDetails = Api.Domain & Required<Pick<Api.Domain, 'dkim_host' | 'mailfrom_host'>>

export type DnsChange = Api.DnsChange

export type RecordPurpose = RecordToPublish['purpose']

type Published = Api.ExplainedRecord['record']
export type RecordToPublish = Omit<Published, 'purpose' | 'is_active'> & {
  purpose: Published['purpose'] | 'dmarc'
  is_active?: boolean
}

export type DnsLook = Omit<Api.ExplainedRecord, 'record'>

export type ExplainedRecord = DnsLook & { record: RecordToPublish }

export type ServiceFault = Api.OwnRecordFault

export type DomainDns = Api.DomainDns

export type DomainKey = Api.ListedDomainKey

export const DOMAINS_PAGE_SIZE = 50 // about three screens

const segment = encodeURIComponent
const ownPath = (name: string) => `/sendwright/v1/domains/${segment(name)}` as const

export const zonePath = (name: string) => `${ownPath(name)}/zone` as const

/** Newest first, from the one after `skip` on. */
export const listDomainPage = (search: string, skip: number, signal?: AbortSignal) => {
  const query = new URLSearchParams({ limit: String(DOMAINS_PAGE_SIZE), skip: String(skip) })
  if (search !== '') query.set('search', search)
  return getJson(`/v4/domains?${query}`, signal)
}

export const createDomain = (name: string) => sendJson('POST', '/v4/domains', { name })

export const readDomain = (name: string, signal?: AbortSignal) =>
  getJson(`/v4/domains/${segment(name)}?h:extended=true&h:with_dns=false`, signal) as Promise<
    Answer<{ domain: DomainDetails }>
  >

/** Looks up all records now, past every cache; at most ten times a minute. */
export const verifyDomain = (name: string) => sendJson('PUT', `/v4/domains/${segment(name)}/verify`)

export const deleteDomain = (name: string) => sendJson('DELETE', `/v3/domains/${segment(name)}`)

/** The stored results of the last check; queries no name server. */
export const readDomainDns = (name: string, signal?: AbortSignal) => getJson(`${ownPath(name)}/dns`, signal)

export const readZone = (name: string, signal?: AbortSignal) => getText(zonePath(name), signal)

export const listDomainKeys = (authority: string, signal?: AbortSignal) =>
  getJson(`/v4/domains/${segment(authority)}/keys`, signal)

export const listDnsProviders = (signal?: AbortSignal) => getJson('/sendwright/v1/dns-providers', signal)

export const listDnsChanges = (name: string, signal?: AbortSignal) =>
  getJson(`${ownPath(name)}/dns-changes`, signal)

/** The service asks the provider for a minute at most. */
const WRITING_MAX_MS = 90_000

export const applyDns = (name: string, body: { dry_run?: boolean; digest?: string }) =>
  sendJson('POST', `${ownPath(name)}/dns-changes`, body, WRITING_MAX_MS)

export const undoDns = (name: string, id: string, body: { dry_run?: boolean }) =>
  sendJson('POST', `${ownPath(name)}/dns-changes/${segment(id)}/undo`, body, WRITING_MAX_MS)
