/**
 * Bulk uploads of members: JSON or CSV to entries, and entries to rows and events. Unreadable input is refused as a
 * whole, naming its rows; a readable entry with a bad address is skipped as a bad entry
 * (docs/decisions/0008-invalid-list-uploads.md).
 */

import { CsvSyntaxError, readCsv } from '../../base/csv.ts'
import { foreignJsonIn } from '../../base/foreign-json.ts'
import { BadRequest } from '../../base/process/errors.ts'
import { isPlainObject } from '../../base/values.ts'
import type { ListMemberRow } from '../../platform/store/schema.ts'
import type { EventRecord } from '../../watching/events/event.ts'
import { asksForMail, type Cause, mailsLeft, standingOf } from './consent.ts'
import { type List, memberOfRow, readAddress, readVars } from './list.ts'
import { memberUploadErrorEvent, memberUploadedEvent, type UploadFacts } from './list-events.ts'

/** Per call, mailing-lists.md section 3. */
const ENTRIES_MAX = 1_000
/** Up to this many JSON entries are written before the response (rule 9). */
export const SYNCHRONOUS_ENTRIES_MAX = 100
export const CSV_BYTES_MAX = 5_000_000
/** The event of a bad entry quotes up to this many characters of it. */
const DESCRIPTION_MAX = 256
/** Rows named with their fault in an error; further ones only by number. */
const FAULTS_DESCRIBED_MAX = 20
const COLUMNS = ['address', 'name', 'vars', 'subscribed'] as const
/** Columns of a file without a header row. */
const COLUMNS_WITHOUT_HEADER = ['address', 'name', 'vars']
const TOO_MANY_MAILS = 'Too many confirmation mails for one day'
const TOO_MANY = `Too many members, max is ${ENTRIES_MAX} per request`

/** One parsed entry; absent fields leave those of an existing member unchanged. */
export type Entry = GoodEntry | BadEntry

interface GoodEntry {
  address: string
  key: string
  name?: string
  vars?: Record<string, unknown>
  subscribed?: boolean
}

interface BadEntry {
  /** The entry as given, truncated. */
  bad: string
  why: string
}

const bad = (entry: unknown, why = 'Invalid format'): BadEntry => {
  const text = typeof entry === 'string' ? entry : (JSON.stringify(entry) ?? '')
  return { bad: text.slice(0, DESCRIPTION_MAX), why }
}

/**
 * The entries of `members`: an array, or its JSON as text, of addresses and objects.
 * @throws BadRequest if it is no array, or has over 1,000 entries
 */
export function readJsonEntries(members: unknown): Entry[] {
  const items = typeof members === 'string' ? foreignJsonIn(members) : members
  if (!Array.isArray(items)) throw new BadRequest("Parameter 'members' is not a valid JSON array")
  if (items.length > ENTRIES_MAX) throw new BadRequest(TOO_MANY)
  return items.map(readJsonEntry)
}

function readJsonEntry(item: unknown): Entry {
  if (typeof item === 'string') return entryOf(item, {}, item)
  if (!isPlainObject(item) || typeof item['address'] !== 'string') return bad(item)
  const { address, name, vars, subscribed } = item
  if (name !== undefined && name !== null && typeof name !== 'string') return bad(address, 'Invalid name')
  const flag = isAbsent(subscribed) ? undefined : flagOf(subscribed)
  if (flag === null) return bad(address, 'Invalid subscribed')
  return entryOf(address, { name, vars, subscribed: flag }, address)
}

const isAbsent = (value: unknown) => value === undefined || value === null || value === ''

function entryOf(
  text: string,
  fields: { name?: string | null | undefined; vars?: unknown; subscribed?: boolean | undefined },
  described: string,
): Entry {
  const address = readAddress(text)
  if (!address) return bad(described)
  const name = fields.name || address.name
  let vars: Record<string, unknown> | undefined
  try {
    if (!isAbsent(fields.vars)) vars = readVars(fields.vars)
  } catch (error) {
    if (error instanceof BadRequest) return bad(described, error.message)
    throw error
  }
  return {
    address: address.address,
    key: address.key,
    ...(name && { name }),
    ...(vars && { vars }),
    ...(fields.subscribed !== undefined && { subscribed: fields.subscribed }),
  }
}

/** Null for anything except yes or no. */
function flagOf(value: unknown): boolean | null {
  const word = String(value).trim().toLowerCase()
  if (['yes', 'true', '1', 'on'].includes(word)) return true
  return ['no', 'false', '0', 'off'].includes(word) ? false : null
}

/**
 * The entries of a CSV file: RFC 4180, with or without a header row.
 * @throws BadRequest over 1,000 entries, and for unreadable rows, naming each of them. Rows are counted from 1,
 *   including the header row, without empty lines.
 */
export async function readCsvEntries(source: AsyncIterable<Uint8Array>): Promise<Entry[]> {
  const entries: Entry[] = []
  const faults: { row: number; why: string }[] = []
  let columns: readonly string[] | null = null
  let row = 0
  try {
    for await (const fields of readCsv(source)) {
      row++
      if (columns === null) {
        columns = headerOf(fields)
        if (columns && !columns.includes('address')) faults.push({ row, why: "there is no column 'address'" })
        if (columns) continue
        columns = COLUMNS_WITHOUT_HEADER
      }
      if (entries.length >= ENTRIES_MAX) throw new BadRequest(TOO_MANY)
      const read = readCsvRow(columns, fields)
      if ('fault' in read) faults.push({ row, why: read.fault })
      entries.push('fault' in read ? bad(fields[0] ?? '') : read)
    }
  } catch (error) {
    if (!(error instanceof CsvSyntaxError)) throw error
    faults.push({ row: row + 1, why: error.message })
  }
  if (faults.length > 0) throw new BadRequest(describeFaults(faults))
  return entries
}

/** Column names if this row is a header: it has `address`, or only names of columns. */
function headerOf(fields: readonly string[]): string[] | null {
  const names = fields.map((field) => field.trim().toLowerCase())
  const known = (name: string) => (COLUMNS as readonly string[]).includes(name)
  return names.includes('address') || names.every(known) ? names : null
}

function readCsvRow(columns: readonly string[], fields: readonly string[]): Entry | { fault: string } {
  if (fields.length > columns.length)
    return { fault: `it has ${fields.length} fields, not ${columns.length}` }
  const field = (name: string) => fields[columns.indexOf(name)]?.trim() ?? ''
  const [vars, subscribed] = [field('vars'), field('subscribed')]
  const flag = subscribed === '' ? undefined : flagOf(subscribed)
  if (flag === null) return { fault: "'subscribed' is neither yes nor no" }
  if (vars !== '') {
    try {
      readVars(vars)
    } catch (error) {
      if (error instanceof BadRequest) return { fault: error.message }
      throw error
    }
  }
  return entryOf(field('address'), { name: field('name'), vars, subscribed: flag }, fields.join(','))
}

function describeFaults(faults: readonly { row: number; why: string }[]): string {
  const described = faults.slice(0, FAULTS_DESCRIBED_MAX).map(({ row, why }) => `row ${row}: ${why}`)
  const rest = faults.slice(FAULTS_DESCRIBED_MAX).map(({ row }) => row)
  if (rest.length > 0) described.push(`rows ${rest.join(', ')} too`)
  return `CSV file is not valid: ${described.join('; ')}`
}

export interface EntriesPlan {
  write: ListMemberRow[]
  /** New members. */
  added: number
  /** New and changed members. */
  upserted: number
  /** Bad entries. */
  failed: number
  events: EventRecord[]
}

/** Applies the entries to the existing members; the later of two entries for one address sees the earlier. */
export function planEntries(
  list: List,
  present: ReadonlyMap<string, ListMemberRow>,
  entries: readonly Entry[],
  facts: UploadFacts,
  nowMs: number,
  mailedAt: ReadonlyMap<string, number> = new Map(),
): EntriesPlan {
  const cause = causeOf(facts, nowMs)
  let mails = mailsLeft(list, nowMs)
  const written = new Map<string, ListMemberRow>()
  const plan: EntriesPlan = { write: [], added: 0, upserted: 0, failed: 0, events: [] }
  for (const entry of entries) {
    if ('bad' in entry) {
      plan.failed++
      plan.events.push(memberUploadErrorEvent(list, facts, entry.bad, entry.why, nowMs))
      continue
    }
    const before = written.get(entry.key) ?? present.get(entry.key)
    if (before && !facts.isUpsert) continue
    const row = mergedRow(list, entry, before, facts, cause, mailedAt.get(entry.key))
    if (asksForMail(before, row) && mails-- <= 0) {
      plan.failed++
      plan.events.push(memberUploadErrorEvent(list, facts, entry.address, TOO_MANY_MAILS, nowMs))
      continue
    }
    if (!before) plan.added++
    written.set(entry.key, row)
    plan.upserted++
    plan.events.push(memberUploadedEvent(list, facts, memberOfRow(row), nowMs))
  }
  plan.write = [...written.values()]
  return plan
}

/** Who uploads, for the consent trail. */
export const causeOf = ({ calledBy }: UploadFacts, at: number): Cause => ({ source: 'import', at, calledBy })

/** The existing row with the entry's fields; `subscribed` is always set (rules 11 and 12). */
function mergedRow(
  list: List,
  entry: GoodEntry,
  before: ListMemberRow | undefined,
  facts: UploadFacts,
  cause: Cause,
  mailedAt: number | undefined,
): ListMemberRow {
  const wanted = { subscribed: entry.subscribed ?? facts.subscribed, confirm: facts.isConfirmed }
  return {
    list_id: list.id,
    address_key: entry.key,
    address: entry.address,
    name: entry.name ?? before?.name ?? '',
    vars_json: entry.vars ? JSON.stringify(entry.vars) : (before?.vars_json ?? '{}'),
    ...standingOf(list, before, wanted, cause, mailedAt),
    by_link: 0,
  }
}
