/** The operations of the public API that the domain pages use, and the response fields that they show. */
import { type Domain, getJson, getText, sendJson } from '../api.ts'

export interface ListedDomain extends Domain {
  /** RFC 1123. */
  created_at: string
}

export interface DomainDetails extends ListedDomain {
  smtp_login: string
  /** The domain whose keys sign. */
  dkim_host: string
  /** The host of return paths. */
  mailfrom_host: string
  web_prefix: string
  web_scheme: 'http' | 'https'
  tracking_host: string
  require_tls: boolean
  skip_verification: boolean
  wildcard: boolean
  spam_action: string
  use_automatic_sender_security: boolean
  /** Seconds; 0: the default of the service. */
  message_ttl: number
  archive_to?: string
  disabled?: { reason: string; note: string; permanently: boolean; until?: string }
}

export interface DomainList {
  total_count: number
  items: ListedDomain[]
}

export type RecordPurpose =
  | 'dkim'
  | 'spf'
  | 'tracking'
  | 'mx'
  | 'return-path-spf'
  | 'return-path-mx'
  | 'dmarc'

export interface RecordToPublish {
  purpose: RecordPurpose
  name: string
  type: string
  value: string
  /** MX only. */
  priority?: number
  /** For a key: whether it signs. */
  is_active?: boolean
}

/** The answer of DNS at the last check. */
export interface DnsLook {
  /** "TXT mg.example.com"; '' before the first check. */
  asked: string
  /** "address:port" */
  server: string
  found: string[]
  valid: 'valid' | 'unknown'
  /** The question, the result, and what to change. */
  sentence: string
  /** RFC 3339. */
  checked_at?: string
}

export interface ExplainedRecord extends DnsLook {
  record: RecordToPublish
}

/** A fault of a record that the operator of the service publishes, and that those of the domain refer to. */
export interface ServiceFault {
  records: { name: string; type: string; value: string | null }[]
  state: 'missing' | 'elsewhere' | 'unanswered'
  sentence: string
}

export interface DomainDns {
  records: ExplainedRecord[]
  /** Empty: nothing is wrong with them. */
  service: ServiceFault[]
  dmarc: DnsLook & { record?: RecordToPublish }
}

export interface DomainKey {
  signing_domain: string
  selector: string
  dns_record: {
    name: string
    value: string
    record_type: string
    valid: 'VALID' | 'UNKNOWN'
    /** The key signs. */
    is_active: boolean
  }
}

export const DOMAINS_PAGE_SIZE = 50 // about three screens

const segment = encodeURIComponent
const ownPath = (name: string) => `/sendwright/v1/domains/${segment(name)}`

export const zonePath = (name: string) => `${ownPath(name)}/zone`

/** Newest first, from the one after `skip` on. */
export const listDomainPage = (search: string, skip: number, signal?: AbortSignal) => {
  const query = new URLSearchParams({ limit: String(DOMAINS_PAGE_SIZE), skip: String(skip) })
  if (search !== '') query.set('search', search)
  return getJson<DomainList>(`/v4/domains?${query}`, signal)
}

export const createDomain = (name: string) =>
  sendJson<{ domain: ListedDomain }>('POST', '/v4/domains', { name })

export const readDomain = (name: string, signal?: AbortSignal) =>
  getJson<{ domain: DomainDetails }>(`/v4/domains/${segment(name)}?h:extended=true&h:with_dns=false`, signal)

/** Looks up all records now, past every cache; at most ten times a minute. */
export const verifyDomain = (name: string) =>
  sendJson<{ domain: ListedDomain }>('PUT', `/v4/domains/${segment(name)}/verify`)

export const deleteDomain = (name: string) =>
  sendJson<{ message: string }>('DELETE', `/v3/domains/${segment(name)}`)

/** The stored results of the last check; queries no name server. */
export const readDomainDns = (name: string, signal?: AbortSignal) =>
  getJson<DomainDns>(`${ownPath(name)}/dns`, signal)

export const readZone = (name: string, signal?: AbortSignal) => getText(zonePath(name), signal)

export const listDomainKeys = (authority: string, signal?: AbortSignal) =>
  getJson<{ items: DomainKey[] }>(`/v4/domains/${segment(authority)}/keys`, signal)
