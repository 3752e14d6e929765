/** Checks a database for damage, table by table, and words the findings for the operator. */

import { spawn } from 'node:child_process'
import { setPriority } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { StoreFault } from '../store.ts'

export function damaged(file: string, finding: string): StoreFault {
  return new StoreFault(
    'damaged',
    `The database "${file}" is damaged (${finding}). Nothing is accepted or sent until it is repaired. ` +
      `Stop the service, keep a copy of ${dirname(file)}, and run "sendwright doctor": it says how to recover.`,
  )
}

export interface Finding {
  /** The damaged table or index; null if the finding cannot be assigned to one. */
  object: { type: string; name: string } | null
  text: string
}

/** Findings reported per table; the first ones are enough. */
const FINDINGS_MAX = 20

/**
 * Checks the tables one by one to keep read transactions short: while one is open, the log cannot restart.
 * `quick_check` does not compare indexes with their tables, which takes most of the time.
 */
function* checkTables(database: DatabaseSync, pragma: 'quick_check' | 'integrity_check'): Generator<Finding> {
  const objects = database
    .prepare('SELECT type, name, rootpage FROM sqlite_schema WHERE rootpage > 0')
    .all() as unknown as SchemaObject[]
  for (const { name } of objects.filter(({ type }) => type === 'table')) {
    const table = { type: 'table', name }
    try {
      const rows = database.prepare(`PRAGMA ${pragma}("${name}")`).all()
      for (const text of rows.slice(0, FINDINGS_MAX).map((row) => String(Object.values(row)[0])))
        if (text !== 'ok') yield { object: objectOf(text, objects) ?? table, text }
    } catch (error) {
      if (!isDamage(error)) throw error
      yield { object: table, text: (error as Error).message }
    }
  }
}

/** Longest wait for a lock of another connection. */
const BUSY_MS = 5_000

/** A database up to this size is checked at once and without a time limit: about 60 ms, a second on a slow disk. */
export const SYNC_CHECK_MAX_BYTES = 64 * 1024 * 1024

/** Checks a database file in this thread, and reports each finding. Returns whether the whole file was checked. */
export function checkFile(
  file: string,
  pragma: 'quick_check' | 'integrity_check',
  report: (finding: Finding) => void,
): boolean {
  try {
    const database = new DatabaseSync(file, { readOnly: true, timeout: BUSY_MS })
    for (const finding of checkTables(database, pragma)) report(finding)
    database.close()
    return true
  } catch (error) {
    if (!isDamage(error)) return false
    report({ object: null, text: (error as Error).message })
    return true
  }
}

const SQLITE_CORRUPT = 11
const SQLITE_NOTADB = 26

/** Other SQLite errors (the file is locked, too many files are open) do not mean that the file is damaged. */
function isDamage(error: unknown): boolean {
  const code = ((error as { errcode?: number }).errcode ?? 0) & 0xff
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB
}

interface SchemaObject {
  type: string
  name: string
  rootpage: number
}

/** The object that SQLite's message names: a b-tree by its root page, or an index by its name. */
function objectOf(text: string, objects: readonly SchemaObject[]): Finding['object'] {
  const root = Number(/^Tree (\d+)/m.exec(text)?.[1])
  const found = objects.find(({ rootpage }) => rootpage === root)
  if (found) return { type: found.type, name: found.name }
  const index = /(?:in|from) index (\S+)$/.exec(text)?.[1]
  return index === undefined ? null : { type: 'index', name: index }
}

export const describeFinding = ({ object, text }: Finding) =>
  `${object ? `${object.type} ${object.name}: ` : ''}${text.replace('*** in database main ***', '').replace(/\s+/g, ' ').trim()}`

/** What the operator can do, best option first. */
export function recoveryAdvice(folder: string, findings: readonly Finding[]): string {
  const names = [...new Set(findings.map(({ object }) => (object?.type === 'index' ? object.name : null)))]
  const keep = `Stop the service and keep a copy of ${folder}.`
  const restore =
    'Move the folder away and restore the newest backup: "sendwright restore FOLDER" (docs/backup.md).'
  if (findings.length > 0 && names.every((name) => name !== null)) {
    return `${keep} Only indexes are damaged (${names.join(', ')}); they are rebuilt from the tables: sqlite3 ${folder}/sendwright.db REINDEX. If that fails: ${restore}`
  }
  return `${keep} ${restore} Without a backup: sqlite3 ${folder}/sendwright.db .recover saves what can be read.`
}

interface FileCheck {
  /** Never rejects. `complete`: the whole file was checked within the time limit. */
  result: Promise<{ findings: Finding[]; complete: boolean }>
  stop(): void
}

/**
 * 1.2 GB a second from memory; on a slow disk this covers only a part of the file. While a large table is checked the log
 * cannot restart, and grows with every write.
 */
const LIMIT_MS = 20_000
/** As a `nice` value. At the lowest, 19, a check on busy processors does not even start within its time. */
const LOW_PRIORITY = 10

/**
 * Checks a database file for damage in a separate process, which can be killed at any time: SQLite's check of a large
 * file cannot be interrupted from the thread that runs it, and would delay a stop of the service.
 */
export function startFileCheck(
  file: string,
  pragma: 'quick_check' | 'integrity_check' = 'quick_check',
  limitMs = LIMIT_MS,
): FileCheck {
  const program = join(import.meta.dirname, 'file-check-process.ts')
  const child = spawn(process.execPath, [program, file, pragma], { stdio: ['ignore', 'pipe', 'ignore'] })
  const stop = () => void child.kill('SIGKILL')
  const timer = setTimeout(stop, limitMs)
  timer.unref()
  const findings: Finding[] = []
  createInterface(child.stdout).on('line', (line) => void findings.push(JSON.parse(line) as Finding))
  const result = new Promise<{ findings: Finding[]; complete: boolean }>((resolve) => {
    const end = (complete: boolean) => {
      clearTimeout(timer)
      resolve({ findings, complete })
    }
    child.once('error', () => end(false))
    child.once('close', (code) => end(code === 0))
  })
  try {
    if (child.pid !== undefined) setPriority(child.pid, LOW_PRIORITY)
  } catch {
    // The process has ended already, or the system does not allow it.
  }
  return { result, stop }
}
