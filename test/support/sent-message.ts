/** A sent message, inserted directly into a fresh database, to which opens, unsubscribes and complaints refer. */

import { newId } from '../../src/base/ids.ts'
import type { RecipientVariables } from '../../src/mail/record/options.ts'
import type { ListCopy } from '../../src/mail/record/record.ts'
import type { DeliveryState } from '../../src/platform/store/schema.ts'
import { insert, type Store } from '../../src/platform/store/store.ts'
import type { DomainDirectory } from '../../src/sending/domains/names/directory.ts'
import { deliveredEvent, type EventMessage, type MessageSummary } from '../../src/watching/events/event.ts'
import { DELIVERED, eventStatement, testMessage } from './events.ts'

export const SENT_AT = Date.UTC(2026, 5, 1, 12)
export const SENT_FROM = { accountId: 'account', domainId: 'domain-id', domainName: 'mg.example.com' }

/** The only domain of these tests. */
export const TEST_DOMAINS: Pick<DomainDirectory, 'byId'> = {
  byId: async (id) =>
    id === SENT_FROM.domainId
      ? ({ id, accountId: SENT_FROM.accountId, name: SENT_FROM.domainName } as Awaited<
          ReturnType<DomainDirectory['byId']>
        >)
      : null,
}

export interface SentCopy {
  recipient: string
  state?: DeliveryState
  attempts?: number
  variables?: RecipientVariables
  list?: ListCopy
  /** Of the delivered event; default: the message's. */
  subject?: string
}

/** Writes the rows of a message with its delivered events; resolves the delivery ids in the order of the copies. */
export async function storeSent(
  store: Store,
  copies: readonly SentCopy[],
  summary: Partial<MessageSummary> = {},
): Promise<{ messagePk: string; deliveryIds: string[]; messageId: string }> {
  const messagePk = newId(SENT_AT)
  const messageId = `${messagePk}@mg.example.com`
  const about = testMessage(summary, { accountId: SENT_FROM.accountId, messageId, storageKey: messagePk })
  await store.commit([
    insert('messages', {
      id: messagePk,
      account_id: SENT_FROM.accountId,
      domain_id: SENT_FROM.domainId,
      domain_name: SENT_FROM.domainName,
      message_id: messageId,
      summary_json: JSON.stringify(about.summary),
      options_json: '{}',
      content_kind: 'parts',
      content: Buffer.from('{}'),
      content_blob: null,
      blobs_json: '[]',
      created_at: SENT_AT,
    }),
  ])
  const deliveryIds: string[] = []
  for (const copy of copies) deliveryIds.push(await storeCopy(store, about, copy))
  return { messagePk, deliveryIds, messageId }
}

async function storeCopy(store: Store, about: EventMessage, copy: SentCopy): Promise<string> {
  const id = newId(SENT_AT)
  const { recipient, state = 'delivered', attempts = 1, variables = null, list = null } = copy
  const recipientDomain = recipient.slice(recipient.indexOf('@') + 1)
  const row = insert('deliveries', {
    id,
    account_id: about.accountId,
    domain_id: list?.domainId ?? SENT_FROM.domainId,
    message_pk: about.storageKey,
    recipient,
    recipient_domain: recipientDomain,
    recipient_header: recipient,
    variables_json: variables && JSON.stringify(variables),
    list_json: list && JSON.stringify(list),
    state,
    due_at: SENT_AT,
    expires_at: SENT_AT + 8 * 3_600_000,
    attempts,
    reason: '',
    source_key: '',
    created_at: SENT_AT,
    updated_at: SENT_AT + 5_000,
  })
  const summary = {
    ...about.summary,
    subject: copy.subject ?? about.summary.subject,
    mailingList: list && { address: list.address, 'list-id': list.listId, sid: list.sid },
  }
  const key = variables && !list ? id : about.storageKey
  const event = deliveredEvent(
    { ...about, storageKey: key, summary },
    { recipient, recipientDomain },
    DELIVERED,
    SENT_AT + 4_000,
  )
  await store.commit(state === 'delivered' ? [row, eventStatement(event)] : [row])
  return id
}
