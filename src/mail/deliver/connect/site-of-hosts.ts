/** Sites without a known provider. */

/** All names of the best preference, so that a domain's hosts share their limits, and so do domains with the same hosts. */
export function siteOfHosts(mxHosts: readonly string[]): string {
  const names = [...mxHosts].sort()
  const shown = names.slice(0, SITE_HOSTS_SHOWN).join(',')
  return names.length > SITE_HOSTS_SHOWN ? `${shown},+${names.length - SITE_HOSTS_SHOWN}` : shown
}

const SITE_HOSTS_SHOWN = 3
