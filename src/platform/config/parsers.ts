/** How the texts of settings are read. Each parser throws the fault as a sentence without its subject. */
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../base/time/durations.ts'

export interface Readers {
  /** One setting: absent or empty gives the default; a parser's message becomes a fault. */
  setting<T>(name: string, parse: (text: string) => T, otherwise: () => NoInfer<T>): T
  /** The same with null as default. */
  optional<T>(name: string, parse: (text: string) => T): T | null
  faults: string[]
  env: Readonly<Record<string, string | undefined>>
}

export interface Address {
  host: string
  port: number
}

/**
 * A value as a fault shows it, without what may be a secret: everything before an "@", a host with a password or an invalid
 * port, and everything after a "?" or "#".
 */
export const quoted = (text: string) =>
  `"${text
    .replace(/^.*@/s, '***@')
    .replace(/\/\/[^/:]*:(?!\d+(?:[/?#]|$)).*/s, '//***')
    .replace(/[?#].*$/s, '?***')}"`

/** A text of this form, unchanged. `fault` gets the text as it may be shown. */
export const ofForm = (form: RegExp, fault: (shown: string) => string) => (text: string) => {
  if (!form.test(text)) throw new Error(fault(quoted(text)))
  return text
}

export const path = (text: string) => resolve(text)

export function portNumber(text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535) throw new Error(`${quoted(text)} is not a port (0 to 65535)`)
  return port
}

export function hostName(text: string): string {
  if (isIP(text) === 0 && !/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(text)) {
    throw new Error(`${quoted(text)} is not a host name or address`)
  }
  return text.toLowerCase()
}

export function dnsName(text: string): string {
  if (isIP(text) !== 0) throw new Error(`${quoted(text)} is an address; a host name is needed`)
  return hostName(text)
}

export const zonesOrOff = (text: string): readonly string[] => (text === 'off' ? [] : list(dnsName)(text))

export const withoutBrackets = (host: string) => host.replace(/^\[|\]$/g, '')

/** An http or https address without a final slash, query or credentials. */
export function baseUrl(text: string): string {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username) {
    throw new Error(`${quoted(text)} is not an http(s) address such as https://mail.example.com`)
  }
  return url.href.replace(/\/$/, '')
}

/** An address over https, or plain http on this machine. Null: neither, or with credentials or a fragment. */
export function confidentialUrl(text: string): URL | null {
  const url = URL.parse(text)
  const isOwnMachine = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url?.hostname ?? '')
  const isUsable = url?.protocol === 'https:' || (url?.protocol === 'http:' && isOwnMachine)
  return url && isUsable && !url.username && !url.hash ? url : null
}

export const secretText = (lengthMin: number) => (text: string) => {
  if (text.length < lengthMin) throw new Error(`needs at least ${lengthMin} characters`)
  if (!/^[\x21-\x7e]+$/.test(text)) throw new Error('may hold only printable ASCII without blanks')
  return text
}

export const serverAddress =
  (defaultPort: number) =>
  (text: string): Address => {
    const match = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(text)
    const ip = match?.[1] ?? match?.[2] ?? ''
    if (isIP(ip) === 0) throw new Error(`${quoted(text)} is not ip:port`)
    return { host: ip, port: match?.[3] ? portNumber(match[3]) : defaultPort }
  }

export function network(text: string): string {
  const [ip = '', bits] = text.split('/')
  const family = isIP(ip)
  const isMask = bits === undefined || (/^\d+$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
  if (family === 0 || !isMask) throw new Error(`${quoted(text)} is not a network such as 10.0.0.0/8`)
  return text
}

const UNITS_MS: Record<string, number> = { s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS }

/** `90s`, `10m`, `4h` in milliseconds. */
export function duration(text: string): number {
  const match = /^(\d+)([smh])$/.exec(text)
  if (!match || Number(match[1]) === 0)
    throw new Error(`${quoted(text)} is not a time such as 30s, 10m or 4h`)
  return Number(match[1]) * (UNITS_MS[match[2] as string] as number)
}

/** A fraction with at most six decimals. */
export function millionths(text: string): number {
  if (!/^(?:0(?:\.\d{1,6})?|1)$/.test(text))
    throw new Error(`${quoted(text)} is not a fraction from 0 to 1 such as 0.05`)
  return Math.round(Number(text) * 1_000_000)
}

export const wholeNumber = (min: number, max: number, unit: string) => (text: string) => {
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < min || value > max) {
    throw new Error(`${quoted(text)} is not a number of ${unit} from ${min} to ${max}`)
  }
  return value
}

/** For figures without a limit that anybody would reach. */
export const COUNT_MAX = 1_000_000_000

export const megabytes = (text: string) => wholeNumber(1, COUNT_MAX, 'megabytes')(text) * 1_000_000

export const MEGABYTE = 1024 * 1024

/** `500m`, `2g` or a number of bytes. */
export function byteCount(text: string): number {
  const match = /^(\d{1,15})([kmg]?)$/i.exec(text)
  if (!match) throw new Error(`${quoted(text)} is not a size such as 500m or 2g`)
  return (
    Number(match[1]) *
    ({ '': 1, k: 1024, m: MEGABYTE, g: 1024 * MEGABYTE }[match[2]?.toLowerCase() ?? ''] ?? 1)
  )
}

/** All switches take the same words. */
export function flag(text: string): boolean {
  const word = text.toLowerCase()
  if (/^(?:yes|true|on|1)$/.test(word)) return true
  if (/^(?:no|false|off|0)$/.test(word)) return false
  throw new Error(`${quoted(text)} is neither yes nor no`)
}

export const oneOf =
  <const V extends string>(values: readonly V[]) =>
  (text: string): V => {
    const value = values.find((candidate) => candidate === text)
    if (value === undefined) throw new Error(`${quoted(text)} is not one of ${values.join(', ')}`)
    return value
  }

export const list =
  <T>(parse: (text: string) => T) =>
  (text: string): readonly T[] =>
    text.split(',').map((item) => parse(item.trim()))
