/**
 * What waits and matches a filter, account by account, in the order of ids. Only rows that wait are read, by an index of
 * them, CHUNK at a time: first their ids, then the rows by id. So a chunk costs the same whatever the filter leaves of it, and
 * whatever was delivered before.
 */
import type { Core } from '../../core.ts'
import type { DeliveryRow } from '../../platform/store/schema.ts'
import type { SqlValue, Store } from '../../platform/store/store.ts'
import { STATE_OF_ID } from '../deliver/claim/queue.ts'
import type { Delivery } from '../deliver/contract.ts'
import { viewOf } from './deliveries.ts'
import { laneNames } from './totals.ts'

export interface QueueFilter {
  domain: string | undefined
  recipientDomain: string | undefined
  provider: string | undefined
  lane: string | undefined
  tag: string | undefined
  messageId: string | undefined
  /** Code of `reasonOf`. */
  reason: string | undefined
  olderThanMs: number | undefined
}

export interface WaitingParts extends Pick<Core, 'store' | 'clock' | 'firstAccountId'> {
  delivery: Delivery
}

export type Waiting = DeliveryRow & { summary_json?: string }

/** A place in the order. */
export interface Place {
  accountId: string
  /** Id of a delivery. */
  id: string
}

export interface Chunk {
  matching: Waiting[]
  /** The last row that was read, and how many were. */
  end: Place
  read: number
}

/** Rows that are read at a time, and changed in one transaction. */
export const CHUNK = 500

/**
 * @param accountId null: of all accounts
 * @param states the condition on the state, for an expression of it (see `STATE_OF_ID`)
 * @param from not included; null: from the beginning, or from the end
 */
export async function* waitingRows(
  parts: WaitingParts,
  accountId: string | null,
  filter: QueueFilter,
  states: (state: string) => string,
  from: Place | null = null,
  backwards = false,
): AsyncGenerator<Chunk, void> {
  const inLane = laneFilter(parts.delivery, filter)
  const select = selection(parts, accountId, filter, states)
  let after = from?.id ?? null
  for await (const section of sections(parts.store, accountId, filter, from, backwards)) {
    for (let ids: string[]; ; ) {
      ids = await section.idsAfter(after)
      const last = ids.at(-1)
      if (last === undefined) break
      const rows = await inLane(await select(ids))
      const matching = rows.filter(
        (row) =>
          hasTag(row, filter.tag) &&
          (filter.reason === undefined || viewOf(parts, row).reason.code === filter.reason),
      )
      if (backwards) matching.reverse()
      yield { matching, end: { accountId: section.accountId, id: last }, read: ids.length }
      if (ids.length < CHUNK) break
      after = last
    }
    after = null
  }
}

interface Section {
  accountId: string
  /** Up to CHUNK ids of rows that wait, after one. */
  idsAfter(id: string | null): Promise<string[]>
}

/** The accounts in order; of a named message alone its deliveries. */
async function* sections(
  store: Store,
  accountId: string | null,
  filter: QueueFilter,
  from: Place | null,
  backwards: boolean,
): AsyncGenerator<Section, void> {
  const [beyond, order] = backwards ? ['<', 'DESC'] : ['>', 'ASC']
  const first = async (sql: string, values: readonly SqlValue[]) =>
    (await store.read({ sql, values })) as Row[]
  const section = (id: string, rows: string, column: string, value: string): Section => ({
    accountId: id,
    async idsAfter(after) {
      const place = after === null ? '' : `AND ${column} ${beyond} ?`
      const values = [value, ...(after === null ? [] : [after]), CHUNK]
      const found = await first(`${rows} ${place} ORDER BY ${column} ${order} LIMIT ?`, values)
      return found.map((row) => String(row['id']))
    },
  })
  if (filter.messageId !== undefined) {
    yield section(accountId ?? '', OF_MESSAGE, 'd.id', filter.messageId.replace(/^<|>$/g, ''))
    return
  }
  const ofAccount = (id: string) => section(id, OF_ACCOUNT, 'id', id)
  if (accountId !== null) {
    yield ofAccount(accountId)
    return
  }
  if (from !== null) yield ofAccount(from.accountId)
  for (let after = from?.accountId; ; ) {
    const place = after === undefined ? '' : `AND account_id ${beyond} ?`
    const [row] = await first(
      `SELECT account_id FROM deliveries WHERE ${QUEUED} ${place} ORDER BY account_id ${order} LIMIT 1`,
      after === undefined ? [] : [after],
    )
    if (row === undefined) return
    after = String(row['account_id'])
    yield ofAccount(after)
  }
}

type Row = Record<string, SqlValue>

/**
 * As `WAITS`, in the words of the index `deliveries_queued`: SQLite takes a partial index only for its own words, so that no
 * other statement takes this one in place of a narrower index.
 */
const QUEUED = `state IN ('queued', 'scheduled')`

const OF_ACCOUNT = `SELECT id FROM deliveries WHERE ${QUEUED} AND account_id = ?`
const OF_MESSAGE = `SELECT d.id FROM messages m JOIN deliveries d ON d.message_pk = m.id WHERE m.message_id = ?`

/** Reads the rows of ids, in order, that pass what the database can judge. */
function selection(
  { store, clock }: WaitingParts,
  accountId: string | null,
  filter: QueueFilter,
  states: (state: string) => string,
) {
  const conditions: string[] = [states(`d.${STATE_OF_ID}`)]
  const values: SqlValue[] = []
  const add = (condition: string, value: SqlValue | undefined | null) => {
    if (value === undefined || value === null) return
    conditions.push(condition)
    values.push(value)
  }
  // As expressions: the rows are found by id.
  add(`d.account_id || '' = ?`, accountId)
  add(`d.domain_id || '' IN (SELECT id FROM domains WHERE name = ?)`, filter.domain?.toLowerCase())
  add(`d.recipient_domain || '' = ?`, filter.recipientDomain?.toLowerCase())
  const { olderThanMs, tag } = filter
  add('d.created_at < ?', olderThanMs === undefined ? undefined : Math.round(clock.now() - olderThanMs))
  const [summary, join] =
    tag === undefined ? ['', ''] : [', m.summary_json', 'JOIN messages m ON m.id = d.message_pk']
  return async (ids: readonly string[]) =>
    (await store.read({
      sql: `SELECT d.*${summary} FROM deliveries d ${join}
        WHERE d.id IN (${ids.map(() => '?').join(', ')}) AND ${conditions.join(' AND ')} ORDER BY d.id`,
      values: [...ids, ...values],
    })) as unknown as Waiting[]
}

/** Keeps rows whose lane, and its provider, are as the filter says; each group is looked up once. */
function laneFilter(
  delivery: Delivery,
  { lane, provider }: QueueFilter,
): (rows: readonly Waiting[]) => Promise<readonly Waiting[]> {
  if (lane === undefined && provider === undefined) return async (rows) => rows
  const known = new Map<string, boolean>()
  const keyOf = (row: Waiting) => `${row.domain_id} ${row.recipient_domain} ${row.source_key}`
  return async (rows) => {
    const unknown = new Map(rows.filter((row) => !known.has(keyOf(row))).map((row) => [keyOf(row), row]))
    const groups = [...unknown].map(([key, row]) => ({
      ...{ key, accountId: row.account_id, domainId: row.domain_id },
      ...{ recipientDomain: row.recipient_domain, sourceKey: row.source_key },
    }))
    for (const [{ key }, name] of await laneNames(delivery, groups))
      known.set(
        key,
        (lane === undefined || name.lane === lane) &&
          (provider === undefined || name.provider.toLowerCase() === provider.toLowerCase()),
      )
    return rows.filter((row) => known.get(keyOf(row)))
  }
}

/** Tags are compared without letter case (messages.md rule 32). */
function hasTag(row: Waiting, tag: string | undefined): boolean {
  if (tag === undefined) return true
  const { tags } = JSON.parse(row.summary_json ?? '{}') as { tags?: string[] }
  return (tags ?? []).some((other) => other.toLowerCase() === tag.toLowerCase())
}
