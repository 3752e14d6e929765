/**
 * Messages: from a request to rows (request/, acceptance/), from a row to the copy that is sent (composing/), and what
 * is kept afterwards (stored/). The engine that delivers is built here as well (mail/messages/engine.ts).
 */

import type { Area } from '../../area.ts'
import { failPoint } from '../../base/flow/fail-point.ts'
import type { Core } from '../../core.ts'
import type { MessageLimits } from '../../people/message-limits/limits.ts'
import { createSandboxGate } from '../../people/sandbox/gate.ts'
import { haveAgreed } from '../../people/sandbox/recipients.ts'
import type { SystemMail } from '../../people/users/mails.ts'
import { taskJob } from '../../platform/jobs/stepped-task.ts'
import { createPoster } from '../../platform/posts/post-attempts.ts'
import { removeRowsInPass } from '../../platform/store/account-rows.ts'
import type { FreeSpace } from '../../platform/store/blobs/free-space.ts'
import type { Store } from '../../platform/store/store.ts'
import { createSigners } from '../../protocols/dkim/signing-pool/signers.ts'
import type { CaptureListener } from '../../receiving/inbox/capture-listener.ts'
import type { SigningKeys } from '../../sending/domains/keys/signing-keys.ts'
import { isProven, ownerOf } from '../../sending/domains/names/name-owner.ts'
import type { IpsArea } from '../../sending/ips/area.ts'
import type { Sources } from '../../sending/ips/source-addresses.ts'
import type { ListsArea } from '../../sending/lists/area.ts'
import { cancelExpansions, createExpansionJob } from '../../sending/lists/expansion-job.ts'
import type { SuppressionCheck } from '../../sending/suppressions/check.ts'
import type { TemplatesArea } from '../../sending/templates/area.ts'
import { createHabits } from '../../watching/events/habits.ts'
import type { KnownTags } from '../../watching/tags/known-tags.ts'
import type { AcceptParts } from '../accept/accept.ts'
import { sendTemplates } from '../accept/chosen-templates.ts'
import type { Tracker } from '../accept/collaborators.ts'
import { createListExpander, memberStatements } from '../accept/list-recipients.ts'
import { createReceivedMail, type ReceivedMail } from '../accept/received-mail.ts'
import { createLargeTexts, type LargeTexts } from '../compose/large-texts.ts'
import { createSecondaryKeys } from '../compose/secondary-keys.ts'
import { transcriptRetention } from '../deliver/attempt/transcripts.ts'
import type { Delivery, DeliveryParts } from '../deliver/contract.ts'
import { type Overrides, openOverrides } from '../deliver/overrides/overrides.ts'
import type { Shaping } from '../deliver/shaping/shaping.ts'
import { type ArchiveSenderParts, createArchiveSender } from '../stored/archive.ts'
import { removeMail } from '../stored/on-domain-deleted.ts'
import { createPastDeliveries } from '../stored/past-deliveries.ts'
import { followDroppedQueues } from '../stored/scheduled.ts'
import { startEngine } from './engine.ts'
import { messageRoutes } from './routes.ts'
import { scheduledRoutes } from './scheduled-routes.ts'
import { createSending, type Sending, type SendingParts } from './sending.ts'
import { createSystemMail, createTlsReportMail, type TlsReportMail } from './system-mail.ts'

export interface MessagesArea extends Area {
  delivery: Delivery
  shaping: Shaping
  siteOverrides: Overrides
  sending: Sending
  sources: Sources
  blocks: IpsArea['blocks']
  /** For SMTP submission. */
  accept: AcceptParts & { headerPrefixes: readonly string[] }
  sendSystemMail: SystemMail
  sendTlsReport: TlsReportMail
  /** For mail that is received for routes. */
  received: ReceivedMail
  largeTexts: LargeTexts
}

export interface MessagesUses {
  signingKeys: SigningKeys
  tags: KnownTags
  templates: TemplatesArea
  lists: ListsArea
  suppressions: SuppressionCheck
  tracker: Tracker
  judge: DeliveryParts['judge']
  capture: CaptureListener | null
  limits: MessageLimits
  ips: Pick<IpsArea, 'sources' | 'allowances' | 'blocks'>
  shaping: Shaping
  countArchived: ArchiveSenderParts['countTaken']
}

/** Areas as sending sees them, which tests replace. */
export type SendingOverrides = Partial<
  Pick<SendingParts, 'templates' | 'renderer' | 'tracker' | 'habits' | 'lists' | 'queuedMax' | 'accepted'>
>

export async function messagesArea(
  core: Core,
  uses: MessagesUses,
  overrides: SendingOverrides,
): Promise<MessagesArea> {
  const { config, sizes, log, clock, store, blobs, space, domains, recorder } = core
  const { headerPrefix, headerPrefixAliases, storageUrl } = config
  const signers = createSigners({
    ...sizes.signing,
    onError: (err) => log.error({ err }, 'a signing thread has failed'),
  })
  const largeTexts = createLargeTexts()
  const past = createPastDeliveries({ store, clock, keepDays: config.eventRetentionDays })
  const { sources, allowances, blocks } = uses.ips
  const { shaping } = uses
  const sending = createSending({
    ...core,
    largeTexts,
    past,
    signers,
    sources,
    signingKeys: uses.signingKeys,
    suppressions: uses.suppressions,
    tags: uses.tags,
    tracker: uses.tracker,
    limits: uses.limits,
    storedBytesMax: config.messageRetentionBytes,
    rememberedBytesMax: sizes.rememberedBytes,
    ...sendTemplates(uses.templates.templates, uses.templates.renderer),
    lists: createListExpander({
      store,
      lists: uses.lists.store,
      listDomains: uses.lists.listDomains,
      domains,
      wake: () => expansions.wake(),
    }),
    secondaryKeys: createSecondaryKeys({
      signingKeys: uses.signingKeys,
      ownsAuthority: async (accountId, name) => (await domains.byName(name))?.accountId === accountId,
      async isForeign(accountId, name) {
        const owner = await ownerOf(domains, name)
        return owner !== null && isProven(owner) && owner.accountId !== accountId
      },
      txt: async (name) => (await core.resolver.query(name, 'TXT')).records,
    }),
    habits: createHabits({ store, clock }),
    sandbox: createSandboxGate({
      mode: config.delivery.kind,
      recipients: config.sandboxRecipients,
      domains,
      haveAgreed: (accountId, addresses) => haveAgreed(store, accountId, addresses),
    }),
    returnPathMac: (data) => core.sealer.mac('return-path', data),
    headerPrefix,
    storageUrl,
    allowUnverified: config.delivery.kind === 'capture',
    // Built below: it needs what sending gives.
    engine: {
      reserve: (group) => engine.delivery.reserve(group),
      inserted: (groups) => engine.delivery.inserted(groups),
      wake: () => engine.delivery.wake(),
      wakeAt: (dueAt) => engine.delivery.wakeAt(dueAt),
    },
    ...overrides,
  })
  const siteOverrides = await openOverrides(core)
  const engine = startEngine(core, {
    ...{ sending, sources, allowances, blocks, shaping, overrides: siteOverrides },
    ...{ judge: uses.judge, capture: uses.capture },
  })
  siteOverrides.onReleased(() => engine.delivery.wake())
  const expansions = expansionsOf(core, uses.lists, sending)
  followDroppedQueues(sending.scheduled)
  const archive = createArchiveSender({
    store,
    poster: createPoster(core.httpClient),
    bodyOf: sending.bodyOf,
    countTaken: uses.countArchived,
    clock,
    log,
    scheduleMs: config.webhookScheduleMs,
  })
  const accept = {
    ...sending.accept,
    store: guarded(store, space),
    headerPrefixes: [headerPrefix, ...headerPrefixAliases],
  }
  const removeMailOf = removeMail({
    store,
    blobs,
    records: sending.records,
    storageUrl,
    recorder,
    now: () => clock.now(),
  })
  return {
    largeTexts,
    received: createReceivedMail({
      ...core,
      store: guarded(store, space),
      sources,
      storageUrl,
      engine: engine.delivery,
      limits: uses.limits,
      lists: sending.accept.lists,
    }),
    delivery: engine.delivery,
    shaping,
    siteOverrides,
    sending,
    sources,
    blocks,
    accept,
    sendSystemMail: createSystemMail(core, accept),
    sendTlsReport: createTlsReportMail(core, accept),
    operations: [
      ...messageRoutes({ ...accept, limiter: core.limiter }),
      ...scheduledRoutes({ ...sending.scheduled, domains, baseUrl: config.publicUrl }),
    ],
    jobs: [
      ...[expansions, archive.job, sending.retention.job, transcriptRetention(store, clock)],
      ...(shaping.job ? [shaping.job] : []),
      siteOverrides.job,
    ],
    async domainDeleted(domain) {
      // First, so that no copy of a post is made after the removal of the mail. The lists stay, for the day the domain is
      // made again (domains.md rule 24).
      await store.commit(cancelExpansions(domain.id))
      await removeMailOf(domain)
      await past.removeDomain(domain.id)
      await sending.accept.queueLimits.emptied(domain.id)
    },
    async accountDeleted(accountId, signal) {
      await removeRowsInPass(core, 'archive_outbox', 'id', accountId, signal)
      await removeRowsInPass(core, 'transcripts', 'delivery_id', accountId, signal)
    },
    start: () => engine.delivery.start(),
    async stop() {
      await engine.stop()
      await siteOverrides.stop()
      await largeTexts.close()
      await signers.close()
    },
  }
}

/** Makes the copies of posts to lists. */
function expansionsOf({ store, clock, leaseOwner }: Core, lists: ListsArea, { accept }: Sending) {
  const job = createExpansionJob({
    store,
    lists: lists.store,
    clock,
    owner: leaseOwner,
    async insertDeliveries(expansion, members) {
      const counting = await accept.limits.statements(expansion.accountId, members.length)
      if (counting === null) return null
      accept.accepted?.(members.length)
      return [...(await memberStatements(accept, expansion, members)), ...counting]
    },
    inserted: () => accept.engine.wake(),
  })
  return taskJob('list-expansions', job.runOne)
}

/** The store as acceptance sees it: nothing is taken in below the floor of free space. */
function guarded(store: Store, space: FreeSpace): Store {
  return {
    ...store,
    async commit(unit) {
      space.check()
      failPoint('accept-before-commit')
      const results = await store.commit(unit)
      failPoint('accept-after-commit')
      return results
    },
  }
}
