export const CONTENT_TABS = ['text', 'html', 'headers', 'source', 'files'] as const
export type ContentTab = (typeof CONTENT_TABS)[number]

/** Search parameters of a message's page. */
export interface MessageSearch {
  /** The recipient whose card is open. */
  recipient?: string
  /** The part of the content that is shown. */
  tab?: ContentTab
  /** Query string of the page of recipients. */
  at?: string
}

export function readMessageSearch(search: Record<string, unknown>): MessageSearch {
  const tab = CONTENT_TABS.find((name) => name === search['tab'])
  const { recipient, at } = search
  return {
    ...(typeof recipient === 'string' && recipient !== '' && { recipient }),
    ...(tab !== undefined && { tab }),
    ...(typeof at === 'string' && at !== '' && { at }),
  }
}
