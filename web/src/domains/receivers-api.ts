/** What receivers require of a domain, and what they report (own-operations.md sections 12 and 13). */
import { getJson, type Paging } from '../api.ts'

export interface RuleFinding {
  rule: string
  required_of: string
  /** Null: it cannot be said. */
  passed: boolean | null
  sentence: string
  figure?: string
  limit?: string
}

export interface SenderRules {
  is_bulk_sender: boolean
  busiest_day: number
  rules: RuleFinding[]
}

export interface Report {
  id: string
  type: string
  sender: string
  authenticated: boolean
  organization: string
  begin: string
  passed: number
  failed: number
}

export interface Reports {
  totals: {
    dmarc?: { sources: { source_ip: string; passed: number; failed: number }[] }
    tls?: { failures: { result_type: string; sessions: number }[] }
  }
  items: Report[]
  records: { name: string; type: string; value: string }[]
  paging: Paging
}

export const REPORTS_PAGE_SIZE = 20

const path = (name: string) => `/sendwright/v1/domains/${encodeURIComponent(name)}`

export const reportsPath = (name: string, type: string) => {
  const query = new URLSearchParams({ limit: String(REPORTS_PAGE_SIZE), ...(type !== '' && { type }) })
  return `${path(name)}/reports?${query}`
}

export const readRules = (name: string, signal?: AbortSignal) =>
  getJson<SenderRules>(`${path(name)}/sender-rules`, signal)

export const readReports = (from: string, signal?: AbortSignal) => getJson<Reports>(from, signal)
