/**
 * Known mailbox providers by the names of their MX hosts: which domains share one set of limits (a *site*), the limits to
 * start with, and the name that events and metrics show.
 *
 * Limits are per source address. A provider that asks for less gets less (pacing.ts). Where a provider publishes a
 * figure, the entry stays below it; elsewhere it is what large senders report as never refused. Review once a year.
 */

/** Limits of one lane. */
export interface LaneLimits {
  /** Connections at a time. */
  connections: number
  /** Messages on one connection before a new one is opened. */
  messagesPerConnection: number
  /** Messages per second; null: as many as the connections can carry. */
  messagesPerSecond: number | null
}

export interface Provider {
  /** Name of the site; part of lane names. */
  site: string
  /** Matches the most preferred MX host, in lower case without a final dot. */
  mx: RegExp
  limits: LaneLimits
  /** Name shown for a recipient's domain behind this MX host (metrics-logs.md section 2). */
  displayName(domain: string, mxHost: string): string
}

const named = (name: string) => () => name
const limits = (
  connections: number,
  messagesPerConnection: number,
  messagesPerSecond: number | null = null,
): LaneLimits => ({ connections, messagesPerConnection, messagesPerSecond })

/** For unknown hosts: below what small servers refuse from unknown senders. */
export const DEFAULT_LIMITS: LaneLimits = limits(10, 100)

const GMAIL_DOMAINS = new Set(['gmail.com', 'googlemail.com'])

export const PROVIDERS: readonly Provider[] = [
  {
    // Consumer and Workspace mail share front ends and reputation. 421 4.7.28 is about rate, not connections.
    site: 'google',
    mx: /(^|\.)(google|googlemail)\.com$|(^|\.)smtp\.goog$/,
    limits: limits(20, 100),
    displayName: (domain) => (GMAIL_DOMAINS.has(domain) ? 'Gmail' : 'Google Workspace'),
  },
  {
    // Outlook.com, Hotmail, Live and MSN limit concurrent connections per address (RP-003).
    site: 'outlook-consumer',
    mx: /(^|\.)olc\.protection\.outlook\.com$/,
    limits: limits(10, 100),
    displayName: (_domain, mx) => (/(^|\.)eur?\./.test(mx) ? 'Outlook EU' : 'Outlook US'),
  },
  {
    // Every tenant has an MX name of its own; all share the same throttles (451 4.7.500).
    site: 'outlook-365',
    mx: /(^|\.)mail\.protection\.outlook\.com$|(^|\.)mx\.microsoft$/,
    limits: limits(20, 100),
    displayName: named('Outlook 365'),
  },
  {
    // Yahoo, AOL, Verizon, Sky and others. Five connections and 20 messages each is their published advice.
    site: 'yahoo',
    mx: /(^|\.)yahoodns\.net$/,
    limits: limits(5, 20),
    displayName: (domain, mx) =>
      /(^|\.)mx-eu\./.test(mx) || /\.(uk|de|fr|it|es)$/.test(domain) ? 'Yahoo EU' : 'Yahoo US',
  },
  { site: 'yahoo-japan', mx: /(^|\.)yahoo\.co\.jp$/, limits: limits(5, 20), displayName: named('Other') },
  {
    // iCloud Mail soon answers 421 to many connections from an address without a history.
    site: 'apple',
    mx: /(^|\.)(mail\.icloud\.com|apple\.com)$/,
    limits: limits(5, 50),
    displayName: named('Apple'),
  },
  {
    // GMX, WEB.DE, mail.com and 1&1: one farm. "Too many connections" above ten.
    site: 'united-internet',
    mx: /(^|\.)(gmx\.net|web\.de|mail\.com|kundenserver\.de|ionos\.(com|de|co\.uk|fr|es|it))$/,
    limits: limits(8, 50),
    displayName: named('German'),
  },
  { site: 't-online', mx: /(^|\.)t-online\.de$/, limits: limits(4, 30), displayName: named('German') },
  {
    site: 'german-hosts',
    mx: /(^|\.)(freenet\.de|posteo\.de|mailbox\.org|arcor\.de|vodafone\.de|strato\.de|rzone\.de)$/,
    limits: limits(5, 50),
    displayName: named('German'),
  },
  {
    site: 'proton',
    mx: /(^|\.)(protonmail\.ch|proton\.(me|ch))$/,
    limits: limits(5, 50),
    displayName: named('Proton'),
  },
  {
    // zoho.eu has its own hosts and the same limits.
    site: 'zoho',
    mx: /(^|\.)zoho(mail)?\.(com|eu|in|com\.au|jp|com\.cn)$/,
    limits: limits(5, 50),
    displayName: (_domain, mx) => (mx.endsWith('.eu') ? 'Other EU' : 'Other US'),
  },
  {
    // Security services in front of many companies. Their throttles count per source address over all customers.
    site: 'mimecast',
    mx: /(^|\.)mimecast\.(com|co\.za|org)$/,
    limits: limits(10, 50),
    displayName: (_domain, mx) => (/(^|-|\.)(eu|uk|de)-/.test(mx) ? 'Other EU' : 'Other US'),
  },
  {
    site: 'proofpoint',
    mx: /(^|\.)(pphosted\.com|ppe-hosted\.com|gpphosted\.com)$/,
    limits: limits(10, 50),
    displayName: (_domain, mx) => (/eu\d*\./.test(mx) ? 'Other EU' : 'Other US'),
  },
  {
    site: 'barracuda',
    mx: /(^|\.)(barracudanetworks|barracuda)\.com$/,
    limits: limits(8, 50),
    displayName: named('Other US'),
  },
  {
    site: 'cisco',
    mx: /(^|\.)iphmx\.com$/,
    limits: limits(8, 50),
    displayName: (_domain, mx) => (/\.eu\./.test(mx) ? 'Other EU' : 'Other US'),
  },
  {
    site: 'messagelabs',
    mx: /(^|\.)messagelabs\.com$/,
    limits: limits(8, 50),
    displayName: (_domain, mx) => (/(^|\.)eu\./.test(mx) ? 'Other EU' : 'Other US'),
  },
  {
    site: 'trendmicro',
    mx: /(^|\.)tmes?\.trendmicro\.(com|eu)$/,
    limits: limits(8, 50),
    displayName: (_domain, mx) => (mx.endsWith('.eu') ? 'Other EU' : 'Other US'),
  },
  {
    site: 'comcast',
    mx: /(^|\.)comcast\.net$/,
    limits: limits(5, 50),
    displayName: named('Other US'),
  },
  {
    site: 'us-access',
    mx: /(^|\.)(cox\.net|charter\.net|spectrum\.net|cloudfilter\.net|windstream\.net|earthlink-vadesecure\.net)$/,
    limits: limits(4, 30),
    displayName: named('Other US'),
  },
  {
    site: 'us-hosts',
    mx: /(^|\.)(emailsrvr\.com|secureserver\.net|messagingengine\.com|registrar-servers\.com|privateemail\.com)$/,
    limits: limits(8, 50),
    displayName: named('Other US'),
  },
  {
    // Orange allows two connections from senders it does not know.
    site: 'orange',
    mx: /(^|\.)(orange|wanadoo)\.fr$/,
    limits: limits(2, 30),
    displayName: named('French'),
  },
  {
    site: 'french-access',
    mx: /(^|\.)(free\.fr|sfr\.fr|laposte\.net|bbox\.fr|mail\.ovh\.net|gandi\.net)$/,
    limits: limits(3, 30),
    displayName: named('French'),
  },
  {
    site: 'italian',
    mx: /(^|\.)(libero\.it|virgilio\.it|tiscali\.it|aruba\.it|tim\.it|alice\.it)$/,
    limits: limits(4, 30),
    displayName: named('Italian'),
  },
  {
    site: 'uk-access',
    mx: /(^|\.)(btinternet\.com|bt\.lon5\.cpcloud\.co\.uk|virginmedia\.com|talktalk\.net|tiscali\.co\.uk)$/,
    limits: limits(4, 30),
    displayName: named('UK'),
  },
  {
    site: 'canadian-access',
    mx: /(^|\.)(rogers\.com|shaw\.ca|videotron\.ca|bell\.(ca|net)|telus\.net|sympatico\.ca)$/,
    limits: limits(4, 30),
    displayName: named('Canadian'),
  },
  {
    // QQ limits messages per minute and address, and blocks for hours above the limit.
    site: 'qq',
    mx: /(^|\.)qq\.com$/,
    limits: limits(3, 20, 5),
    displayName: named('Chinese'),
  },
  {
    site: 'netease',
    mx: /(^|\.)(netease\.com|163\.com|126\.com)$/,
    limits: limits(3, 20, 5),
    displayName: named('Chinese'),
  },
  {
    site: 'chinese-hosts',
    mx: /(^|\.)(aliyun\.com|sina\.(com|cn|com\.cn)|mxhichina\.com|icoremail\.net)$/,
    limits: limits(3, 20, 5),
    displayName: named('Chinese'),
  },
  {
    site: 'eu-hosts',
    mx: /(^|\.)(seznam\.cz|wp\.pl|onet\.pl|home\.pl|one\.com|infomaniak\.ch|xs4all\.nl|kpnmail\.nl|ziggo\.nl|telenet-ops\.be|telia\.com)$/,
    limits: limits(5, 50),
    displayName: named('Other EU'),
  },
]

/** Who runs these MX hosts; null: unknown. */
export function providerOf(mxHost: string, providers: readonly Provider[] = PROVIDERS): Provider | null {
  return providers.find(({ mx }) => mx.test(mxHost)) ?? null
}

/** The site of hosts without a known provider: all names of the best preference, so that a domain's hosts share their
 *  limits, and so do domains with the same hosts. */
export function siteOfHosts(mxHosts: readonly string[]): string {
  const names = [...mxHosts].sort()
  const shown = names.slice(0, SITE_HOSTS_SHOWN).join(',')
  return names.length > SITE_HOSTS_SHOWN ? `${shown},+${names.length - SITE_HOSTS_SHOWN}` : shown
}

const SITE_HOSTS_SHOWN = 3
