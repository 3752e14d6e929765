/**
 * Removes the events of a closed account, whether followers have read them or not.
 *
 * On SQLite the newest row's number decides the next one, and cursors hold such numbers, so that row is emptied instead:
 * retention deletes it when there are newer ones.
 */
import { pause } from '../../../base/flow/pause.ts'
import type { RowParts } from '../../../platform/store/account-rows.ts'
import type { Statement, Store } from '../../../platform/store/store.ts'

/** About 10 ms of work on either database. */
const PORTION = 500
const PAUSE_MS = 10

const NEWEST = '(SELECT max(seq) FROM events)'
/** On PostgreSQL with the time, which names the partition. */
const KEY = { sqlite: 'seq', postgres: 'seq, timestamp_us' } as const

export async function removeEventsOf(
  { store, clock }: RowParts,
  accountId: string,
  signal: AbortSignal,
): Promise<void> {
  const kept = store.kind === 'sqlite' ? ` AND seq < ${NEWEST}` : ''
  const key = KEY[store.kind]
  const ofAccount = `SELECT ${key} FROM event_keys WHERE account_id = ?${kept} LIMIT ${PORTION}`
  const sql = `DELETE FROM events WHERE (${key}) IN (${ofAccount})`
  for (;;) {
    const [result] = await store.commit([{ sql, values: [accountId] }])
    if ((result?.affected ?? 0) < PORTION) break
    await pause(clock, PAUSE_MS, signal)
    signal.throwIfAborted()
  }
  await emptyNewest(store, accountId)
}

const IS_NEWEST = `seq = ${NEWEST} AND account_id = ?`
const TAG_KEY = 'domain_name, tag, event, timestamp_us, seq'

async function emptyNewest(store: Store, accountId: string): Promise<void> {
  if (store.kind !== 'sqlite') return
  const statements = [
    `DELETE FROM event_tags WHERE (${TAG_KEY}) IN (
      SELECT domain_name, value, event, timestamp_us, seq FROM events CROSS JOIN json_each(tags_json)
      WHERE ${IS_NEWEST})`,
    `UPDATE event_index SET account_id = '', domain_name = '', event = 'removed', message_id = NULL,
      recipient_hash = NULL WHERE ${IS_NEWEST}`,
    `UPDATE events SET id = 'removed-' || seq, account_id = '', domain_name = '', event = 'removed', recipient = NULL,
      message_id = NULL, payload_json = '{}', tags_json = NULL, recipient_hash = NULL WHERE ${IS_NEWEST}`,
  ].map((sql): Statement => ({ sql, values: [accountId] }))
  await store.commit(statements)
}
