/**
 * The two queues of a domain: `scheduled` holds mail that is not due yet, `regular` all other. One with
 * too many messages is disabled for an hour (messages.md rule 47).
 */
import { sql } from 'kysely'
import { type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import type { Clock } from '../../base/time/clock.ts'
import { formatGmt } from '../../base/time/dates.ts'
import type { Store } from '../../platform/store/store.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { Queues } from './shapes.ts'

export type QueueName = keyof Queues

export type QueueLimits = ReturnType<typeof createQueueLimits>

export const QUEUE_DISABLED_REASON = 'You have too many messages in queue'
const DISABLED_MS = 3_600_000
/** How long a count is used; what this process adds meanwhile is added to it. */
const COUNT_MS = 10_000
const DOMAINS_MAX = 10_000
/** Deliveries of one domain in one queue: about 1 GB of rows, far more than a domain sends in a day. */
export const QUEUED_MESSAGES_MAX = 1_000_000

// With exactly the condition of the partial index: SQLite does not see that a narrower one implies it, and reads the table.
const SCHEDULED = sql<boolean>`state in ('scheduled', 'queued', 'sending') and state = 'scheduled'`
const REGULAR = sql<boolean>`state in ('scheduled', 'queued', 'sending') and state <> 'scheduled'`

interface Counted {
  until: number
  /** Deliveries in the longer queue at the last count, plus what was added since. */
  waiting: number
  disabledUntil: Partial<Record<QueueName, number>>
}

const latest = ({ disabledUntil }: Counted): number =>
  Math.max(disabledUntil.regular ?? 0, disabledUntil.scheduled ?? 0)

export function createQueueLimits(parts: { store: Store; clock: Clock; max: number }) {
  const { store, clock, max } = parts
  const known = new Map<string, Counted>()
  const counting = new Map<string, Promise<Counted>>()

  /** Far from the limit the old count is used until the new one is there: counting a long queue delays no message. */
  function current(domainId: string): MaybePromise<Counted> {
    const counted = known.get(domainId)
    if (counted && counted.waiting <= max && counted.until > clock.monotonic()) return counted
    const fresh = countOnce(domainId)
    if (!counted || counted.waiting > max / 2 || counted.until + COUNT_MS < clock.monotonic()) return fresh
    fresh.catch(() => {}) // the next message counts again
    return counted
  }

  /** One count at a time per domain: all that need one meanwhile share it. */
  function countOnce(domainId: string): Promise<Counted> {
    const running = counting.get(domainId)
    if (running) return running
    const fresh = countNow(domainId).finally(() => counting.delete(domainId))
    counting.set(domainId, fresh)
    return fresh
  }

  async function countNow(domainId: string): Promise<Counted> {
    const disabledUntil = await disabled(domainId)
    const counts = await count(domainId)
    for (const queue of ['regular', 'scheduled'] as const) {
      if (counts[queue] <= max || disabledUntil[queue] !== undefined) continue
      disabledUntil[queue] = Math.floor(clock.now() + DISABLED_MS)
      await disable(domainId, queue, disabledUntil[queue])
    }
    const fresh = {
      until: clock.monotonic() + COUNT_MS,
      waiting: Math.max(counts.regular, counts.scheduled),
      disabledUntil,
    }
    if (known.size >= DOMAINS_MAX) known.delete(known.keys().next().value as string)
    known.set(domainId, fresh)
    return fresh
  }

  async function disabled(domainId: string): Promise<Counted['disabledUntil']> {
    const rows = await store.db
      .selectFrom('disabled_queues')
      .select(['queue', 'until'])
      .where('domain_id', '=', domainId)
      .where('until', '>', Math.floor(clock.now()))
      .execute()
    return Object.fromEntries(rows.map(({ queue, until }) => [queue, until]))
  }

  /** Counted up to one more than the limit. */
  async function count(domainId: string): Promise<Record<QueueName, number>> {
    const countOf = async (scheduled: boolean) => {
      const rows = store.db
        .selectFrom('deliveries')
        // Part of that index too: SQLite reads no row.
        .select('domain_id')
        .where('domain_id', '=', domainId)
        .where(scheduled ? SCHEDULED : REGULAR)
        .limit(max + 1)
        .as('waiting')
      const row = await store.db
        .selectFrom(rows)
        .select((waiting) => waiting.fn.countAll<number>().as('count'))
        .executeTakeFirstOrThrow()
      return Number(row.count)
    }
    return { regular: await countOf(false), scheduled: await countOf(true) }
  }

  const disable = (domainId: string, queue: QueueName, until: number) =>
    store.db
      .insertInto('disabled_queues')
      .values({ domain_id: domainId, queue, until })
      .onConflict((conflict) => conflict.columns(['domain_id', 'queue']).doUpdateSet({ until }))
      .execute()

  return {
    /** Unix milliseconds until which one of the domain's queues is disabled; 0 or past: neither is. */
    disabledUntil: (domainId: string) => whenKnown(current(domainId), latest),
    async status(domain: Domain): Promise<Queues> {
      await counting.get(domain.id)?.catch(() => {})
      const { disabledUntil } = await countOnce(domain.id)
      const statusOf = (queue: QueueName): Queues[QueueName] => {
        const until = disabledUntil[queue]
        if (until === undefined || until <= clock.now()) {
          return { is_disabled: false, disabled: { until: '', reason: '' } }
        }
        return {
          is_disabled: true,
          disabled: { until: formatGmt(new Date(until)), reason: QUEUE_DISABLED_REASON },
        }
      }
      return { regular: statusOf('regular'), scheduled: statusOf('scheduled') }
    },
    /** `count` deliveries were added to the domain's queues. */
    added(domainId: string, count: number): void {
      const counted = known.get(domainId)
      if (counted) counted.waiting += count
    },
    /** The queues were emptied. */
    async emptied(domainId: string): Promise<void> {
      await counting.get(domainId)?.catch(() => {})
      known.delete(domainId)
      await store.db.deleteFrom('disabled_queues').where('domain_id', '=', domainId).execute()
    },
  }
}
