/**
 * Values as the copy handles them, the same from both databases: whole numbers are bigint, so that all 64 bits are kept.
 */
import type { Hash } from 'node:crypto'

export type Value = bigint | number | string | Uint8Array | null
export type Row = readonly Value[]
/** `other`: one that no table of the service has. */
export type ColumnType = 'integer' | 'real' | 'text' | 'blob' | 'other'

/** Something stands in the way of the copy; the message is for the operator: whole sentences. */
export class MigrationError extends Error {}

const NUL = '\0'
/** What the service itself stores in PostgreSQL, whose texts cannot hold NUL. */
const INSTEAD_OF_NUL = '\ufffd'

/**
 * The value that a column of this type holds once `value` is copied into it. SQLite holds a value of any type in any
 * column, PostgreSQL does not. `column` is for the message.
 * @throws MigrationError if it would not be the same value
 */
export function fitting(value: Value, type: ColumnType, column: string): Value {
  if (value === null) return null
  switch (type) {
    case 'integer':
      if (typeof value === 'bigint') return value
      break
    case 'real':
      // SQLite stores a whole number as such, and no negative zero.
      if (typeof value === 'bigint') return Number(value)
      if (typeof value === 'number') return value === 0 ? 0 : value
      break
    case 'text':
      if (typeof value === 'string') return value
      break
    case 'blob':
      if (value instanceof Uint8Array) return value
      break
  }
  throw new MigrationError(
    `Cannot copy ${column}: a row has ${describe(value)} in a column for ${NAMES[type]}.`,
  )
}

const NAMES: Record<ColumnType, string> = {
  integer: 'whole numbers',
  real: 'numbers',
  text: 'text',
  blob: 'bytes',
  other: 'something else',
}

function describe(value: Value): string {
  if (value instanceof Uint8Array) return `${value.byteLength} bytes`
  return typeof value === 'string' ? `the text ${JSON.stringify(value.slice(0, 40))}` : `the number ${value}`
}

export const hasNul = (value: Value): value is string => typeof value === 'string' && value.includes(NUL)

export const withoutNul = (text: string): string => text.replaceAll(NUL, INSTEAD_OF_NUL)

function isSame(a: Value, b: Value): boolean {
  if (a instanceof Uint8Array) return b instanceof Uint8Array && Buffer.compare(a, b) === 0
  return a === b || (typeof a === 'number' && Number.isNaN(a) && Number.isNaN(b as number))
}

export const isSameRow = (a: Row, b: Row): boolean => a.every((value, at) => isSame(value, b[at] as Value))

/** The order of both databases: null first, numbers by value, texts by their UTF-8 bytes. */
export function compareKeys(a: Row, b: Row): number {
  for (const [at, left] of a.entries()) {
    const right = b[at] as Value
    if (isSame(left, right)) continue
    if (left === null || right === null) return left === null ? -1 : 1
    if (typeof left === 'string' && typeof right === 'string')
      return Buffer.compare(Buffer.from(left), Buffer.from(right))
    return (left as bigint) < (right as bigint) ? -1 : 1
  }
  return 0
}

/** Adds a row to a digest. No two rows give the same bytes: each value has its type and length. */
export function addRow(hash: Hash, row: Row): void {
  let text = ''
  for (const value of row) {
    if (value === null) text += 'n,'
    else if (typeof value === 'bigint') text += `i${value},`
    else if (typeof value === 'number') text += `f${value},`
    else if (typeof value === 'string') text += `t${value.length}:${value},`
    else {
      hash.update(`${text}b${value.byteLength}:`)
      hash.update(value)
      text = ','
    }
  }
  hash.update(`${text}\n`)
}

/** Bytes in memory, about. */
export function sizeOf(row: Row): number {
  let bytes = 0
  for (const value of row) {
    if (typeof value === 'string') bytes += value.length
    else bytes += value instanceof Uint8Array ? value.byteLength : 8
  }
  return bytes
}

/** A key as JSON can hold it. */
export const packed = (key: Row): string[] =>
  key.map((value) => {
    if (typeof value === 'bigint') return `i${value}`
    if (typeof value === 'string') return `t${value}`
    throw new TypeError('Keys are whole numbers or texts')
  })

export const unpacked = (key: readonly string[]): Value[] =>
  key.map((text) => (text.startsWith('i') ? BigInt(text.slice(1)) : text.slice(1)))
