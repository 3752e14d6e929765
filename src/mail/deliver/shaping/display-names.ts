/**
 * The name that events and metrics show for a provider's mail (metrics-logs.md section 2). Some providers have several,
 * by region or kind of service.
 */

type NameOf = (domain: string, mxHost: string) => string

const GMAIL_DOMAINS = new Set(['gmail.com', 'googlemail.com'])

const BY_SITE: Readonly<Record<string, NameOf>> = {
  google: (domain) => (GMAIL_DOMAINS.has(domain) ? 'Gmail' : 'Google Workspace'),
  'outlook-consumer': (_domain, mx) => (/(^|\.)eur?\./.test(mx) ? 'Outlook EU' : 'Outlook US'),
  yahoo: (domain, mx) =>
    /(^|\.)mx-eu\./.test(mx) || /\.(uk|de|fr|it|es)$/.test(domain) ? 'Yahoo EU' : 'Yahoo US',
  zoho: (_domain, mx) => (mx.endsWith('.eu') ? 'Other EU' : 'Other US'),
  mimecast: (_domain, mx) => (/(^|-|\.)(eu|uk|de)-/.test(mx) ? 'Other EU' : 'Other US'),
  proofpoint: (_domain, mx) => (/eu\d*\./.test(mx) ? 'Other EU' : 'Other US'),
  cisco: (_domain, mx) => (/\.eu\./.test(mx) ? 'Other EU' : 'Other US'),
  messagelabs: (_domain, mx) => (/(^|\.)eu\./.test(mx) ? 'Other EU' : 'Other US'),
  trendmicro: (_domain, mx) => (mx.endsWith('.eu') ? 'Other EU' : 'Other US'),
}

/** `name`: of the shaping file, for sites with one name. */
export const displayNameOf = (site: string, name: string): NameOf => BY_SITE[site] ?? (() => name)
