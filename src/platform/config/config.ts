/**
 * The configuration: one table of settings with meaning, unit and default. The only reader of the
 * environment. A fault in one setting never hides the next: all of them are reported together.
 */

import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { canonicalIp } from '../../base/net/ip.ts'
import { MEMORY_KINDS, type MemoryKind } from '../../base/process/memory-sizes.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import { addressKey, parseMailbox, toAsciiDomain } from '../../protocols/mime/address.ts'
import { USER_ROLES, type UserRole } from '../http/rights/rights.ts'
import { ROLES, type Role } from '../nodes/node.ts'
import type { S3Options } from '../store/blobs/s3-client.ts'
import { serversOf } from '../store/database-url.ts'

/** Where mail goes once it leaves the queue. */
export type DeliveryMode =
  | { kind: 'capture' }
  | { kind: 'direct' }
  | {
      kind: 'relay'
      host: string
      port: number
      /** `allowUnverified`: the password is sent whatever the server's certificate. */
      auth: { user: string; password: string; allowUnverified: boolean } | null
    }

export interface Address {
  host: string
  port: number
}

export interface Config {
  host: string
  port: number
  smtpHost: string
  smtpPort: number
  smtpTls: { certificateFile: string; keyFile: string } | null
  /** Listener with TLS from the first byte; null: none. */
  smtpsPort: number | null
  smtpTlsMinVersion: 'TLSv1.2' | 'TLSv1.3'
  /** Who may send a password without TLS. */
  smtpAuthWithoutTls: 'anyone' | 'loopback' | 'nobody'
  smtpConnectionsPerIpMax: number
  smtpIdleMs: number
  smtpMessagesPerConnectionMax: number
  /** Of one client address, on each HTTP listener; trusted proxies are exempt. */
  httpConnectionsPerIpMax: number
  /** Second listener, with TLS; null: none. */
  httpsPort: number | null
  /** The certificate authority; null: no certificates are ordered. */
  acme: {
    directory: string
    email: string | null
    /** Host names of the service itself that certificates are ordered for; empty: tracking hosts only. */
    ownHosts: readonly string[]
  } | null
  /** What this process does for the installation. */
  roles: readonly Role[]
  dataFolder: string
  /** What the process keeps in memory (base/process/memory-sizes.ts). */
  memory: MemoryKind
  databaseUrl: string | null
  /** Where blobs are; null: in the data folder. */
  blobs: (S3Options & { prefix: string }) | null
  apiKey: string | null
  secret: string | null
  publicUrl: string
  storageUrl: string
  /** Base of tracking links of domains whose own host does not work; null: they have none. */
  trackingUrl: string | null
  /** A proxy terminates TLS for the tracking hosts of domains. */
  trackingTlsExternal: boolean
  headerPrefix: string
  headerPrefixAliases: readonly string[]
  authRealm: string
  corsOrigins: readonly string[]
  delivery: DeliveryMode
  /** Connections held open to the relay at a time. */
  relayConnections: number
  sourceAddresses: readonly SourceAddress[]
  /** Addresses whose forward and reverse DNS do not agree are not used. */
  requireFcrdns: boolean
  /** Messages per stage of a warm-up. */
  warmupPlan: readonly number[]
  /** Addresses that accounts request are put on warm-up. */
  autoWarmup: boolean
  dynamicPools: DynamicPoolsConfig
  dnsServers: readonly Address[] | null
  mxPort: number
  allowNetworks: readonly string[]
  trustedProxies: readonly string[]
  hostname: string
  retryScheduleMs: readonly number[]
  webhookScheduleMs: readonly number[]
  /** Waits after failed POSTs of received mail. */
  inboundScheduleMs: readonly number[]
  /** Mail that no route wants is accepted and dropped, instead of refused. */
  acceptUnrouted: boolean
  /** Scores received mail; null: the service's own checks do. */
  spamScorer: { kind: 'rspamd' | 'spamd'; host: string; port: number } | null
  /** With the own checks: points from which mail is spam. */
  spamThreshold: number
  /** With the own checks: DNS blocklists that clients are looked up in. */
  spamDnsblZones: readonly string[]
  /** Validation asks receiving servers about recipients. */
  validationSmtpProbe: boolean
  /** The operator's test mailboxes (tools/placement/seeds.ts); null: none. */
  placementSeedsFile: string | null
  /** A copy that a test mailbox does not have after this time is missing. */
  placementWaitMs: number
  /** Domains that ask for them get reports about the TLS of mail to them. */
  tlsReports: boolean
  /** Unknown networks have to send their first mail to routes twice. */
  greylist: boolean
  /** Webhooks of type `delivered` are retried like the others. */
  webhookRetryDelivered: boolean
  /** Days that events are kept, at least 3. */
  eventRetentionDays: number
  /** Approximate space for events; null: no limit. Events of the last 3 days are always kept. */
  eventRetentionBytes: number | null
  /** Approximate space for stored messages; null: no limit. Finished ones are removed before their time, oldest first. */
  messageRetentionBytes: number | null
  /** Captured mail: days that it is kept, and the space that it may take. */
  inboxRetentionDays: number
  inboxRetentionBytes: number
  /** Days that rows of the audit log are kept. */
  auditRetentionDays: number
  /** Which attempts keep their SMTP dialogue. */
  transcripts: 'failures' | 'all' | 'off'
  /** Below this much free space in the data folder nothing is accepted. */
  freeSpaceMinBytes: number
  /** Sending requests per second and account; null: no limit of any kind. */
  rateLimit: number | null
  /** Recipients, and bytes of messages, per minute and account; 0: no such limit. */
  recipientsPerMinute: number
  bytesPerMinute: number
  /** Distinct tags; 0: no limit. */
  tagsPerDomainMax: number
  tagsPerAccountMax: number
  /** Recipients allowed to sandbox domains in direct mode: addresses, domains as `@example.org`, or `*`. */
  sandboxRecipients: readonly string[]
  /** Content and headers of one template version, in KB. */
  templateKbMax: number
  logLevel: string
  /** Targets of the DNS records of sending domains. */
  dnsTargets: {
    spfIncludeHost: string
    mxHosts: readonly string[]
    /** A host name, or an address: then domains publish an address record. */
    tracking: string
    /** Zone in which automatic sender security publishes keys; null: it is not offered. */
    dkimZone: string | null
  }
  /** Where the built-in DNS responder for the DKIM zone listens; null: another server publishes the zone. */
  dkimZoneListen: Address | null
  /** Days for which a replaced DKIM key still signs while the new records are awaited. */
  dkimGraceDays: number
  maxMessageTtlSeconds: number
  /** Per account; 0: no limit. */
  maxDomains: number
  /** Blocklists that `doctor` queries for the sending addresses. */
  dnsblZones: readonly string[]
  /** Blocklists that are queried every hour, for alerts; public ones refuse public resolvers. */
  alertDnsblZones: readonly string[]
  /** Blocklists of domains that are queried every hour, for alerts. */
  alertDomainZones: readonly string[]
  /** Messages that a rate must be of for an alert to judge it. */
  alertMinVolume: number
  /** MaxMind DB file with the locations of addresses; null: none. */
  geoDatabase: string | null
  /** The operator's rules for classifying replies, applied before ours; null: none. */
  bounceRulesFile: string | null
  /** The operator's limits per provider, over ours; null: none. */
  shapingFile: string | null
  /** Sign-in to the dashboard with an OpenID Connect provider; null: none. */
  oidc: OidcConfig | null
  /** Where traces are sent to; null: nothing is traced. */
  traces: TracesConfig | null
  /** Tests only: `name:count` of base/flow/fail-point.ts. */
  testFailPoint: string | null
}

export interface TracesConfig {
  /** Of the collector's traces. */
  url: string
  /** Of each request to it. */
  headers: Readonly<Record<string, string>>
  /** Of the traces that begin here, 0 to 1. */
  share: number
}

/** Bands of domains in dynamic pools (dynamic-pools.md section 3). Rates are millionths. */
export interface DynamicPoolsConfig {
  /** Between two checks of a domain, and the time that a check looks back. */
  intervalMs: number
  windowMs: number
  /** The highest rates that are not poor. */
  bouncePpm: number
  complaintPpm: number
  /** Processed messages from which a domain is not new, and from which it may be poor. */
  goodVolume: number
  poorVolume: number
  /** Checks in a row without a poor result after which a domain leaves the poor band. */
  recoverChecks: number
}

export interface OidcConfig {
  /** As the provider writes it in its metadata. */
  issuer: string
  clientId: string
  /** Null: a public client, which has only PKCE. */
  clientSecret: string | null
  /** Of the button: "Sign in with <label>". */
  label: string
  /** Separated by blanks. */
  scopes: string
  /** Only addresses in these domains may sign in; null: in any. */
  domains: readonly string[] | null
  /** Of users that are created when they sign in for the first time; null: only invited users may. */
  newUserRole: UserRole | null
  /** The claim that names the roles of a user; null: roles are set here. */
  roleClaim: string | null
}

/** One address this node sends from, in canonical form: `ip[=shared|=spare][@helo.name]`. */
export interface SourceAddress {
  ip: string
  shared: boolean
  /** Dedicated, and given to no account before one requests it. */
  spare?: true
  helo: string | null
}

export class ConfigError extends Error {
  readonly faults: readonly string[]
  constructor(faults: readonly string[]) {
    super(
      `The configuration has ${faults.length} fault(s):\n${faults.map((fault) => `  ${fault}`).join('\n')}`,
    )
    this.name = 'ConfigError'
    this.faults = faults
  }
}

type Environment = Readonly<Record<string, string | undefined>>

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent']

/** Checks of files that settings name; each throws the fault. Without one the file is not checked. */
export interface ConfigChecks {
  bounceRules?(file: string): unknown
}

/** Reads every setting from `env`. Names, meanings and defaults: docs/settings.md. @throws ConfigError listing all faults. */
export function readConfig(env: Environment, checks: ConfigChecks = {}): Config {
  const faults: string[] = []
  const seen = new Set<string>()

  /** One setting: absent or empty gives the default; a parser's message becomes a fault. */
  function setting<T>(name: string, parse: (text: string) => T, otherwise: () => T): T {
    const variable = `SENDWRIGHT_${name}`
    seen.add(variable)
    const text = env[variable]?.trim()
    if (!text) return otherwise()
    try {
      return parse(text)
    } catch (error) {
      faults.push(`${variable}: ${(error as Error).message}`)
      return otherwise()
    }
  }
  const optional = <T>(name: string, parse: (text: string) => T) => setting<T | null>(name, parse, () => null)

  const addresses = addressesConfig({ setting, optional, faults }, env)
  const { host, publicUrl } = addresses
  const config: Config = {
    ...addresses,
    trackingTlsExternal: setting('TRACKING_TLS_EXTERNAL', flag, () => false),
    smtpHost: setting('SMTP_HOST', hostName, () => host),
    smtpPort: setting('SMTP_PORT', portNumber, () => 2525),
    smtpsPort: optional('SMTPS_PORT', portNumber),
    smtpTlsMinVersion: setting('SMTP_TLS_MIN_VERSION', tlsVersion, () => 'TLSv1.2'),
    smtpAuthWithoutTls: setting('SMTP_AUTH_WITHOUT_TLS', authWithoutTls, () => 'loopback'),
    smtpConnectionsPerIpMax: setting(
      'SMTP_MAX_CONNECTIONS_PER_IP',
      wholeNumber(1, 100_000, 'connections'),
      () => 100,
    ),
    smtpIdleMs: setting('SMTP_IDLE_TIMEOUT', duration, () => 5 * MINUTE_MS),
    smtpMessagesPerConnectionMax: setting(
      'SMTP_MESSAGES_PER_CONNECTION',
      wholeNumber(1, 1_000_000, 'messages'),
      () => 1_000,
    ),
    // A program that sends a batch with one call per message, all at once, opens as many.
    httpConnectionsPerIpMax: setting(
      'HTTP_MAX_CONNECTIONS_PER_IP',
      wholeNumber(1, 100_000, 'connections'),
      () => 1_000,
    ),
    roles: setting<readonly Role[]>('ROLES', roles, () => ROLES),
    dataFolder: setting('DATA', path, () => resolve('data')),
    // The launcher sets it where memory is scarce, together with V8's limits.
    memory: setting('MEMORY', oneOf(MEMORY_KINDS), () => 'normal'),
    databaseUrl: optional('DATABASE_URL', databaseUrl),
    blobs: blobsConfig({ setting, optional, faults }, env),
    apiKey: optional('API_KEY', secretText(16)),
    secret: optional('SECRET', secretText(32)),
    headerPrefix: setting('HEADER_PREFIX', headerPrefix, () => 'X-Service-'),
    headerPrefixAliases: setting('HEADER_PREFIX_ALIASES', list(headerPrefix), () => ['X-Mailgun-']),
    authRealm: setting('AUTH_REALM', realm, () => 'API'),
    corsOrigins: setting('CORS_ORIGINS', list(origin), () => []),
    delivery: setting('DELIVERY', deliveryMode, () => ({ kind: 'capture' })),
    // Postfix as a receiver allows one client 50 (smtpd_client_connection_count_limit).
    relayConnections: setting('RELAY_CONNECTIONS', wholeNumber(1, 1_000, 'connections'), () => 50),
    sourceAddresses: setting('IPS', list(sourceAddress), () => []),
    requireFcrdns: setting('REQUIRE_FCRDNS', flag, () => false),
    warmupPlan: setting('WARMUP_PLAN', list(wholeNumber(1, 1_000_000_000, 'messages')), () => WARMUP_PLAN),
    autoWarmup: setting('AUTO_WARMUP', flag, () => false),
    dynamicPools: dynamicPoolsConfig({ setting }),
    dnsServers: optional('DNS', list(serverAddress(53))),
    mxPort: setting('MX_PORT', portNumber, () => 25),
    allowNetworks: setting('ALLOW_NETWORKS', list(network), () => []),
    trustedProxies: setting('TRUSTED_PROXIES', list(network), () => []),
    retryScheduleMs: setting('RETRY_SCHEDULE', list(duration), () => DEFAULT_RETRY_SCHEDULE_MS),
    webhookScheduleMs: setting('WEBHOOK_SCHEDULE', list(duration), () => DEFAULT_WEBHOOK_SCHEDULE_MS),
    inboundScheduleMs: setting('INBOUND_SCHEDULE', list(duration), () => DEFAULT_RETRY_SCHEDULE_MS),
    greylist: setting('GREYLIST', flag, () => false),
    tlsReports: setting('TLS_REPORTS', flag, () => true),
    placementSeedsFile: optional('PLACEMENT_SEEDS', path),
    placementWaitMs: setting('PLACEMENT_WAIT', duration, () => HOUR_MS),
    // Many networks forbid outgoing connections to port 25, and receivers dislike being asked.
    validationSmtpProbe: setting('VALIDATION_SMTP_PROBE', flag, () => false),
    spamScorer: optional('SPAM_SCORER', spamScorer),
    spamThreshold: setting('SPAM_THRESHOLD', spamPoints, () => 5),
    spamDnsblZones: setting('SPAM_DNSBL_ZONES', zonesOrOff, () => []),
    acceptUnrouted: setting('ACCEPT_UNROUTED', flag, () => false),
    webhookRetryDelivered: setting('WEBHOOK_RETRY_DELIVERED', flag, () => true),
    eventRetentionDays: setting('EVENT_RETENTION_DAYS', wholeNumber(3, 3650, 'days'), () => 30),
    eventRetentionBytes: optional('EVENT_RETENTION_MEGABYTES', megabytes),
    messageRetentionBytes: optional('MESSAGE_RETENTION_MEGABYTES', megabytes),
    inboxRetentionDays: setting('INBOX_RETENTION_DAYS', wholeNumber(1, 3650, 'days'), () => 30),
    inboxRetentionBytes: setting('INBOX_RETENTION_MEGABYTES', megabytes, () => 1_000_000_000),
    auditRetentionDays: setting('AUDIT_RETENTION_DAYS', wholeNumber(30, 3650, 'days'), () => 400),
    transcripts: setting('TRANSCRIPTS', oneOf(['failures', 'all', 'off'] as const), () => 'failures'),
    freeSpaceMinBytes: setting('FREE_SPACE_MIN', byteCount, () => 100 * MEGABYTE),
    rateLimit: setting('RATE_LIMIT', rateLimit, () => 100),
    recipientsPerMinute: setting(
      'RECIPIENTS_PER_MINUTE',
      wholeNumber(0, 1_000_000_000, 'recipients'),
      () => 0,
    ),
    bytesPerMinute: setting('BYTES_PER_MINUTE', byteCount, () => 0),
    tagsPerDomainMax: setting('MAX_TAGS_PER_DOMAIN', wholeNumber(0, 1_000_000_000, 'tags'), () => 20_000),
    tagsPerAccountMax: setting('MAX_TAGS_PER_ACCOUNT', wholeNumber(0, 1_000_000_000, 'tags'), () => 100_000),
    sandboxRecipients: setting('SANDBOX_RECIPIENTS', list(sandboxRecipient), () => []),
    templateKbMax: setting('MAX_TEMPLATE_KB', wholeNumber(1, 1024, 'kilobytes'), () => 100),
    logLevel: setting('LOG_LEVEL', oneOf(LOG_LEVELS), () => 'info'),
    dnsTargets: {
      spfIncludeHost: setting('SPF_INCLUDE_HOST', dnsName, () => `spf.${dnsHost(publicUrl)}`),
      mxHosts: setting('MX_HOSTS', list(dnsName), () => [
        `mxa.${dnsHost(publicUrl)}`,
        `mxb.${dnsHost(publicUrl)}`,
      ]),
      tracking: setting('TRACKING_CNAME_TARGET', hostName, () => `track.${dnsHost(publicUrl)}`),
      dkimZone: optional('DKIM_ZONE', dnsName),
    },
    dkimZoneListen: optional('DKIM_ZONE_LISTEN', serverAddress(53)),
    dkimGraceDays: setting('DKIM_GRACE_DAYS', wholeNumber(0, 365, 'days'), () => 7),
    maxMessageTtlSeconds: setting('MAX_MESSAGE_TTL', wholeNumber(0, 31_536_000, 'seconds'), () => 604_800),
    maxDomains: setting('MAX_DOMAINS', wholeNumber(0, 1_000_000_000, 'domains'), () => 0),
    dnsblZones: setting('DNSBL_ZONES', zonesOrOff, () => DEFAULT_DNSBL_ZONES),
    alertDnsblZones: setting('ALERT_DNSBL_ZONES', zonesOrOff, () => []),
    alertDomainZones: setting('ALERT_DOMAIN_ZONES', zonesOrOff, () => []),
    alertMinVolume: setting('ALERT_MIN_VOLUME', wholeNumber(1, 1_000_000, 'messages'), () => 50),
    geoDatabase: optional('GEO_DATABASE', path),
    bounceRulesFile: optional('BOUNCE_RULES', (text) => {
      const file = path(text)
      checks.bounceRules?.(file)
      return file
    }),
    // Not checked here: a fault in it must not keep the service from sending.
    shapingFile: optional('SHAPING', path),
    oidc: oidcConfig({ setting, optional, faults }),
    traces: tracesConfig({ setting, optional, faults }),
    testFailPoint: optional('TEST_FAIL_POINT', (text) => text),
  }
  if (config.dkimZoneListen !== null && config.dnsTargets.dkimZone === null) {
    faults.push('SENDWRIGHT_DKIM_ZONE_LISTEN needs SENDWRIGHT_DKIM_ZONE')
  }
  faults.push(...sqliteFaults(config))
  if (config.acme !== null && config.httpsPort === null) {
    faults.push(
      'SENDWRIGHT_ACME_DIRECTORY needs SENDWRIGHT_HTTPS_PORT: nothing else would use the certificates',
    )
  }
  for (const name of Object.keys(env)) {
    if (name.startsWith('SENDWRIGHT_') && !seen.has(name) && !name.startsWith('SENDWRIGHT_TEST_')) {
      faults.push(`${name}: unknown setting`)
    }
  }
  if (faults.length > 0) throw new ConfigError(faults)
  return config
}

/** Where the service listens, what it is called, and its certificates. */
function addressesConfig(
  { setting, optional, faults }: Readers,
  env: Environment,
): Pick<
  Config,
  'host' | 'port' | 'httpsPort' | 'hostname' | 'publicUrl' | 'storageUrl' | 'trackingUrl' | 'smtpTls' | 'acme'
> {
  // It says that the internet reaches this process directly, hence other defaults for the listeners.
  const isAcme = setting('ACME', flag, () => false)
  const host = setting('HOST', hostName, () => (isAcme ? '0.0.0.0' : '127.0.0.1'))
  const port = setting('PORT', portNumber, () => (isAcme ? 80 : 8080))
  const ownName = optional('HOSTNAME', hostName)
  const publicUrl = setting('PUBLIC_URL', baseUrl, () =>
    isAcme && ownName !== null ? `https://${ownName}` : `http://${urlHost(host)}:${port}`,
  )
  const certificateFile = optional('TLS_CERT', path)
  const keyFile = optional('TLS_KEY', path)
  if ((certificateFile === null) !== (keyFile === null))
    faults.push('SENDWRIGHT_TLS_CERT and SENDWRIGHT_TLS_KEY must be set together')
  const smtpTls = certificateFile !== null && keyFile !== null ? { certificateFile, keyFile } : null
  const storageUrl = setting('STORAGE_URL', baseUrl, () => publicUrl)
  // Unlike other settings, an empty one is not absent.
  const trackingUrl = setting<string | null>('TRACKING_URL', baseUrl, () =>
    env['SENDWRIGHT_TRACKING_URL'] === undefined ? publicUrl : null,
  )
  const directory = setting('ACME_DIRECTORY', acmeUrl, () => (isAcme ? LETS_ENCRYPT : null))
  const email = optional('ACME_EMAIL', mailAddress)
  const urls = [publicUrl, storageUrl, ...(trackingUrl === null ? [] : [trackingUrl])]
  const named = certifiableHosts(urls)
  if (isAcme && !named.includes(new URL(publicUrl).hostname))
    faults.push(
      `SENDWRIGHT_ACME needs a name that the internet knows: set SENDWRIGHT_HOSTNAME, or SENDWRIGHT_PUBLIC_URL with https and a host name (it is ${quoted(publicUrl)})`,
    )
  // The operator's own files come first; tracking hosts then still have certificates of the authority.
  const ownHosts = isAcme && smtpTls === null ? named : []
  return {
    host,
    port,
    httpsPort: setting<number | null>('HTTPS_PORT', portNumber, () => (isAcme ? 443 : null)),
    hostname: ownName ?? hostname().toLowerCase(),
    publicUrl,
    storageUrl,
    trackingUrl,
    smtpTls,
    acme: directory === null ? null : { directory, email, ownHosts },
  }
}

/** Hosts of the https addresses that an authority can certify, once each. */
function certifiableHosts(urls: readonly string[]): string[] {
  const secure = urls.map((url) => new URL(url)).filter(({ protocol }) => protocol === 'https:')
  return [...new Set(secure.map((url) => url.hostname))].filter(isInternetName)
}

/** Limits and times of the contract (dynamic-pools.md section 3). */
function dynamicPoolsConfig({ setting }: Pick<Readers, 'setting'>): DynamicPoolsConfig {
  return {
    intervalMs: setting('DYNAMIC_POOLS_INTERVAL', countedTime, () => DAY_MS),
    windowMs: setting('DYNAMIC_POOLS_WINDOW', countedTime, () => 7 * DAY_MS),
    bouncePpm: setting('DYNAMIC_POOLS_BOUNCE_RATE', millionths, () => 50_000),
    complaintPpm: setting('DYNAMIC_POOLS_COMPLAINT_RATE', millionths, () => 1_000),
    goodVolume: setting('DYNAMIC_POOLS_GOOD_VOLUME', wholeNumber(1, 1_000_000_000, 'messages'), () => 1_000),
    poorVolume: setting('DYNAMIC_POOLS_POOR_VOLUME', wholeNumber(1, 1_000_000_000, 'messages'), () => 100),
    recoverChecks: setting('DYNAMIC_POOLS_RECOVER_CHECKS', wholeNumber(1, 1_000, 'checks'), () => 2),
  }
}

/** What needs several processes, which SQLite does not have. */
function sqliteFaults({ databaseUrl, roles, blobs }: Config): string[] {
  if (databaseUrl !== null) return []
  const faults: string[] = []
  if (roles.length < ROLES.length)
    faults.push(
      'SENDWRIGHT_ROLES needs SENDWRIGHT_DATABASE_URL: SQLite has one process, which does everything',
    )
  if (blobs !== null)
    faults.push('SENDWRIGHT_BLOBS needs SENDWRIGHT_DATABASE_URL: with SQLite, files stay in the data folder')
  return faults
}

interface Readers {
  setting<T>(name: string, parse: (text: string) => T, otherwise: () => T): T
  optional<T>(name: string, parse: (text: string) => T): T | null
  faults: string[]
}

/** `s3://bucket/prefix`, with the usual variables of S3 clients beside it. */
function blobsConfig({ optional, faults }: Readers, env: Environment): Config['blobs'] {
  const place = optional('BLOBS', s3Place)
  const endpoint = optional('BLOBS_ENDPOINT', serverUrl)
  if (place === null) {
    if (endpoint !== null) faults.push('SENDWRIGHT_BLOBS_ENDPOINT needs SENDWRIGHT_BLOBS')
    return null
  }
  const accessKeyId = env['AWS_ACCESS_KEY_ID']?.trim() ?? ''
  const secretAccessKey = env['AWS_SECRET_ACCESS_KEY']?.trim() ?? ''
  if (accessKeyId === '' || secretAccessKey === '')
    faults.push('SENDWRIGHT_BLOBS needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY')
  const region = env['AWS_REGION']?.trim() || 'us-east-1'
  return {
    ...place,
    endpoint: endpoint ?? `https://s3.${region}.amazonaws.com`,
    region,
    accessKeyId,
    secretAccessKey,
    sessionToken: env['AWS_SESSION_TOKEN']?.trim() || null,
  }
}

function s3Place(text: string): { bucket: string; prefix: string } {
  const [, bucket, rest = ''] =
    /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([\w./-]{0,200}))?$/.exec(text) ?? []
  if (bucket === undefined) throw new Error(`${quoted(text)} is not s3://bucket or s3://bucket/prefix`)
  const prefix = rest.replace(/^\/+|\/+$/g, '')
  return { bucket, prefix: prefix === '' ? '' : `${prefix}/` }
}

function serverUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  const isBare = url?.pathname === '/' && !url.search && !url.hash && !url.username
  if (!url || !/^https?:$/.test(url.protocol) || !isBare)
    throw new Error(`${quoted(text)} is not a server such as https://s3.example.com`)
  return url.origin
}

function oidcConfig({ setting, optional, faults }: Readers): OidcConfig | null {
  const issuer = optional('OIDC_ISSUER', issuerUrl)
  const clientId = optional('OIDC_CLIENT_ID', secretText(1))
  const domains = optional('OIDC_DOMAINS', (text) => (text === '*' ? text : list(dnsName)(text)))
  const oidc = {
    clientSecret: optional('OIDC_CLIENT_SECRET', secretText(1)),
    label: setting('OIDC_LABEL', buttonLabel, () => 'single sign-on'),
    scopes: setting('OIDC_SCOPES', scopes, () => 'openid email profile'),
    domains: typeof domains === 'string' ? null : domains,
    newUserRole: optional('OIDC_NEW_USER_ROLE', oneOf(USER_ROLES)),
    roleClaim: optional('OIDC_ROLE_CLAIM', claimName),
  }
  const isUsed = clientId !== null || domains !== null || oidc.clientSecret !== null
  if ((issuer === null) !== (clientId === null) || (issuer === null && isUsed))
    faults.push('SENDWRIGHT_OIDC_ISSUER and SENDWRIGHT_OIDC_CLIENT_ID must be set together')
  if (oidc.newUserRole !== null && domains === null)
    faults.push(
      'SENDWRIGHT_OIDC_NEW_USER_ROLE needs SENDWRIGHT_OIDC_DOMAINS, or * there for every user of the provider',
    )
  return issuer === null || clientId === null ? null : { issuer, clientId, ...oidc }
}

function tracesConfig({ setting, optional, faults }: Readers): TracesConfig | null {
  const url = optional('OTLP_ENDPOINT', collectorUrl)
  const headers = optional('OTLP_HEADERS', headerFields)
  const share = setting(
    'OTLP_SAMPLING',
    (text) => millionths(text) / 1_000_000,
    () => 1,
  )
  if (url === null && headers !== null) faults.push('SENDWRIGHT_OTLP_HEADERS needs SENDWRIGHT_OTLP_ENDPOINT')
  return url === null ? null : { url, headers: headers ?? {}, share }
}

/** The base address of a collector; traces have a path below it (OTLP 1.0, "OTLP/HTTP Request"). */
const collectorUrl = (text: string) => `${baseUrl(text)}/v1/traces`

const COLLECTOR_HEADERS_MAX = 20

/** `name=value,...`, values percent-encoded, as OTEL_EXPORTER_OTLP_HEADERS has them. Never quoted: they are secrets. */
function headerFields(text: string): Record<string, string> {
  const fields = list((item) => {
    const [, name, encoded] = /^([\w!#$%&'*+.^`|~-]{1,100})\s*=\s*([\x20-\x7e]{1,4096})$/.exec(item) ?? []
    if (name === undefined || encoded === undefined) throw new Error('is not name=value,...')
    let value: string
    try {
      value = decodeURIComponent(encoded)
    } catch {
      throw new Error('has a value that is not percent-encoded')
    }
    if (!/^[\x20-\x7e]+$/.test(value))
      throw new Error('has a value with other characters than printable ASCII')
    return [name, value] as const
  })(text)
  if (fields.length > COLLECTOR_HEADERS_MAX) throw new Error(`has more than ${COLLECTOR_HEADERS_MAX} fields`)
  return Object.fromEntries(fields)
}

/** 10, 15 and 30 minutes, 1, 2 and 4 hours: messages.md rule 43; also of received mail, routes-inbound.md section 9. */
const DEFAULT_RETRY_SCHEDULE_MS = [10, 15, 30, 60, 120, 240].map((minutes) => minutes * MINUTE_MS)
/** 5, 10 and 15 minutes, 1, 2 and 4 hours, each from the attempt before: webhooks.md rule 22. */
const DEFAULT_WEBHOOK_SCHEDULE_MS = [5, 10, 15, 60, 120, 240].map((minutes) => minutes * MINUTE_MS)

/** ips-pools.md section 4. */
const WARMUP_PLAN = [
  1_000, 2_000, 4_000, 8_000, 14_000, 20_000, 30_000, 45_000, 65_000, 95_000, 140_000, 200_000, 300_000,
  450_000, 650_000,
]

const LETS_ENCRYPT = 'https://acme-v02.api.letsencrypt.org/directory'

/** The blocklists that large receivers use. */
const DEFAULT_DNSBL_ZONES = ['zen.spamhaus.org', 'bl.spamcop.net']

/**
 * A value as a fault shows it, without what may be a secret: everything before an "@", a host with a password or an invalid
 * port, and everything after a "?" or "#".
 */
const quoted = (text: string) =>
  `"${text
    .replace(/^.*@/s, '***@')
    .replace(/\/\/[^/:]*:(?!\d+(?:[/?#]|$)).*/s, '//***')
    .replace(/[?#].*$/s, '?***')}"`

const path = (text: string) => resolve(text)

function roles(text: string): Role[] {
  const named = new Set(list(oneOf(ROLES))(text))
  return ROLES.filter((role) => named.has(role))
}

function portNumber(text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535) throw new Error(`${quoted(text)} is not a port (0 to 65535)`)
  return port
}

function hostName(text: string): string {
  if (isIP(text) === 0 && !/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(text)) {
    throw new Error(`${quoted(text)} is not a host name or address`)
  }
  return text.toLowerCase()
}

function dnsName(text: string): string {
  if (isIP(text) !== 0) throw new Error(`${quoted(text)} is an address; a host name is needed`)
  return hostName(text)
}

/** Whether the name can be looked up from elsewhere: no address, no single label, none of this machine (RFC 6761 §6.3). */
export const isInternetName = (name: string): boolean =>
  isIP(name.replace(/^\[|\]$/g, '')) === 0 && /\.[a-z][a-z0-9-]*$/i.test(name) && !name.endsWith('.localhost')

/** The default parent of the records' targets: never an address (domains.md rule 1). */
function dnsHost(url: string): string {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
  return isIP(host) === 0 ? host : 'sendwright.localhost'
}

/** An http or https address without a final slash, query or credentials. */
function baseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username) {
    throw new Error(`${quoted(text)} is not an http(s) address such as https://mail.example.com`)
  }
  return url.href.replace(/\/$/, '')
}

/** RFC 8555 §6.1 requires https; plain http only on this machine, for a private authority. */
function acmeUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  const isUsable = url?.protocol === 'https:' || (url?.protocol === 'http:' && isOwnMachine(url))
  if (!url || !isUsable || url.username || url.hash) {
    throw new Error(`${quoted(text)} is not the https address of an ACME directory`)
  }
  return url.href
}

/** OpenID Connect Discovery §3 requires https; plain http only on this machine. Kept as written: issuers are compared as text. */
function issuerUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  const isUsable = url?.protocol === 'https:' || (url?.protocol === 'http:' && isOwnMachine(url))
  if (!url || !isUsable || url.username || url.search || url.hash || url.pathname.includes('/.well-known/'))
    throw new Error(`${quoted(text)} is not the https address of an issuer`)
  return text
}

const isOwnMachine = ({ hostname: name }: URL) => /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(name)

function buttonLabel(text: string): string {
  if (text.length > 60 || /\p{Cc}/u.test(text))
    throw new Error('has more than 60 characters, or control characters')
  return text
}

/** Separated by blanks or commas. */
function scopes(text: string): string {
  const names = text.split(/[\s,]+/)
  // RFC 6749 §3.3.
  if (!names.every((name) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(name)))
    throw new Error('has a character that no scope may have')
  if (!names.includes('openid')) throw new Error('must contain "openid"')
  return names.join(' ')
}

function claimName(text: string): string {
  if (!/^[\x21-\x7e]{1,200}$/.test(text)) throw new Error('is not the name of a claim')
  return text
}

function mailAddress(text: string): string {
  if (!/^[^\s@,?]{1,64}@[a-z0-9.-]{1,253}$/i.test(text))
    throw new Error(`${quoted(text)} is not a mail address`)
  return text
}

function databaseUrl(text: string): string {
  serversOf(text)
  return text
}

const secretText = (lengthMin: number) => (text: string) => {
  if (text.length < lengthMin) throw new Error(`needs at least ${lengthMin} characters`)
  if (!/^[\x21-\x7e]+$/.test(text)) throw new Error('may hold only printable ASCII without blanks')
  return text
}

function headerPrefix(text: string): string {
  if (!/^[A-Za-z][A-Za-z0-9-]*-$/.test(text))
    throw new Error(`${quoted(text)} must be letters, digits, hyphens and end in "-"`)
  return text
}

function realm(text: string): string {
  if (!/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/.test(text))
    throw new Error('may hold only printable ASCII without quotes')
  return text
}

function origin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (!url || url.origin !== text)
    throw new Error(`${quoted(text)} is not an origin such as https://app.example.com`)
  return text
}

function deliveryMode(text: string): DeliveryMode {
  if (text === 'capture' || text === 'direct') return { kind: text }
  const url = URL.canParse(text) ? new URL(text) : null
  if (url?.protocol !== 'smtp:' || !url.hostname || (url.pathname !== '' && url.pathname !== '/')) {
    // Never quoted: a password may be anywhere in it.
    throw new Error('is not capture, direct or smtp://[user:password@]host:port')
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
  return { kind: 'relay', host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 25), auth }
}

const SPAM_PORTS = { 'rspamd:': 11_333, 'spamd:': 783 } as const

function spamScorer(text: string): Config['spamScorer'] {
  const url = URL.canParse(text) ? new URL(text) : null
  const isKnown = url?.protocol === 'rspamd:' || url?.protocol === 'spamd:'
  if (!url || !isKnown || !url.hostname || url.username || !['', '/'].includes(url.pathname))
    throw new Error(`${quoted(text)} is not rspamd://host:port or spamd://host:port`)
  const protocol = url.protocol as keyof typeof SPAM_PORTS
  return {
    kind: protocol === 'rspamd:' ? 'rspamd' : 'spamd',
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || SPAM_PORTS[protocol]),
  }
}

function spamPoints(text: string): number {
  const points = Number(text)
  if (!/^\d+(?:\.\d+)?$/.test(text) || points <= 0 || points > 1_000)
    throw new Error(`${quoted(text)} is not a number of points up to 1000`)
  return points
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

const serverAddress =
  (defaultPort: number) =>
  (text: string): Address => {
    const match = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(text)
    const ip = match?.[1] ?? match?.[2] ?? ''
    if (isIP(ip) === 0) throw new Error(`${quoted(text)} is not ip:port`)
    return { host: ip, port: match?.[3] ? portNumber(match[3]) : defaultPort }
  }

function network(text: string): string {
  const [ip = '', bits] = text.split('/')
  const family = isIP(ip)
  if (
    family === 0 ||
    (bits !== undefined && !(Number(bits) <= (family === 4 ? 32 : 128) && /^\d+$/.test(bits)))
  ) {
    throw new Error(`${quoted(text)} is not a network such as 10.0.0.0/8`)
  }
  return text
}

const UNITS_MS: Record<string, number> = { s: 1000, m: MINUTE_MS, h: HOUR_MS }

/** `90s`, `10m`, `4h` in milliseconds. */
function duration(text: string): number {
  const match = /^(\d+)([smh])$/.exec(text)
  if (!match || Number(match[1]) === 0)
    throw new Error(`${quoted(text)} is not a time such as 30s, 10m or 4h`)
  return Number(match[1]) * (UNITS_MS[match[2] as string] as number)
}

/** At least an hour, which figures are counted by; at most as long as those of hours are kept. */
function countedTime(text: string): number {
  const ms = duration(text)
  if (ms < HOUR_MS || ms > 60 * DAY_MS) throw new Error(`${quoted(text)} is not a time from 1h to 1440h`)
  return ms
}

/** A fraction with at most six decimals. */
function millionths(text: string): number {
  if (!/^(?:0(?:\.\d{1,6})?|1)$/.test(text))
    throw new Error(`${quoted(text)} is not a fraction from 0 to 1 such as 0.05`)
  return Math.round(Number(text) * 1_000_000)
}

const wholeNumber = (min: number, max: number, unit: string) => (text: string) => {
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < min || value > max) {
    throw new Error(`${quoted(text)} is not a number of ${unit} from ${min} to ${max}`)
  }
  return value
}

const megabytes = (text: string) => wholeNumber(1, 1_000_000_000, 'megabytes')(text) * 1_000_000

const MEGABYTE = 1024 * 1024

/** `500m`, `2g` or a number of bytes. */
function byteCount(text: string): number {
  const match = /^(\d{1,15})([kmg]?)$/i.exec(text)
  if (!match) throw new Error(`${quoted(text)} is not a size such as 500m or 2g`)
  return (
    Number(match[1]) *
    ({ '': 1, k: 1024, m: MEGABYTE, g: 1024 * MEGABYTE }[match[2]?.toLowerCase() ?? ''] ?? 1)
  )
}

function rateLimit(text: string): number | null {
  if (text === 'off' || text === '0') return null
  if (!/^\d+$/.test(text)) throw new Error(`${quoted(text)} is not a number of requests per second, or off`)
  return Number(text)
}

/** All switches take the same words. */
function flag(text: string): boolean {
  const word = text.toLowerCase()
  if (/^(?:yes|true|on|1)$/.test(word)) return true
  if (/^(?:no|false|off|0)$/.test(word)) return false
  throw new Error(`${quoted(text)} is neither yes nor no`)
}

function tlsVersion(text: string): 'TLSv1.2' | 'TLSv1.3' {
  return `TLSv${oneOf(['1.2', '1.3'])(text)}` as 'TLSv1.2' | 'TLSv1.3'
}

/** Default: loopback alone, as such traffic never leaves the machine. */
function authWithoutTls(text: string): Config['smtpAuthWithoutTls'] {
  return flag(text) ? 'anyone' : 'nobody'
}

const oneOf =
  <const V extends string>(values: readonly V[]) =>
  (text: string): V => {
    const value = values.find((candidate) => candidate === text)
    if (value === undefined) throw new Error(`${quoted(text)} is not one of ${values.join(', ')}`)
    return value
  }

const list =
  <T>(parse: (text: string) => T) =>
  (text: string): T[] =>
    text.split(',').map((item) => parse(item.trim()))

/** In the form in which addresses are compared. */
function sandboxRecipient(text: string): string {
  if (text === '*') return text
  try {
    return text.startsWith('@') ? `@${toAsciiDomain(text.slice(1))}` : addressKey(parseMailbox(text))
  } catch {
    throw new Error(`${quoted(text)} is not an address, @domain or *`)
  }
}

const zonesOrOff = (text: string) => (text === 'off' ? [] : list(dnsName)(text))

/** An IPv6 address in brackets, anything else as it is. */
function urlHost(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host
}
