/**
 * Automatic sender security (domain-keys.md rules 19-25): the domain has two CNAMEs to names in the service's own
 * DKIM zone, so that keys can be replaced without its owner. The zone publishes two managed keys, `pdk1` and
 * `pdk2`; one of them signs.
 *
 *     disabled -> wait_verify (switched on) -> enabled (both CNAMEs found) -> rotations
 *
 * A rotation publishes a new key under the unused selector, reads it back through public DNS after an hour, and
 * only then signs with it. The replaced key stays published for seven days; until then the rotation is in progress.
 */

import { randomInt } from 'node:crypto'
import { newId } from '../../../base/ids.ts'
import { BadRequest } from '../../../base/process/errors.ts'
import { DAY_MS, HOUR_MS } from '../../../base/time/durations.ts'
import { countOf } from '../../../platform/store/count.ts'
import type { DkimKeyRow, DomainRow, SenderSecurityRow } from '../../../platform/store/schema.ts'
import type { Sealer } from '../../../platform/store/secrets/sealing.ts'
import type { Tx } from '../../../platform/store/store.ts'
import type { Domain } from '../domain.ts'
import { newDkimKeyRow } from './signing-keys.ts'

export const MANAGED_SELECTORS = ['pdk1', 'pdk2'] as const
export const DEFAULT_INTERVAL = '120d'
const MANAGED_BITS = 2048
const INTERVAL_MIN_MS = 5 * DAY_MS
/** Longer than the TTL of the zone's records, so that no resolver still has the old key under the new selector. */
export const PUBLISH_MS = HOUR_MS
export const RETIRE_MS = 7 * DAY_MS

export const securityState = ({ state }: SenderSecurityRow) => state as 'disabled' | 'wait_verify' | 'enabled'

/** A rotation in progress, stored as JSON. */
export type Rotation =
  | { phase: 'publishing'; selector: string; readyAt: number }
  | { phase: 'retiring'; until: number }

export interface SenderSecurity {
  row: SenderSecurityRow
  keys: DkimKeyRow[]
}

/** The initial state of a domain: its label in the zone, and one key published under both selectors. */
export async function newSenderSecurity(
  sealer: Sealer,
  domain: Pick<DomainRow, 'id' | 'account_id' | 'name'>,
  now: number,
): Promise<SenderSecurity> {
  const first = await newManagedKey(sealer, domain.account_id, domain.name, MANAGED_SELECTORS[0], now)
  const second: DkimKeyRow = { ...first, id: newId(now), selector: MANAGED_SELECTORS[1] }
  return { row: newSecurityRow(domain, 'wait_verify', now), keys: [first, second] }
}

export function newSecurityRow(
  domain: Pick<DomainRow, 'id' | 'account_id' | 'name'>,
  state: 'disabled' | 'wait_verify',
  now: number,
): SenderSecurityRow {
  return {
    domain_id: domain.id,
    account_id: domain.account_id,
    domain_name: domain.name,
    sid: String(randomInt(100_000_000, 1_000_000_000)),
    state,
    active_selector: null,
    rotation_enabled: 0,
    rotation_interval: DEFAULT_INTERVAL,
    rotated_at: Math.floor(now),
    grace_until: null,
    rotation_json: null,
  }
}

export const newManagedKey = (
  sealer: Sealer,
  accountId: string,
  authority: string,
  selector: string,
  now: number,
): Promise<DkimKeyRow> =>
  newDkimKeyRow(
    sealer,
    { accountId, authority, selector, algorithm: 'rsa', bits: MANAGED_BITS, active: false, managed: true },
    now,
  )

/** Switches it on: keeps the rows of an earlier use, else inserts `fresh`. */
export async function switchOn(tx: Tx, domain: Domain, fresh: SenderSecurity, graceUntil: number) {
  const known = await tx
    .selectFrom('sender_security')
    .select('sid')
    .where('domain_id', '=', domain.id)
    .executeTakeFirst()
  if (known) {
    await tx
      .updateTable('sender_security')
      .set({ state: 'wait_verify', grace_until: graceUntil })
      .where('domain_id', '=', domain.id)
      .execute()
  } else {
    await tx
      .insertInto('sender_security')
      .values({ ...fresh.row, grace_until: graceUntil })
      .execute()
  }
  const count = await countOf(
    tx.selectFrom('dkim_keys').where('authority', '=', domain.name).where('managed', '=', 1),
  )
  if (count === 0) await tx.insertInto('dkim_keys').values(fresh.keys).execute()
}

/**
 * Switches back to keys that the owner publishes: `spare` is inserted if there is none. The managed key signs
 * meanwhile.
 */
export async function switchOff(tx: Tx, domain: Domain, spare: DkimKeyRow, graceUntil: number) {
  await tx
    .updateTable('sender_security')
    .set({ state: 'disabled', grace_until: graceUntil, rotation_json: null })
    .where('domain_id', '=', domain.id)
    .execute()
  const own = await tx
    .selectFrom('dkim_keys')
    .select('id')
    .where('authority', '=', domain.name)
    .where('managed', '=', 0)
    .orderBy('id')
    .executeTakeFirst()
  if (own) await tx.updateTable('dkim_keys').set({ activates: 1 }).where('id', '=', own.id).execute()
  else await tx.insertInto('dkim_keys').values(spare).execute()
}

/** Both CNAMEs were found: from now on only the managed key signs. */
export async function senderSecurityVerified(tx: Tx, domain: Domain, now: number) {
  const row = await tx
    .selectFrom('sender_security')
    .selectAll()
    .where('domain_id', '=', domain.id)
    .executeTakeFirst()
  if (row?.state !== 'wait_verify') return
  const selector = row.active_selector ?? MANAGED_SELECTORS[0]
  await tx
    .updateTable('sender_security')
    .set({ state: 'enabled', active_selector: selector, rotated_at: now, grace_until: null })
    .where('domain_id', '=', domain.id)
    .execute()
  await signOnlyWith(tx, domain.name, selector)
}

/** Only the managed key of this selector signs, no other key of the authority. */
export async function signOnlyWith(tx: Tx, authority: string, selector: string) {
  await tx
    .updateTable('dkim_keys')
    .set({ active: 0, activates: 0 })
    .where('authority', '=', authority)
    .execute()
  await tx
    .updateTable('dkim_keys')
    .set({ active: 1 })
    .where('authority', '=', authority)
    .where('selector', '=', selector)
    .where('managed', '=', 1)
    .execute()
}

/** `<n>d` or `<n>h` in milliseconds. @throws BadRequest under five days, or for another form */
export function parseInterval(text: string): number {
  const match = /^(\d{1,5})([dh])$/.exec(text)
  const milliseconds = Number(match?.[1] ?? 0) * (match?.[2] === 'd' ? DAY_MS : HOUR_MS)
  if (milliseconds < INTERVAL_MIN_MS)
    throw new BadRequest('rotation_interval must be at least 5 days', { form: 'Reason' })
  return milliseconds
}

export const rotationOf = (row: SenderSecurityRow): Rotation | null =>
  row.rotation_json === null ? null : (JSON.parse(row.rotation_json) as Rotation)

/** The next step of a domain's rotation, if one is due. Pure. */
export function nextStep(row: SenderSecurityRow, now: number): 'start' | 'read-back' | 'finish' | 'none' {
  if (row.state !== 'enabled') return 'none'
  const rotation = rotationOf(row)
  if (rotation?.phase === 'publishing') return now >= rotation.readyAt ? 'read-back' : 'none'
  if (rotation?.phase === 'retiring') return now >= rotation.until ? 'finish' : 'none'
  const isDue = row.rotation_enabled === 1 && now >= row.rotated_at + parseInterval(row.rotation_interval)
  return isDue ? 'start' : 'none'
}

/** The selector that does not sign. */
export const spareSelector = (row: SenderSecurityRow): string =>
  row.active_selector === MANAGED_SELECTORS[0] ? MANAGED_SELECTORS[1] : MANAGED_SELECTORS[0]
