/**
 * A message as its events name it. Accepted and later events of one copy must say the same, so all writers of events take it
 * from here.
 */

import type { DeliveryRow } from '../../platform/store/schema.ts'
import { bareAddress, formatMailbox, type Mailbox, parseMailbox } from '../../protocols/mime/address.ts'
import type { EventMessage, MessageSummary } from '../../watching/events/event.ts'
import type { RecipientVariables } from './options.ts'
import { attach, type ListCopy, type MessageContent, type MessageRecord } from './record.ts'
import {
  bounded,
  CopyTooLarge,
  messageIdOfCopy,
  recipientLookup,
  substitute,
  substituteMembers,
} from './variables.ts'

/** The member `mailing-list` of the events of a copy (mailing-lists.md rule 22). */
const mailingListOf = (list: ListCopy | null): NonNullable<MessageSummary['mailingList']> | null =>
  list && { address: list.address, 'list-id': list.listId, sid: list.sid }

/** What events of a list's copy say besides: it is mail that the list sends, whoever wrote it. */
export const listMembers = (
  list: ListCopy | null,
): Pick<MessageSummary, 'mailingList' | 'incoming' | 'routes'> =>
  list ? { mailingList: mailingListOf(list), incoming: undefined, routes: null } : { mailingList: null }

/** What events need of a message. */
export type NamedMessage = Pick<
  MessageRecord,
  'id' | 'accountId' | 'domainName' | 'messageId' | 'summary'
> & { content: Pick<MessageContent, 'batch'> }

/** The Message-Ids of copies, each once: that of the call, or where each copy has its own, those of these deliveries. */
export function messageIdsOf(
  messageId: string,
  summary: Pick<MessageSummary, 'messageIdTemplate' | 'sharedVariables'>,
  deliveries: readonly Pick<DeliveryRow, 'recipient_header' | 'variables_json' | 'list_json'>[],
): string[] {
  const template = summary.messageIdTemplate
  if (template === undefined) return [messageId]
  const ids = new Set([messageId])
  for (const { recipient_header: header, variables_json: variables, list_json: list } of deliveries) {
    if (variables === null || list !== null) continue
    const own = JSON.parse(variables) as RecipientVariables
    const lookup = recipientLookup(parseMailbox(header), own, summary.sharedVariables)
    ids.add(messageIdOfCopy(template, lookup) ?? messageId)
  }
  return [...ids]
}

/** Characters that variables add to the events of one copy; a call may have a thousand copies. */
const EVENT_VALUES_CHARS_MAX = 256 * 1024

/**
 * The message as its accepted event names it: with the recipient's variables, without the template's headers.
 * @throws CopyTooLarge
 */
export function acceptedMessage(
  record: NamedMessage,
  storageUrl: string,
  recipient: Mailbox,
  delivery: { id: string },
  variables: RecipientVariables | null,
  list: ListCopy | null,
): EventMessage {
  if (!variables) {
    const shown = shownSummary(record.summary)
    return eventMessage(record, storageUrl, record.id, list ? { ...shown, ...listMembers(list) } : shown)
  }
  const { summary, content } = record
  const lookup = bounded(
    recipientLookup(recipient, variables, summary.sharedVariables),
    EVENT_VALUES_CHARS_MAX,
  )
  const own = content.batch ? delivery.id : record.id
  const template = content.batch && !list ? summary.messageIdTemplate : undefined
  const messageId = (template && messageIdOfCopy(template, lookup)) ?? record.messageId
  const about = {
    ...summary,
    ...(content.batch && { to: formatMailbox(recipient), recipients: [bareAddress(recipient)] }),
    subject: substitute(summary.subject, lookup),
    userVariables: eventVariables(substituteMembers(summary.userVariables, lookup)),
    ...listMembers(list),
  }
  return eventMessage(record, storageUrl, own, about, messageId)
}

/**
 * The same where no call can be refused (the delivery exists already, or is a list member's): without the variables if
 * they are too large for an event.
 */
export function knownMessage(...args: Parameters<typeof acceptedMessage>): EventMessage {
  try {
    return acceptedMessage(...args)
  } catch (error) {
    if (!(error instanceof CopyTooLarge)) throw error
    const [record, storageUrl, recipient, delivery, , list] = args
    return acceptedMessage(record, storageUrl, recipient, delivery, null, list)
  }
}

const SHOWN = Symbol('summary as events show it')

function shownSummary(summary: MessageSummary & { [SHOWN]?: MessageSummary }): MessageSummary {
  const userVariables = eventVariables(summary.userVariables)
  if (userVariables === summary.userVariables) return summary
  return summary[SHOWN] ?? attach(summary, SHOWN, { ...summary, userVariables })
}

/** @param messageId of the copy; default the message's */
export function eventMessage(
  record: Pick<MessageRecord, 'accountId' | 'domainName' | 'messageId'>,
  storageUrl: string,
  storageKey: string,
  summary: MessageSummary,
  messageId = record.messageId,
): EventMessage {
  return {
    accountId: record.accountId,
    domainName: record.domainName,
    messageId,
    storageKey,
    storageUrl: `${storageUrl}/v3/domains/${record.domainName}/messages/${storageKey}`,
    summary,
  }
}

/** Longer values are cut in events and webhooks only (messages.md rule 19). */
const EVENT_VALUE_BYTES_MAX = 4096

export function eventVariables(variables: Record<string, unknown>): Record<string, unknown> {
  for (const name in variables) if (typeof variables[name] === 'string') return cutVariables(variables)
  return variables
}

function cutVariables(variables: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [name, typeof value === 'string' ? cut(value) : value]),
  )
}

function cut(value: string): string {
  if (value.length * 3 <= EVENT_VALUE_BYTES_MAX || Buffer.byteLength(value) <= EVENT_VALUE_BYTES_MAX)
    return value
  const bytes = Buffer.from(value)
  let end = EVENT_VALUE_BYTES_MAX
  while (((bytes[end] as number) & 0xc0) === 0x80) end--
  return bytes.subarray(0, end).toString()
}
