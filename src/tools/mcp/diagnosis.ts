/**
 * Why a message has not arrived: where each recipient stands, what the servers said, what that means and what to do.
 * Everything is read through the operations that the dashboard and `sendwright trace` use.
 */
import { type Api, at, type Item, ifAllowed, ifFound, itemsOf, type Query } from './tool.ts'

const LOGS = '/v1/analytics/logs'
const RECIPIENTS_MAX = 10
/** Among which one recipient is looked for: a message has no more. */
const DELIVERIES_MAX = 1_000
const EVENTS_MAX = 50
/** Each is a call. */
const DIALOGUES_MAX = 3
const LINES_MAX = 40
/** As long as events are kept by default, in days. */
export const DAYS_MAX = 30
const DAY_MS = 86_400_000
const LISTS = ['bounces', 'complaints', 'unsubscribes'] as const

export interface EventFilter {
  domain?: string | undefined
  recipient?: string | undefined
  message_id?: string | undefined
  tag?: string | undefined
  subject?: string | undefined
  severity?: string | undefined
}

/** Events of the account, newest first. */
export async function findEvents(
  api: Api,
  filter: EventFilter,
  { now, days = DAYS_MAX, limit = EVENTS_MAX, events }: SearchOptions,
): Promise<readonly Item[]> {
  const conditions = Object.entries(filter).flatMap(([attribute, given]) => {
    if (given === undefined) return []
    const value = attribute === 'message_id' ? bare(given) : given
    const comparator = attribute === 'subject' ? 'contains' : '='
    return [{ attribute, comparator, values: [{ label: value, value }] }]
  })
  const json = {
    start: new Date(now - days * DAY_MS).toUTCString(),
    ...(events !== undefined && { events }),
    ...(conditions.length > 0 && { filter: { AND: conditions } }),
    pagination: { sort: 'timestamp:desc', limit },
  }
  return itemsOf(await api.call('POST', LOGS, { json }))
}

interface SearchOptions {
  now: number
  days?: number | undefined
  limit?: number | undefined
  events?: readonly string[] | undefined
}

/** A Message-Id without angle brackets. */
export const bare = (messageId: string): string => messageId.replace(/^<|>$/g, '')

/** The state of each recipient; empty: the message is not kept any more, or never was. */
export async function deliveriesOf(api: Api, messageId: string, limit: number): Promise<readonly Item[]> {
  const query: Query = { limit }
  const page = await ifFound(api.read(at`/sendwright/v1/messages/${bare(messageId)}/deliveries`, query))
  return page === null ? [] : itemsOf(page)
}

/** The dialogues of one delivery that were kept, the last attempt first. */
export async function dialoguesOf(api: Api, deliveryId: string): Promise<readonly Item[]> {
  const attempts = itemsOf(await api.read(at`/sendwright/v1/deliveries/${deliveryId}/transcript`))
  return attempts.toReversed().map((one) => ({
    ...one,
    lines: (one['lines'] as readonly Item[])
      .slice(-LINES_MAX)
      .map(({ direction, line }) => `${direction === 'sent' ? '>' : '<'} ${line}`)
      .join('\n'),
  }))
}

/** What the lists of a domain say of an address. */
export async function suppressionsOf(api: Api, domain: string, address: string): Promise<Item> {
  const found = await Promise.all(
    LISTS.map(async (list) => [list, await ifFound(api.read(at`/v3/${domain}/${list}/${address}`))] as const),
  )
  const entries = found.filter(([, entry]) => entry !== null)
  return { domain, address, is_suppressed: entries.length > 0, ...Object.fromEntries(entries) }
}

/** The class of a failure by the rule that its event names: what it means, and what to do. */
async function classOf(api: Api, events: readonly Item[]): Promise<unknown> {
  const rule = events.map((one) => one['i-classification-rule-id']).find((id) => typeof id === 'string')
  if (typeof rule !== 'string') return null
  return ifAllowed(
    ifFound(api.read(at`/v2/bounce-classification/config/groups/${rule}`)).then(
      (group) =>
        group && { class: group['class'], who: group['entity-name'], what_to_do: group['explanation'], rule },
    ),
  )
}

export interface Question {
  message_id?: string | undefined
  recipient?: string | undefined
  domain?: string | undefined
}

/** The newest message that matches, and for each of its recipients the reason and the advice. */
export async function diagnose(api: Api, question: Question, now: number): Promise<Item> {
  const events = await findEvents(api, { ...question }, { now })
  const newest = events.find((one) => messageIdOf(one) !== null)
  const messageId =
    question.message_id !== undefined ? bare(question.message_id) : newest ? messageIdOf(newest) : null
  if (messageId === null) return notKnown(api, question)
  const wanted = question.recipient?.toLowerCase()
  const all = await deliveriesOf(api, messageId, wanted === undefined ? RECIPIENTS_MAX : DELIVERIES_MAX)
  const deliveries = all.filter(
    ({ recipient }) => wanted === undefined || String(recipient).toLowerCase() === wanted,
  )
  const own = events.filter((one) => messageIdOf(one) === messageId)
  if (deliveries.length === 0 && own.length === 0) return notKnown(api, question)
  const recipients =
    deliveries.length > 0
      ? deliveries
      : [...new Set(own.flatMap((one) => one['recipient'] ?? []))].map((recipient) => ({ recipient }) as Item)
  const domain = String((own[0]?.['domain'] as Item | undefined)?.['name'] ?? question.domain ?? '')
  return {
    message_id: messageId,
    domain,
    subject: subjectOf(own[0]),
    recipients: await Promise.all(
      recipients
        .slice(0, RECIPIENTS_MAX)
        .map((delivery, index) =>
          ofRecipient(api, { delivery, events: own, domain, withDialogue: index < DIALOGUES_MAX }),
        ),
    ),
  }
}

const messageIdOf = (event: Item): string | null => {
  const headers = (event['message'] as Item | undefined)?.['headers'] as Item | undefined
  return typeof headers?.['message-id'] === 'string' ? headers['message-id'] : null
}

const subjectOf = (event: Item | undefined): unknown =>
  ((event?.['message'] as Item | undefined)?.['headers'] as Item | undefined)?.['subject'] ?? null

async function ofRecipient(
  api: Api,
  known: { delivery: Item; events: readonly Item[]; domain: string; withDialogue: boolean },
): Promise<Item> {
  const { delivery, domain, withDialogue } = known
  const { id, recipient, state, attempts, next_attempt_at, reason, last_reply } = delivery
  const events = known.events.filter((one) => one['recipient'] === recipient)
  const failures = events.filter(({ event }) => event === 'failed' || event === 'rejected')
  const isDelivered = state === 'delivered' || events.some(({ event }) => event === 'delivered')
  const [failureClass, suppressions, dialogues] = await Promise.all([
    isDelivered && failures.length === 0 ? null : classOf(api, failures),
    domain === '' ? null : ifAllowed(suppressionsOf(api, domain, String(recipient))),
    withDialogue && typeof id === 'string' ? ifAllowed(dialoguesOf(api, id)) : null,
  ])
  return {
    recipient,
    delivered: isDelivered,
    ...(state !== undefined && { state, attempts, next_attempt_at, reason, last_reply }),
    class: failureClass,
    suppressions,
    events: events.map(eventFacts),
    dialogues,
  }
}

const eventFacts = (event: Item): Item => ({
  at: event['@timestamp'],
  event: event['event'],
  severity: event['severity'],
  reason: event['reason'],
  'delivery-status': event['delivery-status'],
  reject: event['reject'],
  sending_ip: (event['envelope'] as Item | undefined)?.['sending-ip'],
})

/** Nothing was sent, or it is forgotten: what would keep mail to the address from being sent. */
async function notKnown(api: Api, { recipient, domain }: Question): Promise<Item> {
  const suppressions =
    recipient !== undefined && domain !== undefined
      ? await ifAllowed(suppressionsOf(api, domain, recipient))
      : null
  return {
    found: false,
    conclusion: `No message matches in the last ${DAYS_MAX} days of this account: it was not accepted (look at the answer that the application got), it was sent with another account or domain, or it is not kept any more.`,
    suppressions,
  }
}
