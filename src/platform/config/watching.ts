/** Settings of what is watched and who signs in: webhooks, alerts, the log, traces, OpenID Connect. */
import { MINUTE_MS } from '../../base/time/durations.ts'
import { USER_ROLES } from '../http/rights/rights.ts'
import {
  baseUrl,
  confidentialUrl,
  dnsName,
  duration,
  flag,
  list,
  millionths,
  ofForm,
  oneOf,
  path,
  quoted,
  type Readers,
  secretText,
  wholeNumber,
  zonesOrOff,
} from './parsers.ts'

/** 5, 10 and 15 minutes, 1, 2 and 4 hours, each from the attempt before: webhooks.md rule 22. */
const DEFAULT_WEBHOOK_SCHEDULE_MS = [5, 10, 15, 60, 120, 240].map((minutes) => minutes * MINUTE_MS)
/** The blocklists that large receivers use. */
const DEFAULT_DNSBL_ZONES = ['zen.spamhaus.org', 'bl.spamcop.net']
/** Block lists that answer anybody, for low volume, without registration: watching/blocklists/lists.ts. */
const DEFAULT_WATCHED_ZONES = [
  'bl.spamcop.net',
  'psbl.surriel.com',
  'dnsbl-1.uceprotect.net',
  'dnsbl.dronebl.org',
]
const DEFAULT_WATCHED_DOMAIN_ZONES = ['multi.surbl.org', 'multi.uribl.com']
const LOG_LEVELS: readonly string[] = ['trace', 'debug', 'info', 'warn', 'error', 'silent']

export type WatchingConfig = ReturnType<typeof readWatching>

export function readWatching(readers: Readers) {
  const { setting, optional } = readers
  return {
    webhookScheduleMs: setting('WEBHOOK_SCHEDULE', list(duration), () => DEFAULT_WEBHOOK_SCHEDULE_MS),
    /** Webhooks of type `delivered` are retried like the others. */
    webhookRetryDelivered: setting('WEBHOOK_RETRY_DELIVERED', flag, () => true),
    logLevel: setting('LOG_LEVEL', oneOf(LOG_LEVELS), () => 'info'),
    /** Blocklists that `doctor` queries for the sending addresses. */
    dnsblZones: setting('DNSBL_ZONES', zonesOrOff, () => DEFAULT_DNSBL_ZONES),
    /** Blocklists in which sending addresses are watched (watching/blocklists). */
    alertDnsblZones: setting('ALERT_DNSBL_ZONES', zonesOrOff, () => DEFAULT_WATCHED_ZONES),
    /** Blocklists in which sending domains are watched. */
    alertDomainZones: setting('ALERT_DOMAIN_ZONES', zonesOrOff, () => DEFAULT_WATCHED_DOMAIN_ZONES),
    /** Messages that a rate must be of for an alert to judge it. */
    alertMinVolume: setting('ALERT_MIN_VOLUME', wholeNumber(1, 1_000_000, 'messages'), () => 50),
    /** Slack's Web API, which notices to channels of a workspace go to. */
    slackApiUrl: setting('SLACK_API_URL', baseUrl, () => 'https://slack.com/api'),
    /** Assistants may call tasks that change something (tools/mcp). */
    mcpWrite: setting('MCP_WRITE', flag, () => false),
    /** MaxMind DB file with the locations of addresses; null: none. */
    geoDatabase: optional('GEO_DATABASE', path),
    /** Sign-in to the dashboard with an OpenID Connect provider; null: none. */
    oidc: readOidc(readers),
    /** Where traces are sent to; null: nothing is traced. */
    traces: readTraces(readers),
  }
}

export type OidcConfig = NonNullable<ReturnType<typeof readOidc>>

function readOidc({ setting, optional, faults }: Readers) {
  /** As the provider writes it in its metadata. */
  const issuer = optional('OIDC_ISSUER', issuerUrl)
  const clientId = optional('OIDC_CLIENT_ID', secretText(1))
  const domains = optional('OIDC_DOMAINS', (text) => (text === '*' ? text : list(dnsName)(text)))
  const oidc = {
    /** Null: a public client, which has only PKCE. */
    clientSecret: optional('OIDC_CLIENT_SECRET', secretText(1)),
    /** Text of the button: "Sign in with <label>". */
    label: setting('OIDC_LABEL', buttonLabel, () => 'single sign-on'),
    /** Separated by blanks. */
    scopes: setting('OIDC_SCOPES', scopes, () => 'openid email profile'),
    /** Only addresses in these domains may sign in; null: in any. */
    domains: typeof domains === 'string' ? null : domains,
    /** Role of users that are created when they sign in for the first time; null: only invited users may. */
    newUserRole: optional('OIDC_NEW_USER_ROLE', oneOf(USER_ROLES)),
    /** The claim that names the roles of a user; null: roles are set here. */
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

/** OpenID Connect Discovery §3 requires https; plain http only on this machine. Kept as written: issuers are compared as text. */
function issuerUrl(text: string): string {
  const url = confidentialUrl(text)
  if (!url || url.search || url.pathname.includes('/.well-known/'))
    throw new Error(`${quoted(text)} is not the https address of an issuer`)
  return text
}

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

const claimName = ofForm(/^[\x21-\x7e]{1,200}$/, () => 'is not the name of a claim')

function readTraces({ setting, optional, faults }: Readers) {
  // Traces have a path below the base address of a collector (OTLP 1.0, "OTLP/HTTP Request").
  const url = optional('OTLP_ENDPOINT', (text) => `${baseUrl(text)}/v1/traces`)
  const headers = optional('OTLP_HEADERS', headerFields)
  /** Share of the traces that begin here, 0 to 1. */
  const share = setting(
    'OTLP_SAMPLING',
    (text) => millionths(text) / 1_000_000,
    () => 1,
  )
  if (url === null && headers !== null) faults.push('SENDWRIGHT_OTLP_HEADERS needs SENDWRIGHT_OTLP_ENDPOINT')
  return url === null ? null : { url, headers: headers ?? {}, share }
}

const COLLECTOR_HEADERS_MAX = 20

/** `name=value,...`, values percent-encoded, as OTEL_EXPORTER_OTLP_HEADERS has them. Never quoted: they are secrets. */
function headerFields(text: string): Readonly<Record<string, string>> {
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
