/** Why a delivery has not been sent yet, or how it ended, as a stable code and a sentence. Pure. */

import type { DeliveryRow } from '../../platform/store/schema.ts'
import {
  REASON_ACCOUNT_HELD,
  REASON_BLOCKED,
  REASON_CONTENT_CHECK,
  REASON_CONTENT_HELD,
  REASON_DAILY_BUDGET,
  REASON_LOCAL_FAULT,
  REASON_PROVIDER_PAUSED,
  REASON_PROXY_DOWN,
  REASON_RELAY_CLOSED,
  REASON_SEND_WINDOW,
  REASON_WARMUP,
} from '../deliver/attempt/outcome.ts'
import type { Delivery, LaneState } from '../deliver/contract.ts'
import type { DeliveryReason } from './shapes.ts'

const quoted = (text: string | null) => (text ? `"${text}"` : 'no text')
const at = (ms: number) => new Date(ms).toISOString()

/** `lane`: the last lane of mail from this sending domain to this destination. */
export function reasonOf(
  row: DeliveryRow,
  progress: ReturnType<Delivery['progressOf']>,
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

/** Reasons to wait that no server has given, until the delivery is due. */
const UNTIL_DUE: Readonly<Record<string, (row: DeliveryRow) => string>> = {
  [REASON_LOCAL_FAULT]: ({ due_at, attempts, last_reply }) => {
    const why = attempts === 0 && last_reply ? `: ${last_reply}` : ''
    return `This machine could not try it${why}; it is tried again at ${at(due_at)}, and no attempt is counted.`
  },
  [REASON_WARMUP]: ({ due_at }) =>
    `Its sending address is on warm-up and has no room before ${at(due_at)}; no attempt is counted.`,
  [REASON_BLOCKED]: ({ due_at }) =>
    `The provider blocks every address that it may leave from. It is looked at again at ${at(due_at)}; no attempt is counted.`,
  [REASON_RELAY_CLOSED]: ({ due_at }) =>
    `No relay that it may go to takes mail now. It is looked at again at ${at(due_at)}; no attempt is counted.`,
  [REASON_PROXY_DOWN]: ({ due_at }) =>
    `The proxy of every address that it may leave from has failed. It is tried again at ${at(due_at)}; no attempt is counted.`,
  [REASON_SEND_WINDOW]: ({ due_at }) =>
    `It is sent in certain hours only, the next of which begin at ${at(due_at)}; no attempt is counted.`,
  [REASON_CONTENT_CHECK]: ({ due_at }) =>
    `Its content is being checked. It is looked at again at ${at(due_at)}; no attempt is counted.`,
  [REASON_DAILY_BUDGET]: ({ due_at }) =>
    `Its account has used its budget of the day; it goes on at ${at(due_at)}.`,
  [REASON_CONTENT_HELD]: ({ expires_at }) =>
    `It is kept until the operator releases or drops it, or its window ends at ${at(expires_at)}.`,
  [REASON_PROVIDER_PAUSED]: ({ due_at }) =>
    `The operator has paused mail to its destination. It is looked at again at ${at(due_at)}, or as soon as the pause ends; no attempt is counted.`,
}

function waiting(row: DeliveryRow, lane: LaneState | null, now: number, answer: string): DeliveryReason {
  if (row.reason === REASON_ACCOUNT_HELD)
    return {
      code: REASON_ACCOUNT_HELD,
      sentence:
        row.due_at < row.expires_at
          ? `Its account or domain is slowed or held for what it sends; it goes on at ${at(row.due_at)}, or when the operator releases it.`
          : `Its account or domain may not send; it waits for that to change, until its window ends at ${at(row.expires_at)}.`,
    }
  if (row.reason === 'paused') return { code: 'paused', sentence: 'It is paused until somebody resumes it.' }
  const sentenceOf = row.due_at > now ? UNTIL_DUE[row.reason] : undefined
  if (sentenceOf) return { code: row.reason, sentence: sentenceOf(row) }
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
