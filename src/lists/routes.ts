/** Mailing lists and members over HTTP (mailing-lists.md L1 to L14). */
import type { Clock } from '../base/clock.ts'
import { BadRequest } from '../base/errors.ts'
import { type Chunk, chunkSize, readChunks } from '../base/mime-message.ts'
import { quotable } from '../base/values.ts'
import { type Operation, operation, type ParamDoc } from '../http/operation.ts'
import { limitAndSkip, limitOf, type PageName, pageName, pivotPaging } from '../http/paging.ts'
import type { Params } from '../http/params.ts'
import {
  CSV_BYTES_MAX,
  type Entry,
  readCsvEntries,
  readJsonEntries,
  SYNCHRONOUS_ENTRIES_MAX,
} from './bulk.ts'
import {
  ACCESS_LEVELS,
  type AccessLevel,
  type List,
  listView,
  memberView,
  REPLY_PREFERENCES,
  type ReplyPreference,
  readVars,
} from './list.ts'
import type { UploadFacts } from './list-events.ts'
import type { ListFields, Lists, MemberFields } from './service.ts'
import { keyOf, type ListStore } from './store.ts'
import { newTaskId, type UploadTasks } from './upload-tasks.ts'

export interface ListRouteParts {
  lists: Lists
  store: ListStore
  uploads: UploadTasks
  /** A background upload was stored. */
  wakeUploads(): void
  clock: Clock
  /** The public address, without a final slash. */
  baseUrl: string
}

const LIMIT = { default: 100, max: 100, above: 'cut' } as const
const COMMON = { tag: 'Mailing lists', rateLimit: 'lists' } as const
const READ = { area: 'lists', access: 'read' } as const
const WRITE = { area: 'lists', access: 'write' } as const

/** Room for a file far over its own limit, so that it gets the contract's 400 instead of a 413. */
const CSV_BODY_LIMIT = {
  bytes: 26 * 1024 * 1024,
  message: 'CSV file is too big, max allowed size is 5 MB',
}

const LIST_PARAMS: readonly ParamDoc[] = [
  { name: 'name', type: 'string', description: 'Display name' },
  { name: 'description', type: 'string', description: 'What the list is for' },
  {
    name: 'access_level',
    type: 'string',
    description: 'Who may post',
    values: ACCESS_LEVELS,
    default: 'readonly',
  },
  {
    name: 'reply_preference',
    type: 'string',
    description: 'Where replies go; readonly lists always act as sender',
    values: REPLY_PREFERENCES,
    default: 'list',
  },
  { name: 'reply_reference', type: 'string', description: 'The same as reply_preference' },
  { name: 'list_id', type: 'string', description: 'Value of the List-Id header of posts' },
  { name: 'list-id', type: 'string', description: 'The same as list_id' },
]
const LIMIT_PARAM: ParamDoc = {
  name: 'limit',
  type: 'integer',
  description: '1 to 100; more is cut',
  default: 100,
}
const SKIP_PARAM: ParamDoc = {
  name: 'skip',
  type: 'integer',
  description: 'Number of items to skip',
  default: 0,
}
const PAGE_PARAMS: readonly ParamDoc[] = [
  LIMIT_PARAM,
  { name: 'page', type: 'string', description: 'first, last, next or previous', default: 'first' },
  { name: 'address', type: 'string', description: 'Pivot: the address before or after the page' },
]
const SUBSCRIBED_FILTER: ParamDoc = {
  name: 'subscribed',
  type: 'boolean',
  description: 'Only members that are, or are not, subscribed',
}
const MEMBER_PARAMS: readonly ParamDoc[] = [
  { name: 'name', type: 'string', description: 'Name of the member' },
  { name: 'vars', type: 'json', description: 'Object of variables for posts' },
  { name: 'subscribed', type: 'boolean', description: 'Gets copies; default true for new members' },
]
const UPSERT: ParamDoc = {
  name: 'upsert',
  type: 'boolean',
  description: 'Update members that exist',
  default: false,
}

export function listRoutes(parts: ListRouteParts): Operation[] {
  return [...listOperations(parts), ...memberOperations(parts), ...bulkOperations(parts)]
}

function listOperations({ lists, store, baseUrl }: ListRouteParts): Operation[] {
  return [
    operation({
      ...COMMON,
      method: 'POST',
      path: '/v3/lists',
      id: 'createList',
      audit: { subject: ['address'], given: ['access_level', 'reply_preference'] },
      summary: 'Create a mailing list',
      auth: WRITE,
      params: [
        {
          name: 'address',
          type: 'string',
          description: 'Address of the list, in a domain of the account',
          required: true,
        },
        ...LIST_PARAMS,
      ],
      responses: { 200: { description: 'The list' } },
      async handler({ params, caller }) {
        const list = await lists.create(caller.accountId, listFields(params))
        return { list: listView(list), message: 'Mailing list has been created' }
      },
    }),
    operation({
      ...COMMON,
      method: 'GET',
      path: '/v3/lists',
      id: 'listLists',
      summary: 'List mailing lists',
      auth: READ,
      params: [
        LIMIT_PARAM,
        SKIP_PARAM,
        { name: 'address', type: 'string', description: 'Only the list of this address' },
      ],
      responses: { 200: { description: 'Lists by address' } },
      async handler({ params, caller }) {
        const { limit, skip } = limitAndSkip(params, LIMIT)
        const found = await store.find(caller.accountId, keyParam(params), limit, skip)
        return { total_count: found.total, items: found.items.map(listView) }
      },
    }),
    operation({
      ...COMMON,
      method: 'GET',
      path: '/v3/lists/pages',
      id: 'pageLists',
      summary: 'List mailing lists page by page',
      auth: READ,
      params: PAGE_PARAMS,
      responses: { 200: { description: 'A page of lists by address' } },
      async handler({ params, caller }) {
        const query = pageParams(params)
        const items = await store.page(caller.accountId, query)
        return { paging: pagingOf(baseUrl, '/v3/lists/pages', query, items, {}), items: items.map(listView) }
      },
    }),
    operation({
      ...COMMON,
      method: 'GET',
      path: '/v3/lists/{list}',
      id: 'readList',
      summary: 'Read a mailing list',
      auth: READ,
      params: [],
      responses: { 200: { description: 'The list' } },
      async handler({ path, caller }) {
        return { list: listView(await lists.own(caller.accountId, path.list)) }
      },
    }),
    operation({
      ...COMMON,
      method: 'PUT',
      path: '/v3/lists/{list}',
      id: 'updateList',
      audit: { given: ['address', 'access_level', 'reply_preference', 'list_id'] },
      summary: 'Update a mailing list',
      auth: WRITE,
      params: [{ name: 'address', type: 'string', description: 'New address; members stay' }, ...LIST_PARAMS],
      responses: { 200: { description: 'The list as it is now' } },
      async handler({ params, path, caller }) {
        const list = await lists.own(caller.accountId, path.list)
        const updated = await lists.update(list, listFields(params))
        return { message: 'Mailing list has been updated', list: listView(updated) }
      },
    }),
    operation({
      ...COMMON,
      method: 'DELETE',
      path: '/v3/lists/{list}',
      id: 'deleteList',
      summary: 'Delete a mailing list and its members',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'The list is gone' } },
      async handler({ path, caller }) {
        const list = await lists.own(caller.accountId, path.list)
        await lists.remove(list)
        return { address: list.address, message: 'Mailing list has been removed' }
      },
    }),
  ]
}

function memberOperations({ lists, store, baseUrl }: ListRouteParts): Operation[] {
  return [
    operation({
      ...COMMON,
      method: 'GET',
      path: '/v3/lists/{list}/members',
      id: 'listMembers',
      summary: 'List members',
      auth: READ,
      params: [
        { name: 'address', type: 'string', description: 'Only the member of this address' },
        SUBSCRIBED_FILTER,
        LIMIT_PARAM,
        SKIP_PARAM,
      ],
      responses: { 200: { description: 'Members by address' } },
      async handler({ params, path, caller }) {
        const list = await lists.own(caller.accountId, path.list)
        const { limit, skip } = limitAndSkip(params, LIMIT)
        const filter = { key: keyParam(params), subscribed: params.boolean('subscribed') }
        const found = await store.findMembers(list.id, filter, limit, skip)
        return { total_count: found.total, items: found.items.map(memberView) }
      },
    }),
    operation({
      ...COMMON,
      method: 'GET',
      path: '/v3/lists/{list}/members/pages',
      id: 'pageMembers',
      summary: 'List members page by page',
      auth: READ,
      params: [SUBSCRIBED_FILTER, ...PAGE_PARAMS],
      responses: { 200: { description: 'A page of members by address' } },
      async handler({ params, path, caller }) {
        const list = await lists.own(caller.accountId, path.list)
        const query = pageParams(params)
        const subscribed = params.boolean('subscribed')
        const items = await store.pageMembers(list.id, { subscribed }, query)
        const pagesPath = `/v3/lists/${encodeURIComponent(list.address)}/members/pages`
        const carry = { subscribed: subscribed === undefined ? undefined : subscribed ? 'yes' : 'no' }
        return { paging: pagingOf(baseUrl, pagesPath, query, items, carry), items: items.map(memberView) }
      },
    }),
    operation({
      ...COMMON,
      method: 'POST',
      path: '/v3/lists/{list}/members',
      id: 'addMember',
      audit: { given: ['address'] },
      summary: 'Add a member',
      auth: WRITE,
      params: [
        { name: 'address', type: 'string', description: 'Address of the member', required: true },
        ...MEMBER_PARAMS,
        UPSERT,
      ],
      responses: { 200: { description: 'The member' } },
      async handler({ params, path, caller }) {
        const list = await lists.own(caller.accountId, path.list)
        const upsert = params.boolean('upsert') ?? false
        const member = await lists.addMember(list, memberFields(params), upsert)
        return { member: memberView(member), message: 'Mailing list member has been created' }
      },
    }),
    operation({
      ...COMMON,
      method: 'GET',
      path: '/v3/lists/{list}/members/{member}',
      id: 'readMember',
      summary: 'Read a member',
      auth: READ,
      params: [],
      responses: { 200: { description: 'The member, flat and nested' } },
      async handler({ path, caller }) {
        const list = await lists.own(caller.accountId, path.list)
        const view = memberView(await lists.member(list, path.member, path.list))
        return { ...view, member: view }
      },
    }),
    operation({
      ...COMMON,
      method: 'PUT',
      path: '/v3/lists/{list}/members/{member}',
      id: 'updateMember',
      audit: { given: ['address'] },
      summary: 'Update a member',
      auth: WRITE,
      params: [{ name: 'address', type: 'string', description: 'New address' }, ...MEMBER_PARAMS],
      responses: { 200: { description: 'The member as it is now' } },
      async handler({ params, path, caller }) {
        const list = await lists.own(caller.accountId, path.list)
        const member = await lists.updateMember(list, path.member, path.list, memberFields(params))
        return { member: memberView(member), message: 'Mailing list member has been updated' }
      },
    }),
    operation({
      ...COMMON,
      method: 'DELETE',
      path: '/v3/lists/{list}/members/{member}',
      id: 'deleteMember',
      summary: 'Delete a member',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'The member is gone' } },
      async handler({ path, caller }) {
        const list = await lists.own(caller.accountId, path.list)
        const { address } = await lists.removeMember(list, path.member, path.list)
        return { member: { address }, message: 'Mailing list member has been deleted' }
      },
    }),
  ]
}

function bulkOperations({ lists, uploads, wakeUploads, clock }: ListRouteParts): Operation[] {
  async function upload(list: List, entries: readonly Entry[], facts: UploadFacts): Promise<object> {
    const response = (now: List, message: string) => ({
      list: listView(now),
      'task-id': facts.taskId,
      message,
    })
    if (facts.format === 'json' && entries.length <= SYNCHRONOUS_ENTRIES_MAX) {
      return response((await uploads.apply(list, entries, facts)) ?? list, 'Mailing list has been updated')
    }
    await uploads.add(list, entries, facts)
    wakeUploads()
    return response(list, 'Mailing list upload started in background')
  }
  const factsOf = (params: Params) => ({
    taskId: newTaskId(clock.now()),
    isUpsert: params.boolean('upsert') ?? false,
  })
  return [
    operation({
      ...COMMON,
      method: 'POST',
      path: '/v3/lists/{list}/members.json',
      id: 'addMembersJson',
      summary: 'Add up to 1,000 members as JSON; over 100 in the background',
      auth: WRITE,
      params: [
        { name: 'members', type: 'json', description: 'Array of addresses and members', required: true },
        UPSERT,
      ],
      responses: { 200: { description: 'The list and the id of the task' } },
      async handler({ params, path, caller }) {
        const list = await lists.own(caller.accountId, path.list, 'quoted')
        const facts: UploadFacts = { ...factsOf(params), format: 'json', subscribed: true }
        return upload(list, readJsonEntries(params.value('members')), facts)
      },
    }),
    operation({
      ...COMMON,
      method: 'POST',
      path: '/v3/lists/{list}/members.csv',
      id: 'addMembersCsv',
      summary: 'Add up to 1,000 members as a CSV file, in the background',
      description: 'A file with rows that cannot be read is refused as a whole; the answer names the rows.',
      auth: WRITE,
      bodyLimit: CSV_BODY_LIMIT,
      params: [
        {
          name: 'members',
          type: 'file',
          description: 'CSV, UTF-8, with or without header row',
          required: true,
        },
        { name: 'subscribed', type: 'boolean', description: 'For rows without this column', default: true },
        UPSERT,
      ],
      responses: { 200: { description: 'The list and the id of the task' } },
      async handler({ params, path, caller }) {
        const list = await lists.own(caller.accountId, path.list, 'quoted')
        const subscribed = params.boolean('subscribed') ?? true
        const facts: UploadFacts = { ...factsOf(params), format: 'csv', subscribed }
        return upload(list, await readCsvEntries(readChunks([csvFile(params)])), facts)
      },
    }),
  ]
}

/** A file part; a plain field with the text is accepted as well. */
function csvFile(params: Params): Chunk {
  const [file] = params.files('members')
  const text = params.text('members')
  const chunk = file?.chunk ?? (text === undefined ? null : Buffer.from(text))
  if (chunk === null) throw new BadRequest("Parameter 'members' is missing")
  if (chunkSize(chunk) > CSV_BYTES_MAX) throw new BadRequest('CSV file is too big, max allowed size is 5 MB')
  return chunk
}

function listFields(params: Params): ListFields {
  return {
    address: params.text('address'),
    name: params.text('name'),
    description: params.given('description'),
    accessLevel: accessLevel(params.text('access_level')),
    replyPreference: replyPreference(params.text('reply_preference') ?? params.text('reply_reference')),
    headerId: params.text('list_id') ?? params.text('list-id'),
  }
}

function accessLevel(text: string | undefined): AccessLevel | undefined {
  const level = ACCESS_LEVELS.find((known) => known === text)
  if (text !== undefined && level === undefined) {
    throw new BadRequest(
      `Invalid access level '${quotable(text)}'. It can be any of: 'readonly', 'members', 'everyone'.`,
    )
  }
  return level
}

function replyPreference(text: string | undefined): ReplyPreference | undefined {
  const preference = REPLY_PREFERENCES.find((known) => known === text)
  if (text !== undefined && preference === undefined) {
    throw new BadRequest(`Invalid reply preference '${quotable(text)}'. It can be any of: 'sender', 'list'`)
  }
  return preference
}

/** One client sends the JSON text `null` for every member without variables. */
const isAbsent = (vars: unknown): boolean =>
  vars === undefined || vars === null || (typeof vars === 'string' && /^\s*(?:null\s*)?$/.test(vars))

function memberFields(params: Params): MemberFields {
  const vars = params.value('vars')
  return {
    address: params.text('address'),
    name: params.text('name'),
    vars: isAbsent(vars) ? undefined : readVars(vars),
    subscribed: params.boolean('subscribed'),
  }
}

function keyParam(params: Params): string | undefined {
  const address = params.text('address')
  return address === undefined ? undefined : keyOf(address)
}

function pageParams(params: Params): {
  page: PageName
  pivot: string | null
  given: string | undefined
  limit: number
} {
  const given = params.text('address')
  return {
    page: pageName(params),
    pivot: given === undefined ? null : keyOf(given),
    given,
    limit: limitOf(params, LIMIT),
  }
}

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
