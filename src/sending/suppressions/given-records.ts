/**
 * What a caller may put on a list: one parser for the fields of a form, the members of a JSON record and the
 * columns of a CSV row. Pure; every fault is the contract's 400.
 */

import { BadRequest } from '../../base/process/errors.ts'
import { isGoZeroTime, parseDate } from '../../base/time/dates.ts'
import { invalidFormat, isPlainObject } from '../../base/values.ts'
import type { SuppressionKind } from '../../platform/store/schema.ts'
import { addressKey, parseMailbox, readOrNull, toAsciiDomain } from '../../protocols/mime/address.ts'
import { cleanTags } from '../../watching/tags/clean-tags.ts'

/** A record as given: values are text, JSON scalars or lists of them. */
export type GivenRecord = Readonly<Record<string, unknown>>

/** A validated record. `address` is the key: in lower case; a bare domain only in the allowlist. */
export interface NewRecord {
  address: string
  /** SMTP code of a bounce; otherwise empty. */
  code: string
  /** Error text of a bounce, reason of an allowlist entry; otherwise empty. */
  detail: string
  /** Tags of an unsubscribe, at least one; otherwise none. */
  tags: readonly string[]
  /** Unix milliseconds; null: not given. */
  createdAt: number | null
}

/** The tag that stands for all mail of the domain. */
export const ALL_MAIL = '*'
export const TAGS_PER_UNSUBSCRIBE_MAX = 100
/** Longest stored error or reason text; SMTP replies are far shorter. */
export const DETAIL_LENGTH_MAX = 4096
const DEFAULT_CODE = '550'

/**
 * @param now Unix milliseconds; a `created_at` in the future is replaced by now.
 * @throws BadRequest `Missing mandatory parameter: ...` or `Invalid format for parameter ...`
 */
export function readRecord(kind: SuppressionKind, given: GivenRecord, now: number): NewRecord {
  const createdAt = readTime(given['created_at'] ?? given['createdAt'] ?? given['createdat'], now)
  const common = { code: '', detail: '', tags: [], createdAt }
  switch (kind) {
    case 'bounces':
      return {
        ...common,
        address: readAddress(given['address']),
        code: readCode(given['code']),
        detail: readDetail(given['error']),
      }
    case 'complaints':
      return { ...common, address: readAddress(given['address']) }
    case 'unsubscribes': {
      const tags = readTags([...listOf(given['tags']), ...listOf(given['tag'])])
      return { ...common, address: readAddress(given['address']), tags }
    }
    case 'whitelists':
      return { ...common, address: readAllowed(given), detail: readDetail(given['reason']) }
  }
}

/** A JSON record: an object whose members are those of a `GivenRecord`. @throws BadRequest for anything else */
export function asGivenRecord(value: unknown): GivenRecord {
  if (!isPlainObject(value)) throw new BadRequest('Invalid json: expected an object')
  return value
}

/**
 * `Alice <alice@example.com>` and `ALICE@example.com` are `alice@example.com`.
 * @throws BadRequest
 */
function readAddress(value: unknown): string {
  const text = textOf(value)
  if (text === '') throw new BadRequest('Missing mandatory parameter: address')
  const key = readOrNull(() => addressKey(parseMailbox(text)))
  if (key === null) throw invalidFormat('address', text)
  return key
}

/** An address or, without one, a domain: the address takes precedence. */
function readAllowed(given: GivenRecord): string {
  if (textOf(given['address']) !== '') return readAddress(given['address'])
  const domain = textOf(given['domain'])
  if (domain === '') throw new BadRequest('Missing mandatory parameter: address/domain')
  const key = readOrNull(() => toAsciiDomain(domain))
  if (key === null) throw invalidFormat('domain', domain)
  return key
}

/** An SMTP code, or the numeric code of another system. */
function readCode(value: unknown): string {
  const text = textOf(value)
  if (text === '') return DEFAULT_CODE
  if (!/^\d{1,5}$/.test(text)) throw invalidFormat('code', text)
  return text
}

const readDetail = (value: unknown) => cut(textOf(value), DETAIL_LENGTH_MAX)

/** At most `max` characters, without half a surrogate pair. */
function cut(text: string, max: number): string {
  const end = /[\ud800-\udbff]/.test(text[max - 1] ?? '') ? max - 1 : max
  return text.slice(0, end)
}

/** Tags cleaned as those of messages, so that they match; none, or `*` among them, is all mail. */
function readTags(given: readonly unknown[]): string[] {
  const tags = new Map<string, string>()
  for (const value of given) {
    const tag = cleanTags([textOf(value)])[0]
    if (tag !== undefined && !tags.has(tag.toLowerCase())) tags.set(tag.toLowerCase(), tag)
  }
  if (tags.size === 0 || tags.has(ALL_MAIL)) return [ALL_MAIL]
  if (tags.size > TAGS_PER_UNSUBSCRIBE_MAX) {
    throw new BadRequest(`Invalid format for parameter tags: more than ${TAGS_PER_UNSUBSCRIBE_MAX} tags`)
  }
  return [...tags.values()]
}

const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value === undefined || value === null ? [] : [value]

/** Empty, the year 1 (a Go program's unset time) and absent mean "not given". */
function readTime(value: unknown, now: number): number | null {
  const text = textOf(value)
  if (text === '') return null
  const date = parseDate(text)
  if (date === undefined) throw invalidFormat('created_at', text)
  if (isGoZeroTime(date) || date.getUTCFullYear() === 1) return null
  return Math.floor(Math.min(date.getTime(), now))
}

/**
 * Text of a scalar, trimmed, without NUL, which PostgreSQL cannot store. Anything else is its JSON, which every
 * rule rejects.
 */
function textOf(value: unknown): string {
  if (value === undefined || value === null) return ''
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return text.replaceAll('\0', '').trim()
}
