/** Redirect targets of clicks. */

/** Longer targets were refused when the link was created; no browser accepts more. */
const TARGET_LENGTH_MAX = 64 * 1024
const PLAIN = /^https?:\/\/(?![/\\])[\x21-\x7e]+$/i

/**
 * The value of Location for a target, or null for one that is never redirected to: other schemes, and texts without
 * `//`, which a browser would complete from the redirect's own address (`https:path`) or to another host
 * (`//host`). Such a target is refused even when its token is authentic.
 *
 * Targets in printable ASCII are returned unchanged. Others, and those with an unusual spelling of the host, are
 * returned as the URL standard serialises them, because a header cannot hold such characters, line ends among them.
 */
export function locationOf(target: string): string | null {
  if (target.length > TARGET_LENGTH_MAX || !/^https?:\/\//i.test(target)) return null
  const url = URL.parse(target)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return null
  if (PLAIN.test(target)) return target
  return PLAIN.test(url.href) ? url.href : null
}
