/** The rules of lists and their members (mailing-lists.md rules 1 to 9, 27). */

import { newId } from '../../base/ids.ts'
import type { Language } from '../../base/languages.ts'
import { BadRequest, NotFound, TooManyRequests } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS, SECOND_MS } from '../../base/time/durations.ts'
import type { ListMemberRow, ListRow } from '../../platform/store/schema.ts'
import type { Statement } from '../../platform/store/store.ts'
import type { DomainDirectory } from '../domains/names/directory.ts'
import { asksForMail, type Cause, mailsLeft, standingOf } from './consent.ts'
import {
  type AccessLevel,
  defaultHeaderId,
  type List,
  type Member,
  memberOfRow,
  NEW_LIST,
  type ReadAddress,
  type ReplyPreference,
  readAddress,
  readHeaderId,
} from './list.ts'
import { keyOf, type ListStore } from './store.ts'

/** Fields as given; absent ones get the default, or stay unchanged. */
export interface ListFields {
  address?: string | undefined
  name?: string | undefined
  description?: string | undefined
  accessLevel?: AccessLevel | undefined
  replyPreference?: ReplyPreference | undefined
  headerId?: string | undefined
  title?: string | undefined
  language?: Language | undefined
  isOptIn?: boolean | undefined
  isFormOpen?: boolean | undefined
  /** Null: none. */
  formRedirect?: string | null | undefined
  confirmDays?: number | undefined
  confirmTemplate?: string | null | undefined
  pageTemplate?: string | null | undefined
}

interface MemberFields {
  address?: string | undefined
  name?: string | undefined
  vars?: Record<string, unknown> | undefined
  subscribed?: boolean | undefined
  /** It is asked before it is subscribed; undefined: as the list's setting says. */
  confirm?: boolean | undefined
}

export type Lists = ReturnType<typeof createLists>

const INVALID_ADDRESS = 'address parameter is not a valid address. please check documentation'

export function createLists(parts: { lists: ListStore; domains: DomainDirectory; clock: Clock }) {
  const { lists, domains, clock } = parts

  /** The new address of a list; its domain must belong to the account. */
  async function ownAddress(accountId: string, text: string): Promise<ReadAddress> {
    const address = addressOf(text)
    const domain = await domains.byName(address.domain)
    if (domain?.accountId !== accountId) throw new BadRequest(`Domain not found: ${address.domain}`)
    return address
  }

  async function removeOne(list: List, memberName: string, listName: string, cause: Cause): Promise<Member> {
    const key = keyOf(memberName)
    const removed = await lists.changeMembers(list.id, [key], (_list, present) => {
      const row = present.get(key)
      const change = row ? { write: [], remove: [key], added: -1, cause } : null
      return { change, result: row ? memberOfRow(row) : null }
    })
    if (!removed) throw unknownMember(memberName, listName)
    return removed
  }

  return {
    /** The caller's list. @throws NotFound; `quoted` gives the text of the bulk operations */
    async own(accountId: string, address: string, form: 'plain' | 'quoted' = 'plain'): Promise<List> {
      const list = await lists.byKey(keyOf(address))
      if (list?.accountId === accountId) return list
      throw unknownList(address, form)
    },
    async create(accountId: string, fields: ListFields & { address: string }): Promise<List> {
      const address = await ownAddress(accountId, fields.address)
      const headerId = defaultHeaderId(address.address)
      const row: ListRow = {
        id: newId(clock.now()),
        account_id: accountId,
        domain_name: address.domain,
        address: address.address,
        address_key: address.key,
        name: fields.name ?? address.name,
        description: fields.description ?? '',
        access_level: fields.accessLevel ?? 'readonly',
        reply_preference: fields.replyPreference ?? 'list',
        header_id: headerId,
        header_key: headerId.toLowerCase(),
        ...NEW_LIST,
        members_count: 0,
        version: 0,
        created_at: Math.floor(clock.now()),
      }
      if (!(await lists.create(row))) throw new BadRequest('Duplicate object')
      return reread(lists, row.id, fields.address)
    },
    async update(list: List, fields: ListFields): Promise<List> {
      const address = fields.address === undefined ? null : await ownAddress(list.accountId, fields.address)
      if (!(await lists.update(list, changedColumns(list, fields, address))))
        throw new BadRequest('Duplicate object')
      return reread(lists, list.id, list.address)
    },
    remove: (list: List) => lists.remove(list),
    /** @throws NotFound; `listName` and `memberName` are quoted as the caller wrote them */
    async member(list: List, memberName: string, listName: string): Promise<Member> {
      const member = await lists.member(list.id, keyOf(memberName))
      if (!member) throw unknownMember(memberName, listName)
      return member
    },
    /** @throws TooManyRequests when it must confirm, and the list has asked for all mails of the day; so do changes */
    async addMember(
      list: List,
      fields: MemberFields & { address: string },
      upsert: boolean,
      cause: Cause,
    ): Promise<Member> {
      const address = addressOf(fields.address)
      const added = await lists.changeMembers<Member | 'over' | null>(
        list.id,
        [address.key],
        (now, present, mailedAt) => {
          const before = present.get(address.key)
          if (before && !upsert) return { change: null, result: null }
          const row = mergedMember(now, address, before, fields, cause, mailedAt)
          if (isOver(now, before, row, cause)) return { change: null, result: 'over' }
          return { change: { write: [row], added: before ? 0 : 1, cause }, result: memberOfRow(row) }
        },
        { mails: fields.confirm ?? list.isOptIn },
      )
      if (added === undefined) throw unknownList(list.address, 'plain')
      if (added === null) throw alreadyMember(address.address)
      if (added === 'over') throw tooManyMails(cause)
      return added
    },
    async updateMember(
      list: List,
      memberName: string,
      listName: string,
      fields: MemberFields,
      cause: Cause,
    ): Promise<Member> {
      const key = keyOf(memberName)
      const moved = fields.address === undefined ? null : addressOf(fields.address)
      const updated = await lists.changeMembers<Member | 'exists' | 'over' | null>(
        list.id,
        moved ? [key, moved.key] : [key],
        (now, present, mailedAt) => {
          const before = present.get(key)
          if (!before) return { change: null, result: null }
          const isMoved = moved !== null && moved.key !== key
          if (isMoved && present.has(moved.key)) return { change: null, result: 'exists' }
          const row = mergedMember(now, moved, before, fields, cause, mailedAt)
          if (isOver(now, isMoved ? undefined : before, row, cause)) return { change: null, result: 'over' }
          const remove = isMoved ? [key] : []
          return { change: { write: [row], remove, added: 0, cause }, result: memberOfRow(row) }
        },
        { mails: moved !== null || (fields.confirm ?? list.isOptIn) },
      )
      if (updated === 'exists') throw alreadyMember(moved?.address ?? '')
      if (updated === 'over') throw tooManyMails(cause)
      if (!updated) throw unknownMember(memberName, listName)
      return updated
    },
    removeMember: removeOne,
  }
}

/** The result of following a list link. */
type Subscription = 'changed' | 'unchanged' | 'unknown'

/**
 * Unsubscribes one member, for links and mail to the unsubscribe address. `also` (its event) is written in the same
 * transaction, only if something changed: a second click is `unchanged`.
 */
export async function unsubscribeMember(
  lists: ListStore,
  listId: string,
  address: string,
  cause: Cause,
  also: (list: List, member: Member) => readonly Statement[] = () => [],
): Promise<Subscription> {
  const key = keyOf(address)
  const result = await lists.changeMembers<Subscription>(listId, [key], (list, present) => {
    const before = present.get(key)
    if (!before) return { change: null, result: 'unknown' }
    if (before.subscribed === 0) return { change: null, result: 'unchanged' }
    const row: ListMemberRow = { ...before, subscribed: 0 }
    return {
      change: { write: [row], added: 0, also: also(list, memberOfRow(row)), cause },
      result: 'changed',
    }
  })
  return result ?? 'unknown'
}

/** A List-Id that was the default follows the new address. */
function changedColumns(list: List, given: ListFields, address: ReadAddress | null): Partial<ListRow> {
  const followsAddress = address !== null && list.headerId === defaultHeaderId(list.address)
  const headerId =
    given.headerId !== undefined
      ? readHeaderId(given.headerId)
      : followsAddress
        ? defaultHeaderId(address.address)
        : undefined
  const name = given.name ?? (list.name === '' ? address?.name : undefined)
  return {
    ...(address && {
      address: address.address,
      address_key: address.key,
      domain_name: address.domain,
    }),
    ...(headerId !== undefined && { header_id: headerId, header_key: headerId.toLowerCase() }),
    ...(name !== undefined && { name }),
    ...(given.description !== undefined && { description: given.description }),
    ...(given.accessLevel && { access_level: given.accessLevel }),
    ...(given.replyPreference && { reply_preference: given.replyPreference }),
    ...(given.title !== undefined && { title: given.title }),
    ...(given.language && { language: given.language }),
    ...(given.isOptIn !== undefined && { is_opt_in: given.isOptIn ? 1 : 0 }),
    ...(given.isFormOpen !== undefined && { is_form_open: given.isFormOpen ? 1 : 0 }),
    ...(given.formRedirect !== undefined && { form_redirect: given.formRedirect }),
    ...(given.confirmDays !== undefined && { confirm_days: given.confirmDays }),
    ...(given.pageTemplate !== undefined && { page_template: given.pageTemplate }),
    ...(given.confirmTemplate !== undefined && { confirm_template: given.confirmTemplate }),
  }
}

function addressOf(text: string): ReadAddress {
  const address = readAddress(text)
  if (!address) throw new BadRequest(INVALID_ADDRESS)
  return address
}

/**
 * The existing row with the given fields; a null `address` keeps the old one. A new address has not agreed to anything, so
 * a member that moves there in a list that asks, or before it has confirmed, is asked again.
 */
function mergedMember(
  list: List,
  address: ReadAddress | null,
  before: ListMemberRow | undefined,
  fields: MemberFields,
  cause: Cause,
  mailedAt: ReadonlyMap<string, number>,
): ListMemberRow {
  const key = address?.key ?? before?.address_key ?? ''
  const isMoved = before !== undefined && before.address_key !== key
  const wasPending = before !== undefined && before.pending_id !== null
  const confirm = fields.confirm ?? (list.isOptIn || (isMoved && wasPending && fields.subscribed !== true))
  const isKept = before !== undefined && fields.confirm !== true && !isMoved
  const kept = isKept ? undefined : before === undefined || wasPending || before.subscribed === 1
  const subscribed = fields.subscribed ?? (fields.confirm === true ? true : kept)
  return {
    list_id: list.id,
    address_key: key,
    address: address?.address ?? before?.address ?? '',
    name: fields.name ?? (before?.name || address?.name || ''),
    vars_json: fields.vars ? JSON.stringify(fields.vars) : (before?.vars_json ?? '{}'),
    ...standingOf(list, isMoved ? undefined : before, { subscribed, confirm }, cause, mailedAt.get(key)),
    by_link: 0,
  }
}

const isOver = (list: List, before: ListMemberRow | undefined, row: ListMemberRow, { at }: Cause) =>
  asksForMail(before, row) && mailsLeft(list, at) === 0

const tooManyMails = ({ at }: Cause) => new TooManyRequests((DAY_MS - (at % DAY_MS)) / SECOND_MS)

async function reread(lists: ListStore, id: string, name: string): Promise<List> {
  const list = await lists.byId(id)
  if (!list) throw unknownList(name, 'plain')
  return list
}

const unknownList = (name: string, form: 'plain' | 'quoted') =>
  new NotFound(`Mailing list ${form === 'quoted' ? `'${name}'` : name} not found`)
const unknownMember = (member: string, list: string) =>
  new NotFound(`Member ${member} of mailing list ${list} not found`)
const alreadyMember = (address: string) => new BadRequest(`Address already exists '${address}'`)
