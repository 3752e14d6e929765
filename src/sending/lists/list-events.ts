/** Events of uploads into a list (events.md section 2); shown under the list's domain. */
import type { EventRecord } from '../../watching/events/event.ts'
import {
  type ListUpload,
  listMemberUploadErrorEvent,
  listMemberUploadedEvent,
  listUploadedEvent as uploadedEvent,
} from '../../watching/events/later-events.ts'
import type { List, Member } from './list.ts'

/** The fields common to all events of one upload. */
export interface UploadFacts {
  taskId: string
  format: 'json' | 'csv'
  subscribed: boolean
  isUpsert: boolean
  /** Members are asked before they are subscribed. */
  isConfirmed: boolean
  /** Id of the user or key; undefined: not known. */
  calledBy: string | undefined
}

const uploadOf = (list: List, { taskId }: UploadFacts): ListUpload => ({
  accountId: list.accountId,
  domainName: list.domainName,
  taskId,
  listAddress: list.address,
})

/** A member was added or changed. */
export function memberUploadedEvent(
  list: List,
  facts: UploadFacts,
  member: Member,
  nowMs: number,
): EventRecord {
  const { address, name, subscribed } = member
  return listMemberUploadedEvent(uploadOf(list, facts), { address, name, subscribed }, nowMs)
}

/** An entry was skipped; `description` quotes it. */
export function memberUploadErrorEvent(
  list: List,
  facts: UploadFacts,
  description: string,
  message: string,
  nowMs: number,
): EventRecord {
  const fault = { format: facts.format, description, message }
  return listMemberUploadErrorEvent(uploadOf(list, facts), fault, nowMs)
}

/** The upload is complete. */
export function listUploadedEvent(
  list: List,
  facts: UploadFacts,
  counts: { upserted: number; failed: number },
  nowMs: number,
): EventRecord {
  const { format, subscribed, isUpsert } = facts
  const result = { format, subscribed, isUpsert, upsertedCount: counts.upserted, failedCount: counts.failed }
  return uploadedEvent(uploadOf(list, facts), result, nowMs)
}
