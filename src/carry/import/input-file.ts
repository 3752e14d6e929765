/**
 * A file of another service, read in pieces: plain or gzip, CSV or JSON. However large it is, only a piece and one record
 * are held. Names inside of it never become paths.
 */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { CsvSyntaxError, readCsv, type Separator } from '../../base/csv.ts'
import { UnpackFailure, unpacked } from '../../base/flow/unpacked.ts'
import { JsonFileError, readJsonRecords } from './json-records.ts'

/** Unpacked; a file of ten million contacts is about a gigabyte. Gzip packs zeros a thousandfold. */
const UNPACKED_BYTES_MAX = 8 * 2 ** 30
const PIECE_BYTES = 64 * 1024

/** The file cannot be read; the message names it. */
export class InputFileError extends Error {}

export interface InputFile {
  path: string
  bytes: number
  /** Modification time, for noticing that it is another one. */
  modifiedMs: number
  isJson: boolean
}

/** A row of CSV by the names of its columns, or a record of JSON. */
export interface InputRecord {
  /** `row 3` or `line 17`. */
  place: string
  /** The named list of JSON that it is in; empty otherwise. */
  member: string
  value: unknown
  /** Why there is no value. */
  fault: string | null
}

/** @throws InputFileError */
export async function inputFile(path: string): Promise<InputFile> {
  const found = await stat(path).catch((error: Error) => {
    throw new InputFileError(error.message)
  })
  if (!found.isFile()) throw new InputFileError(`${path} is not a file`)
  const isJson = /^\uFEFF?\s*[[{]/.test(await beginningOf(path))
  return { path, bytes: found.size, modifiedMs: Math.floor(found.mtimeMs), isJson }
}

async function beginningOf(path: string): Promise<string> {
  for await (const piece of bytesOf(path)) return Buffer.from(piece.subarray(0, 4_096)).toString()
  return ''
}

/** The content, unpacked. @throws InputFileError */
async function* bytesOf(path: string, onRead?: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  const file = createReadStream(path, { highWaterMark: PIECE_BYTES })
  let reported = 0
  try {
    for await (const piece of unpacked(file, UNPACKED_BYTES_MAX)) {
      onRead?.(file.bytesRead - reported)
      reported = file.bytesRead
      yield piece
    }
  } catch (error) {
    if (!(error instanceof UnpackFailure)) throw new InputFileError(`${path}: ${(error as Error).message}`)
    if (error.cause instanceof Error) throw new InputFileError(`${path}: ${error.cause.message}`)
    throw new InputFileError(`${path} has more than ${UNPACKED_BYTES_MAX} bytes unpacked`)
  } finally {
    file.destroy()
  }
}

/**
 * The records of a file in their order.
 * @param lists members of JSON objects whose elements are records
 * @param onRead told how many bytes of the file have been read
 * @throws InputFileError if it can be read no further
 */
export async function* readRecords(
  { path, isJson }: InputFile,
  lists: readonly string[],
  onRead: (bytes: number) => void,
): AsyncGenerator<InputRecord> {
  try {
    yield* isJson ? jsonRecords(path, lists, onRead) : csvRecords(path, onRead)
  } catch (error) {
    const isForeign = error instanceof CsvSyntaxError || error instanceof JsonFileError
    if (isForeign) throw new InputFileError(`${path}: ${error.message}`)
    throw error
  }
}

async function* jsonRecords(
  path: string,
  lists: readonly string[],
  onRead: (bytes: number) => void,
): AsyncGenerator<InputRecord> {
  for await (const { line, ...record } of readJsonRecords(bytesOf(path, onRead), lists))
    yield { place: `line ${line}`, ...record }
}

/** The header of a CSV file, and the character between its columns. */
export async function csvHeader(path: string): Promise<{ columns: string[]; separator: Separator }> {
  const [line = ''] = (await beginningOf(path)).split(/\r|\n/)
  const counted = ([',', ';', '\t'] as const).map((separator) => ({
    separator,
    count: line.split(separator).length,
  }))
  const { separator } = counted.reduce((best, one) => (one.count > best.count ? one : best))
  for await (const header of readCsv(bytesOf(path), separator)) {
    return { columns: header.map(columnName), separator }
  }
  throw new InputFileError(`${path} is empty`)
}

/** Columns are compared without case, and without the characters that exports differ in: `Email Address`, `email_address`. */
export const columnName = (text: string) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '')

async function* csvRecords(path: string, onRead: (bytes: number) => void): AsyncGenerator<InputRecord> {
  const { separator } = await csvHeader(path)
  let header: string[] | null = null
  let row = 0
  for await (const fields of readCsv(bytesOf(path, onRead), separator)) {
    row++
    if (header === null) {
      header = fields
      continue
    }
    const place = `row ${row}`
    if (fields.length > header.length)
      yield {
        place,
        member: '',
        value: null,
        fault: `has ${fields.length} fields, the header ${header.length}`,
      }
    else yield { place, member: '', value: valuesOf(header, fields), fault: null }
  }
}

/** By column name as given. */
function valuesOf(header: readonly string[], fields: readonly string[]): Record<string, string> {
  const values: Record<string, string> = Object.create(null)
  fields.forEach((text, index) => {
    values[header[index] as string] = text
  })
  return values
}
