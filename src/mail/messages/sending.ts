/**
 * Sending, from an accepted message to the delivery engine: `createSending` puts the parts of this folder together, given
 * those of other areas. `request/` reads a request, `acceptance/` decides and stores, `composing/` makes each
 * recipient's copy, `stored/` holds what is kept afterwards.
 */

import type { Logger } from 'pino'
import { BadRequest } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { AccountDirectory } from '../../people/accounts/account-directory.ts'
import { type MessageLimits, NO_LIMITS } from '../../people/message-limits/limits.ts'
import type { SandboxGate } from '../../people/sandbox/gate.ts'
import type { HttpClient } from '../../platform/posts/http-client.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { Store } from '../../platform/store/store.ts'
import type { Tracing } from '../../platform/traces/tracing.ts'
import type { Signers } from '../../protocols/dkim/signing-pool/signers.ts'
import type { SigningKeys } from '../../sending/domains/keys/signing-keys.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'
import type { SuppressionCheck } from '../../sending/suppressions/check.ts'
import type { EventRecorder } from '../../watching/events/event-recorder.ts'
import type { KnownTags } from '../../watching/tags/known-tags.ts'
import type { AcceptParts } from '../accept/accept.ts'
import {
  type ListExpander,
  NO_HABITS,
  NO_LISTS,
  NO_TRACKER,
  type RecipientHabits,
  type SourceChooser,
  type TemplateChooser,
  type TemplateRenderer,
  type Tracker,
} from '../accept/collaborators.ts'
import { makeCopy } from '../compose/copy.ts'
import type { LargeTexts } from '../compose/large-texts.ts'
import { describeDelivery, type PrepareParts, prepareDelivery, targetOf } from '../compose/prepare.ts'
import type { SecondaryKeys } from '../compose/secondary-keys.ts'
import type { ReturnPathMac } from '../deliver/attempt/return-path.ts'
import type { Delivery, DeliveryParts } from '../deliver/contract.ts'
import { createMessageRecords, type MessageRecords } from '../record/message-records.ts'
import { createArchiveNotes } from '../stored/archive.ts'
import { createAttemptsInProgress } from '../stored/in-progress.ts'
import { createRetention, type Retention } from '../stored/message-retention.ts'
import type { PastDeliveries } from '../stored/past-deliveries.ts'
import { createQueueLimits } from '../stored/queue-limits.ts'
import type { ScheduledParts } from '../stored/scheduled.ts'

export interface SendingParts {
  store: Store
  blobs: BlobStore
  largeTexts: LargeTexts
  accounts: Pick<AccountDirectory, 'byId'>
  domains: DomainDirectory
  signingKeys: SigningKeys
  signers: Pick<Signers, 'sign'>
  suppressions: SuppressionCheck
  secondaryKeys: SecondaryKeys
  sources: SourceChooser
  clock: Clock
  log: Logger
  returnPathMac: ReturnPathMac
  headerPrefix: string
  storageUrl: string
  allowUnverified: boolean
  /** Name under which this process holds leases. */
  leaseOwner: string
  engine: Pick<Delivery, 'reserve' | 'inserted' | 'wake' | 'wakeAt'>
  recorder: EventRecorder
  /** Keeps what is needed of deliveries whose message is removed. */
  past: PastDeliveries
  templates?: TemplateChooser
  renderer?: TemplateRenderer
  tracker?: Tracker
  habits?: RecipientHabits
  lists?: ListExpander
  sandbox?: SandboxGate
  httpClient?: Pick<HttpClient, 'fault'>
  limits?: MessageLimits
  tags: Pick<KnownTags, 'known' | 'used'>
  /** Called for each message accepted by the API or SMTP, with the number of its copies. */
  accepted?(copies: number): void
  /** Absent: nothing is traced. */
  tracing?: Tracing
  /** Deliveries that one queue of a domain may hold. */
  queuedMax?: number
  /** Approximate space that stored messages may take; default: no limit. */
  storedBytesMax?: number | null
  /** Contents of messages that are kept in memory, together; default: those of a machine with enough memory. */
  rememberedBytesMax?: number
}

export interface Sending {
  records: MessageRecords
  accept: AcceptParts
  scheduled: ScheduledParts
  retention: Retention
  /** For the delivery engine. */
  prepare: DeliveryParts['prepare']
  describe: DeliveryParts['describe']
  consequences: DeliveryParts['consequences']
  requeued: DeliveryParts['requeued']
  /** The body of a delivery as it was sent, for the archive sender; null when it is gone. */
  bodyOf(deliveryId: string): ReturnType<typeof bodyOf>
}

/** Without the templates area no template exists. */
const NO_TEMPLATES: TemplateChooser & TemplateRenderer = {
  choose: async (_domain, { name }) => {
    throw new BadRequest(`template '${name}' not found`)
  },
  render: async () => {
    throw new Error('There are no templates to render')
  },
}

/** For areas that are left out. */
const STAND_INS = {
  templates: NO_TEMPLATES,
  renderer: NO_TEMPLATES,
  tracker: NO_TRACKER,
  habits: NO_HABITS,
  lists: NO_LISTS,
  sandbox: { mayReceive: () => true },
  limits: NO_LIMITS,
  httpClient: { fault: async () => null },
}

export function createSending(parts: SendingParts): Sending {
  const { store, blobs, clock, domains } = parts
  const records = createMessageRecords(store, blobs, parts.rememberedBytesMax)
  const queueLimits = createQueueLimits({
    store,
    clock,
    ...(parts.queuedMax !== undefined && { max: parts.queuedMax }),
  })
  const inProgress = createAttemptsInProgress()
  const archive = createArchiveNotes()
  const common = { ...STAND_INS, ...parts, records, queueLimits, inProgress, archive }
  return {
    records,
    accept: common,
    scheduled: common,
    retention: createRetention({
      ...{ store, records, blobs, domains, clock },
      past: parts.past,
      log: parts.log,
      bytesMax: parts.storedBytesMax ?? null,
    }),
    prepare: (delivery) => prepareDelivery(common, delivery),
    describe: (delivery) => describeDelivery(common, delivery),
    consequences(delivery, events) {
      inProgress.end(delivery)
      if (delivery.list_json === null) records.ended(delivery.message_pk)
      return archive.statements(delivery, events, clock.now())
    },
    requeued: (delivery) => inProgress.end(delivery),
    bodyOf: (deliveryId) => bodyOf(common, deliveryId),
  }
}

/** The copy is composed again: the same delivery has the same bytes each time. */
async function bodyOf(parts: PrepareParts & { store: Store }, deliveryId: string) {
  const delivery = await parts.store.db
    .selectFrom('deliveries')
    .selectAll()
    .where('id', '=', deliveryId)
    .executeTakeFirst()
  const record = delivery ? await parts.records.byId(delivery.message_pk) : null
  const domain = delivery ? await parts.domains.byId(delivery.domain_id) : null
  if (!delivery || !record || !domain) return null
  const { message } = await makeCopy(parts, record, domain, targetOf(delivery, parts.returnPathMac))
  return message.body
}
