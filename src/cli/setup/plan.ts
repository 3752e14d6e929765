/** What the answers of `sendwright setup` mean as settings. Pure. */
import { isIP } from 'node:net'
import { isInternetName } from '../../platform/config/listening.ts'
import type { EnvChanges } from './env-file.ts'

/** How clients reach the service over https. */
export const HTTPS_WAYS = ['acme', 'files', 'proxy', 'off'] as const
export type HttpsWay = (typeof HTTPS_WAYS)[number]

export interface Answers {
  host: string
  https: HttpsWay
  acmeEmail: string | null
  tls: { certificate: string; key: string } | null
  trustedProxies: string
  /** `capture`, `direct` or the address of a relay. */
  delivery: string
  smtpPort: number
  /** With PostgreSQL null. */
  dataFolder: string | null
  /** Null: SQLite. */
  databaseUrl: string | null
}

type Values = Readonly<Record<string, string | undefined>>

/** How the present settings say that https works; null: nothing says so. */
export function presentWay(values: Values): HttpsWay | null {
  if (/^(?:yes|true|on|1)$/i.test(values['SENDWRIGHT_ACME'] ?? '')) return 'acme'
  if (values['SENDWRIGHT_HTTPS_PORT'] && values['SENDWRIGHT_TLS_CERT']) return 'files'
  const url = values['SENDWRIGHT_PUBLIC_URL'] ?? ''
  if (url.startsWith('https://')) return 'proxy'
  return url === '' ? null : 'off'
}

/** The public host that the settings name; null: none. */
export function presentHost(values: Values): string | null {
  const url = values['SENDWRIGHT_PUBLIC_URL'] ?? ''
  const host = URL.canParse(url) ? new URL(url).hostname : (values['SENDWRIGHT_HOSTNAME'] ?? '')
  return isInternetName(host) ? host : null
}

/** @throws Error that says what is wrong with the host name */
export function checkHost(host: string): void {
  if (isIP(host) !== 0)
    throw new Error('An address is not enough: a name is needed, such as mail.example.com.')
  if (!/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(host) || !isInternetName(host))
    throw new Error(`"${host}" is not a host name such as mail.example.com.`)
}

/**
 * The settings that differ from `values`. The listeners are only touched when the way to https changes: what an operator has
 * chosen for them since stays.
 */
export function settingsFor(answers: Answers, values: Values): EnvChanges {
  const { host, https, delivery, databaseUrl, dataFolder } = answers
  const wanted = new Map<string, string | null>([['SENDWRIGHT_DELIVERY', delivery]])
  if (host !== presentHost(values) || https !== presentWay(values)) {
    wanted.set('SENDWRIGHT_HOSTNAME', host)
    for (const [name, value] of listenersFor(answers)) wanted.set(name, value)
  }
  if (https === 'acme') wanted.set('SENDWRIGHT_ACME_EMAIL', answers.acmeEmail)
  if (https === 'files' && answers.tls !== null) {
    wanted.set('SENDWRIGHT_TLS_CERT', answers.tls.certificate)
    wanted.set('SENDWRIGHT_TLS_KEY', answers.tls.key)
  }
  if (https === 'proxy') wanted.set('SENDWRIGHT_TRUSTED_PROXIES', answers.trustedProxies)
  if (delivery !== 'capture') {
    // Bounces and complaints come in here, from everywhere.
    wanted.set('SENDWRIGHT_SMTP_PORT', String(answers.smtpPort))
    if (https === 'proxy') wanted.set('SENDWRIGHT_SMTP_HOST', values['SENDWRIGHT_SMTP_HOST'] ?? '0.0.0.0')
  }
  wanted.set('SENDWRIGHT_DATABASE_URL', databaseUrl)
  if (dataFolder !== null) wanted.set('SENDWRIGHT_DATA', dataFolder)
  return new Map([...wanted].filter(([name, value]) => value !== (values[name] || null)))
}

function listenersFor({ host, https }: Answers): [string, string | null][] {
  const all = { address: '0.0.0.0', http: '80', https: '443' }
  switch (https) {
    case 'acme':
      return [
        ['SENDWRIGHT_ACME', 'yes'],
        ['SENDWRIGHT_PUBLIC_URL', `https://${host}`],
        // The defaults of SENDWRIGHT_ACME are right; the files would come before it.
        ...unset('HOST', 'PORT', 'HTTPS_PORT', 'TLS_CERT', 'TLS_KEY', 'TRUSTED_PROXIES'),
      ]
    case 'files':
      return [
        ...unset('ACME', 'TRUSTED_PROXIES'),
        ['SENDWRIGHT_PUBLIC_URL', `https://${host}`],
        ['SENDWRIGHT_HOST', all.address],
        ['SENDWRIGHT_PORT', all.http],
        ['SENDWRIGHT_HTTPS_PORT', all.https],
      ]
    case 'proxy':
      return [...unset('ACME', 'HOST', 'PORT', 'HTTPS_PORT'), ['SENDWRIGHT_PUBLIC_URL', `https://${host}`]]
    case 'off':
      return [
        ...unset('ACME', 'HTTPS_PORT', 'TRUSTED_PROXIES'),
        ['SENDWRIGHT_PUBLIC_URL', `http://${host}`],
        ['SENDWRIGHT_HOST', all.address],
        ['SENDWRIGHT_PORT', all.http],
      ]
  }
}

const unset = (...names: string[]) => names.map((name): [string, null] => [`SENDWRIGHT_${name}`, null])
