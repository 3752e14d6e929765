/** The operations on mailing lists and members (mailing-lists.md). */
import { type Answer, followJson, getJson, sendForm, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import type { ImportRecord } from '../import/records.ts'

export const ACCESS_LEVELS = ['readonly', 'members', 'everyone'] as const
export const REPLY_PREFERENCES = ['list', 'sender'] as const

export type MailingList = Api.MailingList

export type Member = Api.MailingListMember

export type ListConsent = Api.ListConsent

export const LANGUAGES: readonly (readonly [ListConsent['language'], string])[] = [
  ['en', 'English'],
  ['de', 'Deutsch'],
  ['fr', 'Français'],
  ['es', 'Español'],
  ['it', 'Italiano'],
  ['nl', 'Nederlands'],
  ['pl', 'Polski'],
  ['pt', 'Português'],
]

/** Prefix of every query about lists. */
export const LISTS_KEY = 'mailing-lists'

export const PAGE_SIZE = 50 // about three screens

const segment = encodeURIComponent
const listPath = (list: string) => `/v3/lists/${segment(list)}` as const
const memberPath = (list: string, member: string) => `${listPath(list)}/members/${segment(member)}` as const

export const listsPath = (q: string, skip: number) => {
  const query = new URLSearchParams({ limit: String(PAGE_SIZE), skip: String(skip) })
  if (q !== '') query.set('address', q)
  return `/v3/lists?${query}`
}

export const membersPath = (list: string, filter: { q: string; subscribed: string }) => {
  const query = new URLSearchParams({ limit: String(PAGE_SIZE) })
  if (filter.q !== '') query.set('address', filter.q)
  if (filter.subscribed !== '') query.set('pending', filter.subscribed === 'pending' ? 'yes' : 'no')
  if (filter.subscribed === 'yes' || filter.subscribed === 'no') query.set('subscribed', filter.subscribed)
  return `${listPath(list)}/members?${query}`
}

export const readLists = (path: string, signal?: AbortSignal) => followJson<'GET /v3/lists'>(path, signal)

export const readList = (list: string, signal?: AbortSignal) => getJson(listPath(list), signal)

export const readMembers = (path: string, signal?: AbortSignal) =>
  followJson<'GET /v3/lists/{}/members'>(path, signal)

export const createList = (fields: Readonly<Record<string, string>>) => sendForm('POST', '/v3/lists', fields)

export const updateList = (list: string, fields: Readonly<Record<string, string>>) =>
  sendForm('PUT', listPath(list), fields)

const consentPath = (list: string) => `/sendwright/v1/lists/${segment(list)}/consent` as const

export const readConsent = (list: string, signal?: AbortSignal) => getJson(consentPath(list), signal)

export const updateConsent = (list: string, fields: Readonly<Record<string, string>>) =>
  sendForm('PUT', consentPath(list), fields)

export const deleteList = (list: string) => sendJson('DELETE', listPath(list))

/** A member that waits for its confirmation goes on waiting, unless it is subscribed here. */
const memberFields = ({ address, name, vars, subscribed, pending }: Member) => ({
  address,
  name,
  vars: JSON.stringify(vars),
  ...(!(pending && !subscribed) && { subscribed: subscribed ? 'yes' : 'no' }),
})

/** `confirm`: it is asked first; undefined: as the list's setting says. */
export const addMember = (list: string, member: Member, confirm?: 'yes' | 'no') =>
  sendForm('POST', `${listPath(list)}/members`, { ...memberFields(member), ...(confirm && { confirm }) })

/** `address`: the one that the member has now. */
export const updateMember = (list: string, address: string, member: Member) =>
  sendForm('PUT', memberPath(list, address), memberFields(member))

export const deleteMember = (list: string, address: string) => sendJson('DELETE', memberPath(list, address))

/** Existing members are updated. Up to 100 are stored before the answer. */
export const uploadMembers = (list: string, records: readonly ImportRecord[]): Promise<Answer<unknown>> =>
  sendForm('POST', `${listPath(list)}/members.json`, {
    members: JSON.stringify(records),
    upsert: 'yes',
  })
