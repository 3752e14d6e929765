/**
 * The gates before an attempt: reasons to wait that no server has given. They are asked before a connection of the lane is
 * taken, and once more when the message is prepared, since that may have taken long. The first closed one decides. A wait
 * is no attempt.
 *
 * - account: it, or its domain, may not send. Its release finds what it holds again (claim/account-holds.ts).
 * - pause: an operator has paused mail to the site, or to the domain.
 * - proxy: that of the lane's address has failed lately; all that waits in the lane leaves it.
 * - block: the provider takes no mail from the lane's address; all that waits in the lane leaves it.
 * - relay: it is closed, or was removed; all that waits in the lane leaves it.
 * - the turns of an account that is slowed, the messages of a day of a new account and of a relay, and of an hour of an
 *   address on warm-up. A message takes one of each when it passes, so these gates are the last, and are asked once.
 */
import { type MaybePromise, whenKnown } from '../../../base/flow/cache.ts'
import { localFaultOf } from '../../../base/process/system-fault.ts'
import type { Statement } from '../../../platform/store/store.ts'
import type { ClaimedDelivery } from '../claim/queue.ts'
import type { Allowed, DeliveryParts, NotTried, Prepared } from '../contract.ts'
import { type LaneInfo, sourceIp } from '../lanes/lanes.ts'
import {
  REASON_ACCOUNT_HELD,
  REASON_BLOCKED,
  REASON_PROVIDER_PAUSED,
  REASON_PROXY_DOWN,
  REASON_RELAY_CLOSED,
  REASON_WARMUP,
} from './outcome.ts'

export interface Wait {
  /** As in the delivery's row. */
  reason: string
  /** What has to wait. A delivery that waits for its site or its lane does not if it has another lane by now. */
  concerns: 'delivery' | 'site' | 'lane'
  /** Unix milliseconds; at most the end of the window, `until`. Where room is limited, it is taken. */
  dueAt(until: number): number
  /** The source key that it has from now on. Absent: as it is. */
  sourceKey?: string
  /** Its window, unless its sender has set it, is longer by this wait. */
  extendsWindow?: boolean
  /** For the transaction that makes the delivery wait. Absent: nothing. */
  also?: Statement[]
}

type GateParts = Pick<DeliveryParts, 'standings' | 'pauses' | 'egress' | 'blocks' | 'allowances' | 'relays'>

/** Null: open. `prepared` is null before the message is prepared. */
type Gate = (
  parts: GateParts,
  lane: LaneInfo,
  delivery: ClaimedDelivery,
  prepared: Prepared | null,
) => Wait | null

const GATES: readonly Gate[] = [
  ({ standings }, _lane, delivery, prepared) => {
    const until = standings.heldUntil(delivery)
    if (until !== null) return heldFor(REASON_ACCOUNT_HELD, until)
    return prepared?.kind === 'held'
      ? { reason: REASON_ACCOUNT_HELD, concerns: 'delivery', dueAt: (end) => end }
      : null
  },
  ({ pauses }, { site }, { recipient_domain }) =>
    pauses.pauseOf(site, recipient_domain)
      ? {
          reason: REASON_PROVIDER_PAUSED,
          concerns: 'site',
          dueAt: () => pauses.nextLook(site, recipient_domain),
        }
      : null,
  ({ relays }, { relay }) =>
    relay !== null && relays.isClosed(relay)
      ? { reason: REASON_RELAY_CLOSED, concerns: 'lane', dueAt: () => relays.nextFree(relay) }
      : null,
  ({ egress }, lane) => {
    const ip = sourceIp(lane)
    return ip !== null && egress.isDown(ip)
      ? { reason: REASON_PROXY_DOWN, concerns: 'lane', dueAt: () => egress.nextTry(ip) }
      : null
  },
  ({ blocks }, lane) => {
    const ip = sourceIp(lane)
    return ip !== null && blocks.isClosed(ip, lane.site)
      ? { reason: REASON_BLOCKED, concerns: 'lane', dueAt: () => blocks.nextFree(ip, lane.site) }
      : null
  },
]

/** The service keeps it waiting, so its window does not run on. */
const heldFor = (reason: string, dueAt: number): Wait => ({
  ...{ reason, concerns: 'delivery', dueAt: () => dueAt },
  extendsWindow: true,
})

/** The first closed gate; null: all are open. */
export function closedGate(
  parts: GateParts,
  lane: LaneInfo,
  delivery: ClaimedDelivery,
  prepared: Prepared | null,
): Wait | null {
  for (const gate of GATES) {
    const wait = gate(parts, lane, delivery, prepared)
    if (wait !== null) return wait
  }
  return null
}

/** Passes all gates, and takes what the last one has to give; null: nothing. Never rejects. */
export function passGates(parts: GateParts, lane: LaneInfo, delivery: ClaimedDelivery): Passed {
  const closed = closedGate(parts, lane, delivery, null)
  if (closed !== null) return closed
  const own = passAccount(parts, delivery)
  return own === null ? passLane(parts, lane) : alsoPass(own, () => passLane(parts, lane))
}

type Passed = MaybePromise<Wait | NotTried | Allowed | null>

function passLane(parts: GateParts, lane: LaneInfo): Passed {
  if (lane.relay === null) return passWarmup(parts, lane)
  return alsoPass(passRelay(parts, lane.relay), () => passWarmup(parts, lane))
}

/** The second is asked if the first gave something. */
const alsoPass = (first: Passed, second: () => Passed): Passed =>
  whenKnown(first, (given) => {
    if (given === null) return second()
    return 'giveBack' in given ? whenKnown(second(), (other) => bothOf(given, other)) : given
  })

/** What both give, or what the second waits for. */
function bothOf(day: Allowed, address: Wait | NotTried | Allowed | null): Wait | NotTried | Allowed {
  if (address === null) return day
  if (!('giveBack' in address)) {
    day.giveBack()
    return address
  }
  return {
    giveBack() {
      day.giveBack()
      address.giveBack()
    },
  }
}

function passAccount({ standings }: GateParts, delivery: ClaimedDelivery): Passed {
  const taken = standings.take(delivery)
  if (taken === undefined) return null
  const waits = () => {
    const { reason, dueAt } = standings.nextFree(delivery)
    return heldFor(reason, dueAt)
  }
  return allowedOr(taken, waits, 'the messages of the account cannot be read')
}

function passWarmup({ allowances }: GateParts, lane: LaneInfo): Passed {
  const ip = sourceIp(lane)
  const taken = ip === null ? undefined : allowances.take(ip, lane.site)
  if (ip === null || taken === undefined) return null
  const waits: Wait = {
    reason: REASON_WARMUP,
    concerns: 'site',
    dueAt: (until) => allowances.nextFree(ip, lane.site, until),
  }
  return allowedOr(taken, () => waits, 'the allowance of the sending address cannot be read')
}

function passRelay({ relays }: GateParts, relay: string): Passed {
  const taken = relays.take(relay)
  if (taken === undefined) return null
  const waits: Wait = {
    reason: REASON_RELAY_CLOSED,
    concerns: 'site',
    dueAt: () => relays.nextFree(relay),
  }
  return allowedOr(taken, () => waits, 'the count of the relay cannot be read')
}

function allowedOr(
  taken: MaybePromise<Allowed | null>,
  waits: () => Wait,
  fault: string,
): Promise<Wait | NotTried | Allowed> {
  const allowed = whenKnown(taken, (found) => found ?? waits())
  return Promise.resolve(allowed).catch((error: unknown) => ({ localFault: localFaultOf(error) ?? fault }))
}
