import { localInput, startOfDay } from '../base/format.ts'

/** Spans that the form of a replay offers; `own`: as typed. */
export const REPLAY_SPANS = ['hour', 'day', 'today', 'yesterday', 'own'] as const
export type ReplaySpanName = (typeof REPLAY_SPANS)[number]

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000

/** Values of two inputs of type datetime-local, in the reader's zone. The end of a span that lasts is a minute ahead. */
export function replayTimes(span: Exclude<ReplaySpanName, 'own'>, now: Date): { from: string; to: string } {
  const soon = new Date(now.getTime() + MINUTE_MS)
  const times = {
    hour: [new Date(now.getTime() - HOUR_MS), soon],
    day: [new Date(now.getTime() - 24 * HOUR_MS), soon],
    today: [new Date(startOfDay(now.getTime())), soon],
    yesterday: [new Date(startOfDay(now.getTime(), -1)), new Date(startOfDay(now.getTime()))],
  } as const
  const [from, to] = times[span]
  return { from: localInput(from.getTime()), to: localInput(to.getTime()) }
}
