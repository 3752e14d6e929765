/** The command line of the bench. */
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Database } from './service.ts'

export interface Options {
  databases: readonly Database[]
  runs: number
  /** Seconds of load where a scenario runs by time; null: its default. */
  seconds: number | null
  /** Messages (calls, for batches) where a scenario runs by count; null: its default. */
  messages: number | null
  /** Queued deliveries or event rows; null: its default. */
  count: number | null
  /** Folders of other checkouts, installed, that one scenario compares with. */
  others: readonly string[]
  /** Small amounts, to check that everything works; the figures mean nothing. */
  short: boolean
  /** The metrics scenario measures figures alone, without events, their space and logs. */
  countersOnly: boolean
  /** Folder for data, queues and databases. */
  folder: string
  /** Folder for results.json and results.md; null: printed only. */
  out: string | null
}

export const USAGE = `Usage: npm run bench [-- [scenario ...] [options]]

Scenarios  %SCENARIOS%
           without a name: all of them

  --database sqlite|postgres|both   default both
  --runs N       measured runs of each system, alternating; medians are shown (default 3)
  --seconds N    length of the load, where a scenario runs by time
  --messages N   messages (or calls), where a scenario runs by count
  --count N      queued deliveries (backlog) or rows (events)
  --with DIR     compare: another checkout, with its packages installed; may be given more than once
  --counters-only  metrics: figures alone, without events and logs
  --short        small amounts and one run: shows that it works, and writes no results
  --folder DIR   where data, queues and databases go (default: the system's temporary folder)
  --out DIR      where results.md and results.json are written (default: bench/)`

/** @throws Error that describes the fault */
export function readOptions(args: readonly string[]): { names: string[]; options: Options; help: boolean } {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      database: { type: 'string', default: 'both' },
      runs: { type: 'string' },
      seconds: { type: 'string' },
      messages: { type: 'string' },
      count: { type: 'string' },
      with: { type: 'string', multiple: true, default: [] },
      short: { type: 'boolean', default: false },
      'counters-only': { type: 'boolean', default: false },
      folder: { type: 'string', default: tmpdir() },
      out: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  const { database, short } = values
  if (database !== 'sqlite' && database !== 'postgres' && database !== 'both')
    throw new Error(`--database "${database}": expected sqlite, postgres or both`)
  return {
    names: positionals,
    help: values.help,
    options: {
      databases: database === 'both' ? ['sqlite', 'postgres'] : [database],
      runs: amount('runs', values.runs) ?? (short ? 1 : 3),
      seconds: amount('seconds', values.seconds),
      messages: amount('messages', values.messages),
      count: amount('count', values.count),
      others: values.with.map((folder) => resolve(folder)),
      short,
      countersOnly: values['counters-only'],
      folder: resolve(values.folder),
      out: values.out !== undefined ? resolve(values.out) : short ? null : resolve(import.meta.dirname, '..'),
    },
  }
}

function amount(name: string, text: string | undefined): number | null {
  if (text === undefined) return null
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new Error(`--${name} "${text}": expected a whole number above 0`)
  return Number(text)
}
