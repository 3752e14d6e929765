/**
 * The configuration: one table of settings with meaning, unit and default. The only reader of the
 * environment. A fault in one setting never hides the next: all of them are reported together.
 */
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { resolve } from 'node:path'

/** Where mail goes once it leaves the queue. */
export type DeliveryMode =
  | { kind: 'capture' }
  | { kind: 'direct' }
  | { kind: 'relay'; host: string; port: number; auth: { user: string; password: string } | null }

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
  dataFolder: string
  databaseUrl: string | null
  apiKey: string | null
  secret: string | null
  publicUrl: string
  storageUrl: string
  trackingUrl: string
  headerPrefix: string
  headerPrefixAliases: readonly string[]
  authRealm: string
  corsOrigins: readonly string[]
  delivery: DeliveryMode
  sourceAddresses: readonly SourceAddress[]
  dnsServers: readonly Address[] | null
  mxPort: number
  allowNetworks: readonly string[]
  trustedProxies: readonly string[]
  hostname: string
  retryScheduleMs: readonly number[]
  webhookScheduleMs: readonly number[]
  /** Webhooks of type `delivered` are retried like the others. */
  webhookRetryDelivered: boolean
  /** Sending requests per second and account; null: no limit of any kind. */
  rateLimit: number | null
  logLevel: string
}

/** One address this node sends from: `ip[=shared][@helo.name]`. */
export interface SourceAddress {
  ip: string
  shared: boolean
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

/** Reads every setting from `env`. Names, meanings and defaults: README. @throws ConfigError listing all faults. */
export function readConfig(env: Environment): Config {
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

  const host = setting('HOST', hostName, () => '127.0.0.1')
  const port = setting('PORT', portNumber, () => 8080)
  const publicUrl = setting('PUBLIC_URL', baseUrl, () => `http://${urlHost(host)}:${port}`)
  const certificateFile = optional('TLS_CERT', path)
  const keyFile = optional('TLS_KEY', path)
  if ((certificateFile === null) !== (keyFile === null)) {
    faults.push('SENDWRIGHT_TLS_CERT and SENDWRIGHT_TLS_KEY must be set together')
  }
  const config: Config = {
    host,
    port,
    publicUrl,
    storageUrl: setting('STORAGE_URL', baseUrl, () => publicUrl),
    trackingUrl: setting('TRACKING_URL', baseUrl, () => publicUrl),
    smtpHost: setting('SMTP_HOST', hostName, () => host),
    smtpPort: setting('SMTP_PORT', portNumber, () => 2525),
    smtpTls: certificateFile !== null && keyFile !== null ? { certificateFile, keyFile } : null,
    dataFolder: setting('DATA', path, () => resolve('data')),
    databaseUrl: optional('DATABASE_URL', databaseUrl),
    apiKey: optional('API_KEY', secretText(16)),
    secret: optional('SECRET', secretText(32)),
    headerPrefix: setting('HEADER_PREFIX', headerPrefix, () => 'X-Service-'),
    headerPrefixAliases: setting('HEADER_PREFIX_ALIASES', list(headerPrefix), () => ['X-Mailgun-']),
    authRealm: setting('AUTH_REALM', realm, () => 'API'),
    corsOrigins: setting('CORS_ORIGINS', list(origin), () => []),
    delivery: setting('DELIVERY', deliveryMode, () => ({ kind: 'capture' })),
    sourceAddresses: setting('IPS', list(sourceAddress), () => []),
    dnsServers: optional('DNS', list(serverAddress(53))),
    mxPort: setting('MX_PORT', portNumber, () => 25),
    allowNetworks: setting('ALLOW_NETWORKS', list(network), () => []),
    trustedProxies: setting('TRUSTED_PROXIES', list(network), () => []),
    hostname: setting('HOSTNAME', hostName, () => hostname().toLowerCase()),
    retryScheduleMs: setting('RETRY_SCHEDULE', list(duration), () => DEFAULT_RETRY_SCHEDULE_MS),
    webhookScheduleMs: setting('WEBHOOK_SCHEDULE', list(duration), () => DEFAULT_WEBHOOK_SCHEDULE_MS),
    webhookRetryDelivered: setting('WEBHOOK_RETRY_DELIVERED', flag, () => false),
    rateLimit: setting('RATE_LIMIT', rateLimit, () => 100),
    logLevel: setting('LOG_LEVEL', oneOf(LOG_LEVELS), () => 'info'),
  }
  for (const name of Object.keys(env)) {
    if (name.startsWith('SENDWRIGHT_') && !seen.has(name) && !name.startsWith('SENDWRIGHT_TEST_')) {
      faults.push(`${name}: unknown setting`)
    }
  }
  if (faults.length > 0) throw new ConfigError(faults)
  return config
}

const MINUTE_MS = 60_000
/** 10, 15 and 30 minutes, 1, 2 and 4 hours: messages.md rule 43. */
const DEFAULT_RETRY_SCHEDULE_MS = [10, 15, 30, 60, 120, 240].map((minutes) => minutes * MINUTE_MS)
/** 5, 10 and 15 minutes, 1, 2 and 4 hours, each from the attempt before: webhooks.md rule 22. */
const DEFAULT_WEBHOOK_SCHEDULE_MS = [5, 10, 15, 60, 120, 240].map((minutes) => minutes * MINUTE_MS)

const path = (text: string) => resolve(text)

function portNumber(text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535) throw new Error(`"${text}" is not a port (0 to 65535)`)
  return port
}

function hostName(text: string): string {
  if (isIP(text) === 0 && !/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(text)) {
    throw new Error(`"${text}" is not a host name or address`)
  }
  return text.toLowerCase()
}

/** An http or https address without a final slash, query or credentials. */
function baseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username) {
    throw new Error(`"${text}" is not an http(s) address such as https://mail.example.com`)
  }
  return url.href.replace(/\/$/, '')
}

function databaseUrl(text: string): string {
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) {
    throw new Error('expected postgres://user:password@host:port/database')
  }
  return text
}

const secretText = (lengthMin: number) => (text: string) => {
  if (text.length < lengthMin) throw new Error(`needs at least ${lengthMin} characters`)
  if (!/^[\x21-\x7e]+$/.test(text)) throw new Error('may hold only printable ASCII without blanks')
  return text
}

function headerPrefix(text: string): string {
  if (!/^[A-Za-z][A-Za-z0-9-]*-$/.test(text))
    throw new Error(`"${text}" must be letters, digits, hyphens and end in "-"`)
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
    throw new Error(`"${text}" is not an origin such as https://app.example.com`)
  return text
}

function deliveryMode(text: string): DeliveryMode {
  if (text === 'capture' || text === 'direct') return { kind: text }
  const url = URL.canParse(text) ? new URL(text) : null
  if (url?.protocol !== 'smtp:' || !url.hostname || (url.pathname !== '' && url.pathname !== '/')) {
    throw new Error(`"${text}" is not capture, direct or smtp://[user:password@]host:port`)
  }
  const auth = url.username
    ? { user: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }
    : null
  return { kind: 'relay', host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 25), auth }
}

function sourceAddress(text: string): SourceAddress {
  const [rest = '', helo] = text.split('@')
  const [ip = '', kind] = rest.split('=')
  if (isIP(ip) === 0) throw new Error(`"${ip}" is not an IP address`)
  if (kind !== undefined && kind !== 'shared') throw new Error(`"${kind}" is not "shared"`)
  return { ip, shared: kind === 'shared', helo: helo === undefined ? null : hostName(helo) }
}

const serverAddress =
  (defaultPort: number) =>
  (text: string): Address => {
    const match = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(text)
    const ip = match?.[1] ?? match?.[2] ?? ''
    if (isIP(ip) === 0) throw new Error(`"${text}" is not ip:port`)
    return { host: ip, port: match?.[3] ? portNumber(match[3]) : defaultPort }
  }

function network(text: string): string {
  const [ip = '', bits] = text.split('/')
  const family = isIP(ip)
  if (
    family === 0 ||
    (bits !== undefined && !(Number(bits) <= (family === 4 ? 32 : 128) && /^\d+$/.test(bits)))
  ) {
    throw new Error(`"${text}" is not a network such as 10.0.0.0/8`)
  }
  return text
}

const UNITS_MS: Record<string, number> = { s: 1000, m: MINUTE_MS, h: 60 * MINUTE_MS }

/** `90s`, `10m`, `4h` in milliseconds. */
function duration(text: string): number {
  const match = /^(\d+)([smh])$/.exec(text)
  if (!match || Number(match[1]) === 0) throw new Error(`"${text}" is not a time such as 30s, 10m or 4h`)
  return Number(match[1]) * (UNITS_MS[match[2] as string] as number)
}

function rateLimit(text: string): number | null {
  if (text === 'off' || text === '0') return null
  if (!/^\d+$/.test(text)) throw new Error(`"${text}" is not a number of requests per second, or off`)
  return Number(text)
}

function flag(text: string): boolean {
  if (!/^(true|false)$/.test(text)) throw new Error(`"${text}" is neither true nor false`)
  return text === 'true'
}

const oneOf = (values: readonly string[]) => (text: string) => {
  if (!values.includes(text)) throw new Error(`"${text}" is not one of ${values.join(', ')}`)
  return text
}

const list =
  <T>(parse: (text: string) => T) =>
  (text: string): T[] =>
    text.split(',').map((item) => parse(item.trim()))

/** An IPv6 address in brackets, anything else as it is. */
function urlHost(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host
}
