import { searchTexts } from '../shared/search-texts.ts'

export interface WebhooksSearch {
  /** Whose webhooks; absent: those of the account. */
  domain?: string
  /** The form for a new one is open. */
  add?: 'yes'
  /** URL of the webhook whose form is open. */
  edit?: string
}

export function readWebhooksSearch(search: Record<string, unknown>): WebhooksSearch {
  return {
    ...searchTexts(search, ['domain', 'edit']),
    ...(search['add'] === 'yes' && { add: 'yes' as const }),
  }
}

export const ATTEMPT_FILTERS = ['search', 'url', 'domain', 'event', 'status'] as const
export type AttemptFilter = (typeof ATTEMPT_FILTERS)[number]

export interface AttemptsSearch extends Partial<Record<AttemptFilter, string>> {
  /** Query string of the page of the list (shared/paging.ts). */
  at?: string
  /** The form for a replay is open. */
  replay?: 'yes'
}

export function readAttemptsSearch(search: Record<string, unknown>): AttemptsSearch {
  return {
    ...searchTexts(search, [...ATTEMPT_FILTERS, 'at']),
    ...(search['replay'] === 'yes' && { replay: 'yes' as const }),
  }
}
