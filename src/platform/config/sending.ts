/** Settings of sent mail: where it goes, from which addresses, its domains and their records, and its limits. */
import { isIP } from 'node:net'
import { canonicalIp } from '../../base/net/ip.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import { addressKey, parseMailbox, toAsciiDomain } from '../../protocols/mime/address.ts'
import type { OutgoingProxy } from '../../protocols/proxy/dialling.ts'
import {
  byteCount,
  COUNT_MAX,
  dnsName,
  duration,
  flag,
  hostName,
  list,
  millionths,
  network,
  oneOf,
  path,
  portNumber,
  quoted,
  type Readers,
  serverAddress,
  wholeNumber,
  withoutBrackets,
} from './parsers.ts'

/** A server that takes mail for others, as a setting names it. */
export interface RelayAddress {
  host: string
  port: number
  /** `smtps:` is TLS from the first byte (RFC 8314 §3.3). */
  tls: 'starttls' | 'implicit'
  /** `allowUnverified`: the password is sent whatever the server's certificate. */
  auth: { user: string; password: string; allowUnverified: boolean } | null
}

/** Where mail goes once it leaves the queue. */
export type DeliveryMode = { kind: 'capture' } | { kind: 'direct' } | ({ kind: 'relay' } & RelayAddress)

/** Addresses whose forward and reverse DNS must agree. */
export type FcrdnsRule = 'off' | 'ipv6' | 'all'

/** One address this node sends from, in canonical form: `[local@]ip[=shared|=spare][@helo.name]`. */
export interface SourceAddress {
  /** As receivers see it, which is its name everywhere. */
  ip: string
  /** Address of this machine that connections are bound to, where NAT makes `ip` of it. Absent: `ip`. */
  localIp?: string
  /** Connections leave through it; then nothing is bound here. */
  proxy?: OutgoingProxy
  shared: boolean
  /** Dedicated, and given to no account before one requests it. */
  spare?: true
  helo: string | null
}

/** 10, 15 and 30 minutes, 1, 2 and 4 hours: messages.md rule 43; also of received mail, routes-inbound.md section 9. */
export const DEFAULT_RETRY_SCHEDULE_MS = [10, 15, 30, 60, 120, 240].map((minutes) => minutes * MINUTE_MS)

/** ips-pools.md section 4. */
const WARMUP_PLAN = [
  1_000, 2_000, 4_000, 8_000, 14_000, 20_000, 30_000, 45_000, 65_000, 95_000, 140_000, 200_000, 300_000,
  450_000, 650_000,
]

export type SendingConfig = ReturnType<typeof readSending>

export function readSending(readers: Readers, publicUrl: string) {
  const { setting, optional } = readers
  return {
    ...readDomains(readers, publicUrl),
    ...readSendingLimits(readers),
    inboxRelease: readInboxRelease(readers),
    delivery: setting<DeliveryMode>('DELIVERY', deliveryMode, () => ({ kind: 'capture' })),
    /** Connections held open to the relay at a time. Postfix as a receiver allows one client 50 (smtpd_client_connection_count_limit). */
    relayConnections: setting('RELAY_CONNECTIONS', wholeNumber(1, 1_000, 'connections'), () => 50),
    sourceAddresses: readSourceAddresses(readers),
    /** Which addresses are not used, or for IPv6 only where nothing else is left, unless forward and reverse DNS agree. */
    requireFcrdns: setting<FcrdnsRule>('REQUIRE_FCRDNS', fcrdnsRule, () => 'ipv6'),
    /** Messages per stage of a warm-up. */
    warmupPlan: setting('WARMUP_PLAN', list(wholeNumber(1, COUNT_MAX, 'messages')), () => WARMUP_PLAN),
    /** Addresses that accounts request are put on warm-up. */
    autoWarmup: setting('AUTO_WARMUP', flag, () => false),
    dynamicPools: readDynamicPools(readers),
    dnsServers: optional('DNS', list(serverAddress(53))),
    /** Mail hosts that get no mail: names with `*` and `?`, addresses, networks. */
    mxDeny: setting('MX_DENY', list(mailHosts), () => []),
    mxPort: setting('MX_PORT', portNumber, () => 25),
    allowNetworks: setting('ALLOW_NETWORKS', list(network), () => []),
    retryScheduleMs: setting('RETRY_SCHEDULE', list(duration), () => DEFAULT_RETRY_SCHEDULE_MS),
    /** Which attempts keep their SMTP dialogue. */
    transcripts: setting<'failures' | 'all' | 'off'>(
      'TRANSCRIPTS',
      oneOf(['failures', 'all', 'off']),
      () => 'failures',
    ),
    /** The operator's limits per provider, over ours; null: none. Not checked here: a fault in it must not keep the service from sending. */
    shapingFile: optional('SHAPING', path),
  }
}

export type InboxReleaseConfig = NonNullable<ReturnType<typeof readInboxRelease>>

/** Where captured mail is released, and to which recipients, as in `sandboxRecipients`; null: it stays here. */
function readInboxRelease({ setting, optional, faults }: Readers) {
  const server = setting('INBOX_RELEASE', releaseServer, () => null)
  const recipients = optional('INBOX_RELEASE_TO', list(namedRecipient))
  if (server === null && recipients !== null)
    faults.push('SENDWRIGHT_INBOX_RELEASE_TO needs SENDWRIGHT_INBOX_RELEASE')
  return server && { server, recipients: recipients ?? ['*'] }
}

export type DynamicPoolsConfig = ReturnType<typeof readDynamicPools>

/** Bands of domains in dynamic pools: limits and times of the contract (dynamic-pools.md section 3). Rates are millionths. */
function readDynamicPools({ setting }: Readers) {
  return {
    /** Between two checks of a domain, and the time that a check looks back. */
    intervalMs: setting('DYNAMIC_POOLS_INTERVAL', countedTime, () => DAY_MS),
    windowMs: setting('DYNAMIC_POOLS_WINDOW', countedTime, () => 7 * DAY_MS),
    /** The highest rates that are not poor. */
    bouncePpm: setting('DYNAMIC_POOLS_BOUNCE_RATE', millionths, () => 50_000),
    complaintPpm: setting('DYNAMIC_POOLS_COMPLAINT_RATE', millionths, () => 1_000),
    /** Processed messages from which a domain is not new, and from which it may be poor. */
    goodVolume: setting('DYNAMIC_POOLS_GOOD_VOLUME', wholeNumber(1, COUNT_MAX, 'messages'), () => 1_000),
    poorVolume: setting('DYNAMIC_POOLS_POOR_VOLUME', wholeNumber(1, COUNT_MAX, 'messages'), () => 100),
    /** Checks in a row without a poor result after which a domain leaves the poor band. */
    recoverChecks: setting('DYNAMIC_POOLS_RECOVER_CHECKS', wholeNumber(1, 1_000, 'checks'), () => 2),
  }
}

function readDomains({ setting, optional, faults }: Readers, publicUrl: string) {
  const parent = dnsHost(publicUrl)
  const dkimZone = optional('DKIM_ZONE', dnsName)
  const dkimZoneListen = optional('DKIM_ZONE_LISTEN', serverAddress(53))
  if (dkimZoneListen !== null && dkimZone === null)
    faults.push('SENDWRIGHT_DKIM_ZONE_LISTEN needs SENDWRIGHT_DKIM_ZONE')
  return {
    /** Targets of the DNS records of sending domains. */
    dnsTargets: {
      spfIncludeHost: setting('SPF_INCLUDE_HOST', dnsName, () => `spf.${parent}`),
      mxHosts: setting('MX_HOSTS', list(dnsName), () => [`mxa.${parent}`, `mxb.${parent}`]),
      /** A host name, or an address: then domains publish an address record. */
      tracking: setting('TRACKING_CNAME_TARGET', hostName, () => `track.${parent}`),
      /** Zone in which automatic sender security publishes keys; null: it is not offered. */
      dkimZone,
    },
    /** The operator's template at DNS providers that take part in Domain Connect; null: there is none. */
    domainConnect: optional('DOMAIN_CONNECT', connectTemplate),
    /** What links to them are signed with: where the public key is in DNS, and the private one; null: nothing. */
    domainConnectKey: optional('DOMAIN_CONNECT_KEY', connectKey),
    /** Where the built-in DNS responder for the DKIM zone listens; null: another server publishes the zone. */
    dkimZoneListen,
    /** Days for which a replaced DKIM key still signs while the new records are awaited. */
    dkimGraceDays: setting('DKIM_GRACE_DAYS', wholeNumber(0, 365, 'days'), () => 7),
    /** Per account; 0: no limit. */
    maxDomains: setting('MAX_DOMAINS', wholeNumber(0, COUNT_MAX, 'domains'), () => 0),
  }
}

function connectTemplate(text: string): { providerId: string; serviceId: string } {
  const [, providerId, serviceId] = /^([A-Za-z0-9.-]{1,100})\/([A-Za-z0-9._-]{1,100})$/.exec(text) ?? []
  if (providerId === undefined || serviceId === undefined)
    throw new Error(`${quoted(text)} is not <provider id>/<service id>`)
  return { providerId, serviceId }
}

function connectKey(text: string): { host: string; file: string } {
  const [, host, file] = /^([A-Za-z0-9_.-]{1,100}):(.+)$/.exec(text) ?? []
  if (host === undefined || file === undefined) throw new Error(`${quoted(text)} is not <host>:<file>`)
  return { host, file: path(file) }
}

function readSendingLimits({ setting }: Readers) {
  return {
    /** Sending requests per second and account; null: no limit of any kind. */
    rateLimit: setting('RATE_LIMIT', rateLimit, () => 100),
    /** Recipients, and bytes of messages, per minute and account; 0: no such limit. */
    recipientsPerMinute: setting('RECIPIENTS_PER_MINUTE', wholeNumber(0, COUNT_MAX, 'recipients'), () => 0),
    bytesPerMinute: setting('BYTES_PER_MINUTE', byteCount, () => 0),
    /** Distinct tags; 0: no limit. */
    tagsPerDomainMax: setting('MAX_TAGS_PER_DOMAIN', wholeNumber(0, COUNT_MAX, 'tags'), () => 20_000),
    tagsPerAccountMax: setting('MAX_TAGS_PER_ACCOUNT', wholeNumber(0, COUNT_MAX, 'tags'), () => 100_000),
    /** Recipients allowed to sandbox domains in direct mode: addresses, domains as `@example.org`, or `*`. */
    sandboxRecipients: setting('SANDBOX_RECIPIENTS', list(namedRecipient), () => []),
    /** Content and headers of one template version, in KB. */
    templateKbMax: setting('MAX_TEMPLATE_KB', wholeNumber(1, 1024, 'kilobytes'), () => 100),
    maxMessageTtlSeconds: setting('MAX_MESSAGE_TTL', wholeNumber(0, 31_536_000, 'seconds'), () => 604_800),
  }
}

/** The default parent of the records' targets: never an address (domains.md rule 1). */
function dnsHost(url: string): string {
  const host = withoutBrackets(new URL(url).hostname)
  return isIP(host) === 0 ? host : 'sendwright.localhost'
}

function deliveryMode(text: string): DeliveryMode {
  if (text === 'capture' || text === 'direct') return { kind: text }
  return { kind: 'relay', ...relayAddress(text, 'capture, direct, ') }
}

const releaseServer = (text: string): RelayAddress | null =>
  text === 'off' ? null : relayAddress(text, 'off, ')

/** @param others what else the setting takes */
function relayAddress(text: string, others: string): RelayAddress {
  const url = URL.parse(text)
  const isImplicit = url?.protocol === 'smtps:'
  if (
    !url ||
    !(isImplicit || url.protocol === 'smtp:') ||
    !url.hostname ||
    (url.pathname !== '' && url.pathname !== '/')
  ) {
    // Never quoted: a password may be anywhere in it.
    throw new Error(`is not ${others}smtp://[user:password@]host:port or smtps://`)
  }
  if (!['', '?tls=unverified'].includes(url.search))
    throw new Error('has something else than tls=unverified after the "?"')
  const auth = url.username
    ? {
        user: decodeURIComponent(url.username),
        password: decodeURIComponent(url.password),
        allowUnverified: url.search !== '',
      }
    : null
  const tls = isImplicit ? 'implicit' : 'starttls'
  const port = Number(url.port || (isImplicit ? 465 : 25))
  return { host: withoutBrackets(url.hostname), port, tls, auth }
}

function readSourceAddresses({ setting, faults }: Readers): readonly SourceAddress[] {
  const addresses = setting<readonly SourceAddress[]>('IPS', list(sourceAddress), () => [])
  const proxies = new Map(setting('EGRESS', list(egress), () => []))
  const byIp = Map.groupBy(addresses, ({ ip }) => ip)
  for (const [ip, same] of byIp)
    if (same.length > 1 && same.some(({ localIp }) => localIp !== undefined))
      faults.push(`SENDWRIGHT_IPS names ${ip} for several addresses of this machine`)
  for (const ip of proxies.keys()) {
    const [address] = byIp.get(ip) ?? []
    if (address === undefined) faults.push(`SENDWRIGHT_EGRESS names ${ip}, which is not in SENDWRIGHT_IPS`)
    else if (address.localIp !== undefined)
      faults.push(`SENDWRIGHT_EGRESS names ${ip}, which SENDWRIGHT_IPS gives an address of this machine`)
  }
  return addresses.map((address) => {
    const proxy = proxies.get(address.ip)
    return proxy === undefined ? address : { ...address, proxy }
  })
}

/** `ip[=kind]`, `ip[=kind]@helo.name`, `local@ip[=kind]` or `local@ip[=kind]@helo.name`. */
function sourceAddress(text: string): SourceAddress {
  const [first = '', second, third, ...more] = text.split('@')
  const isMapped = second !== undefined && isIP(second.split('=', 1)[0] as string) !== 0
  const [ip = '', kind, ...rest] = (isMapped ? second : first).split('=')
  const [local, helo] = isMapped ? [first, third] : [undefined, second]
  if (isIP(local ?? ip) === 0) throw new Error(`${quoted(text)} does not begin with an IP address`)
  if (local !== undefined && isIP(local) !== isIP(ip))
    throw new Error(`${quoted(text)} has addresses of two families`)
  if (kind !== undefined && kind !== 'shared' && kind !== 'spare')
    throw new Error(`${quoted(text)} has something else than "shared" or "spare" after the "="`)
  if (rest.length > 0 || more.length > 0 || (!isMapped && third !== undefined))
    throw new Error(`${quoted(text)} is not [local@]ip[=shared|=spare][@helo.name]`)
  return {
    ip: canonicalIp(ip) ?? ip,
    ...(local !== undefined && { localIp: canonicalIp(local) ?? local }),
    shared: kind === 'shared',
    ...(kind === 'spare' && { spare: true }),
    helo: helo === undefined ? null : hostName(helo),
  }
}

const PROXY_PORTS = { socks5: 1080, haproxy: null } as const
/** RFC 1929 §2. */
const PROXY_LOGIN_MAX_BYTES = 255

/** `ip=socks5://[user:password@]host[:port]` or `ip=haproxy://host:port`. Never quoted: a password may be anywhere in it. */
function egress(text: string): [ip: string, proxy: OutgoingProxy] {
  const [, ip = '', address = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? []
  if (isIP(ip) === 0) throw new Error('has an entry that does not begin with an IP address and "="')
  const url = URL.parse(address)
  const kind = url?.protocol.slice(0, -1)
  const form = `gives ${ip} something else than socks5://[user:password@]host[:port] or haproxy://host:port`
  if (!url || (kind !== 'socks5' && kind !== 'haproxy')) throw new Error(form)
  const port = url.port === '' ? PROXY_PORTS[kind] : Number(url.port)
  const isPlain = ['', '/'].includes(url.pathname) && url.search === '' && url.hash === ''
  if (!isPlain || !url.hostname || port === null || (kind === 'haproxy' && url.username))
    throw new Error(form)
  const login = { user: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }
  if (Object.values(login).some((part) => Buffer.byteLength(part) > PROXY_LOGIN_MAX_BYTES))
    throw new Error(`gives ${ip} a user or password of more than ${PROXY_LOGIN_MAX_BYTES} bytes`)
  const host = hostName(withoutBrackets(url.hostname))
  return [canonicalIp(ip) ?? ip, { kind, host, port, login: login.user === '' ? null : login }]
}

/** At least an hour, which figures are counted by; at most as long as those of hours are kept. */
function countedTime(text: string): number {
  const ms = duration(text)
  if (ms < HOUR_MS || ms > 60 * DAY_MS) throw new Error(`${quoted(text)} is not a time from 1h to 1440h`)
  return ms
}

/** A network or an address, else a pattern of names in lower case. */
function mailHosts(text: string): string {
  if (isIP(text.split('/', 1)[0] ?? '') !== 0) return network(text)
  if (!/^[a-z0-9_.*?-]{1,253}$/i.test(text) || !/[a-z0-9]/i.test(text))
    throw new Error(`${quoted(text)} is neither a host name, which may have * and ?, nor a network`)
  return text.toLowerCase()
}

function fcrdnsRule(text: string): FcrdnsRule {
  if (text.toLowerCase() === 'ipv6') return 'ipv6'
  return flag(text) ? 'all' : 'off'
}

function rateLimit(text: string): number | null {
  if (text === 'off' || text === '0') return null
  if (!/^\d+$/.test(text)) throw new Error(`${quoted(text)} is not a number of requests per second, or off`)
  return Number(text)
}

/** In the form in which addresses are compared. */
function namedRecipient(text: string): string {
  if (text === '*') return text
  try {
    return text.startsWith('@') ? `@${toAsciiDomain(text.slice(1))}` : addressKey(parseMailbox(text))
  } catch {
    throw new Error(`${quoted(text)} is not an address, @domain or *`)
  }
}
