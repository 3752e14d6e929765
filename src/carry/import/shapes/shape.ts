/** What the files of other services have in common: addresses, times, and the entries that become of them. */
import {
  type Entry,
  type Item,
  type Kind,
  objectOf,
  itemsOrReason as readOrReason,
  refusedItem,
  type SuppressionEntryKind,
  textOf,
  Unreadable,
} from '../entry.ts'
import { columnName, type InputRecord } from '../input-file.ts'
import type { Converted } from '../template-syntax.ts'

/** What the caller says about a file. */
export interface ShapeContext {
  /** The domain whose suppressions and templates these are. */
  domain: string
  /** Address of the mailing list that contacts become members of; null: contacts are only read for suppressions. */
  list: string | null
  /** `bounces` in `bounces=FILE`; empty if not said. */
  content: string
  /** Column that says who may not be written to; null: the usual names. */
  blocklistColumn: string | null
}

/** How to read the files of one service. */
export interface Shape {
  /** What may stand before `=FILE`; an empty one if the file itself tells. */
  contents: readonly string[]
  /** Members of JSON objects whose elements are the records. */
  lists: readonly string[]
  /** The entries that one record becomes, or why it becomes none. */
  items(record: InputRecord, context: ShapeContext): Item[]
  /** Throws Unreadable if the columns of a CSV file cannot be what `context` says. */
  checkColumns?(columns: readonly string[], context: ShapeContext): void
}

/** A record by its lower-case names without blanks and underscores: `Email Address` is `emailaddress`. */
export type Columns = ReadonlyMap<string, unknown>

export function columnsOf(value: unknown): Columns {
  return new Map(Object.entries(objectOf(value)).map(([name, text]) => [columnName(name), text]))
}

/** The first of the columns that has a text. */
export function textIn(columns: Columns, ...names: string[]): string {
  for (const name of names) {
    const text = textOf(columns.get(name)).trim()
    if (text !== '') return text
  }
  return ''
}

/** @throws Unreadable */
export function addressIn(columns: Columns, ...names: string[]): string {
  const address = textIn(columns, ...names)
  if (address === '') throw new Unreadable('has no address')
  return address
}

/** Unix seconds of a number, or of a date in any usual form; undefined: none, or not readable. */
export function secondsOf(value: unknown): number | undefined {
  const text = textOf(value).trim()
  if (text === '') return undefined
  const number = Number(text)
  // Other orders of day and month are ambiguous: such a record is one of now.
  const isDate = /^\d{4}-\d\d-\d\d|[a-z]{3} \d{4}/i.test(text)
  const seconds = Number.isNaN(number) && isDate ? Date.parse(dated(text)) / 1_000 : number
  if (Number.isNaN(seconds) || seconds <= 0) return undefined
  // Milliseconds would be a date after the year 5000.
  return Math.floor(seconds > 1e11 ? seconds / 1_000 : seconds)
}

/** `2024-05-01 10:00:00`, with or without `UTC`, means UTC in all these files. */
const dated = (text: string) =>
  text.replace(/^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d+)?)(?:\s*UTC)?$/, '$1T$2Z')

export function suppression(
  kind: SuppressionEntryKind,
  { domain }: Pick<ShapeContext, 'domain'>,
  record: Record<string, unknown>,
  at: unknown,
): Entry {
  const created_at = secondsOf(at)
  return { kind, domain, record: { ...record, ...(created_at !== undefined && { created_at }) } }
}

/** The code of a reply in a text such as `550 5.1.1 no such user`; undefined if there is none. */
export const replyCode = (text: string): string | undefined => /\b([45]\d\d)\b/.exec(text)?.[1]

/** The entries that `read` returns, or one item with the reason why there are none. */
export function itemsOf(record: InputRecord, kind: Kind, name: unknown, read: () => Entry[]): Item[] {
  return itemsOrReason(record, kind, name, () => read().map((entry) => ({ place: record.place, entry })))
}

export const itemsOrReason = (record: InputRecord, kind: Kind, name: unknown, read: () => Item[]): Item[] =>
  readOrReason(kind, record.place, name, () => {
    if (record.fault !== null) throw new Unreadable(record.fault)
    return read()
  })

/** One version of a template, in the syntax of its service. */
interface ForeignVersion {
  tag: string
  comment: string
  active: boolean
  subject: string
  html: string
  text: string
}

/** A template as an item: with notes for what is lost, or a reason if nothing can be taken. */
export function templateItem(
  { place }: InputRecord,
  { domain }: ShapeContext,
  names: { name: string; description: string },
  versions: readonly ForeignVersion[],
  convert: (text: string, part: { isHtml: boolean }) => Converted,
): Item {
  const notes: string[] = []
  const taken = versions.flatMap(({ tag, comment, active, subject, html, text }) => {
    const body = convert(html, { isHtml: true })
    const title = convert(subject, { isHtml: false })
    const fault = html === '' ? 'has no HTML part' : (body.fault ?? title.fault)
    if (fault !== null) {
      notes.push(`version ${tag} ${fault}`)
      return []
    }
    if (text !== '')
      notes.push(`version ${tag}: its own text part is not taken; send with t:text, or give text`)
    const headers: Record<string, string> = subject === '' ? {} : { Subject: title.text as string }
    return [{ tag, template: body.text as string, mjml: '', comment, active, headers }]
  })
  if (taken.length === 0) {
    return refusedItem('template', place, names.name, notes.join('; ') || 'has no version')
  }
  return { place, notes, entry: { kind: 'template', domain, ...names, versions: taken } }
}

/** Columns that are not variables of a member: its address, its name, and numbers of the other service. */
const OWN_COLUMNS = new Set(['email', 'emailaddress', 'firstname', 'lastname', 'contactid', 'id'])

/** A row of contacts as a member of the list that the caller named; nothing without one. */
export function contactEntries(
  row: Record<string, unknown>,
  address: string,
  {
    list,
    subscribed,
    leftOut = [],
  }: Pick<ShapeContext, 'list'> & { subscribed: boolean; leftOut?: string[] },
): Entry[] {
  if (list === null) return []
  const columns = columnsOf(row)
  const name = [
    textIn(columns, 'firstname', 'prenom', 'vorname'),
    textIn(columns, 'lastname', 'nom', 'nachname'),
  ]
  const vars = Object.entries(row).filter(([column, text]) => {
    const short = columnName(column)
    return text !== '' && !OWN_COLUMNS.has(short) && !leftOut.includes(short)
  })
  return [
    {
      kind: 'member',
      list,
      address,
      name: name.filter((part) => part !== '').join(' '),
      vars: Object.fromEntries(vars),
      subscribed,
    },
  ]
}
