/**
 * A URL as logs may have it: without user, password, query and fragment, where callers put secrets. What is no http or
 * https URL is left out whole.
 */
export function loggableUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol)) return '(no http URL)'
  return `${url.origin}${url.pathname}`
}
