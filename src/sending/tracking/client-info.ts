/**
 * Derives the client program from a User-Agent (events.md, client-info), and whether it is a bot (tracking.md rules
 * 21, 22). Checked in this order:
 *
 * 1. image proxies of mailbox providers, which fetch on a reader's behalf,
 * 2. mail programs, which a browser parser takes for browsers,
 * 3. libraries and scanners that identify themselves,
 * 4. browsers.
 */
import { isbot } from 'isbot'
import parseUserAgent from 'my-ua-parser'
import { anyCidrContains, type Cidr, parseCidr } from '../../base/net/ip.ts'
import type { ClientInfo } from '../../watching/events/later-events.ts'

type ClientType =
  | 'browser'
  | 'mobile browser'
  | 'email client'
  | 'library'
  | 'robot'
  | 'feed reader'
  | 'other'
  | 'unknown'
type DeviceType = 'desktop' | 'mobile' | 'tablet' | 'other' | 'unknown'

export const UNKNOWN_CLIENT: ClientInfo = {
  'client-name': 'unknown',
  'client-os': 'unknown',
  'client-type': 'unknown',
  'device-type': 'unknown',
  'user-agent': '',
  bot: '',
}

/** The part of a User-Agent that is stored; even programs that list all their components stay below it. */
const USER_AGENT_LENGTH_MAX = 512
/**
 * The part whose browser, system and device are read; few real ones are longer. The library's patterns take time that grows
 * with the fourth power: 100 ms for 512 characters, 9 ms for these.
 */
const PARSED_LENGTH_MAX = 256
/** Parsing takes about 100 µs, and most readers use one of a few hundred programs. */
const REMEMBERED_MAX = 2_000

/**
 * Addresses that Gmail's image proxy fetches from. Google publishes no list for it alone; these are the blocks of
 * its front ends and fetchers, in which no customer of Google Cloud has an address.
 */
const GOOGLE = cidrs(
  ...['64.233.160.0/19', '66.102.0.0/20', '66.249.64.0/19', '72.14.192.0/18', '74.125.0.0/16'],
  ...['108.177.0.0/17', '172.217.0.0/16', '209.85.128.0/17', '216.239.32.0/19'],
  ...['2001:4860::/32', '2607:f8b0::/32', '2a00:1450::/32'],
)
/**
 * Apple's own network, and the blocks in which Akamai, Cloudflare and Fastly run the exits of its relay. Other
 * traffic of people with Private Relay leaves there too, so the User-Agent must match as well.
 */
const APPLE = cidrs(
  ...['17.0.0.0/8', '104.28.0.0/16', '140.248.0.0/16', '146.75.0.0/16', '172.224.0.0/12'],
  ...['2606:54c0::/32', '2620:149::/32', '2a02:26f7::/32', '2a04:4e41::/32', '2a09:bac0::/29'],
)

const GMAIL_PROXY = /\bGoogleImageProxy\b/i
/** Mail Privacy Protection sends only this, or names Apple's engine without a browser. */
const BARE_MOZILLA = /^Mozilla\/5\.0$/
const APPLE_ENGINE =
  /^Mozilla\/5\.0 \((?:Macintosh|iPhone|iPad)[^)]*\) AppleWebKit\/[\d.]+ \(KHTML, like Gecko\)(?: Mobile\/\w+)?$/

interface Named {
  match: RegExp
  name: string
  type: ClientType
  device?: DeviceType
}

/** Ordered: the first match counts. */
const PROGRAMS: readonly Named[] = [
  { match: GMAIL_PROXY, name: 'Gmail', type: 'email client', device: 'unknown' },
  { match: /\bYahooMailProxy\b/i, name: 'Yahoo Mail', type: 'email client', device: 'unknown' },
  { match: /\bOutlook-(?:iOS|Android)\b/i, name: 'Outlook Mobile', type: 'email client', device: 'mobile' },
  { match: /\bMicrosoft Outlook\b|\bMSOffice\b|\bms-office\b/i, name: 'Outlook', type: 'email client' },
  { match: /\bThunderbird\//i, name: 'Thunderbird', type: 'email client' },
  { match: /\bBetterbird\//i, name: 'Betterbird', type: 'email client' },
  { match: /\bPostbox\//i, name: 'Postbox', type: 'email client' },
  { match: /\bLotus-Notes\/|\bHCL Notes\b/i, name: 'Notes', type: 'email client' },
  { match: /\bAirmail\b/i, name: 'Airmail', type: 'email client' },
  { match: /\bSpark(?:Mail|Desktop)\b|\bSpark\/\d/i, name: 'Spark', type: 'email client' },
  { match: /\bSuperhuman\b/i, name: 'Superhuman', type: 'email client' },
  { match: /\beM ?Client\b/i, name: 'eM Client', type: 'email client' },
  { match: /\bEvolution\/\d/i, name: 'Evolution', type: 'email client' },
  { match: /\bKMail\b|\bKontact\b/i, name: 'KMail', type: 'email client' },
  { match: /\bGeary\b/i, name: 'Geary', type: 'email client' },
  { match: /\bMailspring\b/i, name: 'Mailspring', type: 'email client' },
  {
    match: /\bSamsung ?Email\b|\bcom\.samsung\.android\.email\b/i,
    name: 'Samsung Email',
    type: 'email client',
  },
  { match: /\bK-9 Mail\b|\bcom\.fsck\.k9\b/i, name: 'K-9 Mail', type: 'email client', device: 'mobile' },
  { match: APPLE_ENGINE, name: 'Apple Mail', type: 'email client' },
  { match: /\bcurl\/|\blibcurl\b/i, name: 'curl', type: 'library' },
  { match: /\bWget\//i, name: 'Wget', type: 'library' },
  { match: /\bpython-(?:requests|urllib3?|httpx)|\baiohttp\//i, name: 'Python', type: 'library' },
  { match: /\bGo-http-client\//i, name: 'Go', type: 'library' },
  { match: /\bokhttp\//i, name: 'OkHttp', type: 'library' },
  { match: /^Java\/|\bApache-HttpClient\//i, name: 'Java', type: 'library' },
  { match: /^(?:axios|node-fetch|undici|node|got)(?:\/|$)/i, name: 'Node.js', type: 'library' },
  { match: /\bGuzzleHttp\//i, name: 'Guzzle', type: 'library' },
  { match: /\blibwww-perl\//i, name: 'libwww-perl', type: 'library' },
  {
    match: /\b(?:Feedly|Feedbin|NewsBlur|Inoreader|FreshRSS|Miniflux|Tiny Tiny RSS)\b/i,
    name: 'feed reader',
    type: 'feed reader',
  },
]

/** Link scanners on the way of a message; they identify themselves, and `isbot` knows few of them. */
const SCANNERS =
  /Barracuda|Proofpoint|Mimecast|IronPort|CiscoSecure|TrendMicro|\bTMES\b|FortiMail|FortiGuard|Sophos|Symantec|MessageLabs|BitDefender|ESET|Kaspersky|\bAvanan\b|Hornetsecurity|\bVade\b|Zscaler|Forcepoint|Existence Discovery|BingPreview|SafeLinks/i

/** @param address of the client: image proxies are recognised by it too. */
export function clientInfo(userAgent: string, address: string): ClientInfo {
  const text = userAgent.slice(0, USER_AGENT_LENGTH_MAX)
  const known = remembered.get(text) ?? remember(text, describe(text))
  const proxy = imageProxy(text, address)
  return proxy === '' ? known : { ...known, ...ON_BEHALF[proxy], bot: proxy }
}

const ON_BEHALF = {
  apple: { 'client-name': 'Apple Mail', 'client-type': 'email client' },
  gmail: { 'client-name': 'Gmail', 'client-type': 'email client' },
} as const

function imageProxy(userAgent: string, address: string): 'apple' | 'gmail' | '' {
  if (GMAIL_PROXY.test(userAgent)) return 'gmail'
  const bare = BARE_MOZILLA.test(userAgent)
  if (bare && anyCidrContains(GOOGLE, address)) return 'gmail'
  return (bare || APPLE_ENGINE.test(userAgent)) && anyCidrContains(APPLE, address) ? 'apple' : ''
}

const remembered = new Map<string, ClientInfo>()

function remember(userAgent: string, info: ClientInfo): ClientInfo {
  const oldest = remembered.keys().next()
  if (remembered.size >= REMEMBERED_MAX && !oldest.done) remembered.delete(oldest.value)
  remembered.set(userAgent, info)
  return info
}

function describe(userAgent: string): ClientInfo {
  if (userAgent === '') return UNKNOWN_CLIENT
  const { browser, os, device } = parseUserAgent(userAgent.slice(0, PARSED_LENGTH_MAX))
  const program = PROGRAMS.find(({ match }) => match.test(userAgent))
  const scans = SCANNERS.test(userAgent) || (isbot(userAgent) && !isForReaders(userAgent, program?.type))
  const type = program?.type ?? (scans ? 'robot' : browserType(browser.name, device.type))
  return {
    'client-name': program?.name ?? browser.name ?? 'unknown',
    'client-os': os.name ?? 'unknown',
    'client-type': type,
    'device-type': program?.device ?? deviceType(device.type, os.name),
    'user-agent': userAgent,
    bot: scans ? 'generic' : '',
  }
}

/** `isbot` also matches what fetches on a reader's behalf, and protected mail programs outside the known blocks. */
const isForReaders = (userAgent: string, type: ClientType | undefined) =>
  type === 'email client' || BARE_MOZILLA.test(userAgent)

function browserType(browser: string | undefined, device: string | undefined): ClientType {
  if (browser === undefined) return 'unknown'
  return device === 'mobile' || device === 'tablet' ? 'mobile browser' : 'browser'
}

const DESKTOPS = new Set([
  ...[
    'Windows',
    'Mac OS',
    'Linux',
    'Ubuntu',
    'Debian',
    'Fedora',
    'Chromium OS',
    'FreeBSD',
    'OpenBSD',
    'NetBSD',
  ],
  ...['Arch', 'CentOS', 'Gentoo', 'Mint', 'RedHat', 'SUSE', 'UNIX', 'Solaris', 'GNU'],
])

function deviceType(type: string | undefined, os: string | undefined): DeviceType {
  if (type === 'mobile' || type === 'tablet') return type
  if (type !== undefined) return 'other'
  return DESKTOPS.has(os ?? '') ? 'desktop' : 'unknown'
}

function cidrs(...texts: string[]): readonly Cidr[] {
  return texts.flatMap((text) => parseCidr(text) ?? [])
}
