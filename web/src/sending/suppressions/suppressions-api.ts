/** The operations on suppressions (suppressions.md), and records of all kinds in one shape. */
import { type Answer, followJson, type Page, sendForm, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { placePath } from '../../shared/page/paging.ts'
import type { ImportRecord } from '../import/records.ts'
import type { Kind } from './suppressions-search.ts'

export type Suppression = Partial<Api.Bounce & Api.Complaint & Api.Unsubscribe & Api.AllowlistEntry>

const PAGE_SIZE = 50 // about three screens
const EXPORT_PAGE_SIZE = 1000 // the most that one page may hold

const pathOf = (domain: string, kind: Kind) => `/v3/${encodeURIComponent(domain)}/${kind}` as const

export const subjectOf = ({ address, value }: Suppression) => address ?? value ?? ''
export const timeOf = ({ created_at, createdAt }: Suppression) => created_at ?? createdAt ?? ''

export function firstPath(domain: string, kind: Kind, q: string, limit = PAGE_SIZE): string {
  const query = new URLSearchParams({ limit: String(limit) })
  if (q !== '') query.set('term', q)
  return `${pathOf(domain, kind)}?${query}`
}

export const exportPath = (domain: string, kind: Kind, q: string) =>
  firstPath(domain, kind, q, EXPORT_PAGE_SIZE)

export const listSuppressions = (
  domain: string,
  kind: Kind,
  q: string,
  at: string | undefined,
  signal?: AbortSignal,
) => readPage(placePath(firstPath(domain, kind, q), at), signal)

export const readPage = (path: string, signal?: AbortSignal): Promise<Answer<Page<Suppression>>> =>
  followJson<`GET /v3/{}/${Kind}`>(path, signal)

export const removeSuppression = (domain: string, kind: Kind, value: string) =>
  sendJson('DELETE', `${pathOf(domain, kind)}/${encodeURIComponent(value)}`)

export const clearSuppressions = (domain: string, kind: Kind) => sendJson('DELETE', pathOf(domain, kind))

export const addSuppression = (domain: string, kind: Kind, fields: Readonly<Record<string, string>>) =>
  sendForm('POST', pathOf(domain, kind), fields)

/** Up to 1,000. */
export const addSuppressions = (
  domain: string,
  kind: Kind,
  records: readonly ImportRecord[],
): Promise<Answer<unknown>> => sendJson('POST', pathOf(domain, kind), [...records])

/** The record as an addition would give it; a removal is taken back with it. */
export function recordOf(kind: Kind, item: Suppression): ImportRecord {
  const { address, code, error, tags, created_at, type, value, reason } = item
  if (kind === 'whitelists')
    return { [type === 'domain' ? 'domain' : 'address']: value, ...(reason && { reason }) }
  return {
    address,
    ...(kind === 'bounces' && { code, error }),
    ...(kind === 'unsubscribes' && { tags }),
    created_at,
  }
}

/** Columns of CSV files, of imports and exports. */
export const COLUMNS: Record<Kind, readonly string[]> = {
  bounces: ['address', 'code', 'error', 'created_at'],
  complaints: ['address', 'created_at'],
  unsubscribes: ['address', 'tags', 'created_at'],
  whitelists: ['address', 'domain', 'reason'],
}

/** A record from CSV as JSON has it: tags are a list. */
export function importable(kind: Kind, record: ImportRecord): ImportRecord {
  const { tags } = record
  if (kind !== 'unsubscribes' || typeof tags !== 'string') return record
  return { ...record, tags: tags.split(',').map((tag) => tag.trim()) }
}
