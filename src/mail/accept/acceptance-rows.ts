/** The rows of an accepted message's copies: deliveries and accepted events, at acceptance and at list expansion. */
import { newId } from '../../base/ids.ts'
import type { DeliveryRow } from '../../platform/store/schema.ts'
import { insertMany, type Statement, type Store } from '../../platform/store/store.ts'
import { bareAddress, formatMailbox, type Mailbox } from '../../protocols/mime/address.ts'
import { acceptedEvent } from '../../watching/events/event.ts'
import type { EventRecorder } from '../../watching/events/event-recorder.ts'
import { acceptedMessage, knownMessage, type ListCopy } from '../compose/copy.ts'
import type { MessageRecord } from '../record/record.ts'
import type { RecipientVariables } from '../request/options.ts'
import type { SourceChooser, SourceKeys, SourceOwner } from './collaborators.ts'
import type { DueTime } from './timing.ts'

export interface NewCopy {
  recipient: Mailbox
  /** Not null in batch and list mode. */
  variables: RecipientVariables | null
  due: DueTime
  list: ListCopy | null
}

export interface RowParts {
  store: Pick<Store, 'leaseTimes'>
  storageUrl: string
  recorder: EventRecorder
}

/** One delivery and one accepted event per copy, in few statements. `rows`: from `deliveryRows`. */
export function copyStatements(
  record: MessageRecord,
  parts: RowParts,
  copies: readonly NewCopy[],
  rows: readonly DeliveryRow[],
  now: number,
): Statement[] {
  return [
    ...insertMany('deliveries', rows, parts.store.leaseTimes),
    ...acceptedStatements(record, parts, copies, rows, now),
  ]
}

/** The events alone: the address of a list is accepted but gets no mail itself. */
export function acceptedStatements(
  record: MessageRecord,
  { storageUrl, recorder }: RowParts,
  copies: readonly NewCopy[],
  rows: readonly { id: string }[],
  now: number,
): Statement[] {
  const events = copies.map((copy, at) => {
    const { id } = rows[at] as { id: string }
    // No caller is there to be refused for a member of a list: an error would hold up this member and all later ones.
    const about = (copy.list ? knownMessage : acceptedMessage)(
      record,
      storageUrl,
      copy.recipient,
      { id },
      copy.variables,
      copy.list,
    )
    const to = { recipient: bareAddress(copy.recipient), recipientDomain: copy.recipient.domain }
    return acceptedEvent(about, to, now, copy.due.dueAt > now ? copy.due.dueAt : null)
  })
  return recorder.statements(events)
}

/** Of a message from the domain; null: it is gone. */
export function sourceKeys(
  { sources }: { sources: Pick<SourceChooser, 'keysFor'> },
  { accountId, options }: MessageRecord,
  domain: SourceOwner | null,
): SourceKeys {
  const { sendingIps = null, sendingPoolId = null, dynamicPoolId = null } = domain ?? {}
  const requested = { ip: options.sendingIp, pool: options.sendingIpPool }
  return sources.keysFor({ accountId, sendingIps, sendingPoolId, dynamicPoolId }, requested)
}

export function deliveryRows(
  record: MessageRecord,
  keyOf: SourceKeys,
  copies: readonly NewCopy[],
  now: number,
): DeliveryRow[] {
  return copies.map((copy) => deliveryRow(record, keyOf, copy, now))
}

function deliveryRow(record: MessageRecord, keyOf: SourceKeys, copy: NewCopy, now: number): DeliveryRow {
  const { recipient, due, variables, list } = copy
  const isScheduled = due.dueAt > now
  const id = newId(now)
  return {
    id,
    account_id: record.accountId,
    domain_id: list?.domainId ?? record.domainId,
    message_pk: record.id,
    recipient: bareAddress(recipient),
    recipient_domain: recipient.domain,
    recipient_header: formatMailbox(recipient),
    variables_json: variables ? JSON.stringify(variables) : null,
    list_json: list ? JSON.stringify(list) : null,
    state: isScheduled ? 'scheduled' : 'queued',
    due_at: due.dueAt,
    expires_at: due.expiresAt,
    attempts: 0,
    lease_owner: null,
    lease_token: null,
    lease_until: null,
    reason: isScheduled ? 'scheduled' : 'new',
    last_code: null,
    last_reply: null,
    paused_due_at: null,
    source_key: keyOf(id),
    created_at: Math.floor(now),
    updated_at: Math.floor(now),
  }
}
