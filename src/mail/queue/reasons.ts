/** Why a delivery has not been sent yet, or how it ended, as a stable code and a sentence. Pure. */

import type { DeliveryRow } from '../../platform/store/schema.ts'
import {
  REASON_ACCOUNT_HELD,
  REASON_BLOCKED,
  REASON_LOCAL_FAULT,
  REASON_PROVIDER_PAUSED,
  REASON_WARMUP,
} from '../deliver/attempt/outcome.ts'
import type { LaneState } from '../deliver/contract.ts'
import type { DeliveryReason } from './shapes.ts'

/** Progress of a delivery that this process holds. */
export interface Progress {
  lane: LaneState | null
  begun: boolean
}

const quoted = (text: string | null) => (text ? `"${text}"` : 'no text')
const at = (ms: number) => new Date(ms).toISOString()

/** `lane`: the last lane of mail from this sending domain to this destination. */
export function reasonOf(
  row: DeliveryRow,
  progress: Progress | null,
  lane: LaneState | null,
  now: number,
): DeliveryReason {
  const answer = `${row.last_code ?? ''} ${quoted(row.last_reply)}`.trim()
  switch (row.state) {
    case 'delivered':
      return { code: 'delivered', sentence: `The receiving server took it: ${answer}.` }
    case 'bounced':
      return { code: row.reason, sentence: `It failed for good: ${answer}.` }
    case 'expired':
      return { code: 'old', sentence: `It could not be delivered in time; the last answer was ${answer}.` }
    case 'suppressed':
      return { code: row.reason, sentence: `The recipient is on a suppression list: ${answer}.` }
    case 'rejected':
      return { code: 'rejected', sentence: `It was rejected before delivery: ${row.reason}.` }
    case 'cancelled':
      return { code: 'cancelled', sentence: 'It was taken out of the queue on request.' }
    case 'sending':
      if (progress?.lane && !progress.begun) return waitingIn(progress.lane)
      return { code: 'sending', sentence: 'It is being handed over at this moment.' }
    case 'scheduled':
    case 'queued':
      return waiting(row, lane, now, answer)
  }
}

function waiting(row: DeliveryRow, lane: LaneState | null, now: number, answer: string): DeliveryReason {
  if (row.reason === REASON_ACCOUNT_HELD)
    return {
      code: REASON_ACCOUNT_HELD,
      sentence: `Its subaccount may not send; it waits for that to change, until its window ends at ${at(row.expires_at)}.`,
    }
  if (row.reason === 'paused') return { code: 'paused', sentence: 'It is paused until somebody resumes it.' }
  if (row.due_at > now && row.reason === REASON_LOCAL_FAULT) {
    const why = row.attempts === 0 && row.last_reply ? `: ${row.last_reply}` : ''
    const sentence = `This machine could not try it${why}; it is tried again at ${at(row.due_at)}, and no attempt is counted.`
    return { code: REASON_LOCAL_FAULT, sentence }
  }
  if (row.due_at > now && row.reason === REASON_WARMUP) {
    const sentence = `Its sending address is on warm-up and has no room before ${at(row.due_at)}; no attempt is counted.`
    return { code: REASON_WARMUP, sentence }
  }
  if (row.due_at > now && row.reason === REASON_BLOCKED) {
    const sentence = `The provider blocks every address that it may leave from. It is looked at again at ${at(row.due_at)}; no attempt is counted.`
    return { code: REASON_BLOCKED, sentence }
  }
  if (row.due_at > now && row.reason === REASON_PROVIDER_PAUSED) {
    const sentence = `The operator has paused mail to its destination. It is looked at again at ${at(row.due_at)}, or as soon as the pause ends; no attempt is counted.`
    return { code: REASON_PROVIDER_PAUSED, sentence }
  }
  if (row.due_at > now && row.attempts > 0) {
    if (row.due_at >= row.expires_at) {
      const sentence = `No further attempt fits before its window ends at ${at(row.expires_at)}; the last answer was ${answer}.`
      return { code: 'window-ends', sentence }
    }
    return {
      code: row.reason === 'greylisted' ? 'greylisted' : 'deferred',
      sentence: `The last attempt got ${answer}; the next one follows at ${at(row.due_at)}.`,
    }
  }
  if (row.due_at > now) {
    return { code: 'scheduled', sentence: `Its time has not come: it is to be sent at ${at(row.due_at)}.` }
  }
  return lane ? waitingIn(lane) : { code: 'next', sentence: 'It is due and is taken up within moments.' }
}

function waitingIn(lane: LaneState): DeliveryReason {
  const { name } = lane.info
  if (lane.backedOffUntil !== null) {
    return {
      code: 'lane-slowed',
      sentence: `Lane ${name} is slowed down until ${at(lane.backedOffUntil)}, since a server said ${quoted(lane.why)}.`,
    }
  }
  if (lane.messagesPerSecond !== null && lane.running < lane.connectionsMax) {
    return {
      code: 'lane-rate',
      sentence: `Lane ${name} sends ${lane.messagesPerSecond} messages a second at the most; it waits for its turn.`,
    }
  }
  return {
    code: 'lane-busy',
    sentence: `It waits for one of the ${lane.connectionsMax} connections of lane ${name}.`,
  }
}
