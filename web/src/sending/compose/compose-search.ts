import { searchText } from '../../shared/page/search.ts'

export const BODIES = ['text', 'html', 'template'] as const
export type Body = (typeof BODIES)[number]

/** Search parameters of the page that sends a message: a link may fill it in. */
export interface ComposeSearch {
  domain?: string
  to?: string
  subject?: string
  /** Default `text`. */
  body?: Body
  /** Name of a template of the domain or of the account. */
  template?: string
}

export function readComposeSearch(search: Record<string, unknown>): ComposeSearch {
  const read: ComposeSearch = {}
  for (const name of ['domain', 'to', 'subject', 'template'] as const) {
    const value = searchText(search[name])
    if (value !== undefined) read[name] = value
  }
  const body = BODIES.find((name) => name === search['body'])
  return { ...read, ...(body !== undefined && { body }) }
}
