/** Reading the lists, and the rules of changes: validation, and the audit row of each. */

import { BadRequest, NotFound } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { type Actor, auditStatement } from '../../people/accounts/audit-log.ts'
import { ifStale } from '../../platform/store/commits.ts'
import type { SuppressionKind, SuppressionRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import { addressKey } from '../../protocols/mime/address.ts'
import type { Domain } from '../domains/domain.ts'
import {
  asGivenRecord,
  type GivenRecord,
  type NewRecord,
  readRecord,
  TAGS_PER_UNSUBSCRIBE_MAX,
} from './given-records.ts'
import { type StoredRecord, traitsOf } from './kinds.ts'
import {
  addStatements,
  clearStatements,
  overTagLimit,
  removeStatements,
  removeTagStatements,
} from './store.ts'

export interface PageQuery {
  direction: 'forward' | 'backward'
  /** Only addresses after it in that direction; undefined: from that end. */
  pivot: string | undefined
  /** Only addresses that begin with it; '' matches all. */
  prefix: string
  limit: number
  now: number
}

export const RECORDS_PER_CALL_MAX = 1000

export type Suppressions = ReturnType<typeof createSuppressions>

/** @param erased what stands in the lists for the address of a person who was erased (decision 222), by its key */
export function createSuppressions(store: Store, clock: Clock, erased: (key: string) => string) {
  const audit = (actor: Actor, domain: Domain, action: string, detail: unknown) =>
    auditStatement(actor, { action, subject: domain.name, detail }, clock.now())

  async function read(domain: Domain, kind: SuppressionKind, address: string): Promise<StoredRecord> {
    const key = keyOf(address)
    const find = (stored: string) => findRecord(store, domain.id, kind, stored, clock.now())
    const record = (await find(key)) ?? (await find(erased(key)))
    if (!record) throw new NotFound(traitsOf(kind).unknown)
    return record
  }

  async function put(actor: Actor, domain: Domain, kind: SuppressionKind, records: readonly NewRecord[]) {
    await checkTagLimit(store, domain, records)
    await store.commit([
      ...addStatements(domain, kind, records, clock.now()),
      audit(actor, domain, `${kind}.add`, { addresses: records.map(({ address }) => address) }),
    ])
  }

  return {
    list: (domain: Domain, kind: SuppressionKind, page: Omit<PageQuery, 'now'>) =>
      listRecords(store, domain.id, kind, {
        ...page,
        pivot: page.pivot === undefined ? undefined : keyOf(page.pivot),
        prefix: prefixOf(page.prefix),
        now: clock.now(),
      }),
    /** @throws NotFound with the text of the kind */
    read,
    /** Adds or updates one record and resolves to its address. @throws BadRequest */
    async add(actor: Actor, domain: Domain, kind: SuppressionKind, given: GivenRecord) {
      const record = readRecord(kind, given, clock.now())
      await put(actor, domain, kind, [record])
      return record.address
    },
    /** Adds or updates all records or none. @throws BadRequest naming the index of the first invalid one */
    async addMany(actor: Actor, domain: Domain, kind: SuppressionKind, given: readonly unknown[]) {
      if (given.length > RECORDS_PER_CALL_MAX) throw new BadRequest('Batch size should be less than 1000')
      if (given.length === 0) throw new BadRequest('Invalid json: expected at least one record')
      const now = clock.now()
      const records = given.map((item, index) =>
        atIndex(index, () => readRecord(kind, asGivenRecord(item), now)),
      )
      await put(actor, domain, kind, records)
    },
    /** Resolves to the address. `tag`: only this tag of an unsubscribe. @throws NotFound */
    async remove(actor: Actor, domain: Domain, kind: SuppressionKind, address: string, tag?: string) {
      const known = await read(domain, kind, address)
      const isPart = kind === 'unsubscribes' && tag !== undefined
      const changes = isPart
        ? removeTagStatements(domain.id, known.address, tag)
        : [
            ...removeStatements(domain.id, kind, known.address),
            // The address may have been added again after its erasure.
            ...removeStatements(domain.id, kind, erased(known.address)).map(({ sql, values }) => ({
              sql,
              values,
            })),
          ]
      const detail = { addresses: [known.address], ...(isPart && { tag }) }
      const unknown = isPart ? 'Unsubscribe event for this tag does not exist' : traitsOf(kind).unknown
      await store
        .commit([...changes, audit(actor, domain, `${kind}.remove`, detail)])
        .catch(ifStale(() => new NotFound(unknown)))
      return known.address
    },
    async clear(actor: Actor, domain: Domain, kind: SuppressionKind) {
      await store.commit([...clearStatements(domain.id, kind), audit(actor, domain, `${kind}.clear`, {})])
    },
  }
}

/** The stored form of an address or domain; invalid text matches nothing. */
const keyOf = (value: string) => addressKey(value.replaceAll('\0', ''))

/** Part of an address: only its letter case can be normalised. */
const prefixOf = (term: string) => term.replaceAll('\0', '').toLowerCase()

/** Runs `read` and adds the index of the record, counted from 0, to its error. */
function atIndex<T>(index: number, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof BadRequest)
      throw new BadRequest(`${error.message} (index ${index})`, { cause: error })
    throw error
  }
}

async function checkTagLimit(store: Store, domain: Domain, records: readonly NewRecord[]): Promise<void> {
  const [over] = await overTagLimit(store, domain.id, records)
  if (over === undefined) return
  throw new BadRequest(
    `Cannot add tags to the unsubscribe of "${over}": it would have more than ${TAGS_PER_UNSUBSCRIBE_MAX}`,
  )
}

/** The last code point, which no address contains: greater than every text that begins with the prefix. */
const AFTER_ALL = '\u{10ffff}'

/** One page in the order of the addresses, whichever the direction of reading: a range of the primary key. */
export async function listRecords(
  store: Store,
  domainId: string,
  kind: SuppressionKind,
  { direction, pivot, prefix, limit, now }: PageQuery,
): Promise<StoredRecord[]> {
  let rows = store.db
    .selectFrom('suppressions')
    .selectAll()
    .where('domain_id', '=', domainId)
    .where('kind', '=', kind)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', Math.floor(now))]))
    .orderBy('address', direction === 'forward' ? 'asc' : 'desc')
    .limit(limit)
  if (prefix !== '') rows = rows.where('address', '>=', prefix).where('address', '<', prefix + AFTER_ALL)
  if (pivot !== undefined) rows = rows.where('address', direction === 'forward' ? '>' : '<', pivot)
  const found = await rows.execute()
  if (direction === 'backward') found.reverse()
  return kind === 'unsubscribes' ? withTags(store, domainId, found) : found.map((row) => recordOf(row, []))
}

export async function findRecord(
  store: Store,
  domainId: string,
  kind: SuppressionKind,
  address: string,
  now: number,
): Promise<StoredRecord | null> {
  const rows = await store.db
    .selectFrom('suppressions')
    .selectAll()
    .where('domain_id', '=', domainId)
    .where('kind', '=', kind)
    .where('address', '=', address)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', Math.floor(now))]))
    .execute()
  const records = kind === 'unsubscribes' ? await withTags(store, domainId, rows) : undefined
  return records?.[0] ?? (rows[0] ? recordOf(rows[0], []) : null)
}

async function withTags(store: Store, domainId: string, rows: SuppressionRow[]): Promise<StoredRecord[]> {
  const first = rows.at(0)?.address
  const last = rows.at(-1)?.address
  if (first === undefined || last === undefined) return []
  const tags = await store.db
    .selectFrom('unsubscribe_tags')
    .select(['address', 'tag'])
    .where('domain_id', '=', domainId)
    .where('address', '>=', first)
    .where('address', '<=', last)
    .orderBy('address')
    .orderBy('tag_key')
    .execute()
  const byAddress = Map.groupBy(tags, ({ address }) => address)
  return rows.map((row) =>
    recordOf(
      row,
      (byAddress.get(row.address) ?? []).map(({ tag }) => tag),
    ),
  )
}

const recordOf = (row: SuppressionRow, tags: readonly string[]): StoredRecord => ({
  address: row.address,
  code: row.code,
  detail: row.detail,
  tags,
  createdAt: row.created_at,
})
