/**
 * The two queues of a domain: `scheduled` holds mail whose time has not come, `regular` all other. One with
 * too many messages is disabled for an hour (messages.md rule 47).
 */
import { sql } from 'kysely'
import type { MaybePromise } from '../base/cache.ts'
import type { Clock } from '../base/clock.ts'
import { TooManyRequests } from '../base/errors.ts'
import type { Domain } from '../domains/domain.ts'
import { formatGmt } from '../http/dates.ts'
import type { Store } from '../store/store.ts'

export type QueueName = 'regular' | 'scheduled'

export interface QueueStatus {
  is_disabled: boolean
  disabled: { until: string; reason: string }
}

export interface QueueLimits {
  /** @throws TooManyRequests while one of the domain's queues is disabled */
  check(domain: Domain): MaybePromise<void>
  status(domain: Domain): Promise<Record<QueueName, QueueStatus>>
  /** So many deliveries were put into the domain's queues. */
  added(domainId: string, count: number): void
  /** The queues were emptied. */
  emptied(domainId: string): Promise<void>
}

const REASON = 'You have too many messages in queue'
const DISABLED_MS = 3_600_000
/** How long a count holds; what this process adds meanwhile is counted along. */
const COUNT_MS = 10_000
const DOMAINS_MAX = 10_000
/** Deliveries of one domain in one queue: about 1 GB of rows, far more than a domain sends in a day. */
export const QUEUED_MESSAGES_MAX = 1_000_000

// With the very condition of the partial index: SQLite does not see that a narrower one implies it, and reads the table.
const SCHEDULED = sql<boolean>`state in ('scheduled', 'queued', 'sending') and state = 'scheduled'`
const REGULAR = sql<boolean>`state in ('scheduled', 'queued', 'sending') and state <> 'scheduled'`

interface Counted {
  until: number
  /** Deliveries waiting, both queues together, at the last count plus what came since. */
  waiting: number
  disabledUntil: Partial<Record<QueueName, number>>
}

export function createQueueLimits(parts: { store: Store; clock: Clock; max?: number }): QueueLimits {
  const { store, clock, max = QUEUED_MESSAGES_MAX } = parts
  const known = new Map<string, Counted>()
  const counting = new Map<string, Promise<Counted>>()

  /** Far from the limit an old count serves until the new one is there: nobody waits for counting a long queue. */
  function look(domainId: string): MaybePromise<Counted> {
    const counted = known.get(domainId)
    if (counted && counted.waiting <= max && counted.until > clock.monotonic()) return counted
    const fresh = lookAnew(domainId)
    if (!counted || counted.waiting > max / 2 || counted.until + COUNT_MS < clock.monotonic()) return fresh
    fresh.catch(() => {}) // the next one asks again
    return counted
  }

  /** One count at a time: of all that come while one runs, each would else start its own. */
  function lookAnew(domainId: string): Promise<Counted> {
    const running = counting.get(domainId)
    if (running) return running
    const fresh = countAnew(domainId).finally(() => counting.delete(domainId))
    counting.set(domainId, fresh)
    return fresh
  }

  async function countAnew(domainId: string): Promise<Counted> {
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

  /** Counted up to one more than allowed: that is all one needs to know. */
  async function count(domainId: string): Promise<Record<QueueName, number>> {
    const of = async (scheduled: boolean) => {
      const rows = store.db
        .selectFrom('deliveries')
        // In that index too, so that on SQLite no row is read.
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
    return { regular: await of(false), scheduled: await of(true) }
  }

  const disable = (domainId: string, queue: QueueName, until: number) =>
    store.db
      .insertInto('disabled_queues')
      .values({ domain_id: domainId, queue, until })
      .onConflict((conflict) => conflict.columns(['domain_id', 'queue']).doUpdateSet({ until }))
      .execute()

  const running = ({ disabledUntil }: Counted) =>
    Object.values(disabledUntil).filter((until) => until > clock.now())

  /** @throws TooManyRequests while a queue is disabled */
  function refuse(domain: Domain, counted: Counted): void {
    const latest = Math.max(0, ...running(counted))
    if (latest === 0) return
    const seconds = Math.max(1, Math.ceil((latest - clock.now()) / 1000))
    throw new TooManyRequests(
      seconds,
      `Domain ${domain.name} is not allowed to send: ${REASON}, try again after ${seconds} seconds`,
    )
  }

  return {
    check(domain) {
      const counted = look(domain.id)
      return counted instanceof Promise
        ? counted.then((known) => refuse(domain, known))
        : refuse(domain, counted)
    },
    async status(domain) {
      await counting.get(domain.id)?.catch(() => {})
      const { disabledUntil } = await lookAnew(domain.id)
      const of = (queue: QueueName): QueueStatus => {
        const until = disabledUntil[queue]
        if (until === undefined || until <= clock.now()) {
          return { is_disabled: false, disabled: { until: '', reason: '' } }
        }
        return { is_disabled: true, disabled: { until: formatGmt(new Date(until)), reason: REASON } }
      }
      return { regular: of('regular'), scheduled: of('scheduled') }
    },
    added(domainId, count) {
      const counted = known.get(domainId)
      if (counted) counted.waiting += count
    },
    async emptied(domainId) {
      await counting.get(domainId)?.catch(() => {})
      known.delete(domainId)
      await store.db.deleteFrom('disabled_queues').where('domain_id', '=', domainId).execute()
    },
  }
}
