import { domainToASCII } from 'node:url'
import { parseIp } from '../../base/net/ip.ts'

const LABEL_BYTES_MAX = 63 // RFC 1035 §2.3.4
const NAME_BYTES_MAX = 253 // 255 on the wire, less the first length byte and the root, RFC 1035 §2.3.4

/**
 * The form in which names are queried, compared and cached: lower case, IDNA as A-labels, no final dot. Null when
 * the text cannot be a name: empty or long labels, blanks, control characters, a backslash.
 */
export function normalizeName(name: string): string | null {
  let text = name.endsWith('.') ? name.slice(0, -1) : name
  // IDNA only for non-ASCII names: `domainToASCII` applies the URL host rules, which would turn "0x7f.1" into
  // "127.0.0.1" and decode "%41". ASCII names skip it, and URL delimiters are refused.
  if (/[^\x00-\x7f]/.test(text)) text = /[%/?#@:[\]\\\s]/.test(text) ? '' : domainToASCII(text)
  text = text.toLowerCase()
  if (text.length > NAME_BYTES_MAX || !text.split('.').every(isLabel)) return null
  return text
}

function isLabel(label: string): boolean {
  return label.length <= LABEL_BYTES_MAX && /^[\x21-\x7e]+$/.test(label) && !label.includes('\\')
}

/** Whether `name` is `ancestor` or below it; both normalised by `normalizeName`. */
export function isWithin(name: string, ancestor: string): boolean {
  return ancestor === '' || name === ancestor || name.endsWith(`.${ancestor}`)
}

/** The name of an address's PTR record. RFC 1035 §3.5, RFC 3596 §2.5. Null: not an address. */
export function reverseName(ip: string): string | null {
  const address = parseIp(ip)
  if (address === null) return null
  const hex = address.bits.toString(16).padStart(address.family === 4 ? 8 : 32, '0')
  if (address.family === 6) return `${[...hex].reverse().join('.')}.ip6.arpa`
  return `${[...Buffer.from(hex, 'hex')].reverse().join('.')}.in-addr.arpa`
}
