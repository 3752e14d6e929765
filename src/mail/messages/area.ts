/**
 * Messages: from a request to rows (request/, accept/), from a row to the copy that is sent (compose/), and what is kept
 * afterwards (stored/). Everything is built in the order in which it is needed: what makes a copy, the engine that sends
 * copies, the expansion of lists, and acceptance, which hands mail to both.
 */

import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import type { MessageLimits } from '../../people/message-limits/limits.ts'
import { createSandboxGate } from '../../people/sandbox/gate.ts'
import { haveAgreed } from '../../people/sandbox/recipients.ts'
import type { SystemMail } from '../../people/users/mails.ts'
import { taskJob } from '../../platform/jobs/stepped-task.ts'
import { createPoster } from '../../platform/posts/post-attempts.ts'
import { removeRowsInPass } from '../../platform/store/account-rows.ts'
import { keptBounds } from '../../platform/store/kept-days.ts'
import type { CaptureListener } from '../../receiving/inbox/capture-listener.ts'
import type { ContentCheckArea } from '../../sending/content-check/area.ts'
import type { SigningKeys } from '../../sending/domains/keys/signing-keys.ts'
import type { IpsArea } from '../../sending/ips/area.ts'
import type { Sources } from '../../sending/ips/source-addresses.ts'
import type { ListsArea } from '../../sending/lists/area.ts'
import { cancelExpansions, createExpansionJob } from '../../sending/lists/expansion-job.ts'
import type { RelaysArea } from '../../sending/relays/area.ts'
import type { SuppressionCheck } from '../../sending/suppressions/check.ts'
import type { TemplatesArea } from '../../sending/templates/area.ts'
import { createHabits } from '../../watching/events/habits.ts'
import type { KnownTags } from '../../watching/tags/known-tags.ts'
import { type AcceptParts, acceptingStore } from '../accept/accept.ts'
import { createListExpander, memberStatements } from '../accept/list-recipients.ts'
import { createReceivedMailStore, type ReceivedMailStore } from '../accept/received-mail.ts'
import { createLargeTexts, type LargeTexts } from '../compose/large-texts.ts'
import { bodyOfDelivery, type PrepareParts } from '../compose/prepare.ts'
import { createSecondaryKeys } from '../compose/secondary-keys.ts'
import type { Tracker } from '../compose/tracker.ts'
import { returnPathMac } from '../deliver/attempt/return-path.ts'
import { transcriptRetention } from '../deliver/attempt/transcripts.ts'
import type { Delivery, DeliveryParts } from '../deliver/contract.ts'
import type { Overrides } from '../deliver/overrides/overrides.ts'
import type { Shaping } from '../deliver/shaping/shaping.ts'
import { createMessageRecords, type MessageRecords } from '../record/record.ts'
import { type ArchiveSenderParts, createArchiveNotes, createArchiveSender } from '../stored/archive.ts'
import { createAttemptsInProgress } from '../stored/in-progress.ts'
import { createRetention } from '../stored/message-retention.ts'
import { removeMail } from '../stored/on-domain-deleted.ts'
import { createPastDeliveries } from '../stored/past-deliveries.ts'
import { createQueueLimits, QUEUED_MESSAGES_MAX } from '../stored/queue-limits.ts'
import { followDroppedQueues } from '../stored/scheduled.ts'
import { type ConfirmationMail, createConfirmationMail } from './confirmation-mail.ts'
import { startEngine } from './engine.ts'
import { messageRoutes } from './routes.ts'
import { scheduledRoutes } from './scheduled-routes.ts'
import { createReportMail, createSystemMail, type ReportMail } from './system-mail.ts'

export interface MessagesArea extends Area {
  delivery: Delivery
  shaping: Shaping
  siteOverrides: Overrides
  records: MessageRecords
  sources: Sources
  blocks: IpsArea['blocks']
  accept: AcceptParts
  sendSystemMail: SystemMail
  sendReport: ReportMail
  /** Asks whether an address wants a mailing list. */
  sendConfirmation: ConfirmationMail
  /** For mail that is received for routes. */
  received: ReceivedMailStore
  largeTexts: LargeTexts
}

export interface MessagesUses {
  signingKeys: SigningKeys
  tags: KnownTags
  templates: Pick<TemplatesArea, 'templates' | 'renderer'>
  lists: ListsArea
  suppressions: SuppressionCheck
  tracker: Tracker
  judge: DeliveryParts['judge']
  capture: CaptureListener | null
  limits: MessageLimits
  ips: Pick<IpsArea, 'sources' | 'allowances' | 'blocks' | 'egress'>
  standings: DeliveryParts['standings']
  relays: RelaysArea['engineRelays']
  shaping: Shaping
  siteOverrides: Overrides
  content: Pick<ContentCheckArea, 'check' | 'holds'>
  countArchived: ArchiveSenderParts['countTaken']
}

/** What the process wants to know of sending, and what tests replace. */
export type SendingOverrides = Partial<
  Pick<AcceptParts, 'templates' | 'renderer' | 'tracker' | 'habits'> & {
    accepted: NonNullable<AcceptParts['accepted']>
    /** Deliveries that one queue of a domain may hold. */
    queuedMax: number
  }
>

export function messagesArea(core: Core, uses: MessagesUses, overrides: SendingOverrides): MessagesArea {
  const { config, log, clock, store, blobs, domains, recorder, leaseOwner } = core
  const { headerPrefix, storageUrl } = config
  const { shaping, siteOverrides, relays, limits, standings } = uses
  const { sources, allowances, blocks, egress } = uses.ips
  const preparing = partsOfCopies(core, uses, overrides)
  const { records, largeTexts, inProgress } = preparing
  const engine = startEngine(core, {
    ...{
      preparing,
      standings,
      sources,
      allowances,
      blocks,
      egress,
      relays,
      shaping,
      overrides: siteOverrides,
    },
    ...{ judge: uses.judge, capture: uses.capture },
  })
  const { delivery } = engine
  siteOverrides.onReleased(() => delivery.wake())
  const accepting = {
    ...preparing,
    ...{ sources, relays, limits, recorder, engine: delivery, store: acceptingStore(store, core.space) },
    habits: overrides.habits ?? createHabits({ store, clock }),
    accepted: overrides.accepted ?? null,
  }
  const expansions = expansionsOf(core, uses.lists, accepting)
  const { listDomains, store: lists } = uses.lists
  const accept: AcceptParts = {
    ...accepting,
    ...{ listDomains, tags: uses.tags, httpClient: core.httpClient, tracing: core.tracing },
    templates: overrides.templates ?? uses.templates.templates,
    lists: createListExpander({ store, lists, domains, wake: () => expansions.wake() }),
    queueLimits: createQueueLimits({ store, clock, max: overrides.queuedMax ?? QUEUED_MESSAGES_MAX }),
    headerPrefixes: [headerPrefix, ...config.headerPrefixAliases],
    allowUnverified: config.delivery.kind === 'capture',
  }
  const kept = keptBounds(config)
  const past = createPastDeliveries({ store, clock, keepDays: config.eventRetentionDays })
  const retention = createRetention({
    ...{ store, records, blobs, domains, past, clock, log },
    bounds: kept.messages,
    bytesMax: config.messageRetentionBytes,
  })
  const archive = createArchiveSender({
    ...{ store, clock, log },
    poster: createPoster(core.httpClient),
    bodyOf: (deliveryId) => bodyOfDelivery(preparing, deliveryId),
    countTaken: uses.countArchived,
    scheduleMs: config.webhookScheduleMs,
  })
  const { queueLimits } = accept
  const scheduled = {
    ...{ store, clock, records, storageUrl, recorder, queueLimits, inProgress, leaseOwner },
    engine: delivery,
  }
  followDroppedQueues(scheduled)
  const removeMailOf = removeMail({ store, blobs, records, storageUrl, recorder, clock })
  return {
    ...{ delivery, shaping, siteOverrides, records, sources, blocks, accept, largeTexts },
    received: createReceivedMailStore(accept),
    sendSystemMail: createSystemMail(core, accept),
    sendReport: createReportMail(core, accept),
    sendConfirmation: createConfirmationMail(accept),
    operations: [
      ...messageRoutes({ ...accept, limiter: core.limiter }),
      ...scheduledRoutes({ ...scheduled, domains, baseUrl: config.publicUrl }),
    ],
    jobs: [
      ...[
        expansions,
        archive.job,
        ...retention.jobs,
        transcriptRetention(store, clock, kept.dialogues, config.transcriptRetentionBytes),
      ],
      ...(shaping.job ? [shaping.job] : []),
      siteOverrides.job,
    ],
    async domainDeleted(domain) {
      // First, so that no copy of a post is made after the removal of the mail. The lists stay, for the day the domain is
      // made again (domains.md rule 24).
      await store.commit(cancelExpansions(domain.id))
      await removeMailOf(domain)
      await past.removeDomain(domain.id)
      await queueLimits.emptied(domain.id)
    },
    async accountDeleted(accountId, signal) {
      await removeRowsInPass(core, 'archive_outbox', 'id', accountId, signal)
      await removeRowsInPass(core, 'transcripts', 'delivery_id', accountId, signal)
    },
    start: () => delivery.start(),
    async stop() {
      await engine.stop()
      await siteOverrides.stop()
      await largeTexts.close()
    },
  }
}

/** What makes each recipient's copy of a message. */
function partsOfCopies(
  core: Core,
  { signingKeys, suppressions, templates, tracker, content }: MessagesUses,
  overrides: SendingOverrides,
): PrepareParts {
  const { config, sizes, clock, store, blobs, accounts, domains, resolver, sealer } = core
  return {
    ...{ store, blobs, accounts, domains, clock, signingKeys, suppressions },
    records: createMessageRecords(store, blobs, sizes.rememberedBytes),
    largeTexts: createLargeTexts(),
    renderer: overrides.renderer ?? templates.renderer,
    tracker: overrides.tracker ?? tracker,
    secondaryKeys: createSecondaryKeys({ signingKeys, domains, resolver }),
    sandbox: createSandboxGate({
      mode: config.delivery.kind,
      recipients: config.sandboxRecipients,
      domains,
      haveAgreed: (accountId, addresses) => haveAgreed(store, accountId, addresses),
    }),
    archive: createArchiveNotes(),
    inProgress: createAttemptsInProgress(),
    contentCheck: content.check,
    contentHolds: content.holds,
    returnPathMac: returnPathMac(sealer),
    headerPrefix: config.headerPrefix,
    storageUrl: config.storageUrl,
  }
}

/** Makes the copies of posts to lists. */
function expansionsOf(
  { store, clock, leaseOwner }: Core,
  lists: ListsArea,
  parts: Pick<AcceptParts, 'accepted' | 'engine' | 'limits'> & Parameters<typeof memberStatements>[0],
) {
  const job = createExpansionJob({
    store,
    lists: lists.store,
    clock,
    owner: leaseOwner,
    async insertDeliveries(expansion, members) {
      const counting = await parts.limits.statements(expansion.accountId, members.length)
      if (counting === null) return null
      parts.accepted?.(members.length)
      return [...(await memberStatements(parts, expansion, members)), ...counting]
    },
    inserted: () => parts.engine.wake(),
  })
  return taskJob('list-expansions', job.runOne)
}
