/**
 * The names that events and metrics show for a provider's mail (metrics-logs.md section 2): by the site of its mail hosts,
 * where some providers have several by region or kind of service; or by the recipient's domain, where there is no MX host
 * of that domain: accepted mail, and mail that leaves through a relay.
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

const DOMAINS: Readonly<Record<string, string>> = {
  Gmail: 'gmail.com googlemail.com',
  'Outlook US': 'outlook.com hotmail.com live.com msn.com',
  'Outlook EU':
    'hotmail.co.uk hotmail.de hotmail.es hotmail.fr hotmail.it live.co.uk live.de live.fr outlook.de outlook.fr',
  'Yahoo US': 'aol.com rocketmail.com yahoo.com ymail.com',
  'Yahoo EU': 'yahoo.co.uk yahoo.de yahoo.es yahoo.fr yahoo.it',
  Apple: 'icloud.com mac.com me.com',
  Proton: 'pm.me proton.me protonmail.com',
  Chinese: '126.com 163.com foxmail.com qq.com sina.com',
  French: 'free.fr laposte.net orange.fr sfr.fr wanadoo.fr',
  German: 'freenet.de gmx.de gmx.net mail.com posteo.de t-online.de web.de',
  Italian: 'alice.it libero.it tiscali.it virgilio.it',
  UK: 'btinternet.com talktalk.net virginmedia.com',
  Canadian: 'bell.net rogers.com shaw.ca sympatico.ca telus.net videotron.ca',
  'Other US': 'att.net bellsouth.net comcast.net cox.net sbcglobal.net verizon.net',
  'Other EU': 'seznam.cz wp.pl',
}

const PROVIDERS = new Map(
  Object.entries(DOMAINS).flatMap(([provider, domains]) =>
    domains.split(' ').map((domain): [string, string] => [domain, provider]),
  ),
)

/** `Other` for every domain that is not well known. */
export const providerOfDomain = (domain: string): string => PROVIDERS.get(domain) ?? 'Other'
