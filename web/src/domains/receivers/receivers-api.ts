/** What receivers require of a domain, and what they report (own-operations.md sections 12 and 13, reputation.md). */
import { followJson, getJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'

export type RuleFinding = Api.SenderRuleFinding

export type SenderRules = Api.SenderRules

export type Report = Api.DomainReport

export type Reports = Api.DomainReportPage

export type GmailDay = Api.GptDomain

export type SndsAddress = Api.SndsAddress

export const REPORTS_PAGE_SIZE = 20

const path = (name: string) => `/sendwright/v1/domains/${encodeURIComponent(name)}` as const

export const reportsPath = (name: string, type: string) => {
  const query = new URLSearchParams({ limit: String(REPORTS_PAGE_SIZE), ...(type !== '' && { type }) })
  return `${path(name)}/reports?${query}`
}

export const readRules = (name: string, signal?: AbortSignal) => getJson(`${path(name)}/sender-rules`, signal)

const GMAIL_DAYS = 14

export const readGmailDays = (name: string, signal?: AbortSignal) =>
  getJson(`/v1/reputationanalytics/gpt/domains/${encodeURIComponent(name)}?limit=${GMAIL_DAYS}`, signal)

export const readSndsAddresses = (signal?: AbortSignal) => getJson('/v1/reputationanalytics/snds', signal)

export const readReports = (from: string, signal?: AbortSignal) =>
  followJson<'GET /sendwright/v1/domains/{}/reports'>(from, signal)
