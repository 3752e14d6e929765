/** What is said about a damaged database, and how its parts are looked at. */
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { StoreFault } from './store.ts'

export function damaged(file: string, what: string): StoreFault {
  return new StoreFault(
    'damaged',
    `The database "${file}" is damaged (${what}). Nothing is accepted or sent until it is repaired. ` +
      `Stop the service, keep a copy of ${dirname(file)}, and run "sendwright doctor": it says how to recover.`,
  )
}

export interface Finding {
  /** A table or index; null where the finding belongs to no single one. */
  of: { type: string; name: string } | null
  text: string
}

/** Findings of one table; the first ones tell enough. */
const FINDINGS_MAX = 20

/**
 * Looks at one table after the other, so that no read lasts longer than it must: one that lasts keeps the log from
 * beginning anew. `quick_check` holds no index against its table, which takes most of the time.
 */
export function* checkTables(
  database: DatabaseSync,
  pragma: 'quick_check' | 'integrity_check',
): Generator<Finding> {
  const objects = database
    .prepare('SELECT type, name, rootpage FROM sqlite_schema WHERE rootpage > 0')
    .all() as unknown as SchemaObject[]
  for (const { name } of objects.filter(({ type }) => type === 'table')) {
    const of = { type: 'table', name }
    try {
      const rows = database.prepare(`PRAGMA ${pragma}("${name}")`).all()
      for (const text of rows.slice(0, FINDINGS_MAX).map((row) => String(Object.values(row)[0])))
        if (text !== 'ok') yield { of: objectOf(text, objects) ?? of, text }
    } catch (error) {
      if (!isDamage(error)) throw error
      yield { of, text: (error as Error).message }
    }
  }
}

const SQLITE_CORRUPT = 11
const SQLITE_NOTADB = 26

/** What else SQLite refuses (the file is locked, or too many are open) says nothing of the file. */
export function isDamage(error: unknown): boolean {
  const code = ((error as { errcode?: number }).errcode ?? 0) & 0xff
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB
}

interface SchemaObject {
  type: string
  name: string
  rootpage: number
}

/** SQLite names trees by their first page. */
function objectOf(text: string, objects: readonly SchemaObject[]): Finding['of'] {
  const root = Number(/^Tree (\d+)/m.exec(text)?.[1])
  const found = objects.find(({ rootpage }) => rootpage === root)
  if (found) return { type: found.type, name: found.name }
  const index = /(?:in|from) index (\S+)$/.exec(text)?.[1]
  return index === undefined ? null : { type: 'index', name: index }
}

export const describeFinding = ({ of, text }: Finding) =>
  `${of ? `${of.type} ${of.name}: ` : ''}${text.replace('*** in database main ***', '').replace(/\s+/g, ' ').trim()}`

/** What the operator can do, best first. */
export function recoveryAdvice(folder: string, findings: readonly Finding[]): string {
  const names = [...new Set(findings.map(({ of }) => (of?.type === 'index' ? of.name : null)))]
  const keep = `Stop the service and keep a copy of ${folder}.`
  const restore =
    'Move the folder away and restore the newest backup: "sendwright restore FOLDER" (docs/backup.md).'
  if (findings.length > 0 && names.every((name) => name !== null)) {
    return `${keep} Only indexes are damaged (${names.join(', ')}); they are rebuilt from the tables: sqlite3 ${folder}/sendwright.db REINDEX. If that fails: ${restore}`
  }
  return `${keep} ${restore} Without a backup: sqlite3 ${folder}/sendwright.db .recover saves what can be read.`
}
