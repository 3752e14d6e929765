/** Inserts deliveries directly into the queue, many at a time, and creates an engine that needs no HTTP. */
import pino from 'pino'
import { newId } from '../../src/base/ids.ts'
import type { Clock } from '../../src/base/time/clock.ts'
import { type ClaimedDelivery, createQueue } from '../../src/mail/deliver/claim/queue.ts'
import type { DeliveryParts, Prepared } from '../../src/mail/deliver/contract.ts'
import { createDelivery } from '../../src/mail/deliver/engine.ts'
import { insert, type SqlValue, type Store } from '../../src/platform/store/store.ts'
import type { EventMessage } from '../../src/watching/events/event.ts'
import { bareRecorder } from './events.ts'
import { NO_RELAYS } from './no-relays.ts'

export interface Seed {
  accountId: string
  domainId: string
  /** One for all, or that of each recipient. */
  recipientDomain: string | ((index: number) => string)
  count: number
  dueAt: number
  expiresAt?: number
  /** Default '': no specific source. */
  sourceKey?: string
}

const ROWS_PER_STATEMENT = 100
const STATEMENTS_PER_UNIT = 20

/** Resolves the ids in the order of their recipients `user0@`, `user1@` ... */
export async function seedQueue(store: Store, seed: Seed): Promise<string[]> {
  const { accountId, domainId, recipientDomain, count } = seed
  const dueAt = Math.round(seed.dueAt)
  const message = newId()
  await store.commit([
    insert('messages', {
      id: message,
      account_id: accountId,
      domain_id: domainId,
      domain_name: `${domainId}.example`,
      message_id: `${message}@${domainId}.example`,
      summary_json: '{}',
      options_json: '{}',
      content_kind: 'parts',
      content: Buffer.from('{}'),
      content_blob: null,
      blobs_json: '[]',
      created_at: dueAt,
    }),
  ])
  const ids = Array.from({ length: count }, () => newId())
  const domainOf = typeof recipientDomain === 'string' ? () => recipientDomain : recipientDomain
  const rows = ids.map((id, index) => ({
    id,
    account_id: accountId,
    domain_id: domainId,
    message_pk: message,
    recipient: `user${index}@${domainOf(index)}`,
    recipient_domain: domainOf(index),
    recipient_header: `user${index}@${domainOf(index)}`,
    state: 'queued',
    due_at: dueAt,
    expires_at: Math.round(seed.expiresAt ?? dueAt + 8 * 3_600_000),
    attempts: 0,
    reason: 'new',
    source_key: seed.sourceKey ?? '',
    created_at: dueAt,
    updated_at: dueAt,
  }))
  const statements = []
  for (let from = 0; from < rows.length; from += ROWS_PER_STATEMENT) {
    const some = rows.slice(from, from + ROWS_PER_STATEMENT)
    const columns = Object.keys(some[0] ?? {})
    const marks = `(${columns.map(() => '?').join(', ')})`
    statements.push({
      sql: `INSERT INTO deliveries (${columns.join(', ')}) VALUES ${some.map(() => marks).join(', ')}`,
      values: some.flatMap((row) => Object.values(row) as SqlValue[]),
    })
  }
  for (let from = 0; from < statements.length; from += STATEMENTS_PER_UNIT)
    await store.commit(statements.slice(from, from + STATEMENTS_PER_UNIT))
  return ids
}

/** An engine over a store, with the test's transport; what a test does not set stands in nobody's way. */
export function seededEngine(
  store: Store,
  clock: Clock,
  transport: DeliveryParts['transport'],
  more: Partial<DeliveryParts> = {},
) {
  return createDelivery({
    queue: createQueue(store, newId(), bareRecorder),
    transport,
    prepare: seededCopy,
    describe: async ({ account_id, domain_id }) => aboutOf(account_id, domain_id),
    consequences: () => [],
    pauses: { pauseOf: () => null, nextLook: () => 0 },
    egress: { isDown: () => false, nextTry: () => 0 },
    blocks: { isClosed: () => false, answered() {}, nextFree: () => 0 },
    standings: { heldUntil: () => null, take: () => undefined, nextFree: () => ({ reason: '', dueAt: 0 }) },
    allowances: { take: () => undefined, nextFree: () => 0 },
    relays: NO_RELAYS,
    poolOf: () => null,
    requeued() {},
    keepTranscript: () => null,
    isCurrent: () => true,
    share: () => ({ index: 0, count: 1 }),
    tracing: undefined,
    slowedDown() {},
    isElsewhere: null,
    isOff: false,
    mayClaim: () => true,
    clock,
    log: pino({ level: 'silent' }),
    random: () => 0,
    retryScheduleMs: [600_000, 900_000],
    judge: () => ({ ruleId: 'unclassified', reason: 'generic' }),
    ...more,
  })
}

/** A seeded delivery, ready to send. */
export async function seededCopy(delivery: ClaimedDelivery): Promise<Prepared> {
  return {
    kind: 'send',
    about: aboutOf(delivery.account_id, delivery.domain_id),
    returnPath: 'bounce@example.org',
    message: { headers: [`Message-ID: <${delivery.id}@example.org>`], body: [Buffer.from('Hi.\r\n')] },
    sizeBytes: 100,
    utf8: false,
    tls: { required: false, verify: true },
    primaryDkim: null,
  }
}

function aboutOf(accountId: string, domainId: string): EventMessage {
  return {
    accountId,
    domainName: `${domainId}.example`,
    messageId: 'seed@example.org',
    storageKey: 'seed',
    storageUrl: 'http://localhost/seed',
    summary: {
      from: '',
      to: '',
      subject: '',
      sender: '',
      recipients: [],
      attachments: [],
      sizeBytes: 100,
      tags: [],
      userVariables: {},
      testMode: false,
      method: 'http',
      originatingIp: null,
      keyId: null,
      template: null,
    },
  }
}
