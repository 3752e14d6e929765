/** What the operator's commands have in common: their options, a client, filters and tables. */

import { printable, printableLine } from '../../base/printable.ts'
import { createClient, type ServiceClient } from '../local/client.ts'
import type { ServiceOptions } from '../local/service-api.ts'
import { switches, texts } from '../usage.ts'

/** Options of each of these commands. */
export const COMMON = { ...texts('service', 'key-file'), ...switches('allow-http', 'json') }

/** What each usage text ends with. */
export const COMMON_USAGE = `
  --service URL   another service, with --key-file FILE; default: the one on this machine
  --allow-http    send the key to another machine over http, unencrypted
`

export type Item = Record<string, unknown>

export const clientFor = (options: ServiceOptions): ServiceClient => createClient(process.env, options)

/** The items of an answer. */
export const itemsOf = (answer: Item): Item[] => (answer['items'] ?? []) as Item[]

/**
 * The items of a list and of the pages after it, at most `max`. Of a paging link only the query is used.
 * @param path with its first query
 * @param mayBeEmpty a page without items is not the end: that is the page that leads to itself
 */
export async function pagesOf(
  client: ServiceClient,
  path: string,
  max: number,
  mayBeEmpty = false,
): Promise<Item[]> {
  const found: Item[] = []
  const [bare = ''] = path.split('?')
  for (let next = path; found.length < max; ) {
    const answer = await client.call('GET', next)
    const items = itemsOf(answer)
    found.push(...items)
    const link = (answer['paging'] as { next?: string } | undefined)?.next
    if (link === undefined || !URL.canParse(link)) break
    const following = bare + new URL(link).search
    if (following === next || (items.length === 0 && !mayBeEmpty)) break
    next = following
  }
  return found.slice(0, max)
}

/** `?a=1&b=2`, or nothing; what is undefined is left out. */
export function queryOf(values: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) if (value !== undefined) query.set(name, String(value))
  return query.size > 0 ? `?${query}` : ''
}

export function formOf(values: Readonly<Record<string, string | undefined>>): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(values)) if (value !== undefined) form.set(name, value)
  return form
}

/** One name as a part of a path. */
export const part = (name: string): string => encodeURIComponent(name)

export const print = (text: string): void => void process.stdout.write(text)
export const printJson = (value: unknown): void => print(`${JSON.stringify(value)}\n`)

/** Prints facts as JSON or for a person. */
export function show(json: boolean | undefined, value: unknown, text: () => string): void {
  if (json) printJson(value)
  else print(text())
}

/** A text for a file, which others may have written: on a terminal without what would act there. */
export const asFile = (text: string): string =>
  process.stdout.isTTY ? printable(text.replaceAll('\r\n', '\n')) : text

/** Cells on one line. */
export const line = (...cells: unknown[]): string => `${cells.map(cell).join('  ')}\n`

/** Columns with a heading, as wide as their longest cell; `none` where there is no row. */
export function table(
  heading: readonly string[],
  rows: readonly (readonly unknown[])[],
  none: string,
): string {
  if (rows.length === 0) return `${none}\n`
  const grid = [heading, ...rows].map((row) => row.map(cell))
  const widths = heading.map((_, column) => Math.max(...grid.map((cells) => cells[column]?.length ?? 0)))
  return grid
    .map((cells) =>
      cells
        .map((text, column) => text.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .map((text) => `${text}\n`)
    .join('')
}

function cell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-'
  return printableLine(typeof value === 'object' ? JSON.stringify(value) : String(value))
}

/** `2026-01-31T12:00:00.000Z` and other dates without fractions of a second, as `2026-01-31 12:00:00`; UTC. */
export function when(value: unknown): string {
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(time) ? '' : new Date(time).toISOString().slice(0, 19).replace('T', ' ')
}
