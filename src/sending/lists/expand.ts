/**
 * A post to a list: whether it may be distributed, with which header fields, and to whom. The same for the API, for
 * SMTP submission and for mail from outside.
 */

import type { ListMemberRow } from '../../platform/store/schema.ts'
import {
  addressKey,
  bareAddress,
  formatMailbox,
  type Mailbox,
  parseMailbox,
} from '../../protocols/mime/address.ts'
import type { List } from './list.ts'
import type { ListStore } from './store.ts'

type Headers = readonly (readonly [name: string, value: string])[]

export type Post =
  /** From an account; the API has no separate envelope sender. */
  | { way: 'api'; accountId: string; headers: Headers }
  | { way: 'smtp'; accountId: string; headers: Headers; envelopeSender: string | null }
  | InboundPost

/** Received by MX. */
export interface InboundPost {
  way: 'inbound'
  /** The mailbox of the From field. */
  author: Mailbox
  /** Whether the author's domain sent it; `unsure`: a look-up failed, so that a later attempt may tell. */
  origin: 'proven' | 'unproven' | 'unsure'
  headers: Headers
  envelopeSender: string | null
}

type Verdict =
  | { kind: 'allowed' }
  /** Not distributed. From outside: this SMTP reply; no event. */
  | { kind: 'refused'; code: 550; reply: string }
  /** From outside: it is not known yet whether it is allowed. */
  | { kind: 'unsure' }
  /** Accepted, but not distributed. `why` is for the log. */
  | { kind: 'loop'; why: 'list-id' | 'x-loop' | 'empty-sender' | 'auto-submitted' | 'automatic' }

const REFUSED: Verdict = { kind: 'refused', code: 550, reply: '5.7.1 posting to this list is not allowed' }

/** Decides after the lookups: whether the author is a subscribed member, and whether a List-Id is one of ours. */
export async function decidePost(
  lists: Pick<ListStore, 'member' | 'hasHeaderId'>,
  list: List,
  post: Post,
): Promise<Verdict> {
  const asksMember = list.accessLevel === 'members' && post.way === 'inbound' && post.origin === 'proven'
  const author = asksMember ? await lists.member(list.id, addressKey(post.author)) : null
  return judgePost(list, post, {
    authorIsSubscribed: author?.subscribed ?? false,
    cameThroughList: await lists.hasHeaderId(listIdsOf(post.headers)),
  })
}

/** mailing-lists.md rules 14, 15 and 20. Pure. */
export function judgePost(
  list: Pick<List, 'accountId' | 'accessLevel' | 'address'>,
  post: Post,
  known: { authorIsSubscribed: boolean; cameThroughList: boolean },
): Verdict {
  const allowed = isAllowed(list, post, known.authorIsSubscribed)
  if (allowed === false) return REFUSED
  const why = loopOf(list, post, known.cameThroughList)
  if (why !== null) return { kind: 'loop', why }
  return { kind: allowed === 'unsure' ? 'unsure' : 'allowed' }
}

/**
 * The author's address counts only if its domain is proven: anyone can write it. Until that is known the answer is the same
 * for members and others, so nobody learns who is a member.
 */
function isAllowed(list: Pick<List, 'accountId' | 'accessLevel'>, post: Post, authorIsSubscribed: boolean) {
  if (list.accessLevel === 'everyone') return true
  if (post.way !== 'inbound') return post.accountId === list.accountId
  if (list.accessLevel === 'readonly' || post.origin === 'unproven') return false
  return post.origin === 'unsure' ? 'unsure' : authorIsSubscribed
}

type Why = Extract<Verdict, { kind: 'loop' }>['why']

/** Null: the post may be distributed. */
function loopOf(list: Pick<List, 'address'>, post: Post, cameThroughList: boolean): Why | null {
  if (post.way !== 'api' && !post.envelopeSender) return 'empty-sender'
  if (cameThroughList) return 'list-id'
  if (valuesOf(post.headers, LOOP_FIELD).some((value) => isSameText(value, list.address))) return 'x-loop'
  if (isAutoSubmitted(post.headers)) return 'auto-submitted'
  return post.way === 'inbound' && isAutomatic(post) ? 'automatic' : null
}

/** Survives other lists, which replace List-Id (RFC 2919 §5). */
const LOOP_FIELD = 'x-loop'

const isSameText = (a: string, b: string) => a.trim().toLowerCase() === b.toLowerCase()

/** Answers of robots that do not know Auto-Submitted (RFC 3834 §5), and reports (RFC 6522). */
function isAutomatic({ headers, envelopeSender, author }: InboundPost): boolean {
  const says = (name: string, pattern: RegExp) => valuesOf(headers, name).some((value) => pattern.test(value))
  return (
    says('precedence', /^\s*(?:bulk|junk|auto_?reply)\b/i) ||
    says('content-type', /^\s*multipart\/report\b/i) ||
    AUTOMATIC_FIELDS.some((name) => valuesOf(headers, name).length > 0) ||
    /^mailer-daemon$/i.test(author.local) ||
    /^mailer-daemon@/i.test(envelopeSender ?? '')
  )
}

const AUTOMATIC_FIELDS = ['x-autoreply', 'x-autorespond', 'x-autoresponder', 'x-failed-recipients']

const valuesOf = (headers: Headers, name: string) =>
  headers.filter(([other]) => other.toLowerCase() === name).map(([, value]) => value)

/** More List-Id fields than any honest message has; each is looked up. */
const LIST_IDS_MAX = 20

/** The ids of `Words <id>` or bare ids, normalised for comparison (RFC 2919 §3, §6). */
export function listIdsOf(headers: Headers): string[] {
  const ids = valuesOf(headers, 'list-id').map((value) => /<([^<>]*)>/.exec(value)?.[1] ?? value)
  return [...new Set(ids.map((id) => id.trim().toLowerCase()))]
    .filter((id) => id !== '')
    .slice(0, LIST_IDS_MAX)
}

/** Any keyword except `no`; comments and parameters are ignored (RFC 3834 §5). */
function isAutoSubmitted(headers: Headers): boolean {
  return valuesOf(headers, 'auto-submitted').some((value) => {
    const keyword = (value.replaceAll(/\([^()]*\)/g, '').split(';', 1)[0] as string).trim().toLowerCase()
    return keyword !== '' && keyword !== 'no'
  })
}

/** Placeholder in the fields of a post until a copy is made, because each recipient has a link of their own. */
const LIST_UNSUBSCRIBE_URL = '%mailing_list_unsubscribe_url%'
/** Replaced by an address, without `mailto:`. */
const LIST_UNSUBSCRIBE_ADDRESS = '%mailing_list_unsubscribe_address%'

export interface ListHeaders {
  /** Fields of the post that its copies do not carry, in lower case. */
  remove: string[]
  add: [name: string, value: string][]
}

/** Fields about another list, or about how the post reached us (RFC 2369 §4: lists within lists). */
const REPLACED = ['list-id', 'list-post', 'list-help', 'list-owner', 'list-subscribe', 'list-archive']
/** Left out of mail from outside: fields of its transport, and requests for notices, which each member would send to the author. */
const DROPPED = [
  ...['return-path', 'x-envelope-from', 'bcc'],
  ...['disposition-notification-to', 'return-receipt-to', 'x-confirm-reading-to'],
]

/** How a copy names the author of a post from outside. */
interface ShownAuthor {
  author: Mailbox
  /** From is the list's address: see decision 84. */
  rewritesFrom: boolean
}

/** The fields of a copy in place of the post's own (rules 17 to 19; RFC 2369, 2919, 8058). */
export function listHeaders(
  list: List,
  post: Pick<Post, 'way' | 'headers'>,
  shown: ShownAuthor | null = null,
): ListHeaders {
  const has = (name: string) => valuesOf(post.headers, name).length > 0
  const remove = [...REPLACED, 'sender', 'precedence']
  if (post.way === 'inbound') remove.push(...DROPPED)
  const add: [string, string][] = [
    ['Sender', list.address],
    ['List-Id', `<${list.headerId}>`],
  ]
  if (list.accessLevel !== 'readonly') add.push(['List-Post', `<mailto:${mailtoOf(list.address)}>`])
  if (post.way === 'inbound' || !has('list-unsubscribe')) {
    remove.push('list-unsubscribe', 'list-unsubscribe-post')
    add.push(
      ['List-Unsubscribe', `<${LIST_UNSUBSCRIBE_URL}>, <mailto:${LIST_UNSUBSCRIBE_ADDRESS}>`],
      ['List-Unsubscribe-Post', 'List-Unsubscribe=One-Click'],
    )
  }
  add.push(['Precedence', 'list'], ['X-Loop', list.address])
  const repliesToList = list.accessLevel !== 'readonly' && list.replyPreference === 'list'
  const keepsReplyTo = post.way === 'api' && has('reply-to')
  if (repliesToList && !keepsReplyTo) {
    remove.push('reply-to')
    add.push(['Reply-To', list.address])
  }
  if (shown?.rewritesFrom) {
    remove.push('from', 'x-original-from')
    add.push(['From', formatMailbox(listAuthor(list, shown.author))])
    add.push(['X-Original-From', formatMailbox(shown.author)])
    // Else an answer to the author would reach the list.
    if (!repliesToList && !has('reply-to')) add.push(['Reply-To', formatMailbox(shown.author)])
  }
  return { remove, add }
}

/** Length of each of the two names in a rewritten From. */
const SHOWN_NAME_MAX = 100

/** `Ann Lee via Devs <devs@example.com>` (RFC 7960 §4.1.3.1). */
function listAuthor(list: Pick<List, 'address' | 'name'>, author: Mailbox): Mailbox {
  const own = parseMailbox(list.address)
  const names = [author.name || bareAddress(author), list.name || own.local]
  return { ...own, name: names.map((name) => name.slice(0, SHOWN_NAME_MAX).toWellFormed()).join(' via ') }
}

/** The address in a mailto URL (RFC 6068 §2): `@` and other valid characters of an address stay readable. */
const mailtoOf = (address: string) => encodeURIComponent(address).replaceAll('%40', '@')

/** A member who gets a copy. */
export interface ListRecipient {
  address: string
  /** In lower case and A-labels. */
  domain: string
  name: string
  vars: Record<string, unknown>
}

function recipientOfRow(row: ListMemberRow): ListRecipient {
  return {
    address: row.address,
    domain: row.address.slice(row.address.lastIndexOf('@') + 1).toLowerCase(),
    name: row.name,
    vars: JSON.parse(row.vars_json) as Record<string, unknown>,
  }
}

interface MemberChunk {
  recipients: ListRecipient[]
  /** Where the next chunk begins; null after the last member. */
  next: string | null
}

/** The subscribed members after `after` ('' for the first chunk), except those whose key is in `exclude`. */
export async function readMembers(
  lists: ListStore,
  listId: string,
  after: string,
  exclude: ReadonlySet<string>,
  limit: number,
): Promise<MemberChunk> {
  const rows = await lists.subscribedAfter(listId, after, limit)
  const last = rows.at(-1)
  return {
    recipients: rows.filter((row) => !exclude.has(row.address_key)).map(recipientOfRow),
    next: last && rows.length === limit ? last.address_key : null,
  }
}
