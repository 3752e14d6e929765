/**
 * A URL for logs: without user, password, query and fragment, where callers put secrets. A text that is no http or https
 * URL is left out as a whole.
 */
export function loggableUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol)) return '(no http URL)'
  return `${url.origin}${url.pathname}`
}
