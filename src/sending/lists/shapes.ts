/** Answers of the operations on mailing lists and their members (mailing-lists.md). */
import {
  anyJson,
  constant,
  flag,
  integer,
  list,
  mailDate,
  map,
  named,
  type Of,
  object,
  oneOf,
  optional,
  text,
} from '../../base/shape.ts'
import { pageOf } from '../../platform/http/request/paging.ts'
import { ACCESS_LEVELS, REPLY_PREFERENCES } from './list.ts'

const MESSAGE = text('What was done')
const TOTAL = integer('How many there are, on all pages')

export const LIST = named('MailingList', 'A mailing list', {
  address: text('Address of the list', { example: 'devs@example.com' }),
  name: text('Display name; may be empty'),
  description: text('What the list is for; may be empty'),
  access_level: oneOf('Who may post', ACCESS_LEVELS),
  reply_preference: oneOf('Where replies go; readonly lists always act as sender', REPLY_PREFERENCES),
  created_at: mailDate('When it was created', { example: 'Sat, 31 Jan 2026 12:00:00 -0000' }),
  members_count: integer('Number of members, unsubscribed ones included'),
})

const MEMBER = named('MailingListMember', 'A member of a mailing list', {
  address: text('Address of the member', { example: 'bob@example.com' }),
  name: text('Name of the member; may be empty'),
  vars: map('Variables for posts', anyJson('Any value'), { example: { age: 26 } }),
  subscribed: flag('The member gets copies'),
  pending: optional(constant('It was asked and has not confirmed yet; absent otherwise', true)),
})

export const LIST_ANSWER = object('The list', { list: LIST })
export const LIST_CHANGED = object('The list as it is now', { message: MESSAGE, list: LIST })
export const LIST_REMOVED = object('The list is gone', { address: LIST.fields.address, message: MESSAGE })
export const LISTS = object('Lists by address', { total_count: TOTAL, items: list('Lists', LIST) })
export const LIST_PAGE = pageOf('MailingListPage', 'A page of lists by address', LIST)

export const MEMBER_ANSWER = object('The member, flat and nested', { ...MEMBER.fields, member: MEMBER })
export const MEMBER_CHANGED = object('The member as it is now', { member: MEMBER, message: MESSAGE })
export const MEMBER_REMOVED = object('The member is gone', {
  member: object('The member', { address: MEMBER.fields.address }),
  message: MESSAGE,
})
export const MEMBERS = object('Members by address', { total_count: TOTAL, items: list('Members', MEMBER) })
export const MEMBER_PAGE = pageOf('MailingListMemberPage', 'A page of members by address', MEMBER)

export type Upload = Of<typeof UPLOAD>
export const UPLOAD = object('The upload is complete, or runs in the background', {
  list: LIST,
  'task-id': text('Identifier of the upload, as in its events'),
  message: text('How far it is', { example: 'Mailing list upload started in background' }),
})
