/**
 * Deletes a domain (domains.md rules 22, 23): it disappears at once, and a job that survives restarts removes what
 * belongs to it. Its name is free again when the job is done.
 */

import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import { entriesOf, leave } from '../../platform/store/pods/entries.ts'
import type { Tx } from '../../platform/store/store.ts'
import { type Domain, domainOfRow } from './domain.ts'
import { lockNames } from './names/name-lock.ts'
import { hostEntries, leaveHosts } from './names/pod-entries.ts'

/**
 * Removes what one area stores for a deleted domain. Must be idempotent: it runs again after a failure or a
 * restart. Rejects while something is left, and is then retried later.
 */
export type OnDomainDeleted = (domain: Domain) => Promise<void>

/** A hook cannot finish yet, for a reason that resolves itself. */
export class NotYet extends Error {}

export interface DeletionParts extends Pick<Core, 'store' | 'domains' | 'clock' | 'log'> {
  /** Removes what all areas hold of it. */
  removeAll: OnDomainDeleted
}

const LOOK_EVERY_MS = MINUTE_MS
const RETRY_MIN_MS = 10_000
/** A delivery in progress ends within seconds. */
const NOT_YET_MS = 1_000
const RETRY_MAX_MS = HOUR_MS
/** A deletion claimed by a process that died is due again after this. */
const CLAIM_MS = 5 * MINUTE_MS
const BATCH = 20

/**
 * Removes the domain from the directory and leaves the rest to the job.
 * @throws NotFound; BadRequest where the contract forbids it: disabled, sandbox, authority of other domains
 */
export function deleteDomain(parts: DeletionParts, domain: Domain): Promise<void> {
  return removeDomain(parts, domain, async (tx, current) => {
    if (current.state === 'disabled') throw new BadRequest('Domain is disabled')
    if (current.type === 'sandbox') throw new BadRequest("Sandbox domain can't be deleted")
    const dependent = await tx
      .selectFrom('domains')
      .select('id')
      .where('id', '<>', domain.id)
      .where((eb) =>
        eb.or([eb('dkim_authority', '=', current.name), eb('signing_authority', '=', current.name)]),
      )
      .limit(1)
      .executeTakeFirst()
    if (dependent) throw new BadRequest('Domain is used as DKIM authority by other domains')
  })
}

/**
 * Deletes every domain of a closed account, whatever its state, as `deleteDomain` does. False while the job still removes
 * what belonged to one of them.
 */
export async function deleteDomainsOf(parts: DeletionParts, accountId: string): Promise<boolean> {
  const { db } = parts.store
  for (let more = true; more; ) {
    const rows = await db
      .selectFrom('domains')
      .select(['id', 'name'])
      .where('account_id', '=', accountId)
      .limit(BATCH)
      .execute()
    for (const domain of rows) {
      await removeDomain(parts, domain, async () => {}).catch((error: unknown) => {
        // Another process was quicker.
        if (!(error instanceof NotFound)) throw error
      })
    }
    more = rows.length === BATCH
  }
  const left = await db
    .selectFrom('domain_deletions')
    .select('domain_id')
    .where('account_id', '=', accountId)
    .limit(1)
    .executeTakeFirst()
  return left === undefined
}

async function removeDomain(
  parts: DeletionParts,
  domain: Pick<Domain, 'id' | 'name'>,
  check: (tx: Tx, current: Domain) => Promise<void>,
): Promise<void> {
  const now = Math.floor(parts.clock.now())
  await parts.store.transaction(async (tx) => {
    await lockNames(parts.store, tx, domain.name)
    const row = await tx.selectFrom('domains').selectAll().where('id', '=', domain.id).executeTakeFirst()
    if (!row) throw new NotFound('Domain not found')
    const current = domainOfRow(row, now)
    await check(tx, current)
    await tx
      .insertInto('domain_deletions')
      .values({
        domain_id: current.id,
        account_id: current.accountId,
        name: current.name,
        domain_json: JSON.stringify(current),
        due_at: now,
        attempts: 0,
      })
      .execute()
    await tx.deleteFrom('domain_dns').where('domain_id', '=', current.id).execute()
    await tx.deleteFrom('domains').where('id', '=', current.id).execute()
    await leaveHosts(parts.store, tx, hostEntries(row))
  })
  parts.domains.changed(domain)
}

export function createDeletionJob(parts: DeletionParts): Job {
  const { store, clock, log } = parts
  return createJob({
    name: 'domain-deletion',
    everyMs: LOOK_EVERY_MS,
    // Each process claims rows of its own.
    scope: 'claims',
    async work(signal) {
      const due = await store.db
        .selectFrom('domain_deletions')
        .selectAll()
        .where('due_at', '<=', Math.floor(clock.now()))
        .orderBy('due_at')
        .limit(BATCH)
        .execute()
      let againInMs = LOOK_EVERY_MS
      for (const row of due) {
        if (signal.aborted) break
        const claimed = await store.db
          .updateTable('domain_deletions')
          .set({ due_at: Math.floor(clock.now()) + CLAIM_MS, attempts: row.attempts + 1 })
          .where('domain_id', '=', row.domain_id)
          .where('attempts', '=', row.attempts)
          .executeTakeFirst()
        if (Number(claimed.numUpdatedRows) === 0) continue
        const waitMs = await remove(JSON.parse(row.domain_json) as Domain, row.attempts)
        if (waitMs !== null) againInMs = Math.min(againInMs, waitMs)
      }
      return { againInMs }
    },
  })

  /** Resolves in how many milliseconds it has to be tried again; null: it is done. */
  async function remove(domain: Domain, attempts: number): Promise<number | null> {
    try {
      await parts.removeAll(domain)
      await store.transaction(async (tx) => {
        await tx.deleteFrom('domain_deletions').where('domain_id', '=', domain.id).execute()
        await leave(store, tx, entriesOf('domain', [domain.name]))
      })
      log.info({ domain: domain.name }, 'domain deleted')
      return null
    } catch (error) {
      if (!(error instanceof NotYet)) log.error({ err: error, domain: domain.name }, 'cannot delete a domain')
      const wait = error instanceof NotYet ? NOT_YET_MS : Math.min(RETRY_MIN_MS * 2 ** attempts, RETRY_MAX_MS)
      await store.db
        .updateTable('domain_deletions')
        .set({ due_at: Math.floor(clock.now() + wait) })
        .where('domain_id', '=', domain.id)
        .execute()
      return wait
    }
  }
}
