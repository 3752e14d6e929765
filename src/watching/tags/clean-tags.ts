/** Tags as the contract keeps them (messages.md rules 30 to 32). */
const TAGS_MAX = 10
const TAG_LENGTH_MAX = 128

/**
 * Tags without non-ASCII and control characters, cut to 128 characters; at most ten, without empty ones and duplicates
 * (ignoring case).
 */
export function cleanTags(given: readonly string[]): string[] {
  const tags = new Map<string, string>()
  for (const tag of given) {
    const clean = tag
      .replaceAll(/[^\x20-\x7e]/g, '')
      .trim()
      .slice(0, TAG_LENGTH_MAX)
    const key = clean.toLowerCase()
    if (clean && !tags.has(key)) tags.set(key, clean)
    if (tags.size === TAGS_MAX) break
  }
  return [...tags.values()]
}
