/**
 * Units on their way to the database thread. As objects each statement would be cloned with
 * its SQL text, so texts cross once and go by number from then on, and everything else is flat arrays. Bytes of all
 * values are handed over in one piece: a clone of a value would take along the whole pool that it is a part of.
 */
import type { SqlValue, Statement } from './store.ts'

export interface PackedUnits {
  /** Texts that get the next numbers, in order. */
  texts: string[]
  /** Per unit the number of statements; for each its text's number, how many values, `expectRows` or -1. */
  shape: number[]
  /** Null in place of bytes. */
  values: SqlValue[]
  /** For each value that is bytes its place among the values and how many they are, in order. */
  slices: number[]
  /** Those bytes, one behind the other. */
  bytes: ArrayBuffer
  /** Texts that are not worth a number; those count from -1 downwards. */
  rare: string[]
}

/** The hot paths use some dozens; texts with lists of varying length would fill any memory. */
const NUMBERED_MAX = 500

/** One side of a connection: packs for the other's `createUnpacker`. All packets must arrive, in order. */
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

/** The other side. */
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
