/** Everything between an accepted message and the delivery engine, put together; other areas' parts are handed in. */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import { BadRequest } from '../base/errors.ts'
import type { Delivery, DeliveryParts } from '../delivery/contract.ts'
import type { ReturnPathMac } from '../delivery/return-path.ts'
import type { Signers } from '../dkim/signers.ts'
import type { SigningKeys } from '../domain-keys/signing-keys.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import type { BlobStore } from '../store/blobs.ts'
import type { Store } from '../store/store.ts'
import type { SuppressionCheck } from '../suppressions/check.ts'
import type { KnownTags } from '../tags/known-tags.ts'
import type { AcceptParts } from './accept.ts'
import type { RowParts } from './acceptance-rows.ts'
import { createArchiveNotes } from './archive.ts'
import {
  type ListExpander,
  NO_HABITS,
  NO_LISTS,
  NO_TRACKER,
  type RecipientHabits,
  type SandboxGate,
  type SourceChooser,
  type TemplateChooser,
  type TemplateRenderer,
  type Tracker,
} from './collaborators.ts'
import { makeCopy } from './copy.ts'
import type { LargeTexts } from './large-texts.ts'
import type { PastDeliveries } from './past-deliveries.ts'
import { describeDelivery, type PrepareParts, prepareDelivery, targetOf } from './prepare.ts'
import { createQueueLimits } from './queue-limits.ts'
import { createMessageRecords, type MessageRecords } from './records.ts'
import { createRetention, type Retention } from './retention.ts'
import type { ScheduledParts } from './scheduled.ts'
import type { SecondaryKeys } from './secondary-keys.ts'
import { createUnderWay } from './under-way.ts'

export interface SendingParts {
  store: Store
  blobs: BlobStore
  largeTexts: LargeTexts
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
  outbox: RowParts['outbox']
  /** Keeps what is needed of deliveries whose message is removed. */
  past: PastDeliveries
  templates?: TemplateChooser
  renderer?: TemplateRenderer
  tracker?: Tracker
  habits?: RecipientHabits
  lists?: ListExpander
  sandbox?: SandboxGate
  tags: Pick<KnownTags, 'admit'>
  /** Told of each message accepted by the API or SMTP, with the number of its copies. */
  accepted?(copies: number): void
  /** Deliveries that one queue of a domain may hold. */
  queuedMax?: number
  /** Further things to remove when old messages are. */
  sweepAlso?(): Promise<void>
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
  turnedAway: NonNullable<DeliveryParts['turnedAway']>
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

export function createSending(parts: SendingParts): Sending {
  const { store, blobs, clock, log, domains } = parts
  const records = createMessageRecords(store, blobs)
  const queueLimits = createQueueLimits({
    store,
    clock,
    ...(parts.queuedMax !== undefined && { max: parts.queuedMax }),
  })
  const underWay = createUnderWay()
  const archive = createArchiveNotes()
  const common = {
    ...parts,
    records,
    templates: parts.templates ?? NO_TEMPLATES,
    renderer: parts.renderer ?? NO_TEMPLATES,
    tracker: parts.tracker ?? NO_TRACKER,
    habits: parts.habits ?? NO_HABITS,
    lists: parts.lists ?? NO_LISTS,
    sandbox: parts.sandbox ?? { mayReceive: async () => true },
    queueLimits,
    underWay,
    archive,
  }
  return {
    records,
    accept: common,
    scheduled: common,
    retention: createRetention({
      store,
      records,
      blobs,
      domains,
      past: parts.past,
      clock,
      log,
      ...(parts.sweepAlso && { also: parts.sweepAlso }),
    }),
    prepare: (delivery) => prepareDelivery(common, delivery),
    describe: (delivery) => describeDelivery(common, delivery),
    consequences(delivery, events) {
      underWay.end(delivery)
      if (delivery.list_json === null) records.ended(delivery.message_pk)
      return archive.statements(delivery, events, clock.now())
    },
    turnedAway: (delivery) => underWay.end(delivery),
    bodyOf: (deliveryId) => bodyOf(common, deliveryId),
  }
}

/** The same delivery gives the same bytes each time (texts, files, tokens): so the copy is made once more. */
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
