/** What can be said of a link without following it. Pure. */
import { isIP } from 'node:net'
import { isPublicAddress } from '../../base/net/ip.ts'

/**
 * `empty`: leads nowhere; `broken`: no absolute URL of a scheme that mail programs open; `private`: a host that
 * recipients cannot reach; `address`: an IP address, as phishing has; `insecure`: http; `other`: mailto, tel and the like.
 */
export type LinkKind = 'ok' | 'empty' | 'broken' | 'private' | 'address' | 'insecure' | 'other'

/** Longer ones break in mail programs and proxies. */
const LINK_CHARS_MAX = 8_192

const OTHER_SCHEMES = /^(?:mailto|tel|sms|geo|webcal|cid):./i
/** Names that are never in public DNS: RFC 6761, RFC 6762, RFC 8375, RFC 9476 and the reserved `internal`. */
const PRIVATE_NAME = /(?:^|\.)(?:localhost|local|test|invalid|example|home\.arpa|internal|lan|alt)$/

/** `value`: as in the attribute, with its character references decoded. */
export function judgeLink(value: string): LinkKind {
  const link = value.trim()
  if (link === '' || link === '#') return 'empty'
  // An anchor of the same mail.
  if (link.startsWith('#')) return 'other'
  if (link.length > LINK_CHARS_MAX) return 'broken'
  if (OTHER_SCHEMES.test(link)) return 'other'
  // A URL parser would repair blanks and a missing slash; mail programs differ in that.
  if (!/^https?:\/\/[^\s<>"]+$/i.test(link) || !URL.canParse(link)) return 'broken'
  const { hostname, protocol } = new URL(link)
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (isIP(host) !== 0) return isPublicAddress(host) ? 'address' : 'private'
  if (!host.includes('.') || PRIVATE_NAME.test(host)) return 'private'
  return protocol === 'http:' ? 'insecure' : 'ok'
}
