/**
 * Results: `results.json` keeps the last section of each scenario with the environment it was measured in,
 * `results.md` is generated from all of them, so that scenarios can be run one at a time.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Environment } from './environment.ts'

/** A requirement. */
export interface Bar {
  what: string
  bar: string
  seen: string
  held: boolean
}

export interface Table {
  head: readonly string[]
  rows: readonly (readonly string[])[]
}

export interface Section {
  title: string
  /** The method, and notes for reading the figures. */
  notes: readonly string[]
  bars: readonly Bar[]
  tables: readonly Table[]
  /** All measured values, for results.json. */
  raw: unknown
}

export interface StoredSection extends Section {
  scenario: string
  command: string
  environment: Environment
}

export function store(folder: string, order: readonly string[], section: StoredSection): void {
  mkdirSync(folder, { recursive: true })
  const file = join(folder, 'results.json')
  const known = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as StoredSection[]) : []
  const sections = [...known.filter(({ scenario }) => scenario !== section.scenario), section].sort(
    (a, b) => order.indexOf(a.scenario) - order.indexOf(b.scenario),
  )
  writeFileSync(file, `${JSON.stringify(sections, null, 1)}\n`)
  writeFileSync(join(folder, 'results.md'), markdown(sections))
}

export function markdown(sections: readonly StoredSection[]): string {
  const bars = sections.flatMap(({ scenario, bars }) => bars.map((bar) => ({ scenario, ...bar })))
  const overview = table({
    head: ['Scenario', 'What must hold', 'Bar', 'Seen', 'Held'],
    rows: bars.map(({ scenario, what, bar, seen, held }) => [scenario, what, bar, seen, held ? 'yes' : 'no']),
  })
  return [
    '# Measurements',
    '',
    'Written by `npm run bench`; what is measured and how: [README.md](README.md). Compare within one run, not',
    'between days.',
    '',
    overview,
    ...sections.map(sectionText),
  ].join('\n')
}

export function sectionText({ title, notes, tables, command, environment }: StoredSection): string {
  const about = Object.entries(environment).map(([name, value]) => `${name} ${value}`)
  return [
    `\n## ${title}`,
    '',
    `\`${command}\``,
    '',
    ...notes.map((note) => `- ${note}`),
    '',
    ...tables.map((of) => `${table(of)}\n`),
    `${about.join('; ')}.`,
    '',
  ].join('\n')
}

export function table({ head, rows }: Table): string {
  const row = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n')
}
