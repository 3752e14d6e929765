/** The oldest mail that is due and not being sent. */
import { MINUTE_MS } from '../../../base/time/durations.ts'
import type { Delivery } from '../../../mail/deliver/contract.ts'
import type { Store } from '../../../platform/store/store.ts'
import type { OwnCheck } from './own-check.ts'

const LIMIT_MS = MINUTE_MS
/** Deliveries of the engine that are looked at: those being handed over to slow servers are passed over. */
const HELD_READ_MAX = 200

const COLUMNS = 'id, recipient_domain, due_at'
/** The conditions on `state` are literals, so that the partial indexes are used. */
const WAITING = `SELECT ${COLUMNS} FROM deliveries WHERE state IN ('scheduled', 'queued') AND due_at <= ?
  ORDER BY due_at, id LIMIT 1`
const HELD = `SELECT ${COLUMNS} FROM deliveries WHERE state = 'sending' AND due_at <= ? ORDER BY due_at LIMIT ?`

export function dueMailCheck(store: Store, delivery: Pick<Delivery, 'progressOf'>): OwnCheck {
  /** The oldest one that waits in the database, or in a lane of this process. */
  async function oldest(before: number): Promise<{ dueAt: number; domain: string } | null> {
    const waiting = await store.read({ sql: WAITING, values: [before] })
    const held = await store.read({ sql: HELD, values: [before, HELD_READ_MAX] })
    const idle = held.filter((row) => delivery.progressOf(String(row['id']))?.begun === false)
    const [first] = [...waiting, ...idle.slice(0, 1)].sort(
      (one, other) => Number(one['due_at']) - Number(other['due_at']),
    )
    return first ? { dueAt: Number(first['due_at']), domain: String(first['recipient_domain']) } : null
  }

  return {
    name: 'oldest-due-mail',
    description: 'Mail is due and is not being sent.',
    metric: 'oldest_due_seconds',
    comparator: '>',
    limit: String(LIMIT_MS / 1000),
    dimension: '',
    everyMs: MINUTE_MS,
    async read(now) {
      const found = await oldest(Math.floor(now) - LIMIT_MS - 1)
      if (!found) return []
      const seconds = Math.floor((now - found.dueAt) / 1000)
      return [
        {
          value: '',
          figure: String(seconds),
          since: found.dueAt,
          advice: `A message to ${found.domain} has been due for ${seconds} seconds and is not being sent. GET /sendwright/v1/queue/lanes shows which lanes are slowed down and why; a large mailing may simply take its time. If no lane sends anything, look at the free space and at the log.`,
        },
      ]
    },
  }
}
