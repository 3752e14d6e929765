/** Builds the delivery engine: where mail goes, what it is made of, and what its outcome writes. */

import type { Core } from '../../core.ts'
import { connectSmtp } from '../../protocols/smtp/client.ts'
import { passwordLogin } from '../../protocols/smtp/login.ts'
import type { CaptureListener } from '../../receiving/inbox/capture-listener.ts'
import type { Sources } from '../../sending/ips/source-addresses.ts'
import { bounceConsequences } from '../../sending/suppressions/automatic.ts'
import { describeDelivery, type PrepareParts, prepareDelivery } from '../compose/prepare.ts'
import { transcriptStatement } from '../deliver/attempt/transcripts.ts'
import { createQueue } from '../deliver/claim/queue.ts'
import { createSystemSources } from '../deliver/connect/address-families.ts'
import { deniedHosts } from '../deliver/connect/denied-hosts.ts'
import type { Egress } from '../deliver/connect/egress.ts'
import { onlyRelay } from '../deliver/connect/fixed-relays.ts'
import { createStoredPolicies } from '../deliver/connect/receiver-tls.ts'
import type { DirectHop } from '../deliver/connect/routing.ts'
import { createTlsCounts } from '../deliver/connect/tls-counts.ts'
import { createTransport } from '../deliver/connect/transport.ts'
import type { Delivery, DeliveryParts, Relays, Standings } from '../deliver/contract.ts'
import { createDelivery } from '../deliver/engine.ts'
import type { SlowDown } from '../deliver/lanes/pacing.ts'
import type { Overrides } from '../deliver/overrides/overrides.ts'
import type { Shaping } from '../deliver/shaping/shaping.ts'
import { acrossNodes } from './across-nodes.ts'

export interface EngineUses {
  preparing: PrepareParts
  sources: Sources
  standings: DeliveryParts['standings']
  allowances: DeliveryParts['allowances']
  blocks: DeliveryParts['blocks']
  egress: Egress
  judge: DeliveryParts['judge']
  relays: Relays
  capture: CaptureListener | null
  shaping: Shaping
  overrides: Overrides
}

/** Captured mail harms nobody. */
const NOTHING_STOPPED: Standings = {
  heldUntil: () => null,
  take: () => undefined,
  nextFree: () => ({ reason: '', dueAt: 0 }),
}
/** Attempts get this long to end on a stop; R12 allows 30 s for all of it. */
const DRAIN_MS = 20_000
const SLOWED = 'lane-slowed'

/** `stop` waits for the attempts in flight. */
export function startEngine(
  core: Core,
  {
    preparing,
    standings,
    sources,
    allowances,
    blocks,
    egress,
    relays,
    judge,
    capture,
    shaping,
    overrides,
  }: EngineUses,
): { delivery: Delivery; stop(): Promise<void> } {
  const { config, clock, random, log, store, space, recorder, leaseOwner, nodes } = core
  const { records, inProgress, archive } = preparing
  const tlsCounts = createTlsCounts(store, clock)
  const mailRelays = capture === null ? relays : captureRelay(capture)
  const transport = createTransport({
    direct: directHop(core),
    relays: mailRelays,
    heloName: config.hostname,
    clock,
    random,
    sourceOf: sources.sourceOf,
    shaping: shaping.current,
    limitsOf: overrides.limitsOf,
    tlsCounts,
    tlsOptions: {},
    // Captured mail stays on this machine, whatever address it would leave from.
    egress: capture === null ? egress : { wayFrom: () => ({}) },
    connect: connectSmtp,
    memory: core.bodiesOut,
    isCaptured: capture !== null,
  })
  const delivery = createDelivery({
    queue: createQueue(store, leaseOwner, recorder),
    transport,
    standings: capture === null ? standings : NOTHING_STOPPED,
    allowances,
    blocks,
    egress,
    relays: mailRelays,
    pauses: overrides,
    poolOf: sources.poolOf,
    prepare: (claimed) => prepareDelivery(preparing, claimed),
    describe: (claimed) => describeDelivery(preparing, claimed),
    requeued: (claimed) => inProgress.end(claimed),
    consequences(claimed, events, outcome, suppression) {
      inProgress.end(claimed)
      if (claimed.list_json === null) records.ended(claimed.message_pk)
      return [
        ...archive.statements(claimed, events, clock.now()),
        ...bounceConsequences(claimed, events, outcome, suppression),
      ]
    },
    keepTranscript: (claimed, result) => transcriptStatement(config.transcripts, claimed, result),
    isCurrent: () => nodes.isCurrent(),
    share: () => nodes.deliveryShare(),
    slowedDown: (lane, why, how) => store.changes.hint(SLOWED, JSON.stringify({ lane, why, how })),
    isElsewhere: store.kind === 'postgres' && config.sourceAddresses.length > 0 ? sources.isElsewhere : null,
    isOff: !config.roles.includes('delivery'),
    mayClaim: () => space.mayClaim && store.fault() === null,
    clock,
    log,
    random,
    retryScheduleMs: config.retryScheduleMs,
    tracing: core.tracing,
    judge,
  })
  shaping.onChange(delivery.shapingChanged)
  overrides.onChange(delivery.shapingChanged)
  store.changes.follow(SLOWED, (text) => {
    if (text === null) return
    const { lane, why, how } = JSON.parse(text) as { lane: string; why: string; how: SlowDown }
    delivery.slowDown(lane, why, how)
  })
  nodes.onTakenOver(() => delivery.leasesLost())
  nodes.onReturned(() => delivery.wake())
  return {
    delivery: acrossNodes(delivery, store.changes, clock),
    async stop() {
      await delivery.stop(DRAIN_MS)
      await tlsCounts.close()
    },
  }
}

/** The inbox is served by the same processor: more at a time would gain nothing. */
const CAPTURE_CONNECTIONS = 20

/** Capture is a relay like any other: the listener of our own inbox. */
function captureRelay({ host, port, auth }: CaptureListener): Relays {
  return onlyRelay({
    ...{ name: 'capture', site: 'relay', host, port, auth: passwordLogin(auth) },
    ...{ tls: 'wanted', verify: false, sizeMax: null, revision: 0 },
    limits: { connections: CAPTURE_CONNECTIONS, messagesPerConnection: 100, messagesPerSecond: null },
  })
}

function directHop({ config, clock, store, resolver, allow }: Core): DirectHop {
  const isChecked = config.requireFcrdns !== 'off' && config.sourceAddresses.length === 0
  return {
    ...{ port: config.mxPort, resolver, allow, deny: deniedHosts(config.mxDeny) },
    systemSources: isChecked ? createSystemSources({ resolver, clock }) : undefined,
    policies: createStoredPolicies({ store, resolver, clock, allow }),
  }
}
