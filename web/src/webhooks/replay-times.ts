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
    today: [midnight(now, 0), soon],
    yesterday: [midnight(now, -1), midnight(now, 0)],
  } as const
  const [from, to] = times[span]
  return { from: localTime(from), to: localTime(to) }
}

/** The beginning of the day; days of the calendar may have 23 or 25 hours. */
const midnight = (now: Date, days: number) =>
  new Date(now.getFullYear(), now.getMonth(), now.getDate() + days)

function localTime(time: Date): string {
  const zoneMs = time.getTimezoneOffset() * MINUTE_MS
  return new Date(time.getTime() - zoneMs).toISOString().slice(0, 16)
}
