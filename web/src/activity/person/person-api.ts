/** What is known of one address, and what can be done with it (docs/api/own-operations.md section 16). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { valueOrThrow } from '../../queries.ts'
import { condition, type LogQuery, readLogs } from '../activity-api.ts'

const OWN = '/sendwright/v1/people'
export const PERSON_KEY = 'person'

export type Recipient = Api.Recipient

export const EVENTS_SHOWN = 100 // the most that one page of logs holds
/** Longer than events are kept anywhere. */
const ALL_TIME = '1000d'

const logsOf = (address: string, at: string | undefined): LogQuery =>
  at !== undefined
    ? { pagination: { token: at, limit: EVENTS_SHOWN } }
    : {
        duration: ALL_TIME,
        filter: { AND: [condition('recipient', '=', address)] },
        pagination: { sort: 'timestamp:desc', limit: EVENTS_SHOWN },
      }

/** Events of the address, newest first. `at`: token of a page. */
export const personEventsQuery = (address: string, at: string | undefined) =>
  queryOptions({
    queryKey: [PERSON_KEY, address, 'events', at ?? ''],
    queryFn: async ({ signal }) => valueOrThrow(await readLogs(logsOf(address, at), signal)),
  })

export const recipientQuery = (address: string) =>
  queryOptions({
    queryKey: [PERSON_KEY, address, 'lists'],
    queryFn: async ({ signal }) =>
      valueOrThrow(await getJson(`${OWN}/${encodeURIComponent(address)}`, signal)),
  })

/** How and when an address came onto a list, or left it. */
export type ConsentChange = Api.ConsentChange

export const consentQuery = (address: string) =>
  queryOptions({
    queryKey: [PERSON_KEY, address, 'consent'],
    queryFn: async ({ signal }) =>
      valueOrThrow(await getJson(`${OWN}/${encodeURIComponent(address)}/consent`, signal)).items,
  })

export type TaskKind = 'export' | 'erase'

export type StoreCount = Api.PersonCount
export type PersonTask = Api.PersonTask

export const startTask = async (kind: TaskKind, address: string, isDry: boolean): Promise<PersonTask> =>
  valueOrThrow(await sendJson('POST', `${OWN}/${kind}`, { address, dry_run: isDry })).task

const taskPath = (id: string) => `${OWN}/tasks/${encodeURIComponent(id)}`
export const archivePath = (id: string) => `${taskPath(id)}/download`
export const reportPath = (id: string) => `${taskPath(id)}/report`

const POLL_MS = 1_000

const isOver = (task: PersonTask | undefined) => task?.state === 'done' || task?.state === 'failed'

/** Asked again until it is over. */
export const taskQuery = (id: string | undefined) =>
  queryOptions({
    queryKey: [PERSON_KEY, 'task', id ?? ''],
    queryFn: async ({ signal }) =>
      valueOrThrow(await getJson(`${OWN}/tasks/${encodeURIComponent(id ?? '')}`, signal)),
    enabled: id !== undefined,
    refetchInterval: ({ state }) => (isOver(state.data) ? false : POLL_MS),
  })
