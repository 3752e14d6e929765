/** The file of a job: CSV, plain or gzip, with a column of addresses (validation.md section 3 rule 1). */
import { CsvSyntaxError, readCsv } from '../../../base/csv.ts'
import { once, UnpackFailure, unpacked } from '../../../base/flow/unpacked.ts'
import { BadRequest } from '../../../base/process/errors.ts'
import type { Chunk } from '../../../protocols/message/mime-message.ts'
import { UNPACKED_BYTES_MAX } from '../../../sending/suppressions/import-file.ts'

const COLUMNS = ['email', 'email_address']
/** No address is longer; the rest of a longer cell would not make it valid. */
const ADDRESS_LENGTH_MAX = 512

interface Layout {
  column: number
  /** The first record names columns; else it is an address. */
  hasHeader: boolean
}

/** Null: the first record has several columns, none of which is one of addresses. */
function layoutOf(first: readonly string[]): Layout | null {
  const names = first.map((name) => name.trim())
  const column = names.findIndex((name) => COLUMNS.includes(name))
  if (column >= 0) return { column, hasHeader: true }
  return first.length === 1 ? { column: 0, hasHeader: false } : null
}

/** @throws BadRequest for a file without a column of addresses, also one that cannot be read */
export async function checkAddressFile(file: Chunk): Promise<void> {
  const bytes = file instanceof Uint8Array ? once(file) : file.open()
  try {
    for await (const first of readCsv(unpacked(bytes, UNPACKED_BYTES_MAX))) {
      if (layoutOf(first)) return
      break
    }
  } catch (error) {
    if (!(error instanceof CsvSyntaxError || error instanceof UnpackFailure)) throw error
  }
  throw new BadRequest('missing email or email_address column')
}

/** The address of each row, blanks around it removed; '' for a row without one. @throws CsvSyntaxError, UnpackFailure */
export async function* addressesIn(
  bytes: AsyncIterable<Uint8Array>,
  bytesMax = UNPACKED_BYTES_MAX,
): AsyncGenerator<string> {
  let layout: Layout | null = null
  for await (const record of readCsv(unpacked(bytes, bytesMax))) {
    if (layout === null) {
      layout = layoutOf(record)
      if (layout === null) throw new CsvSyntaxError('No column of addresses')
      if (layout.hasHeader) continue
    }
    yield cellText(record[layout.column] ?? '')
  }
}

/** PostgreSQL stores no NUL. */
const cellText = (cell: string) => cell.trim().slice(0, ADDRESS_LENGTH_MAX).replaceAll('\0', '\ufffd')
