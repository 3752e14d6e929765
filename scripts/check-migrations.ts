/**
 * Checks that migrations only add: while an installation is upgraded, nodes of the release before work on the new schema
 * (decision 117). What removes, renames or rewrites something is refused, unless `CONTRACTIONS` says that the release
 * before does not need it any more.
 *
 * Not seen: triggers on existing tables, and what functions do.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** The last migration before the first release; newer ones are checked. */
const UNCHECKED_MAX = 112

export interface Contraction {
  /** The last release that needs what is gone; null: none does. */
  lastNeededBy: string | null
  why: string
}

/** By file name. */
export const CONTRACTIONS: Readonly<Record<string, Contraction>> = {
  '0250-event-partitions.sql': {
    lastNeededBy: null,
    why: 'tables of the same names and columns take the place of those that become their partitions, in one transaction',
  },
}

interface Rule {
  pattern: RegExp
  what: string
  /** Allowed on what the same migration creates; the first group is the table. */
  exceptNew?: boolean
}

const RULES: readonly Rule[] = [
  { pattern: /\bDROP\s+(?:TABLE|VIEW|TRIGGER|FUNCTION|COLUMN|TYPE|SCHEMA|DEFAULT)\b/gi, what: 'drops' },
  { pattern: /\bALTER\s+TABLE\s+\w+\s+DROP\b/gi, what: 'drops' },
  { pattern: /\bRENAME\b/gi, what: 'renames' },
  { pattern: /\bALTER\s+(?:COLUMN\s+)?\w+\s+(?:SET\s+DATA\s+)?TYPE\b/gi, what: 'changes a type' },
  { pattern: /\bSET\s+NOT\s+NULL\b/gi, what: 'forbids null' },
  { pattern: /\bADD\s+(?:CONSTRAINT|CHECK|FOREIGN|UNIQUE|PRIMARY)\b/gi, what: 'adds a constraint' },
  { pattern: /\bDELETE\s+FROM\s+(\w+)/gi, what: 'deletes rows', exceptNew: true },
  { pattern: /\bTRUNCATE\s+(?:TABLE\s+)?(\w+)/gi, what: 'deletes rows', exceptNew: true },
  { pattern: /\bCREATE\s+UNIQUE\s+INDEX\s+\w+\s+ON\s+(\w+)/gi, what: 'makes values unique', exceptNew: true },
]

/** One sentence for each migration of `folder` that does not only add. `version`: the release that is being made. */
export function migrationFaults(
  folder: string,
  version: string,
  contractions: Readonly<Record<string, Contraction>> = CONTRACTIONS,
): string[] {
  const faults: string[] = []
  for (const file of readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()) {
    if (Number(file.slice(0, 4)) <= UNCHECKED_MAX) continue
    const found = removals(readFileSync(join(folder, file), 'utf8'))
    const listed = contractions[file]
    if (found.length === 0 || (listed && isOver(listed, version))) continue
    faults.push(
      listed
        ? `${file} ${found[0]}: release ${listed.lastNeededBy} needs it, so it can go two releases later, not in ${version}`
        : `${file} ${found.join(', ')}: the release before still works on this schema; see docs/upgrading.md`,
    )
  }
  return faults
}

/** The release before this one has to be a later one than the last that needs it. */
function isOver({ lastNeededBy }: Contraction, version: string): boolean {
  if (lastNeededBy === null) return true
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [neededMajor = 0, neededMinor = 0] = lastNeededBy.split('.').map(Number)
  return major > neededMajor || (major === neededMajor && minor >= neededMinor + 2)
}

/** What a migration does besides adding. */
export function removals(source: string): string[] {
  const sql = source.replaceAll(/--.*$/gm, '').replaceAll(/'(?:[^']|'')*'/g, "''")
  const made = new Set(
    [...sql.matchAll(/\bCREATE\s+(?:UNLOGGED\s+)?TABLE\s+(\w+)/gi)].map(([, name]) => name),
  )
  const added = new Set([...sql.matchAll(/\bADD\s+COLUMN\s+(\w+)/gi)].map(([, name]) => name))
  const found: string[] = []
  for (const { pattern, what, exceptNew } of RULES)
    for (const [text, table] of sql.matchAll(pattern))
      if (!(exceptNew && made.has(table))) found.push(`${what} ("${text.replaceAll(/\s+/g, ' ')}")`)
  for (const [text] of sql.matchAll(/\bADD\s+COLUMN\s+[^;,]*/gi))
    if (/NOT\s+NULL/i.test(text) && !/DEFAULT/i.test(text))
      found.push(`adds a column that older releases do not fill ("${text.trim()}")`)
  for (const [, table = '', columns = ''] of sql.matchAll(/\bUPDATE\s+(\w+)\s+SET\s+([^;]*)/gi)) {
    const set = [...columns.matchAll(/(?:^|,)\s*(\w+)\s*=/g)].map(([, name]) => name)
    if (!made.has(table) && !set.every((name) => added.has(name))) found.push(`rewrites rows of ${table}`)
  }
  return found
}

if (import.meta.main) {
  const root = resolve(import.meta.dirname, '..')
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const faults = migrationFaults(join(root, 'src/platform/store/migrations'), version)
  for (const fault of faults) console.error(fault)
  if (faults.length > 0) process.exitCode = 1
}
