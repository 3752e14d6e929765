/** Mailing lists and their members as the service uses them. */

import { foreignJsonIn } from '../../base/foreign-json.ts'
import { type Language, languageOf } from '../../base/languages.ts'
import { BadRequest } from '../../base/process/errors.ts'
import { isPlainObject } from '../../base/values.ts'
import type { ListMemberRow, ListRow } from '../../platform/store/schema.ts'
import { addressKey, bareAddress, parseMailbox, readOrNull } from '../../protocols/mime/address.ts'

export const ACCESS_LEVELS = ['readonly', 'members', 'everyone'] as const
export const REPLY_PREFERENCES = ['sender', 'list'] as const
export type AccessLevel = (typeof ACCESS_LEVELS)[number]
export type ReplyPreference = (typeof REPLY_PREFERENCES)[number]

export interface List {
  /** Never changes, unlike the address. */
  id: string
  accountId: string
  domainName: string
  address: string
  name: string
  description: string
  accessLevel: AccessLevel
  /** As stored; readonly lists act as if it were `sender`. */
  replyPreference: ReplyPreference
  /** Value of List-Id without angle brackets. */
  headerId: string
  /** Shown to people; empty: the list is no topic. */
  title: string
  language: Language
  /** Added members are asked first. */
  isOptIn: boolean
  isFormOpen: boolean
  formRedirect: string | null
  confirmDays: number
  confirmTemplate: string | null
  /** Template of the form, and of the pages behind the link of a confirmation mail. */
  pageTemplate: string | null
  /** Confirmation mails asked for on the day `mailsDay` (days since 1970, UTC). */
  mailsDay: number
  mailsCount: number
  membersCount: number
  version: number
  createdAt: number
}

export interface Member {
  address: string
  name: string
  vars: Record<string, unknown>
  subscribed: boolean
  /** Only where it is: it has not confirmed yet. */
  pending?: true
}

/** Variables of one member, as JSON. Bounds the memory of a chunk of members during an expansion. */
const VARS_BYTES_MAX = 64 * 1024
/** An address with its name, as in any parameter; the address parser has the same limit. */
const ADDRESS_TEXT_MAX = 2_048
/** Length of List-Id, RFC 2919 §3. */
const HEADER_ID_MAX = 255
/** dot-atom-text of RFC 5322 §3.2.3. */
const DOT_ATOM = /^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*$/
const NOT_ATOM = /[^\w!#$%&'*+/=?^`{|}~.-]+/g

/** An address from a parameter: as given, its name part, and the key for comparisons. */
export interface ReadAddress {
  /** The caller's spelling if that is the plain ASCII address, else the canonical one. */
  address: string
  name: string
  key: string
  domain: string
}

/** Reads `address` or `Name <address>`; null for anything else. */
export function readAddress(text: string): ReadAddress | null {
  if (text.length > ADDRESS_TEXT_MAX) return null
  const mailbox = readOrNull(() => parseMailbox(text))
  if (mailbox === null) return null
  const bare = bareAddress(mailbox)
  const given = (/<([^<>]*)>\s*$/.exec(text)?.[1] ?? text).trim()
  return {
    address: given.toLowerCase() === bare.toLowerCase() ? given : bare,
    name: mailbox.name,
    key: addressKey(mailbox),
    domain: mailbox.domain,
  }
}

/** The object in `vars`: an object, or its JSON as text. @throws BadRequest with the contract's text */
export function readVars(value: unknown): Record<string, unknown> {
  const vars = typeof value === 'string' ? foreignJsonIn(value) : value
  if (!isPlainObject(vars)) throw new BadRequest("Parameter 'vars' is not a valid JSON object")
  if (JSON.stringify(vars).length > VARS_BYTES_MAX) {
    throw new BadRequest(`Parameter 'vars' is too large, max is ${VARS_BYTES_MAX / 1024} KB`)
  }
  return vars
}

/** The default List-Id: the address with `@` as `.`, and characters that a dot-atom cannot hold as a hyphen. */
export function defaultHeaderId(address: string): string {
  const atoms = address.replaceAll('@', '.').replaceAll(NOT_ATOM, '-').split('.')
  return atoms
    .filter((atom) => atom !== '')
    .join('.')
    .toLowerCase()
    .slice(-HEADER_ID_MAX)
}

/** A `list_id` parameter, with or without angle brackets. @throws BadRequest if RFC 2919 §2 does not allow it */
export function readHeaderId(text: string): string {
  const id = (/^<(.*)>$/.exec(text.trim())?.[1] ?? text).trim()
  if (id.length > HEADER_ID_MAX || !DOT_ATOM.test(id)) {
    throw new BadRequest("Parameter 'list_id' is not a valid List-Id")
  }
  return id
}

export function listOfRow(row: ListRow): List {
  return {
    id: row.id,
    accountId: row.account_id,
    domainName: row.domain_name,
    address: row.address,
    name: row.name,
    description: row.description,
    accessLevel: row.access_level as AccessLevel,
    replyPreference: row.reply_preference as ReplyPreference,
    headerId: row.header_id,
    title: row.title,
    language: languageOf(row.language) ?? 'en',
    isOptIn: row.is_opt_in === 1,
    isFormOpen: row.is_form_open === 1,
    formRedirect: row.form_redirect,
    confirmDays: Number(row.confirm_days),
    confirmTemplate: row.confirm_template,
    pageTemplate: row.page_template,
    mailsDay: Number(row.mails_day),
    mailsCount: Number(row.mails_count),
    membersCount: Number(row.members_count),
    version: Number(row.version),
    createdAt: Number(row.created_at),
  }
}

export function memberOfRow(row: ListMemberRow): Member {
  return {
    address: row.address,
    name: row.name,
    vars: JSON.parse(row.vars_json) as Record<string, unknown>,
    subscribed: row.subscribed === 1,
    ...(row.pending_id !== null && { pending: true as const }),
  }
}

/** Consent columns of a new list. */
export const NEW_LIST: Pick<
  ListRow,
  | 'title'
  | 'language'
  | 'is_opt_in'
  | 'is_form_open'
  | 'form_redirect'
  | 'confirm_days'
  | 'confirm_template'
  | 'page_template'
  | 'mails_day'
  | 'mails_count'
> = {
  ...{ title: '', language: 'en', is_opt_in: 0, is_form_open: 0, form_redirect: null },
  ...{ confirm_days: 7, confirm_template: null, page_template: null, mails_day: 0, mails_count: 0 },
}
