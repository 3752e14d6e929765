/** Which messages are finished: nothing of them is still to be sent, archived, expanded or posted. */
import type { KeptDomain } from '../../platform/store/kept-days.ts'
import type { MessageRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'

export const REMOVED_COLUMNS = [
  'id',
  'account_id',
  'domain_id',
  'domain_name',
  'message_id',
  'summary_json',
  'created_at',
  'blobs_json',
] as const

export type RemovedRow = Pick<MessageRow, (typeof REMOVED_COLUMNS)[number]>

export const isFinished = async (store: Store, id: string): Promise<boolean> =>
  !(await progressOf(store, id)).open && !(await isInUse(store, id))

/** `open`: something is still to be sent. `last`: when the last delivery changed, null without any. */
export async function progressOf(store: Store, id: string): Promise<{ last: number | null; open: boolean }> {
  const state = await store.db
    .selectFrom('deliveries')
    .select((eb) => [
      eb.fn.max('updated_at').as('last'),
      eb.fn
        .sum<number>(eb.case().when('state', 'in', ['scheduled', 'queued', 'sending']).then(1).else(0).end())
        .as('open'),
    ])
    .where('message_pk', '=', id)
    .executeTakeFirst()
  const last = state?.last ?? null
  return { last: last === null ? null : Number(last), open: Number(state?.open ?? 0) > 0 }
}

/** It is still to be archived, expanded or posted. */
export async function isInUse(store: Store, id: string): Promise<boolean> {
  const archiving = await store.db
    .selectFrom('archive_outbox')
    .innerJoin('deliveries', 'deliveries.id', 'archive_outbox.delivery_id')
    .select('archive_outbox.id')
    .where('deliveries.message_pk', '=', id)
    .limit(1)
    .executeTakeFirst()
  const expanding = await store.db
    .selectFrom('list_expansions')
    .select('id')
    .where('message_pk', '=', id)
    .where('state', '=', 'running')
    .limit(1)
    .executeTakeFirst()
  const posting = await store.db
    .selectFrom('route_posts')
    .select('id')
    .where('message_pk', '=', id)
    .limit(1)
    .executeTakeFirst()
  return archiving !== undefined || expanding !== undefined || posting !== undefined
}

/** Events looked at in one step. */
const STEP = 500
const ENDING = "event IN ('delivered', 'failed', 'rejected')"
const AFTER = 'timestamp_us >= ? AND (timestamp_us, seq) > (?, ?)'
/** Values: account, domain, time, and the place after which to go on. On SQLite by its index (decision 45). */
const ENDED = {
  sqlite: `SELECT keys.timestamp_us, keys.seq, events.payload_json FROM (
      SELECT timestamp_us, seq FROM event_keys WHERE account_id = ? AND domain_name = ? AND ${AFTER} AND ${ENDING}
      ORDER BY timestamp_us, seq LIMIT ${STEP}) AS keys
    JOIN events ON events.seq = keys.seq ORDER BY keys.timestamp_us, keys.seq`,
  postgres: `SELECT timestamp_us, seq, payload_json FROM events
    WHERE account_id = ? AND domain_name = ? AND ${AFTER} AND ${ENDING} ORDER BY timestamp_us, seq LIMIT ${STEP}`,
}

interface EndedRow {
  timestamp_us: number
  seq: number
  payload_json: string
}

/** Stored messages of a domain that had a recipient finished since `fromUs`, in portions; other recipients may be open. */
export async function* endedMessages(
  store: Store,
  domain: KeptDomain,
  fromUs: number,
  signal?: AbortSignal,
): AsyncGenerator<RemovedRow[]> {
  let place = { timestamp_us: Math.floor(fromUs), seq: 0 }
  while (!signal?.aborted) {
    const values = [domain.account_id, domain.name, place.timestamp_us, place.timestamp_us, place.seq]
    const rows = (await store.read({ sql: ENDED[store.kind], values })) as unknown as EndedRow[]
    const keys = new Set(rows.flatMap(({ payload_json }) => storageKeyOf(payload_json)))
    if (keys.size > 0) yield await messagesOf(store, domain, [...keys])
    const last = rows.at(-1)
    if (!last || rows.length < STEP) return
    place = { timestamp_us: Number(last.timestamp_us), seq: Number(last.seq) }
  }
}

function storageKeyOf(payload: string): string[] {
  const key = (JSON.parse(payload) as { storage?: { key?: unknown } }).storage?.key
  return typeof key === 'string' ? [key] : []
}

/** A copy of a batch has the key of its delivery. */
async function messagesOf(store: Store, domain: KeptDomain, keys: readonly string[]): Promise<RemovedRow[]> {
  const copies = await store.db
    .selectFrom('deliveries')
    .select('message_pk')
    .where('id', 'in', keys)
    .execute()
  const ids = new Set([...keys, ...copies.map(({ message_pk }) => message_pk)])
  return store.db
    .selectFrom('messages')
    .select(REMOVED_COLUMNS)
    .where('id', 'in', [...ids])
    .where('domain_id', '=', domain.id)
    .execute()
}
