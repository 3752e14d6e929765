/** Captured mail: stored as it arrived, listed newest first, parsed when it is read. */

import { EventEmitter, on } from 'node:events'
import { type ExpressionBuilder, type SelectQueryBuilder, sql } from 'kysely'
import { newId } from '../../base/ids.ts'
import { NotFound, Unavailable } from '../../base/process/errors.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { IdPage } from '../../platform/http/request/paging.ts'
import type { InboxRow, Schema } from '../../platform/store/schema.ts'
import { insert, type Store } from '../../platform/store/store.ts'
import { type Chunk, chunkSize } from '../../protocols/message/mime-message.ts'
import { DELIVERED_HEADER_LIMITS, readHead, splitMessage } from '../../protocols/mime/split.ts'
import { type Authentication, keysNamedBy } from './authentication.ts'
import type { CapturedMail } from './capture-listener.ts'
import type { MailReader } from './large-mail.ts'
import { searchedWords } from './searched-words.ts'
import { type InboxItem, itemOf, type ShownFile, type ShownTexts } from './view.ts'

interface InboxFilter {
  to?: string | undefined
  from?: string | undefined
  subject?: string | undefined
  domain?: string | undefined
  /** A whole tag. */
  tag?: string | undefined
  /** Part of the text. */
  body?: string | undefined
  q?: string | undefined
}

export interface InboxViewer {
  accountId: string
  /** Mail of the service itself is shown to admins only: its links set passwords (decision 59). */
  seesRestricted: boolean
}

export type Inbox = ReturnType<typeof createInbox>

/** Owner of captured mail. */
export interface MailOwner {
  deliveryId: string
  accountId: string
  domainName: string
  storageKey: string
  /** Mail of the service itself. */
  restricted: boolean
}

interface InboxParts extends Pick<Core, 'store' | 'blobs' | 'clock'> {
  headerPrefix: string
  /** The delivery that a return path names, with its owner; null if it is not one of ours. */
  ownerOf(returnPath: string): Promise<MailOwner | null>
  reader: MailReader
}

/** Deleted in one transaction: it blocks the writer for some milliseconds, and a full disk has room for little more. */
const CLEAR_ROWS = 200
/** The newest mail that is beyond so many bytes, counted from the newest one. */
const BEYOND = `SELECT id FROM (SELECT id, sum(size_bytes) OVER (ORDER BY id DESC) AS total FROM inbox) AS summed
  WHERE total > ? ORDER BY id DESC LIMIT 1`
/** Listeners for the arrivals of one account: one per open page. */
export const STREAMS_PER_ACCOUNT = 20

type InboxIds = SelectQueryBuilder<Schema, 'inbox', { id: string }>

export function createInbox(parts: InboxParts) {
  const { store, blobs, clock, reader } = parts
  const arrived = new EventEmitter()
  arrived.setMaxListeners(STREAMS_PER_ACCOUNT)

  async function receive(mail: CapturedMail): Promise<void> {
    const owner = await parts.ownerOf(mail.from)
    // Mail that this service did not send cannot get here: only this process knows the listener's login.
    if (!owner) throw new Error('Captured mail names no delivery')
    const fields = splitMessage(await readHead(mail.raw), DELIVERED_HEADER_LIMITS).headers
    const header = (name: string) => fields.find((field) => field.name.toLowerCase() === name)?.value ?? ''
    const tagName = `${parts.headerPrefix}Tag`.toLowerCase()
    const { raw } = mail
    const row: InboxRow = {
      id: newId(clock.now()),
      account_id: owner.accountId,
      domain_name: owner.domainName,
      delivery_id: owner.deliveryId,
      storage_key: owner.storageKey,
      received_at: Math.floor(clock.now()),
      envelope_from: mail.from,
      envelope_to_json: JSON.stringify(mail.to),
      from_header: header('from'),
      to_header: header('to'),
      subject: header('subject'),
      message_id: header('message-id').replaceAll(/[<>\s]/g, ''),
      tags_json: JSON.stringify(
        fields.filter(({ name }) => name.toLowerCase() === tagName).map(({ value }) => value),
      ),
      size_bytes: chunkSize(raw),
      authentication_json: JSON.stringify(await reader.verify(raw, await keysNamedBy(fields, store))),
      ...(raw instanceof Uint8Array
        ? { raw, raw_blob: null }
        : { raw: null, raw_blob: await blobs.keep(raw) }),
      restricted: owner.restricted ? 1 : 0,
    }
    const words = await wordsIn(reader, raw)
    await store.commit([
      insert('inbox', row),
      ...(words === '' ? [] : [insert('inbox_words', { inbox_id: row.id, words })]),
    ])
    arrived.emit(row.account_id, itemOf(row), owner.restricted)
  }

  async function row({ accountId, seesRestricted }: InboxViewer, id: string): Promise<InboxRow> {
    const found = await store.db
      .selectFrom('inbox')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('id', '=', id)
      .executeTakeFirst()
    if (!found || (found.restricted === 1 && !seesRestricted)) throw new NotFound('Message not found')
    return found
  }

  /** The row without its bytes, and a function that reads them. */
  async function shown(viewer: InboxViewer, id: string) {
    const { raw, raw_blob, ...about } = await row(viewer, id)
    return { about, read: async () => bytesOf(await rawOf({ raw, raw_blob })) }
  }

  async function rawOf(found: Pick<InboxRow, 'raw' | 'raw_blob'>): Promise<Chunk> {
    if (found.raw) return found.raw
    return blobs.read(found.raw_blob as string)
  }

  return {
    receive,
    ...createRemovals(parts),
    /** Newest first. */
    list: (viewer: InboxViewer, filter: InboxFilter, page: IdPage, limit: number) =>
      listPage(store, viewer, filter, page, limit),
    /** The message as it is shown, or the JSON of that. @throws NotFound */
    async view(viewer: InboxViewer, id: string): ReturnType<MailReader['view']> {
      const { about, read } = await shown(viewer, id)
      return reader.view(about, read)
    },
    /** One attachment, counted from 0. @throws NotFound */
    async file(viewer: InboxViewer, id: string, n: number): Promise<ShownFile> {
      const { about, read } = await shown(viewer, id)
      const file = await reader.file(about, read, n)
      if (!file) throw new NotFound('Message not found')
      return file
    },
    /** The bytes as they were received, with their return path. @throws NotFound */
    async mail(viewer: InboxViewer, id: string): Promise<Pick<CapturedMail, 'from' | 'raw'>> {
      const found = await row(viewer, id)
      return { from: found.envelope_from, raw: await rawOf(found) }
    },
    /** What authentication is about: sending domain, From, and `d=` of the first signature (null: none). @throws NotFound */
    async origin(
      viewer: InboxViewer,
      id: string,
    ): Promise<{ domainName: string; from: string; signer: string | null }> {
      const { domain_name, from_header, authentication_json } = await row(viewer, id)
      const { dkim } = JSON.parse(authentication_json) as Authentication
      const signer = dkim.find(({ domain }) => domain !== '')?.domain ?? null
      return { domainName: domain_name, from: from_header, signer }
    },
    /** The texts of a message, for checks. @throws NotFound */
    async texts(viewer: InboxViewer, id: string): Promise<ShownTexts> {
      const { about, read } = await shown(viewer, id)
      return reader.texts(about, read)
    },
    /** Replaces its tags. @throws NotFound */
    async setTags(viewer: InboxViewer, id: string, tags: readonly string[]): Promise<InboxItem> {
      const found = await row(viewer, id)
      const tags_json = JSON.stringify([...new Set(tags)])
      await store.db.updateTable('inbox').set({ tags_json }).where('id', '=', found.id).execute()
      return itemOf({ ...found, tags_json })
    },
    async remove(viewer: InboxViewer, id: string): Promise<void> {
      const found = await row(viewer, id)
      await store.db.deleteFrom('inbox').where('id', '=', found.id).execute()
      if (found.raw_blob) await blobs.remove(found.raw_blob)
    },
    /** Items as they arrive, until `signal` aborts. */
    async *arrivals(
      { accountId, seesRestricted }: InboxViewer,
      signal: AbortSignal,
    ): AsyncIterable<InboxItem> {
      try {
        for await (const [item, restricted] of on(arrived, accountId, { signal }))
          if (seesRestricted || !restricted) yield item as InboxItem
      } catch (error) {
        if (!signal.aborted) throw error
      }
    },
  }
}

/** A message that cannot be read, or not soon, is kept all the same. */
async function wordsIn(reader: MailReader, raw: Chunk): Promise<string> {
  try {
    return searchedWords(await reader.texts({ size_bytes: chunkSize(raw) }, () => bytesOf(raw)))
  } catch (error) {
    if (error instanceof Unavailable) return ''
    throw error
  }
}

/** Removes captured mail by filter, age and size. */
function createRemovals({ store, blobs, clock }: InboxParts) {
  const ids = (): InboxIds => store.db.selectFrom('inbox').select('id')

  /** What `selected` selects is removed a few at a time, until nothing is left of it. */
  async function removeAll(selected: InboxIds, signal?: AbortSignal): Promise<void> {
    while (!signal?.aborted) {
      const some = selected.limit(CLEAR_ROWS)
      const gone = await store.db.deleteFrom('inbox').where('id', 'in', some).returning('raw_blob').execute()
      for (const { raw_blob } of gone) if (raw_blob) await blobs.remove(raw_blob)
      if (gone.length < CLEAR_ROWS) return
    }
  }

  return {
    /** Removes what the filter finds, without one all; but not what arrives meanwhile. */
    async clear(accountId: string, filter: InboxFilter): Promise<void> {
      const newest = newId(clock.now())
      await removeAll(filtered(store, ids(), accountId, filter).where('id', '<', newest))
    },
    /** Removes mail older than `days`, and the oldest beyond `bytesMax`. */
    async sweep({ days, bytesMax }: { days: number; bytesMax: number }, signal?: AbortSignal): Promise<void> {
      const since = Math.floor(clock.now() - days * DAY_MS)
      await removeAll(ids().where('received_at', '<', since).orderBy('received_at'), signal)
      const [newestBeyond] = await store.read({ sql: BEYOND, values: [bytesMax] })
      if (newestBeyond) await removeAll(ids().where('id', '<=', String(newestBeyond['id'])), signal)
    },
  }
}

/** Columns that a list needs; the bytes stay where they are. */
const LISTED = [
  'id',
  'received_at',
  'envelope_from',
  'envelope_to_json',
  'from_header',
  'to_header',
  'subject',
  'size_bytes',
  'tags_json',
  'delivery_id',
] as const

/** One page of the list, newest first. */
async function listPage(
  store: Store,
  viewer: InboxViewer,
  filter: InboxFilter,
  page: IdPage,
  limit: number,
): Promise<InboxItem[]> {
  const ascending = page.kind === 'last' || page.kind === 'previous'
  let query = filtered(store, store.db.selectFrom('inbox').select(LISTED), viewer.accountId, filter)
  if (!viewer.seesRestricted) query = query.where('restricted', '=', 0)
  if (page.kind === 'next') query = query.where('id', '<', page.pivot)
  if (page.kind === 'previous') query = query.where('id', '>', page.pivot)
  const rows = await query
    .orderBy('id', ascending ? 'asc' : 'desc')
    .limit(limit)
    .execute()
  const items = rows.map(itemOf)
  return ascending ? items.reverse() : items
}

function filtered<Row>(
  { kind }: Store,
  rows: SelectQueryBuilder<Schema, 'inbox', Row>,
  accountId: string,
  { to, from, subject, domain, tag, body, q }: InboxFilter,
): SelectQueryBuilder<Schema, 'inbox', Row> {
  let query = rows.where('account_id', '=', accountId)
  const contains = (column: 'from_header' | 'subject' | 'tags_json', text: string) =>
    query.where((where) => where.eb(where.fn('lower', [column]), 'like', pattern(text)))
  if (to) {
    query = query.where((where) =>
      where.or([
        where.eb(where.fn('lower', ['to_header']), 'like', pattern(to)),
        where.eb(where.fn('lower', ['envelope_to_json']), 'like', pattern(to)),
      ]),
    )
  }
  if (from) query = contains('from_header', from)
  if (subject) query = contains('subject', subject)
  if (tag) query = contains('tags_json', JSON.stringify(tag))
  if (body) query = query.where((where) => hasWords(kind, where, body))
  if (domain) query = query.where('domain_name', '=', domain.toLowerCase())
  if (q) {
    const columns = [
      'to_header',
      'from_header',
      'subject',
      'envelope_to_json',
      'message_id',
      'tags_json',
    ] as const
    query = query.where((where) =>
      where.or([
        ...columns.map((column) => where.eb(where.fn('lower', [column]), 'like', pattern(q))),
        hasWords(kind, where, q),
      ]),
    )
  }
  return query
}

/** Not by LIKE, which takes SQLite 76 ms for one text and a long part that nearly matches everywhere. */
const hasWords = (kind: Store['kind'], where: ExpressionBuilder<Schema, 'inbox'>, text: string) =>
  where.exists(
    where
      .selectFrom('inbox_words')
      .select('inbox_id')
      .whereRef('inbox_id', '=', 'inbox.id')
      .where(
        sql<boolean>`${sql.raw(kind === 'sqlite' ? 'instr' : 'strpos')}(words, ${text.toLowerCase()}) > 0`,
      ),
  )

/** A LIKE pattern that finds `text` anywhere; its own `%` and `_` stand for themselves under neither database's
 *  default escape, so they are widened to `_`, which can only find more. */
const pattern = (text: string) => `%${text.toLowerCase().replaceAll(/[%_\\]/g, '_')}%`

async function bytesOf(chunk: Chunk): Promise<Buffer> {
  if (chunk instanceof Uint8Array) return Buffer.from(chunk)
  const read: Uint8Array[] = []
  for await (const bytes of chunk.open()) read.push(bytes)
  return Buffer.concat(read)
}
