/**
 * A post to a list: may it be distributed, with which header fields, and to whom. The same for the API, for
 * SMTP submission and for mail from outside.
 */
import { addressKey } from '../mime/address.ts'
import type { ListMemberRow } from '../store/schema.ts'
import type { List } from './list.ts'
import type { ListStore } from './store.ts'

type Headers = readonly (readonly [name: string, value: string])[]

export type Post =
  /** From a caller of the account; the API has no envelope sender of its own. */
  | { way: 'api'; accountId: string; headers: Headers }
  | { way: 'smtp'; accountId: string; headers: Headers; envelopeSender: string | null }
  /** By MX. `from`: bare address of the From field, null if it cannot be read. */
  | { way: 'inbound'; from: string | null; headers: Headers; envelopeSender: string | null }

export type Verdict =
  | { kind: 'allowed' }
  /** Nobody gets a copy. From outside: this SMTP reply; no event. */
  | { kind: 'refused'; code: 550; reply: string }
  /** Taken, but not distributed. `why` is for the log. */
  | { kind: 'loop'; why: 'list-id' | 'auto-submitted' | 'empty-sender' }

const REFUSED: Verdict = { kind: 'refused', code: 550, reply: '5.7.1 posting to this list is not allowed' }

/** Decides with what has to be looked up: is the author a subscribed member, is a List-Id one of ours. */
export async function decidePost(lists: ListStore, list: List, post: Post): Promise<Verdict> {
  const asksMember = list.accessLevel === 'members' && post.way === 'inbound' && post.from !== null
  const author = asksMember ? await lists.member(list.id, addressKey(post.from as string)) : null
  return judgePost(list, post, {
    authorIsSubscribed: author?.subscribed ?? false,
    cameThroughList: await lists.hasHeaderId(listIdsOf(post.headers)),
  })
}

/** mailing-lists.md rules 14, 15 and 20. Pure. */
export function judgePost(
  list: Pick<List, 'accountId' | 'accessLevel'>,
  post: Post,
  known: { authorIsSubscribed: boolean; cameThroughList: boolean },
): Verdict {
  if (!isAllowed(list, post, known.authorIsSubscribed)) return REFUSED
  if (post.way !== 'api' && !post.envelopeSender) return { kind: 'loop', why: 'empty-sender' }
  if (known.cameThroughList) return { kind: 'loop', why: 'list-id' }
  if (isAutoSubmitted(post.headers)) return { kind: 'loop', why: 'auto-submitted' }
  return { kind: 'allowed' }
}

function isAllowed(
  list: Pick<List, 'accountId' | 'accessLevel'>,
  post: Post,
  authorIsSubscribed: boolean,
): boolean {
  if (list.accessLevel === 'everyone') return true
  if (post.way !== 'inbound') return post.accountId === list.accountId
  return list.accessLevel === 'members' && authorIsSubscribed
}

const valuesOf = (headers: Headers, name: string) =>
  headers.filter(([other]) => other.toLowerCase() === name).map(([, value]) => value)

/** More List-Id fields than any honest mail has; each is looked up. */
const LIST_IDS_MAX = 20

/** `Words <id>` or a bare id, as they compare (RFC 2919 §3, §6). */
export function listIdsOf(headers: Headers): string[] {
  const ids = valuesOf(headers, 'list-id').map((value) => /<([^<>]*)>/.exec(value)?.[1] ?? value)
  return [...new Set(ids.map((id) => id.trim().toLowerCase()))]
    .filter((id) => id !== '')
    .slice(0, LIST_IDS_MAX)
}

/** The keyword is anything but `no`; comments and parameters do not count (RFC 3834 §5). */
function isAutoSubmitted(headers: Headers): boolean {
  return valuesOf(headers, 'auto-submitted').some((value) => {
    const keyword = (value.replaceAll(/\([^()]*\)/g, '').split(';', 1)[0] as string).trim().toLowerCase()
    return keyword !== '' && keyword !== 'no'
  })
}

/** Stand in the fields of a post until a copy is made: every recipient has links of their own. */
export const LIST_UNSUBSCRIBE_URL = '%mailing_list_unsubscribe_url%'
/** Becomes an address, without `mailto:`. */
export const LIST_UNSUBSCRIBE_ADDRESS = '%mailing_list_unsubscribe_address%'

export interface ListHeaders {
  /** Fields of the post that copies do not carry, in lower case. */
  remove: string[]
  add: [name: string, value: string][]
}

/** Fields that speak of another list, or of how the post reached us (RFC 2369 §4: lists within lists). */
const REPLACED = ['list-id', 'list-post', 'list-help', 'list-owner', 'list-subscribe', 'list-archive']

/** What a copy has instead of the post's own fields (rules 17 to 19; RFC 2369, 2919, 8058). */
export function listHeaders(list: List, post: Pick<Post, 'way' | 'headers'>): ListHeaders {
  const has = (name: string) => valuesOf(post.headers, name).length > 0
  const remove = [...REPLACED, 'sender', 'precedence']
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
  add.push(['Precedence', 'list'])
  const repliesToList = list.accessLevel !== 'readonly' && list.replyPreference === 'list'
  const keepsReplyTo = post.way === 'api' && has('reply-to')
  if (repliesToList && !keepsReplyTo) {
    remove.push('reply-to')
    add.push(['Reply-To', list.address])
  }
  return { remove, add }
}

/** The address in a mailto URL (RFC 6068 §2): `@` and what an address may hold stay readable. */
const mailtoOf = (address: string) => encodeURIComponent(address).replaceAll('%40', '@')

/** One who gets a copy. */
export interface ListRecipient {
  address: string
  /** In lower case and A-labels. */
  domain: string
  name: string
  vars: Record<string, unknown>
}

export function recipientOfRow(row: ListMemberRow): ListRecipient {
  return {
    address: row.address,
    domain: row.address.slice(row.address.lastIndexOf('@') + 1).toLowerCase(),
    name: row.name,
    vars: JSON.parse(row.vars_json) as Record<string, unknown>,
  }
}

export interface MemberChunk {
  recipients: ListRecipient[]
  /** Where the next chunk begins; null behind the last member. */
  next: string | null
}

/** The subscribed members behind `after` ('' for the first chunk), without those whose key is in `exclude`. */
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
