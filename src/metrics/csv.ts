/** Figures as CSV (RFC 4180), for `Accept: text/csv`. */
import type { IncomingHttpHeaders } from 'node:http'
import type { LazyChunk } from '../base/mime-message.ts'
import { bytesReply, type Reply } from '../http/reply.ts'

export type Cell = string | number | null

/** Whether a client asks for CSV and not for JSON. */
export function wantsCsv({ accept }: IncomingHttpHeaders): boolean {
  const types = (accept ?? '')
    .toLowerCase()
    .split(',', 20)
    .map((type) => type.split(';', 1)[0]?.trim())
  return types.includes('text/csv') && !types.includes('application/json')
}

/** Lines per piece. */
const LINES = 500

/** Sent in pieces: the text as a whole is never in memory. */
export function csvReply(head: readonly string[], rows: readonly (readonly Cell[])[], name: string): Reply {
  const pieces = function* () {
    yield csvLine(head)
    for (let at = 0; at < rows.length; at += LINES)
      yield rows
        .slice(at, at + LINES)
        .map(csvLine)
        .join('')
  }
  let sizeBytes = 0
  for (const piece of pieces()) sizeBytes += Buffer.byteLength(piece)
  const chunk: LazyChunk = {
    sizeBytes,
    async *open() {
      for (const piece of pieces()) yield Buffer.from(piece)
    },
  }
  const headers = { 'content-disposition': `attachment; filename="${name}.csv"` }
  return bytesReply(chunk, 'text/csv; charset=utf-8', { headers })
}

const csvLine = (cells: readonly Cell[]) => `${cells.map(cellText).join(',')}\r\n`

/** Spreadsheets take a text that begins with one of these for a formula; an apostrophe makes it a text. */
const FORMULA = /^[=+\-@\t\r]/

export function cellText(cell: Cell): string {
  if (cell === null) return ''
  if (typeof cell === 'number') return String(cell)
  const safe = FORMULA.test(cell) ? `'${cell}` : cell
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
