/** Where a click may lead. */

/** What is longer was refused when the link was made; no browser takes more. */
const TARGET_LENGTH_MAX = 64 * 1024
const PRINTABLE = /^[\x21-\x7e]+$/

/**
 * The value of Location for a target, or null for one that no redirect goes to: other schemes, and texts that a
 * browser would complete to another host than they show (`//host`, `https:host`). Such a target is refused even
 * when its token is authentic.
 *
 * Targets in printable ASCII come back as they are; in others the URL standard's escapes replace what a header
 * cannot hold, line ends among it.
 */
export function locationOf(target: string): string | null {
  if (target.length > TARGET_LENGTH_MAX || !/^https?:\/\/[^/\\]/i.test(target)) return null
  if (!URL.canParse(target)) return null
  const url = new URL(target)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return null
  return PRINTABLE.test(target) ? target : url.href
}
