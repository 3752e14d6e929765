/** Settings of sent mail: where it goes, from which addresses, its domains and their records, and its limits. */
import { isIP } from 'node:net'
import { canonicalIp } from '../../base/net/ip.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import { addressKey, parseMailbox, toAsciiDomain } from '../../protocols/mime/address.ts'
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

/** Where mail goes once it leaves the queue. */
export type DeliveryMode =
  | { kind: 'capture' }
  | { kind: 'direct' }
  | {
      kind: 'relay'
      host: string
      port: number
      /** `smtps:` is TLS from the first byte (RFC 8314 §3.3). */
      tls: 'starttls' | 'implicit'
      /** `allowUnverified`: the password is sent whatever the server's certificate. */
      auth: { user: string; password: string; allowUnverified: boolean } | null
    }

/** One address this node sends from, in canonical form: `ip[=shared|=spare][@helo.name]`. */
export interface SourceAddress {
  ip: string
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
    delivery: setting<DeliveryMode>('DELIVERY', deliveryMode, () => ({ kind: 'capture' })),
    /** Connections held open to the relay at a time. Postfix as a receiver allows one client 50 (smtpd_client_connection_count_limit). */
    relayConnections: setting('RELAY_CONNECTIONS', wholeNumber(1, 1_000, 'connections'), () => 50),
    sourceAddresses: setting('IPS', list(sourceAddress), () => []),
    /** Addresses whose forward and reverse DNS do not agree are not used. */
    requireFcrdns: setting('REQUIRE_FCRDNS', flag, () => false),
    /** Messages per stage of a warm-up. */
    warmupPlan: setting('WARMUP_PLAN', list(wholeNumber(1, COUNT_MAX, 'messages')), () => WARMUP_PLAN),
    /** Addresses that accounts request are put on warm-up. */
    autoWarmup: setting('AUTO_WARMUP', flag, () => false),
    dynamicPools: readDynamicPools(readers),
    dnsServers: optional('DNS', list(serverAddress(53))),
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
    /** Where the built-in DNS responder for the DKIM zone listens; null: another server publishes the zone. */
    dkimZoneListen,
    /** Days for which a replaced DKIM key still signs while the new records are awaited. */
    dkimGraceDays: setting('DKIM_GRACE_DAYS', wholeNumber(0, 365, 'days'), () => 7),
    /** Per account; 0: no limit. */
    maxDomains: setting('MAX_DOMAINS', wholeNumber(0, COUNT_MAX, 'domains'), () => 0),
  }
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
    sandboxRecipients: setting('SANDBOX_RECIPIENTS', list(sandboxRecipient), () => []),
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
  const url = URL.parse(text)
  const isImplicit = url?.protocol === 'smtps:'
  if (
    !url ||
    !(isImplicit || url.protocol === 'smtp:') ||
    !url.hostname ||
    (url.pathname !== '' && url.pathname !== '/')
  ) {
    // Never quoted: a password may be anywhere in it.
    throw new Error('is not capture, direct, smtp://[user:password@]host:port or smtps://')
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
  return { kind: 'relay', host: withoutBrackets(url.hostname), port, tls, auth }
}

function sourceAddress(text: string): SourceAddress {
  const [rest = '', helo] = text.split('@')
  const [ip = '', kind] = rest.split('=')
  if (isIP(ip) === 0) throw new Error(`${quoted(text)} does not begin with an IP address`)
  if (kind !== undefined && kind !== 'shared' && kind !== 'spare')
    throw new Error(`${quoted(text)} has something else than "shared" or "spare" after the "="`)
  return {
    ip: canonicalIp(ip) ?? ip,
    shared: kind === 'shared',
    ...(kind === 'spare' && { spare: true }),
    helo: helo === undefined ? null : hostName(helo),
  }
}

/** At least an hour, which figures are counted by; at most as long as those of hours are kept. */
function countedTime(text: string): number {
  const ms = duration(text)
  if (ms < HOUR_MS || ms > 60 * DAY_MS) throw new Error(`${quoted(text)} is not a time from 1h to 1440h`)
  return ms
}

function rateLimit(text: string): number | null {
  if (text === 'off' || text === '0') return null
  if (!/^\d+$/.test(text)) throw new Error(`${quoted(text)} is not a number of requests per second, or off`)
  return Number(text)
}

/** In the form in which addresses are compared. */
function sandboxRecipient(text: string): string {
  if (text === '*') return text
  try {
    return text.startsWith('@') ? `@${toAsciiDomain(text.slice(1))}` : addressKey(parseMailbox(text))
  } catch {
    throw new Error(`${quoted(text)} is not an address, @domain or *`)
  }
}
