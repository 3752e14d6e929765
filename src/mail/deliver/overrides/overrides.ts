/**
 * What an operator has ordered for mail to a site, over the shaping (decision 121): a pause, which lasts for mail that is
 * accepted later as well, or other limits.
 *
 * 1. The orders are rows. Each process has them in memory, reads them anew when another announces a change, and every few
 *    seconds, so that none is missed and each ends in time.
 * 2. A paused delivery is put off by the attempt that finds it paused, without a counted attempt. It is looked at again when
 *    the pause ends, and every hour. The end of a pause makes all such mail due at once; what another pause still keeps is put
 *    off again.
 * 3. Limits are those of the shaping with the ordered members replaced. What a lane has learnt from replies stays.
 */

import { BadRequest } from '../../../base/process/errors.ts'
import { HOUR_MS, MINUTE_MS } from '../../../base/time/durations.ts'
import type { Core } from '../../../core.ts'
import { createJob } from '../../../platform/jobs/job.ts'
import { countOf } from '../../../platform/store/count.ts'
import type { DeliveryOverrideRow } from '../../../platform/store/schema.ts'
import type { Store } from '../../../platform/store/store.ts'
import { REASON_PROVIDER_PAUSED } from '../attempt/outcome.ts'
import { STATE_OF_ID, WAITS } from '../claim/queue.ts'
import { rateOf } from '../shaping/shaping-file.ts'
import type { LaneLimits } from '../shaping/shaping-table.ts'

/** Times in Unix milliseconds; `until` null: until somebody ends it. */
interface Pause {
  since: number
  until: number | null
  reason: string
}

/** A null member is that of the shaping. */
interface OrderedLimits {
  connections: number | null
  /** `300/1m`; `none`: no limit. */
  rate: string | null
  until: number | null
}

export interface Override {
  site: string
  pause: Pause | null
  limits: OrderedLimits | null
}

export type Overrides = Awaited<ReturnType<typeof openOverrides>>

interface OverrideParts extends Pick<Core, 'store' | 'clock' | 'log'> {
  random(): number
}

/** Each is compared with each change of the table, and shown on one page. */
const OVERRIDES_MAX = 1_000
export const NO_RATE = 'none'
const TOPIC = 'delivery-overrides'
const READ_EVERY_MS = 5_000
const LOOK_AGAIN_MS = HOUR_MS
/** What waits is not all due at the same time. */
const SPREAD_MS = 10 * MINUTE_MS
/** Rows in one transaction. */
const PORTION = 500

/** Only what was put off before: what another pause keeps is not taken again. */
const RELEASE = `UPDATE deliveries SET due_at = ?, reason = 'resumed', updated_at = ?
  WHERE id IN (SELECT id FROM deliveries
    WHERE reason = '${REASON_PROVIDER_PAUSED}' AND ${WAITS} AND updated_at <= ? ORDER BY id LIMIT ${PORTION})
  AND ${STATE_OF_ID} IN ('scheduled', 'queued')`

export async function openOverrides({ store, clock, log, random }: OverrideParts) {
  const listeners: (() => void)[] = []
  let inForce: ReadonlyMap<string, Override> = new Map()
  let signature = '[]'
  const known = new Map<string, { shaped: LaneLimits; limits: LaneLimits }>()
  const now = () => Math.floor(clock.now())
  const releases = createReleases({ store, log, now })

  let reading = Promise.resolve()
  /** One at a time: an older answer must not replace a newer one. */
  function refresh(): Promise<void> {
    const read = reading.then(readRows)
    reading = read.catch(() => {})
    return read
  }

  async function readRows(): Promise<void> {
    const rows = await store.db.selectFrom('delivery_overrides').selectAll().orderBy('site').execute()
    const current = rows.flatMap((row) => overrideOf(row, now()) ?? [])
    if (current.length < rows.length) await removeEnded(store, now())
    const next = JSON.stringify(current)
    if (next === signature) return
    signature = next
    inForce = new Map(current.map((override) => [override.site, override]))
    known.clear()
    for (const listener of listeners) listener()
  }

  async function change(site: string, part: Partial<DeliveryOverrideRow>): Promise<void> {
    await writeOrder(store, site, part, now())
    await refresh()
    await store.changes.announce(TOPIC, '')
  }

  function pauseOf(site: string, recipientDomain: string): Pause | null {
    if (inForce.size === 0) return null
    const pauses = [inForce.get(site)?.pause, inForce.get(recipientDomain)?.pause]
    return pauses.find((pause) => pause && (pause.until ?? Number.POSITIVE_INFINITY) > clock.now()) ?? null
  }
  const found = (site: string): Override => inForce.get(site) ?? { site, pause: null, limits: null }

  await refresh()
  store.changes.follow(TOPIC, refresh)
  return {
    /** What is in force, by site. */
    list: () => [...inForce.values()],
    find: (site: string): Override | null => inForce.get(site) ?? null,
    /** The pause that concerns a delivery; null: it may be sent. In memory: asked for each attempt. */
    pauseOf,
    /** When what the pause keeps is looked at again, in Unix milliseconds. */
    nextLook(site: string, recipientDomain: string): number {
      const until = pauseOf(site, recipientDomain)?.until ?? Number.POSITIVE_INFINITY
      return Math.min(until, clock.now() + LOOK_AGAIN_MS + random() * SPREAD_MS)
    },
    /** The limits in force of a site; the same object as long as nothing changes. */
    limitsOf(site: string, shaped: LaneLimits): LaneLimits {
      const ordered = inForce.size === 0 ? null : inForce.get(site)?.limits
      if (!ordered) return shaped
      const last = known.get(site)
      if (last?.shaped === shaped) return last.limits
      const limits = withOrdered(shaped, ordered)
      known.set(site, { shaped, limits })
      return limits
    },
    /** @throws BadRequest over OVERRIDES_MAX sites */
    async pause(site: string, { until, reason }: Omit<Pause, 'since'>): Promise<Override> {
      const since = inForce.get(site)?.pause?.since ?? now()
      await change(site, { paused_at: since, pause_until: until, pause_reason: reason })
      return found(site)
    },
    /** Resolves whether it was paused. */
    async resume(site: string): Promise<boolean> {
      if (!inForce.get(site)?.pause) return false
      await change(site, { paused_at: null, pause_until: null, pause_reason: '' })
      void releases.begin()
      return true
    },
    /** @throws BadRequest over OVERRIDES_MAX sites */
    async setLimits(site: string, { connections, rate, until }: OrderedLimits): Promise<Override> {
      await change(site, { connections, rate, limits_until: until })
      return found(site)
    },
    /** Resolves whether there were any. */
    async resetLimits(site: string): Promise<boolean> {
      if (!inForce.get(site)?.limits) return false
      await change(site, { connections: null, rate: null, limits_until: null })
      return true
    },
    onChange: (listener: () => void) => void listeners.push(listener),
    /** Calls `listener` when mail that a pause kept is due. */
    onReleased: releases.onReleased,
    /** Ends what makes the mail of an ended pause due; the rest of it is looked at within the hour. */
    stop: releases.stop,
    job: createJob({
      name: 'delivery-overrides',
      everyMs: READ_EVERY_MS,
      // Each process has a copy in memory.
      scope: 'process',
      async work() {
        await refresh()
        await releases.finish()
      },
    }),
  }
}

/** Judged by the database: a row may have been ordered anew since it was read. */
async function removeEnded(store: Store, now: number): Promise<void> {
  await store.db
    .deleteFrom('delivery_overrides')
    .where((eb) => eb.or([eb('paused_at', 'is', null), eb('pause_until', '<=', now)]))
    .where((eb) =>
      eb.or([eb('limits_until', '<=', now), eb.and([eb('connections', 'is', null), eb('rate', 'is', null)])]),
    )
    .execute()
}

/** Writes one row, which is removed when it orders nothing. @throws BadRequest over OVERRIDES_MAX sites */
async function writeOrder(store: Store, site: string, part: Partial<DeliveryOverrideRow>, now: number) {
  await store.transaction(async (tx) => {
    const table = 'delivery_overrides'
    const old = await tx.selectFrom(table).selectAll().where('site', '=', site).executeTakeFirst()
    const row = { ...(old ?? emptyRow(site)), ...part }
    if (old === undefined) {
      const count = await countOf(tx.selectFrom(table))
      if (count >= OVERRIDES_MAX) throw new BadRequest(`at most ${OVERRIDES_MAX} sites`)
    }
    if (overrideOf(row, now) === null) await tx.deleteFrom(table).where('site', '=', site).execute()
    // What somebody else orders at the same time stays.
    else
      await tx
        .insertInto(table)
        .values(row)
        .onConflict((conflict) => conflict.column('site').doUpdateSet(part))
        .execute()
  })
}

/** Makes the mail of ended pauses due. */
function createReleases({ store, log, now }: Pick<OverrideParts, 'store' | 'log'> & { now(): number }) {
  let onReleased = () => {}
  let releasing = Promise.resolve()
  /** What an attempt was putting off while the pause ended is made due a little later. */
  let hasLateOnes = false
  let isStopping = false

  /** Mail that the pause kept is due. */
  function releaseAll(): Promise<void> {
    releasing = releasing.then(release).catch((error) => {
      log.error({ err: error }, 'mail of an ended pause could not be made due; it is within an hour')
    })
    return releasing
  }

  async function release(): Promise<void> {
    const begun = now()
    for (;;) {
      const values = [now(), now(), begun]
      const [result] = await store.commit([{ sql: RELEASE, values }])
      // Each portion at once: else the first of a million would wait for the last.
      if ((result?.affected ?? 0) > 0) onReleased()
      if (isStopping || (result?.affected ?? 0) < PORTION) return
    }
  }

  return {
    begin(): Promise<void> {
      hasLateOnes = true
      return releaseAll()
    },
    /** Releases what was put off while the last pause ended. */
    async finish(): Promise<void> {
      if (!hasLateOnes) return
      hasLateOnes = false
      await releaseAll()
    },
    /** Calls `listener` when mail that a pause kept is due. */
    onReleased(listener: () => void): void {
      onReleased = listener
    },
    stop(): Promise<void> {
      isStopping = true
      return releasing
    },
  }
}

const emptyRow = (site: string): DeliveryOverrideRow => ({
  ...{ site, paused_at: null, pause_reason: '', pause_until: null },
  ...{ connections: null, rate: null, limits_until: null },
})

/** What is in force of a row; null: nothing. */
function overrideOf(row: DeliveryOverrideRow, now: number): Override | null {
  const time = (value: number | null) => (value === null ? null : Number(value))
  const isOver = (until: number | null) => until !== null && Number(until) <= now
  const pause =
    row.paused_at === null || isOver(row.pause_until)
      ? null
      : { since: Number(row.paused_at), until: time(row.pause_until), reason: row.pause_reason }
  const limits =
    (row.connections === null && row.rate === null) || isOver(row.limits_until)
      ? null
      : { connections: time(row.connections), rate: row.rate, until: time(row.limits_until) }
  return pause === null && limits === null ? null : { site: row.site, pause, limits }
}

const withOrdered = (shaped: LaneLimits, { connections, rate }: OrderedLimits): LaneLimits => ({
  ...shaped,
  ...(connections !== null && { connections }),
  ...(rate !== null && { messagesPerSecond: rate === NO_RATE ? null : (rateOf(rate) ?? null) }),
})
