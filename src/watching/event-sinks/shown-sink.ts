/** What may be shown of a sink: never a password, nor what a URL may hold of tokens. */
import { isIP } from 'node:net'
import type { EventSinkRow } from '../../platform/store/schema.ts'
import type { SinkSettings } from './sink.ts'

const HIDDEN = '...'
/** Shorter ones say nothing, and stand in many words. */
const SECRET_LENGTH_MIN = 3

/** The address without user info, fragment and the values of its query. */
export function shownUrl(text: string): string {
  const url = URL.parse(text)
  if (url === null) return HIDDEN
  const names = [...url.searchParams.keys()].map((name) => `${encodeURIComponent(name)}=${HIDDEN}`)
  return `${url.protocol}//${url.host}${url.pathname}${names.length > 0 ? `?${names.join('&')}` : ''}`
}

/** An error of a sink without its secret and what `shownUrl` leaves out. */
export function shownError(words: string, { url = '' }: SinkSettings, secret: string): string {
  const parsed = URL.parse(url)
  const hidden = [
    secret,
    secret.replace(/^\S+ +/, ''),
    ...(parsed === null ? [] : [parsed.username, parsed.password, ...parsed.searchParams.values()]),
    // As they were written.
    ...(parsed?.search ?? '').split('&').map((pair) => pair.slice(pair.indexOf('=') + 1)),
  ]
  return hidden
    .filter((text) => text.length >= SECRET_LENGTH_MIN)
    .sort((one, other) => other.length - one.length)
    .reduce((shown, text) => shown.replaceAll(text, HIDDEN), words)
}

/** Null: nobody can read the secret on its way. SCRAM proves a password without sending it. */
export function sinkWarning(
  { kind, secret_sealed: sealed }: Pick<EventSinkRow, 'kind' | 'secret_sealed'>,
  { servers = [], tls, mechanism }: SinkSettings,
): string | null {
  const isSent = kind === 'amqp' || kind === 'nats' || (kind === 'kafka' && mechanism === 'plain')
  if (!isSent || sealed === null || tls === true || servers.every(isOwnMachine)) return null
  return 'The secret goes to the servers without TLS, so others on the way can read it: set tls to true'
}

/** `server`: with a port or without, as in `servers` or of a URL. */
export function isOwnMachine(server: string): boolean {
  const host = server.startsWith('[') ? server.slice(1, server.indexOf(']')) : server.replace(/:\d+$/, '')
  if (isIP(host) === 4) return host.startsWith('127.')
  return host === 'localhost' || host === '::1'
}
