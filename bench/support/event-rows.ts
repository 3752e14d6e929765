/** Event rows as the service writes them: two per message, created by its own functions. */

import type { Statement } from '../../src/platform/store/store.ts'
import {
  type AttemptFacts,
  acceptedEvent,
  deliveredEvent,
  type EventMessage,
  type EventRecord,
  failedEvent,
} from '../../src/watching/events/event.ts'
import { eventStatement } from '../../test/support/events.ts'

const RECIPIENTS = 200_000
const TAGS = 50
/** Consecutive messages with one tag: a campaign. */
export const MESSAGES_PER_TAG = 1_000
/** One in this many messages fails. */
const FAILED_EVERY = 20

/** The recipient of a message; the numbers cover all recipients in scattered order. */
export const recipientOf = (message: number) => `reader-${(message * 7_919) % RECIPIENTS}@recipients.example`
export const tagOf = (campaign: number) => `campaign-${campaign % TAGS}`

/** The event with which a message ends. */
export const endOf = (message: number) => (message % FAILED_EVERY === 0 ? 'failed' : 'delivered')

/** `count` rows from `fromMs` to `toMs` in ascending order of time. */
export function* eventRows(options: {
  count: number
  accountId: string
  domainName: string
  fromMs: number
  toMs: number
}): Generator<Statement> {
  const { count, accountId, domainName, fromMs, toMs } = options
  const messages = Math.floor(count / 2)
  const step = (toMs - fromMs) / messages
  for (let number = 0; number < messages; number++) {
    const acceptedMs = fromMs + number * step
    yield* lifeEvents({ number, accountId, domainName, acceptedMs, deliveredMs: acceptedMs + step / 2 })
  }
}

/** A message's accepted event, and the delivered or failed one. */
export function lifeEvents(options: {
  number: number
  accountId: string
  domainName: string
  acceptedMs: number
  deliveredMs: number
}): [Statement, Statement] {
  const { number, acceptedMs, deliveredMs } = options
  const message = messageOf(options)
  const recipient = recipientOf(number)
  const to = { recipient, recipientDomain: 'recipients.example' }
  const accepted = acceptedEvent(message, to, acceptedMs, null)
  const end: EventRecord =
    endOf(number) === 'failed'
      ? failedEvent(
          message,
          to,
          { ...facts(550, '5.1.1 no such user'), severity: 'permanent', reason: 'bounce' },
          deliveredMs,
        )
      : deliveredEvent(message, to, facts(250, '2.0.0 taken'), deliveredMs)
  return [eventStatement(accepted), eventStatement(end)]
}

function messageOf({
  number,
  accountId,
  domainName,
}: {
  number: number
  accountId: string
  domainName: string
}): EventMessage {
  const recipient = recipientOf(number)
  return {
    accountId,
    domainName,
    messageId: `${number}.bench@${domainName}`,
    storageKey: `key-${number}`,
    storageUrl: `http://127.0.0.1:8080/v3/domains/${domainName}/messages/key-${number}`,
    summary: {
      from: `Bench <sender@${domainName}>`,
      to: recipient,
      subject: `Your order ${number}`,
      sender: `sender@${domainName}`,
      recipients: [recipient],
      attachments: [],
      sizeBytes: 10_900,
      tags: [tagOf(Math.floor(number / MESSAGES_PER_TAG))],
      userVariables: {},
      testMode: false,
      method: 'http',
      originatingIp: '127.0.0.1',
      keyId: null,
      template: null,
    },
  }
}

const facts = (code: number, text: string): AttemptFacts => ({
  sendingIp: '127.0.0.1',
  primaryDkim: 'k1._domainkey.bench.example',
  recipientProvider: 'Other',
  status: {
    code,
    'attempt-no': 1,
    message: text,
    description: '',
    'session-seconds': 0.012,
    'enhanced-code': text.slice(0, 5),
    'mx-host': 'mx.recipients.example',
    tls: false,
    'certificate-verified': false,
    utf8: false,
  },
})

/** The row of a delivery just accepted. */
export const deliveryRow = (id: string, messagePk: string, number: number, now: number) => ({
  ...{ id, account_id: 'bench', domain_id: 'bench', message_pk: messagePk, recipient: recipientOf(number) },
  ...{ recipient_domain: 'recipients.example', recipient_header: recipientOf(number), variables_json: null },
  ...{ list_json: null, state: 'queued' as const, due_at: now, expires_at: now + 8 * 3_600_000, attempts: 0 },
  ...{ lease_owner: null, lease_token: null, lease_until: null, reason: 'new', source_key: '' },
  ...{ last_code: null, last_reply: null, created_at: now, updated_at: now },
})
