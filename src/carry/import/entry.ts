/**
 * What moves from one service to another: one entry for each domain, template, list and so on. An entry has the members
 * of the HTTP API (docs/api), and in an export it is one line of JSON.
 */

import { isPlainObject } from '../../base/values.ts'

/** In the order in which they are made: what comes later may need what came before. */
export const KINDS = [
  'domain',
  'webhook',
  'template',
  'list',
  'member',
  'bounce',
  'complaint',
  'unsubscribe',
  'allowlist',
  'route',
] as const
export type Kind = (typeof KINDS)[number]

/** Kinds of suppression lists, and their names in paths. */
export const SUPPRESSION_PATHS = {
  bounce: 'bounces',
  complaint: 'complaints',
  unsubscribe: 'unsubscribes',
  allowlist: 'whitelists',
} as const
export type SuppressionEntryKind = keyof typeof SUPPRESSION_PATHS

export interface DomainEntry {
  kind: 'domain'
  name: string
  /** Fields of the operations that create and change a domain. */
  settings: Record<string, string>
  /** Selectors under which the other service publishes keys: ours must not replace them while mail may leave there. */
  selectors: string[]
  /** Fields of the three operations for tracking. */
  tracking: Record<string, Record<string, string>>
}

export interface WebhookEntry {
  kind: 'webhook'
  /** Null: of the account. */
  domain: string | null
  url: string
  event_types: string[]
  description: string
}

export interface TemplateVersion {
  tag: string
  template: string
  mjml: string
  comment: string
  active: boolean
  headers: Record<string, string>
  /** For previews; absent: none. */
  sample?: Record<string, unknown>
}

export interface TemplateEntry {
  kind: 'template'
  /** Null: of the account. */
  domain: string | null
  name: string
  description: string
  versions: TemplateVersion[]
}

export interface ListEntry {
  kind: 'list'
  address: string
  name: string
  description: string
  access_level: string
  reply_preference: string
}

export interface MemberEntry {
  kind: 'member'
  list: string
  address: string
  name: string
  vars: Record<string, unknown>
  subscribed: boolean
}

export interface SuppressionEntry {
  kind: SuppressionEntryKind
  domain: string
  /** The record as the operation that adds many takes it. */
  record: Record<string, unknown>
}

export interface RouteEntry {
  kind: 'route'
  priority: number
  description: string
  expression: string
  actions: string[]
}

export type Entry =
  | DomainEntry
  | WebhookEntry
  | TemplateEntry
  | ListEntry
  | MemberEntry
  | SuppressionEntry
  | RouteEntry

/** An entry as found at its source, or why it cannot be one. */
export type Item = { place: string; notes?: readonly string[] } & (
  | { entry: Entry }
  | { entry: null; kind: Kind; name: string; reason: string }
)

/** The value at the source cannot become an entry; the message is for the report. */
export class Unreadable extends Error {}

/** A name for reports: what a person would look for. */
export function nameOf(entry: Entry): string {
  switch (entry.kind) {
    case 'domain':
      return entry.name
    case 'webhook':
      return `${entry.domain ?? 'account'} ${withoutPassword(entry.url)}`
    case 'template':
      return `${entry.domain ?? 'account'}/${entry.name}`
    case 'list':
      return entry.address
    case 'member':
      return `${entry.address} of ${entry.list}`
    case 'route':
      return entry.expression
    default:
      return `${entry.record['address'] ?? entry.record['domain']} of ${entry.domain}`
  }
}

const withoutPassword = (url: string) => url.replace(/^(\w+:\/\/)[^@/]*@/, '$1***@')

/** Items of a page at once; as many as one call that adds suppressions takes. */
export const PAGE_ITEMS_MAX = 1_000

/** An address has at most 320 characters; a report repeats no more of a name. */
const NAME_SHOWN_MAX = 320

/** What cannot be taken, and why. */
export const refusedItem = (kind: Kind, place: string, name: string, reason: string): Item => ({
  ...{ place, entry: null, kind, name, reason },
})

/** The items that `read` returns, or one with the reason why a value is refused. */
export function itemsOrReason(kind: Kind, place: string, name: unknown, read: () => Item[]): Item[] {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error
    return [refusedItem(kind, place, textOf(name).slice(0, NAME_SHOWN_MAX), error.message)]
  }
}

/** The same of one entry. */
export const itemOf = (kind: Kind, place: string, name: unknown, read: () => Entry): Item =>
  itemsOrReason(kind, place, name, () => [{ place, entry: read() }])[0] as Item

/** @throws Unreadable */
export function objectOf(value: unknown): Record<string, unknown> {
  if (!isPlainObject(value)) throw new Unreadable('is not an object')
  return value
}

/** Text or a number as text; everything else is empty. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : ''
}

/** @throws Unreadable if the text is missing or empty */
export function neededText(of: Record<string, unknown>, name: string): string {
  const text = textOf(of[name])
  if (text === '') throw new Unreadable(`has no ${name}`)
  return text
}

export const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []

/** Some items of a section, and the place after them. */
export interface Page {
  items: readonly Item[]
  /** Given to `pages` later, it continues after this page; short, as it is written to the journal. */
  cursor: string
}

/** A part of a source that is read from its beginning to its end: one list of one domain, or one file. */
export interface Section {
  /** The same in each run. */
  id: string
  /** @param cursor of the last page that was taken; null: from the beginning */
  pages(cursor: string | null): AsyncIterable<Page>
}

/** Where entries come from: an HTTP API, files of another service, or the folder of an export. */
export interface Source {
  /** What is read, without a key: a journal is only continued for the same one. */
  id: string
  sections(): AsyncIterable<Section>
  /** How much of it has been read, 0 to 1, as far as that is known. `done`: sections that are. */
  progress(done: number): number
}
