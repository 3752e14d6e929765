/** Settings of the listeners: where the service listens, what it is called, and its certificates. */
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { MINUTE_MS } from '../../base/time/durations.ts'
import {
  baseUrl,
  confidentialUrl,
  duration,
  flag,
  hostName,
  list,
  network,
  ofForm,
  oneOf,
  path,
  portNumber,
  quoted,
  type Readers,
  wholeNumber,
  withoutBrackets,
} from './parsers.ts'

export type ListeningConfig = ReturnType<typeof readListening>

export function readListening(readers: Readers) {
  const { setting, optional } = readers
  const names = readNames(readers)
  return {
    ...names,
    smtpHost: setting('SMTP_HOST', hostName, () => names.host),
    smtpPort: setting('SMTP_PORT', portNumber, () => 2525),
    /** Listener with TLS from the first byte; null: none. */
    smtpsPort: optional('SMTPS_PORT', portNumber),
    smtpTlsMinVersion: setting<TlsVersion>('SMTP_TLS_MIN_VERSION', tlsVersion, () => 'TLSv1.2'),
    /** Who may send a password without TLS. Default: loopback alone, as such traffic never leaves the machine. */
    smtpAuthWithoutTls: setting<'anyone' | 'loopback' | 'nobody'>(
      'SMTP_AUTH_WITHOUT_TLS',
      (text) => (flag(text) ? 'anyone' : 'nobody'),
      () => 'loopback',
    ),
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
    /**
     * Connections of one client address on each HTTP listener; trusted proxies are exempt. A program that sends a batch with one call
     * per message, all at once, opens as many.
     */
    httpConnectionsPerIpMax: setting(
      'HTTP_MAX_CONNECTIONS_PER_IP',
      wholeNumber(1, 100_000, 'connections'),
      () => 1_000,
    ),
    headerPrefix: setting('HEADER_PREFIX', headerPrefix, () => 'X-Service-'),
    headerPrefixAliases: setting('HEADER_PREFIX_ALIASES', list(headerPrefix), () => ['X-Mailgun-']),
    authRealm: setting('AUTH_REALM', realm, () => 'API'),
    corsOrigins: setting('CORS_ORIGINS', list(origin), () => []),
    trustedProxies: setting('TRUSTED_PROXIES', list(network), () => []),
    /** Networks of balancers whose connections begin with a PROXY header. */
    smtpBalancers: setting('SMTP_PROXY_PROTOCOL', list(network), () => []),
    httpBalancers: setting('HTTP_PROXY_PROTOCOL', list(network), () => []),
  }
}

const LETS_ENCRYPT = 'https://acme-v02.api.letsencrypt.org/directory'

function readNames({ setting, optional, faults, env }: Readers) {
  // It says that the internet reaches this process directly, hence other defaults for the listeners.
  const isAcme = setting('ACME', flag, () => false)
  const host = setting('HOST', hostName, () => (isAcme ? '0.0.0.0' : '127.0.0.1'))
  const port = setting('PORT', portNumber, () => (isAcme ? 80 : 8080))
  const ownName = optional('HOSTNAME', hostName)
  const publicUrl = setting('PUBLIC_URL', baseUrl, () =>
    isAcme && ownName !== null
      ? `https://${ownName}`
      : `http://${isIP(host) === 6 ? `[${host}]` : host}:${port}`,
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
  const directory = setting<string | null>('ACME_DIRECTORY', acmeUrl, () => (isAcme ? LETS_ENCRYPT : null))
  const email = optional('ACME_EMAIL', mailAddress)
  const urls = [publicUrl, storageUrl, ...(trackingUrl === null ? [] : [trackingUrl])]
  const named = certifiableHosts(urls)
  if (isAcme && !named.includes(new URL(publicUrl).hostname))
    faults.push(
      `SENDWRIGHT_ACME needs a name that the internet knows: set SENDWRIGHT_HOSTNAME, or SENDWRIGHT_PUBLIC_URL with https and a host name (it is ${quoted(publicUrl)})`,
    )
  return {
    host,
    port,
    /** Second listener, with TLS; null: none. */
    httpsPort: setting<number | null>('HTTPS_PORT', portNumber, () => (isAcme ? 443 : null)),
    hostname: ownName ?? hostname().toLowerCase(),
    publicUrl,
    storageUrl,
    /** Base of tracking links of domains whose own host does not work; null: they have none. */
    trackingUrl,
    /** A proxy terminates TLS for the tracking hosts of domains. */
    trackingTlsExternal: setting('TRACKING_TLS_EXTERNAL', flag, () => false),
    smtpTls,
    /** The certificate authority; null: no certificates are ordered. */
    acme:
      directory === null
        ? null
        : {
            directory,
            email,
            /**
             * Host names of the service itself that certificates are ordered for; empty: tracking hosts only. The operator's own
             * files come first; tracking hosts then still have certificates of the authority.
             */
            ownHosts: isAcme && smtpTls === null ? named : [],
          },
  }
}

/** Hosts of the https addresses that an authority can certify, once each. */
function certifiableHosts(urls: readonly string[]): readonly string[] {
  const secure = urls.map((url) => new URL(url)).filter(({ protocol }) => protocol === 'https:')
  return [...new Set(secure.map((url) => url.hostname))].filter(isInternetName)
}

/** Whether the name can be looked up from elsewhere: no address, no single label, none of this machine (RFC 6761 §6.3). */
export const isInternetName = (name: string): boolean =>
  isIP(withoutBrackets(name)) === 0 && /\.[a-z][a-z0-9-]*$/i.test(name) && !name.endsWith('.localhost')

/** RFC 8555 §6.1 requires https; plain http only on this machine, for a private authority. */
function acmeUrl(text: string): string {
  const url = confidentialUrl(text)
  if (!url) throw new Error(`${quoted(text)} is not the https address of an ACME directory`)
  return url.href
}

const mailAddress = ofForm(/^[^\s@,?]{1,64}@[a-z0-9.-]{1,253}$/i, (shown) => `${shown} is not a mail address`)

const headerPrefix = ofForm(
  /^[A-Za-z][A-Za-z0-9-]*-$/,
  (shown) => `${shown} must be letters, digits, hyphens and end in "-"`,
)

const realm = ofForm(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/, () => 'may hold only printable ASCII without quotes')

function origin(text: string): string {
  if (URL.parse(text)?.origin !== text)
    throw new Error(`${quoted(text)} is not an origin such as https://app.example.com`)
  return text
}

type TlsVersion = 'TLSv1.2' | 'TLSv1.3'

const tlsVersion = (text: string): TlsVersion => `TLSv${oneOf(['1.2', '1.3'])(text)}`
