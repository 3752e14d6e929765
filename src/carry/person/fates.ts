/**
 * What becomes of one row that may name the person. Most tables follow the rule of their store; those that hold mail,
 * files or sealed answers are judged here one by one.
 */

import type { Core } from '../../core.ts'
import { listOf } from '../../platform/store/lists.ts'
import type { MessageRow } from '../../platform/store/schema.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import type { SqlValue, Statement, Store } from '../../platform/store/store.ts'
import type { MessageSummary } from '../../watching/events/event.ts'
import { type PackedEntry, PackReader, pack } from '../../watching/metrics/storage/packs.ts'
import { blobBytes, contentChange, maskedFile, maskedMail, writeBlob } from './content.ts'
import { type Person, replacedText } from './person.ts'
import type { StoreRule } from './stores.ts'
import { changing, type Row, removal, type TableShape } from './walk.ts'

export interface Fate {
  kind: 'erased' | 'pseudonymised' | 'kept'
  /** It belongs to the person; else it only names them. */
  isOwn: boolean
  /** What makes it so. */
  statements: readonly Statement[]
  /** Blobs that it named before, and those that it names now: which of them the row does not name is removed. */
  gone?: readonly string[]
  /** Deliveries of it must end or be given back first: their ids, or those of the message. */
  waitsFor?: { column: 'id' | 'message_pk'; value: string }
}

export interface FateParts extends Pick<Core, 'store' | 'blobs'> {
  sealer: Pick<Sealer, 'open'>
  person: Person
  /** Nothing will be changed: blobs are not written. */
  isDry: boolean
  /** Id of the task that asks. */
  taskId: string
}

type Judge = (parts: FateParts, shape: TableShape, row: Row) => Promise<Fate | null>

/** Null: the row does not name the person. */
export async function fateOf(
  parts: FateParts,
  rule: StoreRule,
  shape: TableShape,
  row: Row,
): Promise<Fate | null> {
  const judge = JUDGES[shape.name]
  return judge ? judge(parts, shape, row) : byRule(parts, rule, shape, row)
}

/** Stores whose rows are all looked at, as none of their columns has the address in plain sight. */
export const READ_WHOLE: ReadonlySet<string> = new Set([
  ...['idempotency_keys', 'exports', 'suppression_imports', 'validation_jobs', 'person_tasks'],
])

function byRule(
  { person }: Pick<FateParts, 'person'>,
  rule: StoreRule,
  shape: TableShape,
  row: Row,
): Fate | null {
  const isOwn = rule.of !== undefined && person.is(String(row[rule.of] ?? ''))
  const changes = isOwn ? {} : changesOf(shape, row, person, rule.takesNotes)
  if (!isOwn && Object.keys(changes).length === 0) return null
  const changed = Object.entries(changes).filter(([column]) => rule.only?.includes(column) ?? true)
  if (rule.does === 'kept' || (!isOwn && changed.length === 0)) return { kind: 'kept', isOwn, statements: [] }
  if (isOwn || rule.does === 'erased')
    return { kind: 'erased', isOwn: true, statements: [removal(shape, row)] }
  return {
    kind: 'pseudonymised',
    isOwn: false,
    statements: changing(shape, row, Object.fromEntries(changed)),
  }
}

/** The texts of a row that name the person, as they are afterwards. */
function changesOf(shape: TableShape, row: Row, person: Person, takesNotes = false): Row {
  const changes: Row = {}
  for (const column of shape.texts) {
    const value = row[column]
    if (typeof value !== 'string') continue
    const replaced = replacedText(value, person, takesNotes)
    if (replaced !== value) changes[column] = replaced
  }
  return changes
}

const RENAMED: StoreRule = { does: 'pseudonymised', why: '' }

const JUDGES: Readonly<Record<string, Judge>> = {
  /** The record goes on stopping mail under the hash; an entry of the allowlist stops none. */
  async suppressions({ person }, shape, row) {
    if (!person.is(String(row['address']))) return byRule({ person }, RENAMED, shape, row)
    if (row['kind'] === 'whitelists')
      return { kind: 'erased', isOwn: true, statements: [removal(shape, row)] }
    const changes = { address: person.pseudonym, detail: '', event_id: null }
    return { kind: 'pseudonymised', isOwn: true, statements: changing(shape, row, changes) }
  },

  /** The list counts its members (sending/lists/store.ts, `changeMembers`). */
  async list_members({ person }, shape, row) {
    const [listId, key] = [String(row['list_id']), String(row['address_key'])]
    if (!person.is(key)) return byRule({ person }, RENAMED, shape, row)
    const sql = `UPDATE lists SET version = version + 1, members_count = members_count -
      (SELECT count(*) FROM list_members WHERE list_id = ? AND address_key = ?) WHERE id = ?`
    const counting = { sql, values: [listId, key, listId] }
    return { kind: 'erased', isOwn: true, statements: [counting, removal(shape, row)] }
  },

  async deliveries({ person }, shape, row) {
    if (!person.is(String(row['recipient']))) return byRule({ person }, RENAMED, shape, row)
    const id = String(row['id'])
    const values = [id]
    return {
      ...{ kind: 'erased', isOwn: true },
      statements: [
        ...['archive_outbox', 'transcripts'].map((table) => ({
          sql: `DELETE FROM ${table} WHERE delivery_id = ?`,
          values,
        })),
        { sql: "DELETE FROM deliveries WHERE id = ? AND state || '' <> 'sending'", values },
      ],
      ...(row['state'] === 'sending' && { waitsFor: { column: 'id', value: id } }),
    }
  },

  async messages(parts, shape, row) {
    const { person, store, blobs, isDry } = parts
    const message = row as unknown as MessageRow
    if (!isOwnMail(message.summary_json, person)) {
      // What is written, and the row changed by, is not needed to count it.
      const change = isDry ? namesPerson(message, person) : await contentChange(message, blobs, person)
      if (!change) return null
      if (change === true) return { kind: 'pseudonymised', isOwn: false, statements: [] }
      const statements = changing(shape, row, change.changes)
      return { kind: 'pseudonymised', isOwn: false, statements, gone: change.gone }
    }
    const values = [message.id]
    const ofDeliveries = '(SELECT id FROM deliveries WHERE message_pk = ?)'
    const sql = "SELECT 1 FROM deliveries WHERE message_pk = ? AND state || '' = 'sending' LIMIT 1"
    const isSending = (await store.read({ sql, values })).length > 0
    return {
      ...{ kind: 'erased', isOwn: true },
      statements: [
        { sql: `DELETE FROM archive_outbox WHERE delivery_id IN ${ofDeliveries}`, values },
        { sql: `DELETE FROM transcripts WHERE delivery_id IN ${ofDeliveries}`, values },
        { sql: 'DELETE FROM list_expansions WHERE message_pk = ?', values },
        { sql: 'DELETE FROM route_posts WHERE message_pk = ?', values },
        { sql: "DELETE FROM deliveries WHERE message_pk = ? AND state || '' <> 'sending'", values },
        {
          sql: 'DELETE FROM messages WHERE id = ? AND NOT EXISTS (SELECT 1 FROM deliveries WHERE message_pk = ?)',
          values: [message.id, message.id],
        },
      ],
      gone: isSending ? [] : (JSON.parse(message.blobs_json) as string[]),
      ...(isSending && { waitsFor: { column: 'message_pk', value: message.id } }),
    }
  },

  /**
   * SQLite numbers events above the highest that is there, and index and followers rely on numbers that rise: the newest
   * event stays, without what is about the person.
   */
  async events({ person }, shape, row) {
    const payload = JSON.parse(String(row['payload_json'])) as Record<string, unknown>
    const { member } = payload as { member?: { address?: unknown } }
    const isOwn = person.is(String(row['recipient'] ?? '')) || person.is(String(member?.address ?? ''))
    if (!isOwn) return byRule({ person }, RENAMED, shape, row)
    const rest = { ...payload, member: undefined, message: { headers: {} }, 'user-variables': {}, tags: [] }
    const sql = `UPDATE events SET recipient = NULL, tags_json = NULL, payload_json = ?
      WHERE seq = ? AND seq = (SELECT max(seq) FROM events)`
    const newest = { sql, values: [replacedText(JSON.stringify(rest), person), row['seq'] as SqlValue] }
    const { sql: remove, values } = removal(shape, row)
    const older = { sql: `${remove} AND seq < (SELECT max(seq) FROM events)`, values }
    return { kind: 'erased', isOwn, statements: [newest, older] }
  },

  async figure_packs({ person }, shape, row) {
    const reader = new PackReader(row['packed'] as Uint8Array)
    if (reader.texts.every((text) => replacedText(text, person) === text)) return null
    const entries: PackedEntry[] = []
    while (reader.next()) {
      const { values, ...entry } = reader.entry()
      entries.push({ ...entry, values: { ...values, tag: replacedText(values.tag, person) } })
    }
    const statements = changing(shape, row, { packed: pack(entries) })
    return { kind: 'pseudonymised', isOwn: false, statements }
  },

  async past_messages({ person }, shape, row) {
    if (isOwnMail(String(row['summary_json']), person))
      return { kind: 'erased', isOwn: true, statements: [removal(shape, row)] }
    return byRule({ person }, RENAMED, shape, row)
  },

  async inbox({ person, blobs, isDry }, shape, row) {
    const envelope = JSON.parse(String(row['envelope_to_json'])) as string[]
    const blob = row['raw_blob'] as string | null
    if (envelope.length > 0 && envelope.every(person.is))
      return { kind: 'erased', isOwn: true, statements: [removal(shape, row)], gone: blob ? [blob] : [] }
    const changes = changesOf(shape, row, person)
    const raw = row['raw'] ? Buffer.from(row['raw'] as Uint8Array) : blob && (await blobBytes(blobs, blob))
    const masked = raw && !isDry ? await maskedMail(raw, person) : null
    const gone: string[] = []
    if (masked && blob) {
      const written = await writeBlob(blobs, masked)
      changes['raw_blob'] = written
      gone.push(blob, written)
    } else if (masked) changes['raw'] = masked
    if (Object.keys(changes).length === 0) return null
    const statements = changing(shape, row, changes)
    return { kind: 'pseudonymised', isOwn: false, statements, gone }
  },

  async idempotency_keys({ person, sealer }, shape, row) {
    if (!row['body_sealed']) return null
    const owner = JSON.stringify([row['account_id'], row['key']])
    const body = sealer.open('idempotency', row['body_sealed'] as Uint8Array, owner).toString()
    if (!person.isIn(body) && !person.isIn(String(row['key']))) return null
    return { kind: 'erased', isOwn: true, statements: [removal(shape, row)] }
  },

  async exports({ person, blobs }, shape, row) {
    const names = JSON.parse(String(row['blobs_json'])) as string[]
    let isIn = person.isIn(`${row['url']} ${row['body']}`)
    for (const name of names) {
      const bytes = isIn ? null : await blobBytes(blobs, name)
      isIn ||= bytes !== null && (await maskedFile(bytes, person)) !== null
    }
    if (!isIn) return null
    return { kind: 'erased', isOwn: true, statements: [removal(shape, row)], gone: names }
  },

  suppression_imports: withFile('blob'),
  validation_jobs: withFile('blob'),

  /** The archive of an earlier export; one that is being made ends. */
  async person_tasks({ person, taskId }, _, row) {
    if (row['address_hash'] !== person.pseudonym || row['id'] === taskId || row['kind'] !== 'export')
      return null
    const gone = JSON.parse(String(row['blobs_json'])) as string[]
    const isOpen = row['state'] === 'queued' || row['state'] === 'running'
    if (gone.length === 0 && !isOpen) return null
    const set = isOpen
      ? "blobs_json = '[]', address_sealed = NULL, state = 'failed', fault = 'the person was erased meanwhile'"
      : "blobs_json = '[]'"
    const statement = { sql: `UPDATE person_tasks SET ${set} WHERE id = ?`, values: [row['id'] as SqlValue] }
    return { kind: 'erased', isOwn: true, statements: [statement], gone }
  },
}

/** Uploaded files that are still being read. */
function withFile(column: string): Judge {
  return async ({ person, blobs, isDry }, shape, row) => {
    const changes = changesOf(shape, row, person)
    const name = row[column] as string | null
    const bytes = name === null ? null : await blobBytes(blobs, name)
    const masked = bytes && (await maskedFile(bytes, person))
    const written = masked && !isDry ? await writeBlob(blobs, masked) : ''
    if (masked) changes[column] = written
    if (Object.keys(changes).length === 0) return null
    const gone = masked && name !== null ? [name, ...(written ? [written] : [])] : []
    return { kind: 'pseudonymised', isOwn: false, statements: changing(shape, row, changes), gone }
  }
}

/** Mail to the person alone, or received from them. */
export function isOwnMail(summaryJson: string, person: Person): boolean {
  const { recipients = [], incoming, sender } = JSON.parse(summaryJson) as Partial<MessageSummary>
  if (incoming === true && sender !== undefined && person.is(sender)) return true
  return recipients.length > 0 && recipients.every(person.is)
}

/** Whether mail shared with others is known to name the person, without reading its files. */
const namesPerson = ({ summary_json, options_json, content }: MessageRow, person: Person): true | null =>
  person.isIn(summary_json) ||
  person.isIn(options_json) ||
  (content !== null && person.masked(Buffer.from(content)) !== null) ||
  null

/** Statement that reads whether any of these deliveries is being sent. */
export const sendingOf = (
  kind: Store['kind'],
  column: 'id' | 'message_pk',
  values: readonly string[],
): Statement => {
  const list = listOf(kind, values)
  return {
    sql: `SELECT 1 FROM deliveries WHERE ${column} IN ${list.sql} AND state || '' = 'sending' LIMIT 1`,
    values: list.values,
  }
}
