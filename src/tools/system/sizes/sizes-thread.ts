/** Run in a side thread: it reads a whole database file, and the size of each file in a folder. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { serve } from '../../../base/flow/side-thread.ts'

export interface TableSize {
  name: string
  /** With its indexes. */
  bytes: number
  rows: number
}

const BUSY_MS = 5_000
const TREES =
  "SELECT name, tbl_name, type FROM sqlite_schema WHERE rootpage > 0 AND type IN ('table', 'index')"
/** The virtual table `dbstat` walks the pages of one tree; sqlite.org/dbstat.html. */
const PAGES = 'SELECT pgsize, pagetype, ncell FROM dbstat WHERE name = ?'

/**
 * The size of each table of an SQLite database. Pages are read one by one, each tree in its own short transaction: the
 * thread can be ended at any time, and the database's log restarts between two trees.
 */
function tableSizes(file: string): TableSize[] {
  const database = new DatabaseSync(file, { readOnly: true, timeout: BUSY_MS })
  try {
    const sizes = new Map<string, TableSize>()
    for (const { name, tbl_name, type } of database.prepare(TREES).all() as Record<string, string>[]) {
      const size = sizes.get(tbl_name as string) ?? { name: tbl_name as string, bytes: 0, rows: 0 }
      sizes.set(size.name, size)
      for (const page of database.prepare(PAGES).iterate(name as string)) {
        size.bytes += Number(page['pgsize'])
        if (type === 'table' && page['pagetype'] === 'leaf') size.rows += Number(page['ncell'])
      }
    }
    return [...sizes.values()]
  } finally {
    database.close()
  }
}

/** Files that are removed meanwhile count as empty. */
function folderSize(folder: string): { bytes: number; files: number } {
  const total = { bytes: 0, files: 0 }
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) {
      const { bytes, files } = folderSize(join(folder, entry.name))
      total.bytes += bytes
      total.files += files
    } else {
      total.bytes += statSync(join(folder, entry.name), { throwIfNoEntry: false })?.size ?? 0
      total.files++
    }
  }
  return total
}

export const SIZE_FUNCTIONS = { tableSizes, folderSize }
serve(SIZE_FUNCTIONS)
