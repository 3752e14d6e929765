/**
 * What accounts other than the first see of a lane that they may share with others. A reply was provoked by anybody's mail, and
 * replies repeat recipients and sending domains; the reason of an order is for those who give orders.
 */

import type { Block } from '../../sending/ips/blocks/blocks.ts'
import type { LaneState } from '../deliver/contract.ts'
import type { Override } from '../deliver/overrides/overrides.ts'

/** Reply code and enhanced status code (RFC 3463 §2), in front of the text. */
const CODES = /^(?:[245]\d\d\b[ -]?)?(?:[245]\.\d{1,3}\.\d{1,3}\b)?/

/** The codes of a reply alone; null if it has none. */
export function codesOf(reply: string | null): string | null {
  return (
    CODES.exec(reply ?? '')?.[0]
      .trim()
      .replace('-', ' ') || null
  )
}

/** What the engine holds of a lane is of all accounts, so it is not counted. */
export const sharedLane = (lane: LaneState): LaneState => ({ ...lane, waiting: 0, why: codesOf(lane.why) })

export const sharedBlock = (block: Block): Block => ({ ...block, reply: codesOf(block.reply) ?? '' })

export const sharedOverride = (override: Override): Override => ({
  ...override,
  pause: override.pause && { ...override.pause, reason: '' },
})
