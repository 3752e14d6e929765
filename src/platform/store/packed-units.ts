/**
 * The form in which units are posted to the database thread. As objects, every statement would be cloned with its SQL
 * text; here a text is sent once and referred to by number afterwards, and everything else is flat arrays. The bytes of
 * all values are transferred in one ArrayBuffer: a cloned value would copy the whole buffer pool that it is a slice of.
 */
import type { SqlValue, Statement } from './store.ts'

export interface PackedUnits {
  /** New texts; they get the next numbers, in order. */
  texts: string[]
  /** Per unit the count of statements, then per statement its text's number, its count of values, `expectRows` or -1. */
  shape: number[]
  /** Null in place of bytes. */
  values: SqlValue[]
  /** Pairs of index in `values` and length, in order, for each value that is bytes. */
  slices: number[]
  /** Those bytes, concatenated. */
  bytes: ArrayBuffer
  /** Texts without a number of their own; numbered from -1 downwards in this packet only. */
  rare: string[]
}

/** The hot paths use a few dozen texts; those with lists of varying length would need unbounded memory. */
const NUMBERED_MAX = 500

/** The sending side; packs for one `createUnpacker`. All packets must arrive, in order. */
export function createPacker(
  numberedMax = NUMBERED_MAX,
): (units: readonly (readonly Statement[])[]) => PackedUnits {
  const numbers = new Map<string, number>()
  return (units) => {
    const texts: string[] = []
    const shape: number[] = []
    const values: SqlValue[] = []
    const rare: string[] = []
    const slices: number[] = []
    const pieces: Uint8Array[] = []
    const numberOf = (sql: string): number => {
      const known = numbers.get(sql)
      if (known !== undefined) return known
      if (numbers.size >= numberedMax) return -rare.push(sql)
      const number = numbers.size
      numbers.set(sql, number)
      texts.push(sql)
      return number
    }
    for (const unit of units) {
      shape.push(unit.length)
      for (const statement of unit) {
        shape.push(numberOf(statement.sql), statement.values.length, statement.expectRows ?? -1)
        for (const value of statement.values) {
          if (value instanceof Uint8Array) {
            slices.push(values.length, value.byteLength)
            pieces.push(value)
            values.push(null)
          } else values.push(value)
        }
      }
    }
    return { texts, shape, values, slices, bytes: joined(pieces), rare }
  }
}

function joined(pieces: readonly Uint8Array[]): ArrayBuffer {
  const size = pieces.reduce((sum, piece) => sum + piece.byteLength, 0)
  const bytes = new Uint8Array(size)
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.byteLength
  }
  return bytes.buffer
}

/** The receiving side. */
export function createUnpacker(): (packed: PackedUnits) => Statement[][] {
  const known: string[] = []
  return ({ texts, shape, values, slices, bytes, rare }) => {
    known.push(...texts)
    for (let slice = 0, start = 0; slice < slices.length; slice += 2) {
      const size = slices[slice + 1] as number
      values[slices[slice] as number] = new Uint8Array(bytes, start, size)
      start += size
    }
    const units: Statement[][] = []
    let at = 0
    let valueAt = 0
    while (at < shape.length) {
      const unit: Statement[] = []
      for (let left = shape[at++] as number; left > 0; left--) {
        const number = shape[at] as number
        const valuesEnd = valueAt + (shape[at + 1] as number)
        const expectRows = shape[at + 2] as number
        const sql = (number < 0 ? rare[-number - 1] : known[number]) as string
        const statement = { sql, values: values.slice(valueAt, valuesEnd) }
        unit.push(expectRows < 0 ? statement : { ...statement, expectRows })
        valueAt = valuesEnd
        at += 3
      }
      units.push(unit)
    }
    return units
  }
}
