/**
 * Posts to mailing lists by mail from outside (mailing-lists.md rules 14 to 20). The author is the mailbox in From, and
 * counts only as far as the author's domain is proven to have sent the mail.
 */

import { createHash } from 'node:crypto'
import type { Clock } from '../../base/time/clock.ts'
import type { ReceivedPost } from '../../mail/accept/received-mail.ts'
import { readMessageId } from '../../mail/record/variables.ts'
import type { QueueLimits } from '../../mail/stored/queue-limits.ts'
import { type AccountDirectory, maySend } from '../../people/accounts/account-directory.ts'
import {
  createRateLimiter,
  DEFAULT_LIMITS,
  type LimitSetting,
} from '../../platform/http/limits/rate-limit.ts'
import {
  addressKey,
  bareAddress,
  type Mailbox,
  parseMailbox,
  readOrNull,
} from '../../protocols/mime/address.ts'
import { type RawHeader, unfoldedValue } from '../../protocols/mime/split.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'
import { rootDomainOf } from '../../sending/domains/names/domain-names.ts'
import { decidePost, type InboundPost, listHeaders } from '../../sending/lists/expand.ts'
import type { List } from '../../sending/lists/list.ts'
import type { ListDomains } from '../../sending/lists/list-domains.ts'
import type { ListStore } from '../../sending/lists/store.ts'
import { Refusal } from '../sessions/replies.ts'
import { lendsTo } from './forward/lent-names.ts'
import { OWN_HOPS_MAX } from './forward/received-fields.ts'
import type { AuthorCheck } from './mail-check.ts'

interface ListPostParts {
  lists: Pick<ListStore, 'byKey' | 'byId' | 'member' | 'hasHeaderId'>
  listDomains: Pick<ListDomains, 'get'>
  domains: Pick<DomainDirectory, 'byName'>
  accounts: Pick<AccountDirectory, 'byId'>
  queueLimits: Pick<QueueLimits, 'disabledUntil'>
  clock: Clock
  /** True: no limits (`SENDWRIGHT_RATE_LIMIT=off`). */
  unlimited: boolean
  headerPrefix: string
}

/** A mail to the address of a list. */
interface PostedMail {
  headers: readonly RawHeader[]
  /** '' is `<>`. */
  sender: string
  author: AuthorCheck
  /** Received fields of this service that it has. */
  ownHops: number
}

export type PostVerdict =
  | { kind: 'allowed'; post: ReceivedPost }
  /** Nobody gets a copy, and the client gets this reply. */
  | { kind: 'refused'; refusal: Refusal }
  /** Nobody gets a copy; the mail is taken, for a reply would start or feed a loop. */
  | { kind: 'dropped'; reason: string }

export type ListPosts = ReturnType<typeof createListPosts>

/** The reply to posts that the access level does not allow. */
export const NOT_ALLOWED = '550 5.7.1 posting to this list is not allowed'
export const UNSURE = "451 4.7.24 The author's domain cannot be checked now, try again later"

/**
 * Posts of one author to one list: a loop through a robot that marks its mail in no way is slowed down to this. More than that is
 * asked to come later.
 */
const POSTS_PER_AUTHOR: LimitSetting = { count: 60, windowMs: 3_600_000 }
/** To one list, whoever wrote them: each is as many copies as there are members. */
const POSTS_PER_LIST: LimitSetting = { count: 300, windowMs: 3_600_000 }

export function createListPosts(parts: ListPostParts) {
  const { lists, listDomains, clock, unlimited } = parts
  const limiter = (setting: LimitSetting) =>
    createRateLimiter({ clock, off: unlimited, limits: { ...DEFAULT_LIMITS, default: setting } })
  const limits = { author: limiter(POSTS_PER_AUTHOR), list: limiter(POSTS_PER_LIST) }

  /** A reply that asks for another attempt; null: the list can take the post now. */
  async function busy(domain: Domain, list: List, author: Mailbox): Promise<Refusal | null> {
    const isHeld = !maySend(await parts.accounts.byId(list.accountId))
    const isFull = (await parts.queueLimits.disabledUntil(domain.id)) > clock.now()
    if (isHeld || isFull) return new Refusal('451 4.7.1 The list takes no posts now, try again later')
    const isWithin =
      (limits.author.take('default', `${list.id} ${addressKey(author)}`)?.allowed ?? true) &&
      (limits.list.take('default', list.id)?.allowed ?? true)
    return isWithin ? null : new Refusal('451 4.7.1 Too many posts to this list, try again later')
  }

  return {
    byId: lists.byId,
    /** The list that has the address, of the account that has the domain. */
    async listOf(domain: Domain, mailbox: Mailbox): Promise<List | null> {
      const names = await listDomains.get(domain.accountId)
      // Lists are at domains of their own; mail for a subdomain may come to a wildcard domain.
      if (domain.name !== mailbox.domain || !names.has(domain.name)) return null
      const list = await lists.byKey(addressKey(mailbox))
      return list?.accountId === domain.accountId ? list : null
    },
    async judge(domain: Domain, list: List, mail: PostedMail): Promise<PostVerdict> {
      const author = authorOf(mail.headers)
      if (author === null) return refused('554 5.6.0 cannot parse from address')
      const headers = mail.headers.map(({ name, value }) => [name, value] as const)
      const post = {
        way: 'inbound' as const,
        author,
        origin: originOf(author, mail.author),
        headers,
        envelopeSender: mail.sender || null,
      }
      const verdict = await decidePost(lists, list, post)
      if (verdict.kind === 'refused') return refused(`${verdict.code} ${verdict.reply}`)
      if (verdict.kind === 'loop') return { kind: 'dropped', reason: verdict.why }
      if (mail.ownHops > OWN_HOPS_MAX) return { kind: 'dropped', reason: 'hops' }
      if (verdict.kind === 'unsure') return refused(UNSURE)
      const refusal = await busy(domain, list, author)
      if (refusal) return { kind: 'refused', refusal }
      const isLent = await lendsTo(parts.domains, domain, author.domain)
      const rewritten = isLent || rewritesFrom(domain, post, mail.author)
      const own = listHeaders(list, post, { author, rewritesFrom: rewritten })
      const remove = [...own.remove, `${parts.headerPrefix}Incoming`.toLowerCase()]
      return {
        kind: 'allowed',
        post: { list, headers: { ...own, remove }, key: postKey(author, mail.headers) },
      }
    },
  }
}

const refused = (reply: string): PostVerdict => ({ kind: 'refused', refusal: new Refusal(reply) })

/**
 * The mailbox of From; null unless there is one field with one mailbox. Programs differ in which of several they show and
 * check, so that such a mail could show a member and be checked as another's.
 */
function authorOf(headers: readonly RawHeader[]): Mailbox | null {
  const [field, second] = headers.filter(({ name }) => name.toLowerCase() === 'from')
  if (!field || second) return null
  return readOrNull(() => parseMailbox(unfoldedValue(field.raw)))
}

/** The check must have read the same domain. */
function originOf({ domain }: Mailbox, check: AuthorCheck): 'proven' | 'unproven' | 'unsure' {
  if (check.domain !== null && check.domain !== domain) return 'unproven'
  if (check.isProven && check.domain === domain) return 'proven'
  return check.isUnsure ? 'unsure' : 'unproven'
}

/**
 * Whether From of the copies is the list's address (decision 84). The list's signature proves its own domain, and all that
 * have the same owner. So From must not be of another owner who has mail that is not proven refused; and of the same owner
 * only if that has sent the mail, as the list would else vouch for a forged author.
 */
function rewritesFrom(
  domain: Pick<Domain, 'name' | 'dkimAuthority'>,
  { author, origin }: Pick<InboundPost, 'author' | 'origin'>,
  { policy, isStrict }: Pick<AuthorCheck, 'policy' | 'isStrict'>,
): boolean {
  const root = rootDomainOf(author.domain)
  const isOwn = [domain.name, domain.dkimAuthority].some((name) => rootDomainOf(name) === root)
  if (isOwn && origin !== 'proven') return true
  const isProven = isStrict ? author.domain === domain.dkimAuthority : isOwn
  return !isProven && policy !== 'none'
}

/** Null: the mail has no Message-Id. */
function postKey(author: Mailbox, headers: readonly RawHeader[]): string | null {
  const field = headers.find(({ name }) => name.toLowerCase() === 'message-id')
  const id = field ? readMessageId(field.value) : null
  if (id === null) return null
  return createHash('sha256')
    .update(`${bareAddress(author).toLowerCase()}\n${id}`)
    .digest('hex')
}
