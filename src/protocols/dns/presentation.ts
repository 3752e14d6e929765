/**
 * Record data as text, in the form of zone files (RFC 1035 §5.1), and as bytes. Names are in lower case without a final dot;
 * TXT keeps its strings apart, so that a record which somebody else has made can be named exactly.
 */
import { isIPv4, isIPv6 } from 'node:net'
import { canonicalIp, parseIp } from '../../base/net/ip.ts'
import { normalizeName } from './names.ts'

/** The types whose data is understood. */
export const WRITABLE_TYPES = ['A', 'AAAA', 'CNAME', 'MX', 'TXT'] as const
export type WritableType = (typeof WRITABLE_TYPES)[number]

export const isWritable = (type: string): type is WritableType =>
  (WRITABLE_TYPES as readonly string[]).includes(type)

/** Longest character string in a TXT record, RFC 1035 §3.3. */
const STRING_BYTES_MAX = 255

/** `"first 255 bytes" "the rest"`: quotes and backslashes escaped, anything except printable ASCII as \DDD. */
export function quotedText(text: string): string {
  const bytes = Buffer.from(text)
  const strings: Buffer[] = []
  for (let at = 0; at < bytes.length; at += STRING_BYTES_MAX)
    strings.push(bytes.subarray(at, at + STRING_BYTES_MAX))
  return quotedStrings(strings)
}

export const quotedStrings = (strings: readonly Uint8Array[]): string =>
  strings.length > 0 ? strings.map((bytes) => `"${[...bytes].map(escapedByte).join('')}"`).join(' ') : '""'

function escapedByte(byte: number): string {
  const character = String.fromCharCode(byte)
  if (character === '"' || character === '\\') return `\\${character}`
  return byte >= 0x20 && byte <= 0x7e ? character : `\\${String(byte).padStart(3, '0')}`
}

/** One string, quoted or not, with escapes. */
const STRING = /\s*(?:"((?:[^"\\]|\\[\s\S])*)"|((?:[^\s"\\]|\\[\s\S])+))/y

/** The strings of a TXT record; null: a quote or an escape is not complete, or a string is too long. */
export function readStrings(text: string): Buffer[] | null {
  const strings: Buffer[] = []
  STRING.lastIndex = 0
  const end = text.trimEnd().length
  while (STRING.lastIndex < end) {
    const match = STRING.exec(text)
    if (match === null) return null
    const bytes = unescaped(match[1] ?? match[2] ?? '')
    if (bytes === null || bytes.length > STRING_BYTES_MAX) return null
    strings.push(bytes)
  }
  return strings
}

function unescaped(text: string): Buffer | null {
  const parts = text.split(/(\\\d{3}|\\[^\d])/)
  const bytes = parts.map((part) => {
    if (!part.startsWith('\\')) return Buffer.from(part)
    const code = Number(part.slice(1))
    if (!/^\\\d{3}$/.test(part)) return Buffer.from(part.slice(1))
    return code > 0xff ? null : Buffer.of(code)
  })
  const isWhole = !parts.some((part, at) => at % 2 === 0 && part.includes('\\'))
  return isWhole && bytes.every((part) => part !== null) ? Buffer.concat(bytes) : null
}

/** The text of a TXT record with its strings joined (RFC 7208 §3.3); other data as it is. */
export function plainText(type: string, data: string): string {
  const strings = type === 'TXT' ? readStrings(data) : null
  return strings === null ? data : Buffer.concat(strings).toString()
}

/** The one form of data that means the same; null: it is not data of that type. */
export function canonicalData(type: WritableType, data: string): string | null {
  switch (type) {
    case 'A':
      return isIPv4(data) ? data : null
    case 'AAAA':
      // An address of IPv4 in that form has another size.
      return isIPv6(data) && parseIp(data)?.family === 6 ? canonicalIp(data) : null
    case 'CNAME':
      return normalizeName(data)
    case 'MX': {
      const [, preference = '', host = ''] = /^(\d{1,5})\s+(\S+)$/.exec(data.trim()) ?? []
      // The null MX (RFC 7505 §3) has the root as its host.
      const exchange = host === '.' ? '.' : normalizeName(host)
      return exchange === null || Number(preference) > 0xffff ? null : `${Number(preference)} ${exchange}`
    }
    case 'TXT': {
      const strings = readStrings(data)
      return strings && quotedStrings(strings)
    }
  }
}

/** With the final dots that zone files and most interfaces want. `data` is canonical. */
export function dottedData(type: string, data: string): string {
  return (type === 'CNAME' || type === 'MX') && !data.endsWith('.') ? `${data}.` : data
}

/** A name on the wire, without compression. */
export function nameBytes(name: string): Buffer {
  const labels = name === '' || name === '.' ? [] : name.split('.')
  return Buffer.concat([
    ...labels.flatMap((label) => [Buffer.of(Buffer.byteLength(label)), Buffer.from(label)]),
    Buffer.of(0),
  ])
}

/** The RDATA of canonical data. */
export function dataBytes(type: WritableType, data: string): Buffer {
  switch (type) {
    case 'A':
    case 'AAAA': {
      const hex = (parseIp(data)?.bits ?? 0n).toString(16).padStart(type === 'A' ? 8 : 32, '0')
      return Buffer.from(hex, 'hex')
    }
    case 'CNAME':
      return nameBytes(data)
    case 'MX': {
      const [preference = '0', host = ''] = data.split(' ')
      const bytes = Buffer.alloc(2)
      bytes.writeUInt16BE(Number(preference))
      return Buffer.concat([bytes, nameBytes(host)])
    }
    case 'TXT':
      return Buffer.concat((readStrings(data) ?? []).flatMap((bytes) => [Buffer.of(bytes.length), bytes]))
  }
}
