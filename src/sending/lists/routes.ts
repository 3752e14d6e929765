/** Mailing lists and members over HTTP (mailing-lists.md L1 to L14). */

import { BadRequest } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import { formatRfc2822Unknown } from '../../base/time/dates.ts'
import { quotable } from '../../base/values.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  flagParam,
  givenParam,
  type InputOf,
  limitParam,
  parsedParam,
  skipParam,
  textParam,
  wordParam,
} from '../../platform/http/request/inputs.ts'
import { pageName, pivotPaging } from '../../platform/http/request/paging.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import { type Chunk, chunkSize, readChunks } from '../../protocols/message/mime-message.ts'
import {
  CSV_BYTES_MAX,
  type Entry,
  readCsvEntries,
  readJsonEntries,
  SYNCHRONOUS_ENTRIES_MAX,
} from './bulk.ts'
import type { Cause } from './consent.ts'
import {
  ACCESS_LEVELS,
  type AccessLevel,
  type List,
  REPLY_PREFERENCES,
  type ReplyPreference,
  readVars,
} from './list.ts'
import type { UploadFacts } from './list-events.ts'
import type { ListFields, Lists } from './service.ts'
import {
  type LIST,
  LIST_ANSWER,
  LIST_CHANGED,
  LIST_PAGE,
  LIST_REMOVED,
  LISTS,
  MEMBER_ANSWER,
  MEMBER_CHANGED,
  MEMBER_PAGE,
  MEMBER_REMOVED,
  MEMBERS,
  UPLOAD,
  type Upload,
} from './shapes.ts'
import { keyOf, type ListStore } from './store.ts'
import { newTaskId, type UploadTasks } from './upload-tasks.ts'

export interface ListRouteParts {
  lists: Lists
  store: ListStore
  uploads: UploadTasks
  /** A background upload was stored. */
  wakeUploads(): void
  /** A member may wait for its confirmation mail. */
  wakeMails(): void
  clock: Clock
  /** The public address, without a final slash. */
  baseUrl: string
}

const api = operationsOf({ tag: 'Mailing lists', auth: { area: 'lists' }, rateLimit: 'lists' })

/** Room for a file far over its own limit, so that it gets the contract's 400 instead of a 413. */
const CSV_BODY_LIMIT = {
  bytes: 26 * 1024 * 1024,
  message: 'CSV file is too big, max allowed size is 5 MB',
}

const PAGE_MAX = 100
const LIMIT = limitParam(PAGE_MAX, PAGE_MAX, { above: 'cut' })
const NO_ADDRESS = { required: true, missing: "Parameter 'address' is missing" } as const

const LIST_PARAMS = {
  name: textParam('Display name'),
  description: givenParam('What the list is for'),
  access_level: wordParam('Who may post; default readonly', accessLevel, { values: ACCESS_LEVELS }),
  reply_preference: wordParam(
    'Where replies go, default list; readonly lists always act as sender',
    replyPreference,
    { values: REPLY_PREFERENCES },
  ),
  reply_reference: wordParam('The same as reply_preference, which some clients send', replyPreference),
}
const ADDRESS_FILTER = wordParam('Only the one of this address', keyOf)
const PENDING_FILTER = flagParam('Only members that have, or have not, yet to confirm')
const SUBSCRIBED_FILTER = flagParam('Only members that are, or are not, subscribed')
const PAGE_PARAMS = {
  limit: LIMIT,
  page: parsedParam('first, last, next or previous; default first', pageName),
  address: textParam('Pivot: the address before or after the page'),
}
const MEMBER_PARAMS = {
  name: textParam('Name of the member'),
  vars: parsedParam('Object of variables for posts', givenVars, { type: 'json' }),
  subscribed: flagParam('Gets copies; default true for new members'),
  confirm: flagParam('Ask it before it is subscribed; default: the setting of the list'),
}
const UPSERT = flagParam('Update members that exist', { default: false })

export function listRoutes(parts: ListRouteParts): Operation[] {
  return [...listOperations(parts), ...memberOperations(parts), ...bulkOperations(parts)]
}

function listOperations({ lists, store, baseUrl }: ListRouteParts): Operation[] {
  return [
    api.post('/v3/lists', {
      id: 'createList',
      audit: { subject: ['address'], given: ['access_level', 'reply_preference'] },
      summary: 'Create a mailing list',
      params: {
        address: textParam('Address of the list, in a domain of the account', NO_ADDRESS),
        ...LIST_PARAMS,
      },
      answers: { 200: LIST_CHANGED },
      async handler({ input, caller }) {
        const { address, ...fields } = input()
        const list = await lists.create(caller.accountId, { ...listFields(fields), address })
        return { list: listView(list), message: 'Mailing list has been created' }
      },
    }),
    api.get('/v3/lists', {
      id: 'listLists',
      summary: 'List mailing lists',
      params: { limit: LIMIT, skip: skipParam(), address: ADDRESS_FILTER },
      answers: { 200: LISTS },
      async handler({ input, caller }) {
        const { limit, skip, address: key } = input()
        const found = await store.find(caller.accountId, key, limit, skip)
        return { total_count: found.total, items: found.items.map(listView) }
      },
    }),
    api.get('/v3/lists/pages', {
      id: 'pageLists',
      summary: 'List mailing lists page by page',
      params: PAGE_PARAMS,
      answers: { 200: LIST_PAGE },
      async handler({ input, caller }) {
        const query = pageQuery(input())
        const items = await store.page(caller.accountId, query)
        return { paging: pagingOf(baseUrl, '/v3/lists/pages', query, items, {}), items: items.map(listView) }
      },
    }),
    api.get('/v3/lists/{list}', {
      id: 'readList',
      summary: 'Read a mailing list',
      answers: { 200: LIST_ANSWER },
      async handler({ path, caller }) {
        return { list: listView(await lists.own(caller.accountId, path.list)) }
      },
    }),
    api.put('/v3/lists/{list}', {
      id: 'updateList',
      audit: { given: ['address', 'access_level', 'reply_preference', 'list_id'] },
      summary: 'Update a mailing list',
      params: {
        address: textParam('New address; members stay'),
        ...LIST_PARAMS,
        list_id: textParam('Value of the List-Id header of posts'),
        'list-id': textParam('The same as list_id'),
      },
      answers: { 200: LIST_CHANGED },
      async handler({ input, path, caller }) {
        const list = await lists.own(caller.accountId, path.list)
        const { address, list_id, 'list-id': alias, ...fields } = input()
        const changes = { ...listFields(fields), address, headerId: list_id ?? alias }
        const updated = await lists.update(list, changes)
        return { message: 'Mailing list has been updated', list: listView(updated) }
      },
    }),
    api.delete('/v3/lists/{list}', {
      id: 'deleteList',
      summary: 'Delete a mailing list and its members',
      answers: { 200: LIST_REMOVED },
      async handler({ path, caller }) {
        const list = await lists.own(caller.accountId, path.list)
        await lists.remove(list)
        return { address: list.address, message: 'Mailing list has been removed' }
      },
    }),
  ]
}

function memberOperations({ lists, store, wakeMails, clock, baseUrl }: ListRouteParts): Operation[] {
  return [
    api.get('/v3/lists/{list}/members', {
      id: 'listMembers',
      summary: 'List members',
      params: {
        ...{ address: ADDRESS_FILTER, subscribed: SUBSCRIBED_FILTER, pending: PENDING_FILTER },
        ...{ limit: LIMIT, skip: skipParam() },
      },
      answers: { 200: MEMBERS },
      async handler({ input, path, caller }) {
        const list = await lists.own(caller.accountId, path.list)
        const { address: key, subscribed, pending, limit, skip } = input()
        const found = await store.findMembers(list.id, { key, subscribed, pending }, limit, skip)
        return { total_count: found.total, items: found.items }
      },
    }),
    api.get('/v3/lists/{list}/members/pages', {
      id: 'pageMembers',
      summary: 'List members page by page',
      params: { subscribed: SUBSCRIBED_FILTER, pending: PENDING_FILTER, ...PAGE_PARAMS },
      answers: { 200: MEMBER_PAGE },
      async handler({ input, path, caller }) {
        const list = await lists.own(caller.accountId, path.list)
        const { subscribed, pending, ...page } = input()
        const query = pageQuery(page)
        const items = await store.pageMembers(list.id, { subscribed, pending }, query)
        const pagesPath = `/v3/lists/${encodeURIComponent(list.address)}/members/pages`
        const carry = { subscribed: wordOf(subscribed), pending: wordOf(pending) }
        return { paging: pagingOf(baseUrl, pagesPath, query, items, carry), items }
      },
    }),
    api.post('/v3/lists/{list}/members', {
      id: 'addMember',
      audit: { given: ['address'] },
      summary: 'Add a member',
      params: { address: textParam('Address of the member', NO_ADDRESS), ...MEMBER_PARAMS, upsert: UPSERT },
      answers: { 200: MEMBER_CHANGED },
      async handler({ input, path, caller }) {
        const list = await lists.own(caller.accountId, path.list)
        const { upsert, ...fields } = input()
        const member = await lists.addMember(list, fields, upsert, changedBy(caller, clock))
        wakeMails()
        return { member, message: 'Mailing list member has been created' }
      },
    }),
    api.get('/v3/lists/{list}/members/{member}', {
      id: 'readMember',
      summary: 'Read a member',
      answers: { 200: MEMBER_ANSWER },
      async handler({ path, caller }) {
        const list = await lists.own(caller.accountId, path.list)
        const member = await lists.member(list, path.member, path.list)
        return { ...member, member }
      },
    }),
    api.put('/v3/lists/{list}/members/{member}', {
      id: 'updateMember',
      audit: { given: ['address'] },
      summary: 'Update a member',
      params: { address: textParam('New address'), ...MEMBER_PARAMS },
      answers: { 200: MEMBER_CHANGED },
      async handler({ input, path, caller }) {
        const list = await lists.own(caller.accountId, path.list)
        const cause = changedBy(caller, clock)
        const member = await lists.updateMember(list, path.member, path.list, input(), cause)
        wakeMails()
        return { member, message: 'Mailing list member has been updated' }
      },
    }),
    api.delete('/v3/lists/{list}/members/{member}', {
      id: 'deleteMember',
      summary: 'Delete a member',
      answers: { 200: MEMBER_REMOVED },
      async handler({ path, caller }) {
        const list = await lists.own(caller.accountId, path.list)
        const { address } = await lists.removeMember(list, path.member, path.list, changedBy(caller, clock))
        return { member: { address }, message: 'Mailing list member has been deleted' }
      },
    }),
  ]
}

function bulkOperations({ lists, uploads, wakeUploads, wakeMails, clock }: ListRouteParts): Operation[] {
  async function upload(list: List, entries: readonly Entry[], facts: UploadFacts): Promise<Upload> {
    const response = (now: List, message: string) => ({
      list: listView(now),
      'task-id': facts.taskId,
      message,
    })
    if (facts.format === 'json' && entries.length <= SYNCHRONOUS_ENTRIES_MAX) {
      const updated = (await uploads.apply(list, entries, facts)) ?? list
      wakeMails()
      return response(updated, 'Mailing list has been updated')
    }
    await uploads.add(list, entries, facts)
    wakeUploads()
    return response(list, 'Mailing list upload started in background')
  }
  return [
    api.post('/v3/lists/{list}/members.json', {
      id: 'addMembersJson',
      summary: 'Add up to 1,000 members as JSON; over 100 in the background',
      params: {
        members: parsedParam(
          'Array of addresses and members',
          (params, name) => readJsonEntries(params.value(name)),
          { type: 'json', required: true },
        ),
        upsert: UPSERT,
        confirm: MEMBER_PARAMS.confirm,
      },
      answers: { 200: UPLOAD },
      async handler({ input, path, caller }) {
        const list = await lists.own(caller.accountId, path.list, 'quoted')
        const { members, upsert: isUpsert, confirm } = input()
        return upload(list, members, {
          taskId: newTaskId(clock.now()),
          ...{ isUpsert, format: 'json', subscribed: true },
          ...{ isConfirmed: confirm ?? list.isOptIn, calledBy: callerId(caller) },
        })
      },
    }),
    api.post('/v3/lists/{list}/members.csv', {
      id: 'addMembersCsv',
      summary: 'Add up to 1,000 members as a CSV file, in the background',
      description: 'A file with rows that cannot be read is refused as a whole; the answer names the rows.',
      bodyLimit: CSV_BODY_LIMIT,
      params: {
        subscribed: flagParam('For rows without this column', { default: true }),
        upsert: UPSERT,
        confirm: MEMBER_PARAMS.confirm,
        members: parsedParam('CSV, UTF-8, with or without header row', csvFile, {
          type: 'file',
          required: true,
        }),
      },
      answers: { 200: UPLOAD },
      async handler({ input, path, caller }) {
        const list = await lists.own(caller.accountId, path.list, 'quoted')
        const { members, subscribed, upsert: isUpsert, confirm } = input()
        const facts = {
          taskId: newTaskId(clock.now()),
          format: 'csv' as const,
          ...{ isUpsert, subscribed },
          ...{ isConfirmed: confirm ?? list.isOptIn, calledBy: callerId(caller) },
        }
        return upload(list, await readCsvEntries(readChunks([members])), facts)
      },
    }),
  ]
}

const callerId = ({ userId, keyId }: Caller) => userId ?? keyId

/** Who changes a member by a call, for the consent trail. */
const changedBy = (caller: Caller, clock: Clock): Cause => ({
  source: caller.kind === 'session' ? 'dashboard' : 'api',
  at: clock.now(),
  calledBy: callerId(caller),
})

function listView(list: List): Of<typeof LIST> {
  return {
    address: list.address,
    name: list.name,
    description: list.description,
    access_level: list.accessLevel,
    reply_preference: list.replyPreference,
    created_at: formatRfc2822Unknown(new Date(list.createdAt)),
    members_count: list.membersCount,
  }
}

/** A file part; a plain field with the text is accepted as well. */
function csvFile(params: Params, name: string): Chunk {
  const [file] = params.files(name)
  const text = params.text(name)
  const chunk = file?.chunk ?? (text === undefined ? null : Buffer.from(text))
  if (chunk === null) throw new BadRequest("Parameter 'members' is missing")
  if (chunkSize(chunk) > CSV_BYTES_MAX) throw new BadRequest('CSV file is too big, max allowed size is 5 MB')
  return chunk
}

const listFields = (given: InputOf<typeof LIST_PARAMS>): ListFields => ({
  name: given.name,
  description: given.description,
  accessLevel: given.access_level,
  replyPreference: given.reply_preference ?? given.reply_reference,
})

function accessLevel(text: string): AccessLevel {
  const level = ACCESS_LEVELS.find((known) => known === text)
  if (level !== undefined) return level
  throw new BadRequest(
    `Invalid access level '${quotable(text)}'. It can be any of: 'readonly', 'members', 'everyone'.`,
  )
}

function replyPreference(text: string): ReplyPreference {
  const preference = REPLY_PREFERENCES.find((known) => known === text)
  if (preference !== undefined) return preference
  throw new BadRequest(`Invalid reply preference '${quotable(text)}'. It can be any of: 'sender', 'list'`)
}

/** One client sends the JSON text `null` for every member without variables. */
const isAbsent = (vars: unknown): boolean =>
  vars === undefined || vars === null || (typeof vars === 'string' && /^\s*(?:null\s*)?$/.test(vars))

function givenVars(params: Params, name: string): Record<string, unknown> | undefined {
  const vars = params.value(name)
  return isAbsent(vars) ? undefined : readVars(vars)
}

const wordOf = (flag: boolean | undefined) => (flag === undefined ? undefined : flag ? 'yes' : 'no')

const pageQuery = ({ limit, page, address }: InputOf<typeof PAGE_PARAMS>) => ({
  page,
  pivot: address === undefined ? null : keyOf(address),
  given: address,
  limit,
})

function pagingOf(
  baseUrl: string,
  path: string,
  query: { given: string | undefined; limit: number },
  items: readonly { address: string }[],
  carry: Readonly<Record<string, string | undefined>>,
) {
  return pivotPaging({
    baseUrl,
    path,
    pivotName: 'address',
    firstItem: items[0]?.address,
    lastItem: items.at(-1)?.address,
    pivot: query.given,
    carry: { ...carry, limit: query.limit },
    namesFirst: true,
  })
}
