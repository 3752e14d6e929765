/** Puts together captured mail, and the way of a message from acceptance to a server. */
import { networkInterfaces } from 'node:os'
import { createCredentials } from '../accounts/credentials.ts'
import { failPoint } from '../base/fail-point.ts'
import { newId } from '../base/ids.ts'
import type { Cidr } from '../base/ip.ts'
import type { Delivery } from '../delivery/contract.ts'
import { createDelivery } from '../delivery/engine.ts'
import { inTurns } from '../delivery/large-messages.ts'
import { createQueue } from '../delivery/queue.ts'
import { startRetention } from '../delivery/retention.ts'
import { deliveryOfReturnPath } from '../delivery/return-path.ts'
import { createStoredPolicies } from '../delivery/stored-policies.ts'
import { createTlsResults } from '../delivery/tls-results.ts'
import { transcriptStatement } from '../delivery/transcript.ts'
import { createTransport, type Routing } from '../delivery/transport.ts'
import { createSigners } from '../dkim/signers.ts'
import type { Resolver } from '../dns/resolver.ts'
import { createSigningKeys } from '../domain-keys/signing-keys.ts'
import { createHabits } from '../events/habits.ts'
import { createIdempotency } from '../http/idempotency.ts'
import { createFaults } from '../inbox/faults.ts'
import { createInbox } from '../inbox/inbox.ts'
import { createMailReader } from '../inbox/large-mail.ts'
import { type CaptureListener, startCaptureListener } from '../inbox/listener.ts'
import { createListDomains } from '../lists/list-domains.ts'
import { createListStore } from '../lists/store.ts'
import { createArchiveSender } from '../messages/archive.ts'
import { createKnownDeliveries } from '../messages/known-deliveries.ts'
import { createLargeTexts } from '../messages/large-texts.ts'
import { createListExpander } from '../messages/lists.ts'
import { createPastDeliveries } from '../messages/past-deliveries.ts'
import { createSandboxGate } from '../messages/sandbox.ts'
import { createSecondaryKeys } from '../messages/secondary-keys.ts'
import { createSending } from '../messages/sending.ts'
import { createSources } from '../messages/sources.ts'
import type { FreeSpace } from '../store/free-space.ts'
import type { Store } from '../store/store.ts'
import { bounceConsequences } from '../suppressions/automatic.ts'
import { createSuppressionCheck } from '../suppressions/check.ts'
import { createImports } from '../suppressions/import.ts'
import { createKnownTags } from '../tags/known-tags.ts'
import type { Bounces } from './bounces.ts'
import type { Closers, Core, SendingOverrides } from './core.ts'
import { startExpansions } from './lists.ts'
import type { Outgoing } from './outgoing.ts'
import type { TrackingComposition } from './tracking.ts'

/** Attempts get this long to end on a stop; R12 allows 30 s for all of it. */
export const DRAIN_MS = 20_000

/** The parts behind the API: captured mail, and the way of a message from acceptance to a server. */
export async function startMail(
  core: Core,
  { resolver, allow, webhooks, poster }: Outgoing,
  tracking: TrackingComposition,
  bounces: Bounces,
  open: Closers,
  overrides: SendingOverrides,
) {
  const { config, log, clock, random, store, blobs, space, sealer, domains } = core
  const { headerPrefix, storageUrl } = config
  const returnPathMac = (data: Uint8Array) => sealer.mac('return-path', data)
  const reader = createMailReader()
  open.push(() => reader.close())
  const inbox = createInbox({
    store,
    blobs,
    clock,
    headerPrefix,
    ownerOf: (returnPath) => ownerOf(store, deliveryOfReturnPath(returnPath, returnPathMac)),
    reader,
  })
  const faults = createFaults(store, clock, random)
  let capture: CaptureListener | null = null
  if (config.delivery.kind === 'capture') {
    const recipientOf = (returnPath: string) =>
      recipientOfDelivery(store, deliveryOfReturnPath(returnPath, returnPathMac))
    const listener = await startCaptureListener(inbox.receive, log, { faults, recipientOf })
    open.push(() => listener.close())
    capture = listener
  }
  const signingKeys = createSigningKeys(store, sealer, clock)
  const signers = createSigners({ onError: (err) => log.error({ err }, 'a signing thread has failed') })
  open.push(() => signers.close())
  const largeTexts = createLargeTexts()
  open.push(() => largeTexts.close())
  const leaseOwner = newId()
  const listDomains = createListDomains(store, clock)
  const idempotency = createIdempotency({ store, clock, sealer })
  const past = createPastDeliveries({ store, clock, keepDays: config.eventRetentionDays })
  const known = createKnownDeliveries({ store, domains, storageUrl })
  const { tagsPerDomainMax: perDomain, tagsPerAccountMax: perAccount } = config
  const tags = createKnownTags({ store, clock, limits: { perDomain, perAccount } })
  const sources = createSources({
    configured: config.sourceAddresses,
    hostAddresses: hostAddresses(),
    firstAccountId: core.firstAccountId,
  })
  const sending = createSending({
    ...core,
    largeTexts,
    past,
    lists: createListExpander({
      store,
      lists: createListStore(store),
      listDomains,
      domains,
      wake: () => expanding.wake(),
    }),
    signingKeys,
    signers,
    suppressions: createSuppressionCheck(store, clock),
    secondaryKeys: createSecondaryKeys({
      signingKeys,
      ownsAuthority: async (accountId, name) => (await domains.byName(name))?.accountId === accountId,
      txt: async (name) => (await resolver.query(name, 'TXT')).records,
    }),
    sources,
    habits: createHabits({ store, clock }),
    tags,
    sandbox: createSandboxGate({
      mode: config.delivery.kind,
      recipients: config.sandboxRecipients,
      domains,
    }),
    returnPathMac,
    headerPrefix,
    storageUrl,
    allowUnverified: config.delivery.kind === 'capture',
    leaseOwner,
    // Made below: it needs what sending gives.
    engine: {
      reserve: (group) => delivery.reserve(group),
      inserted: (groups) => delivery.inserted(groups),
      wake: () => delivery.wake(),
      wakeAt: (dueAt) => delivery.wakeAt(dueAt),
    },
    outbox: (events) => webhooks.outboxStatements(events),
    sweepAlso: async () => {
      await idempotency.sweep()
      await tracking.links.removeOld()
    },
    tracker: tracking.tracker,
    ...overrides,
  })
  const tlsResults = createTlsResults(store, clock)
  open.push(() => tlsResults.close())
  const retention = startRetention(store, clock, (err) => log.error({ err }, 'cannot remove old dialogues'))
  open.push(() => retention.close())
  const delivery: Delivery = createDelivery({
    queue: createQueue(store, leaseOwner),
    transport: inTurns(
      core.bodiesOut,
      capture !== null,
      createTransport({
        routing: routingOf(core, capture, resolver, allow),
        heloName: config.hostname,
        clock,
        random,
        sourceOf: sources.sourceOf,
        tlsResults,
      }),
    ),
    prepare: sending.prepare,
    describe: sending.describe,
    turnedAway: sending.turnedAway,
    consequences: (claimed, events, outcome) => [
      ...sending.consequences(claimed, events, outcome),
      ...bounceConsequences(claimed, events, outcome),
      ...bounces.count(events),
      ...webhooks.outboxStatements(events),
    ],
    keepTranscript: (claimed, result) => transcriptStatement(config.transcripts, claimed, result),
    mayClaim: () => space.mayClaim && store.fault() === null,
    clock,
    log,
    random,
    retryScheduleMs: config.retryScheduleMs,
    judge: bounces.judge,
  })
  open.push(() => delivery.stop(DRAIN_MS))
  const expanding = startExpansions(core, sending, open)
  const archive = createArchiveSender({
    store,
    poster,
    bodyOf: sending.bodyOf,
    clock,
    log,
    scheduleMs: config.webhookScheduleMs,
  })
  open.push(() => archive.stop())
  archive.start()
  sending.retention.start()
  open.push(() => sending.retention.stop())
  const credentials = createCredentials(store, sealer, clock)
  const imports = createImports({ store, blobs, clock, log })
  open.push(() => imports.stop())
  const own = {
    inbox,
    faults,
    delivery,
    sending,
    sources,
    idempotency,
    signingKeys,
    credentials,
    imports,
    listDomains,
    past,
    known,
    tags,
  }
  return { ...own, resolver, allow }
}

export type Mail = Awaited<ReturnType<typeof startMail>>

/** The inbox is served by the same processor: more at a time would gain nothing. */
const CAPTURE_CONNECTIONS = 20

/** Capture is a relay like any other: the listener of our own inbox. */
function routingOf(
  { config, clock, store }: Core,
  capture: CaptureListener | null,
  resolver: Resolver,
  allow: readonly Cidr[],
): Routing {
  if (capture) {
    const { host, port, auth } = capture
    return { kind: 'relay', host, port, auth, connections: CAPTURE_CONNECTIONS }
  }
  if (config.delivery.kind === 'relay') return { ...config.delivery, connections: config.relayConnections }
  const policies = createStoredPolicies({ store, resolver, clock, allow })
  return { kind: 'direct', port: config.mxPort, resolver, allow, policies }
}

export function hostAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address))
}

/** The store as those see it who accept mail: nothing is taken in below the floor of free space. */
export function guarded(store: Store, space: FreeSpace): Store {
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

async function recipientOfDelivery(store: Store, deliveryId: string | null): Promise<string | null> {
  if (!deliveryId) return null
  const row = await store.db
    .selectFrom('deliveries')
    .select('recipient')
    .where('id', '=', deliveryId)
    .executeTakeFirst()
  return row?.recipient ?? null
}

async function ownerOf(store: Store, deliveryId: string | null) {
  if (!deliveryId) return null
  const row = await store.db
    .selectFrom('deliveries')
    .innerJoin('messages', 'messages.id', 'deliveries.message_pk')
    .select(['deliveries.account_id', 'deliveries.variables_json', 'deliveries.list_json'])
    .select(['messages.domain_name', 'messages.id as message_pk'])
    .where('deliveries.id', '=', deliveryId)
    .executeTakeFirst()
  if (!row) return null
  // In batch mode every recipient's copy is a stored message of its own.
  const batch = row.variables_json !== null && row.list_json === null
  const storageKey = batch ? deliveryId : row.message_pk
  return { deliveryId, accountId: row.account_id, domainName: row.domain_name, storageKey }
}
