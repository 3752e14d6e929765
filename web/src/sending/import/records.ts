/** Reads what people paste or choose as a file to import: CSV, one address per line, or JSON. */
import { parseCsv } from './csv.ts'

export type ImportRecord = Record<string, unknown>
export type ReadRecords = { records: ImportRecord[] } | { fault: string }

/**
 * CSV needs a header line with some of `columns`; without one, the lines are addresses if all of the first has an `@`.
 * JSON is an array of objects or of addresses. Empty fields of CSV are left out.
 */
export function readRecords(text: string, columns: readonly string[]): ReadRecords {
  const trimmed = text.replace(/^\ufeff/, '').trim()
  if (trimmed === '') return { fault: 'There is nothing in it' }
  return /^[[{]/.test(trimmed) ? readJson(trimmed) : readCsv(trimmed, columns)
}

function readJson(text: string): ReadRecords {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { fault: `Not valid JSON: ${error instanceof Error ? error.message : String(error)}` }
  }
  const records: ImportRecord[] = []
  for (const [at, entry] of (Array.isArray(value) ? value : [value]).entries()) {
    if (typeof entry === 'string') records.push({ address: entry })
    else if (typeof entry === 'object' && entry !== null && !Array.isArray(entry)) records.push({ ...entry })
    else return { fault: `Entry ${at + 1} is neither an address nor an object` }
  }
  return { records }
}

function readCsv(text: string, columns: readonly string[]): ReadRecords {
  const [first = [], ...others] = parseCsv(text)
  const header = first.map((name) => name.trim().toLowerCase())
  if (header.some((name) => columns.includes(name)))
    return { records: others.map((row) => recordOf(header, row, columns)) }
  if (first[0]?.includes('@') !== true)
    return { fault: `The first line names none of these columns: ${columns.join(', ')}` }
  return { records: [first, ...others].map((row) => ({ address: row[0]?.trim() ?? '' })) }
}

function recordOf(
  header: readonly string[],
  row: readonly string[],
  columns: readonly string[],
): ImportRecord {
  const record: ImportRecord = {}
  for (const [at, name] of header.entries()) {
    const value = row[at]?.trim() ?? ''
    if (columns.includes(name) && value !== '') record[name] = value
  }
  return record
}
