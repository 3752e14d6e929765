/** The operations on mailing lists and members (mailing-lists.md). */
import { type Answer, getJson, sendForm, sendJson } from '../../api.ts'
import type { ImportRecord } from '../import/records.ts'

export const ACCESS_LEVELS = ['readonly', 'members', 'everyone'] as const
export const REPLY_PREFERENCES = ['list', 'sender'] as const

export interface MailingList {
  address: string
  name: string
  description: string
  access_level: (typeof ACCESS_LEVELS)[number]
  reply_preference: (typeof REPLY_PREFERENCES)[number] | null
  created_at: string
  members_count: number
}

export interface Member {
  address: string
  name: string
  vars: Record<string, unknown>
  subscribed: boolean
}

/** Prefix of every query about lists. */
export const LISTS_KEY = 'mailing-lists'

export const PAGE_SIZE = 50 // about three screens

const segment = encodeURIComponent
const listPath = (list: string) => `/v3/lists/${segment(list)}`
const memberPath = (list: string, member: string) => `${listPath(list)}/members/${segment(member)}`

export const listsPath = (q: string, skip: number) => {
  const query = new URLSearchParams({ limit: String(PAGE_SIZE), skip: String(skip) })
  if (q !== '') query.set('address', q)
  return `/v3/lists?${query}`
}

export const membersPath = (list: string, filter: { q: string; subscribed: string }) => {
  const query = new URLSearchParams({ limit: String(PAGE_SIZE) })
  if (filter.q !== '') query.set('address', filter.q)
  if (filter.subscribed !== '') query.set('subscribed', filter.subscribed)
  return `${listPath(list)}/members?${query}`
}

export const readLists = (path: string, signal?: AbortSignal) =>
  getJson<{ total_count: number; items: MailingList[] }>(path, signal)

export const readList = (list: string, signal?: AbortSignal) =>
  getJson<{ list: MailingList }>(listPath(list), signal)

export const readMembers = (path: string, signal?: AbortSignal) =>
  getJson<{ total_count: number; items: Member[] }>(path, signal)

export const createList = (fields: Readonly<Record<string, string>>) =>
  sendForm<{ list: MailingList }>('POST', '/v3/lists', fields)

export const updateList = (list: string, fields: Readonly<Record<string, string>>) =>
  sendForm<{ list: MailingList }>('PUT', listPath(list), fields)

export const deleteList = (list: string) => sendJson<{ message: string }>('DELETE', listPath(list))

const memberFields = ({ address, name, vars, subscribed }: Member) => ({
  address,
  name,
  vars: JSON.stringify(vars),
  subscribed: subscribed ? 'yes' : 'no',
})

export const addMember = (list: string, member: Member) =>
  sendForm<{ message: string }>('POST', `${listPath(list)}/members`, memberFields(member))

/** `address`: the one that the member has now. */
export const updateMember = (list: string, address: string, member: Member) =>
  sendForm<{ message: string }>('PUT', memberPath(list, address), memberFields(member))

export const deleteMember = (list: string, address: string) =>
  sendJson<{ message: string }>('DELETE', memberPath(list, address))

/** Existing members are updated. Up to 100 are stored before the answer. */
export const uploadMembers = (list: string, records: readonly ImportRecord[]): Promise<Answer<unknown>> =>
  sendForm<{ message: string }>('POST', `${listPath(list)}/members.json`, {
    members: JSON.stringify(records),
    upsert: 'yes',
  })
