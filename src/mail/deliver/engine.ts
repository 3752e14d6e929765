/**
 * The delivery engine: what is due is claimed (claiming.ts), held in memory by lane (holding.ts), and attempted
 * (attempting.ts). Here the three are connected, started, paused and stopped.
 *
 *     acceptance -- reserve, enter --> holding -- waiting in a lane --> attempting -- settle --> database
 *     database   ------ claim ------->    ^                                 |
 *                                         +--- a slot is free: claim more --+
 */

import { failPoint } from '../../base/flow/fail-point.ts'
import type { Timer } from '../../base/time/clock.ts'
import { Attempting } from './attempt/attempting.ts'
import { Claiming } from './claim/claiming.ts'
import { LEASE_MS } from './claim/queue.ts'
import type { Delivery, DeliveryParts } from './contract.ts'
import { Admission, Holding } from './lanes/holding.ts'

const RENEW_EVERY_MS = LEASE_MS / 3
const RECLAIM_EVERY_MS = LEASE_MS / 4

export function createDelivery(parts: DeliveryParts): Delivery {
  const { queue, transport, clock, log } = parts
  const admission = new Admission(parts.mayClaim)
  // For good: nothing resumes it.
  if (parts.isOff) admission.pause()
  const holding: Holding = new Holding({
    ...parts,
    admission,
    onWaiting(lane, group) {
      attempting.advance(lane)
      if (holding.lanes.hasBacklog(group)) claiming.refillGroup(group)
    },
    onFree: (lane) => claiming.refill(lane),
    onGivenBack: () => claiming.wake(),
    onDoubt: () => claiming.doubted(),
  })
  const claiming = new Claiming({ ...parts, holding, admission })
  const attempting = new Attempting({
    delivery: parts,
    holding,
    admission,
    onEnded: (lane, sender) => claiming.slotFreed(lane, sender),
    onRequeued: (dueAt) => claiming.wakeAt(dueAt),
    onRecovered() {
      for (const lane of holding.lanes.all()) attempting.advance(lane)
      claiming.wake()
    },
  })
  const periodic: Timer[] = []

  function every(intervalMs: number, run: () => Promise<void>): void {
    const slot = periodic.length
    const arm = () => {
      periodic[slot] = clock.setTimer(intervalMs, () => {
        void run()
          .catch((error) => log.error({ err: error }, 'queue upkeep failed'))
          .finally(() => {
            if (!admission.stopping) arm()
          })
      })
    }
    arm()
  }

  async function reclaim(): Promise<void> {
    if ((await holding.reclaim()) > 0) claiming.wake()
  }

  /** Gives back all that has not begun, also what was being claimed or prepared just now. Only while nothing new begins. */
  async function giveBackAll(): Promise<void> {
    await holding.giveBack()
    await claiming.settled()
    await attempting.preparing.ended()
    await holding.giveBack()
  }

  return {
    async start() {
      if (parts.isOff) return
      const unsettled = await queue.reclaim(clock.now())
      attempting.started(unsettled > 0)
      failPoint('start-after-reclaim')
      every(RENEW_EVERY_MS, () => holding.renewLeases())
      every(RECLAIM_EVERY_MS, reclaim)
      claiming.wake()
    },
    wake: () => claiming.wake(),
    wakeAt: (dueAt) => claiming.wakeAt(dueAt),
    reserve: (group) => holding.reserve(group),
    inserted: (groups) => claiming.inserted(groups),
    lanes: () => holding.laneStates(),
    laneOfGroup: (group) => holding.laneStateOf(group),
    progressOf: (id) => holding.progressOf(id),
    shapingChanged() {
      transport.shapingChanged()
      for (const lane of holding.lanes.all()) {
        lane.setLimits(transport.limitsOf(lane.info))
        attempting.advance(lane)
      }
      claiming.wake()
    },
    laneFor: (delivery) => transport.laneOf(delivery),
    async whileIdle(run) {
      admission.pause()
      try {
        await giveBackAll()
        return await run()
      } finally {
        admission.resume()
        claiming.wake()
      }
    },
    slowDown: (lane, why, how) => holding.lanes.slowDown(lane, { at: clock.monotonic(), why, how }),
    leasesLost: () => holding.leasesLost(),
    async stop(drainMs) {
      admission.stopping = true
      claiming.stop()
      for (const timer of periodic) timer.cancel()
      await holding.giveBack()
      let timer: Timer | undefined
      const tooLong = new Promise<void>((resolve) => {
        timer = clock.setTimer(drainMs, resolve)
      })
      const drained = async () => {
        await giveBackAll()
        await holding.routing.ended()
        await attempting.running.ended()
      }
      await Promise.race([drained(), tooLong])
      timer?.cancel()
      await transport.close()
    },
  }
}
