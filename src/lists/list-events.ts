/** Events of uploads into a list (events.md section 2); shown under the list's domain. */
import { newId } from '../base/ids.ts'
import type { EventName, EventRecord } from '../events/event.ts'
import { unixMicroseconds } from '../http/dates.ts'
import type { List, Member } from './list.ts'

/** What every event of one upload repeats. */
export interface UploadFacts {
  taskId: string
  format: 'json' | 'csv'
  subscribed: boolean
  isUpsert: boolean
}

function record(
  event: EventName,
  level: 'info' | 'error',
  list: List,
  taskId: string,
  nowMs: number,
  more: Record<string, unknown>,
): EventRecord {
  const id = newId(nowMs)
  const timestamp = unixMicroseconds(nowMs)
  const payload = {
    event,
    id,
    timestamp,
    'log-level': level,
    'task-id': taskId,
    'mailing-list': { address: list.address },
    ...more,
  }
  return {
    id,
    accountId: list.accountId,
    domainName: list.domainName,
    event,
    timestampUs: Math.round(nowMs * 1000),
    recipient: null,
    messageId: null,
    payload,
  }
}

/** A member is new or was changed. */
export function memberUploadedEvent(
  list: List,
  facts: UploadFacts,
  member: Member,
  nowMs: number,
): EventRecord {
  const { address, name, subscribed } = member
  return record('list_member_uploaded', 'info', list, facts.taskId, nowMs, {
    member: { address, name, subscribed },
  })
}

/** An entry was skipped; `description` is what stood there. */
export function memberUploadErrorEvent(
  list: List,
  facts: UploadFacts,
  description: string,
  message: string,
  nowMs: number,
): EventRecord {
  return record('list_member_upload_error', 'error', list, facts.taskId, nowMs, {
    format: facts.format,
    'member-description': description,
    error: { message },
  })
}

/** The upload is worked off. */
export function listUploadedEvent(
  list: List,
  facts: UploadFacts,
  counts: { upserted: number; failed: number },
  nowMs: number,
): EventRecord {
  return record('list_uploaded', 'info', list, facts.taskId, nowMs, {
    format: facts.format,
    subscribed: facts.subscribed,
    'is-upsert': facts.isUpsert,
    'upserted-count': counts.upserted,
    'failed-count': counts.failed,
  })
}
