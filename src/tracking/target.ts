/** Where a click may lead. */

/** What is longer was refused when the link was made; no browser takes more. */
const TARGET_LENGTH_MAX = 64 * 1024
const PLAIN = /^https?:\/\/(?![/\\])[\x21-\x7e]+$/i

/**
 * The value of Location for a target, or null for one that no redirect goes to: other schemes, and texts without
 * `//`, which a browser would complete from the redirect's own address (`https:path`) or to another host
 * (`//host`). Such a target is refused even when its token is authentic.
 *
 * Targets in printable ASCII come back as they are; in others, and in those that name their host in an odd way,
 * the URL standard's spelling takes the place of what a header cannot hold, line ends among it.
 */
export function locationOf(target: string): string | null {
  if (target.length > TARGET_LENGTH_MAX || !/^https?:\/\//i.test(target)) return null
  const url = URL.parse(target)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return null
  if (PLAIN.test(target)) return target
  return PLAIN.test(url.href) ? url.href : null
}
