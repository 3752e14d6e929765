/** Runs rotations (domain-keys.md rules 22-24); sender-security.ts decides which step is due. */

import type { Logger } from 'pino'
import { BadRequest } from '../../../base/process/errors.ts'
import { MINUTE_MS } from '../../../base/time/durations.ts'
import { createJob, type Job } from '../../../platform/jobs/job.ts'
import type { SenderSecurityRow } from '../../../platform/store/schema.ts'
import { checkDkim } from '../../../protocols/dns/record-data.ts'
import { dkimName } from '../dns/dns-records.ts'
import type { KeyParts } from './dkim-keys.ts'
import {
  newManagedKey,
  nextStep,
  PUBLISH_MS,
  RETIRE_MS,
  type Rotation,
  rotationOf,
  signOnlyWith,
  spareSelector,
} from './sender-security.ts'

const LOOK_EVERY_MS = MINUTE_MS
/** A zone that does not show the new key yet is queried again after this. */
const READ_BACK_AGAIN_MS = 10 * MINUTE_MS
/** Rows read per query; each round visits all rows. */
const BATCH = 200

/**
 * Publishes a new key under the unused selector.
 * @throws BadRequest when a rotation is in progress
 */
export async function startRotation(parts: KeyParts, row: SenderSecurityRow): Promise<void> {
  const { store, clock, sealer } = parts
  const selector = spareSelector(row)
  const now = Math.floor(clock.now())
  const key = await newManagedKey(sealer, row.account_id, row.domain_name, selector, now)
  const rotation: Rotation = { phase: 'publishing', selector, readyAt: now + PUBLISH_MS }
  await store.transaction(async (tx) => {
    const changed = await tx
      .updateTable('sender_security')
      .set({ rotation_json: JSON.stringify(rotation) })
      .where('domain_id', '=', row.domain_id)
      .where('state', '=', 'enabled')
      .where('rotation_json', 'is', null)
      .executeTakeFirst()
    if (Number(changed.numUpdatedRows) === 0)
      throw new BadRequest('rotation is already in progress', { form: 'Reason' })
    // A new row rather than an update: signers cache opened keys by id.
    const former = tx.deleteFrom('dkim_keys').where('authority', '=', row.domain_name)
    await former.where('selector', '=', selector).where('managed', '=', 1).execute()
    await tx.insertInto('dkim_keys').values(key).execute()
  })
}

export function createRotations(parts: KeyParts & { log: Logger }): Job {
  const { store, clock, log } = parts
  return createJob({
    name: 'dkim-rotation',
    everyMs: LOOK_EVERY_MS,
    scope: 'database',
    async work(signal) {
      await endGrace()
      for (let last: string | null = ''; last !== null && !signal.aborted; ) {
        const rows: SenderSecurityRow[] = await store.db
          .selectFrom('sender_security')
          .selectAll()
          .where('state', '=', 'enabled')
          .where('domain_id', '>', last)
          .orderBy('domain_id')
          .limit(BATCH)
          .execute()
        for (const row of rows) {
          await step(row, signal).catch((error: unknown) =>
            log.error({ err: error, domain: row.domain_name }, 'cannot rotate a DKIM key'),
          )
        }
        last = rows.length < BATCH ? null : (rows.at(-1)?.domain_id ?? null)
      }
    },
  })

  async function step(row: SenderSecurityRow, signal: AbortSignal): Promise<void> {
    switch (nextStep(row, clock.now())) {
      case 'none':
        return
      case 'start':
        return startRotation(parts, row)
      case 'read-back':
        return readBack(row, signal)
      case 'finish':
        return storeRotation(row, null)
    }
  }

  /** The new key signs once public DNS returns it under the domain's own name. */
  async function readBack(row: SenderSecurityRow, signal: AbortSignal): Promise<void> {
    const rotation = rotationOf(row)
    if (rotation?.phase !== 'publishing') return
    const key = await store.db
      .selectFrom('dkim_keys')
      .selectAll()
      .where('authority', '=', row.domain_name)
      .where('selector', '=', rotation.selector)
      .where('managed', '=', 1)
      .executeTakeFirst()
    if (!key) return
    const name = dkimName(rotation.selector, row.domain_name)
    const answer = await parts.resolver.query(name, 'TXT', { fresh: true, signal })
    const now = Math.floor(clock.now())
    const check = checkDkim(answer, key.public_record)
    if (!check.valid) {
      log.warn({ domain: row.domain_name, sentence: check.sentence }, 'the new DKIM key is not in DNS yet')
      return storeRotation(row, { ...rotation, readyAt: now + READ_BACK_AGAIN_MS })
    }
    await store.transaction(async (tx) => {
      const retiring: Rotation = { phase: 'retiring', until: now + RETIRE_MS }
      const changed = await tx
        .updateTable('sender_security')
        .set({
          active_selector: rotation.selector,
          rotated_at: now,
          rotation_json: JSON.stringify(retiring),
        })
        .where('domain_id', '=', row.domain_id)
        .where('rotation_json', '=', row.rotation_json)
        .executeTakeFirst()
      if (Number(changed.numUpdatedRows) > 0) await signOnlyWith(tx, row.domain_name, rotation.selector)
    })
    parts.signingKeys.changed(row.domain_name)
    log.info({ domain: row.domain_name, selector: rotation.selector }, 'DKIM key rotated')
  }

  async function storeRotation(row: SenderSecurityRow, rotation: Rotation | null): Promise<void> {
    await store.db
      .updateTable('sender_security')
      .set({ rotation_json: rotation && JSON.stringify(rotation) })
      .where('domain_id', '=', row.domain_id)
      .where('rotation_json', '=', row.rotation_json)
      .execute()
  }

  /** After a change of the method the former keys keep signing for some days, until the new records are found. */
  async function endGrace(): Promise<void> {
    const over = await store.db
      .selectFrom('sender_security')
      .selectAll()
      .where('grace_until', '<=', Math.floor(clock.now()))
      .limit(BATCH)
      .execute()
    for (const row of over) {
      await store.transaction(async (tx) => {
        await tx
          .updateTable('dkim_keys')
          .set({ active: 0 })
          .where('authority', '=', row.domain_name)
          .where('managed', '=', row.state === 'disabled' ? 1 : 0)
          .execute()
        await tx
          .updateTable('sender_security')
          .set({ grace_until: null })
          .where('domain_id', '=', row.domain_id)
          .execute()
      })
      parts.signingKeys.changed(row.domain_name)
    }
  }
}
