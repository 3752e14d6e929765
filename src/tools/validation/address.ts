/** The address that a caller wants validated: its syntax, and the mailbox behind its alias. */
import {
  AddressSyntaxError,
  addressKey,
  bareAddress,
  parseMailbox,
  toAsciiDomain,
} from '../../protocols/mime/address.ts'
import { ignoresDots, ignoresPlusPart } from './providers.ts'

export interface ValidAddress {
  /** As given, without blanks around it. */
  given: string
  local: string
  /** In lower case and A-labels. */
  domain: string
  /** What addresses are compared by. */
  key: string
}

export type ReadAddress = { kind: 'valid'; address: ValidAddress } | { kind: 'malformed'; reason: string }

/** Octets of an address: a path has 256 with its angle brackets (RFC 5321 §4.5.3.1.3). */
const ADDRESS_BYTES_MAX = 254
const QUOTED_LOCAL = /^"(?:[^"\\]|\\.)*"$/s

/** Reads one bare address of RFC 5321: a name, a comment or angle brackets make it malformed. */
export function readAddress(text: string): ReadAddress {
  const given = text.trim()
  const at = given.lastIndexOf('@')
  if (at < 0) return { kind: 'malformed', reason: 'malformed address; missing @ sign' }
  const malformed = { kind: 'malformed', reason: 'malformed address' } as const
  if (Buffer.byteLength(given) > ADDRESS_BYTES_MAX) return malformed
  try {
    const mailbox = parseMailbox(given)
    const [local, domain] = [given.slice(0, at), given.slice(at + 1)]
    const isBare = mailbox.name === '' && (local === mailbox.local || QUOTED_LOCAL.test(local))
    if (!isBare || toAsciiDomain(domain) !== mailbox.domain) return malformed
    if (Buffer.byteLength(bareAddress(mailbox)) > ADDRESS_BYTES_MAX) return malformed
    const address = { given, local: mailbox.local, domain: mailbox.domain, key: addressKey(mailbox) }
    return { kind: 'valid', address }
  } catch (error) {
    if (error instanceof AddressSyntaxError) return malformed
    throw error
  }
}

/** The mailbox that an alias leads to; null if the address is no alias. */
export function rootAddressOf({ local, domain, key }: ValidAddress): string | null {
  let root = local
  const plus = root.indexOf('+')
  if (plus > 0 && ignoresPlusPart(domain)) root = root.slice(0, plus)
  if (ignoresDots(domain)) root = root.replaceAll('.', '')
  if (root === local || root === '') return null
  const address = addressKey({ name: '', local: root, domain })
  return address === key ? null : address
}
