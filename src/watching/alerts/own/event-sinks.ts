/** Event sinks that are far behind: what is older than they may be behind is skipped. */
import { MINUTE_MS, SECOND_MS } from '../../../base/time/durations.ts'
import type { EventSinkRow } from '../../../platform/store/schema.ts'
import type { EventSinksArea } from '../../event-sinks/area.ts'
import { settingsOf, stopOf } from '../../event-sinks/known-sinks.ts'
import { BEHIND_DEFAULT_SECONDS } from '../../event-sinks/shapes.ts'
import type { OwnCheck } from './own-check.ts'

const LIMIT_PERCENT = 25

export function eventSinksCheck(sinks: EventSinksArea['known']): OwnCheck {
  return {
    name: 'event-sink',
    description: 'An event sink is so far behind that it will miss events.',
    metric: 'event_sink_behind_percent',
    comparator: '>=',
    limit: String(LIMIT_PERCENT),
    dimension: 'sink',
    everyMs: 5 * MINUTE_MS,
    async read(now) {
      const rows = await sinks.list()
      const found = await Promise.all(rows.map(async (row) => ({ row, behindMs: await sinks.behindMs(row) })))
      return found.flatMap(({ row, behindMs }) => {
        const { behind_max_seconds: seconds = BEHIND_DEFAULT_SECONDS } = settingsOf(row)
        const behindMaxMs = seconds * SECOND_MS
        const percent = isMissing(row, behindMaxMs) ? 100 : Math.floor((100 * behindMs) / behindMaxMs)
        // One that works catches up, or was asked for all that is kept.
        const stop = stopOf(row)
        if (percent < LIMIT_PERCENT || stop === null) return []
        return {
          value: row.name,
          figure: String(percent),
          since: Math.min(stop.since, now),
          advice: `The event sink ${row.name} takes nothing (${stop.reason}), and is ${percent} % of the time behind after which events are skipped. ${skippedText(row)}GET /sendwright/v1/event-sinks/${row.name} shows its state; behind_max_seconds gives it more time.`,
        }
      })
    },
  }
}

/** Whether it has missed events and taken none since: those that it missed were older than `behindMaxMs` then. */
const isMissing = ({ sent_at: sentAt, skipped_to: to }: EventSinkRow, behindMaxMs: number) =>
  to !== null && (sentAt === null || Number(sentAt) < Number(to) + behindMaxMs)

function skippedText({ skipped, skipped_from: from, skipped_to: to }: EventSinkRow): string {
  if (Number(skipped) === 0) return ''
  const [first, last] = [from, to].map((ms) => new Date(Number(ms)).toISOString())
  return `${skipped} events from ${first} to ${last} were skipped. `
}
