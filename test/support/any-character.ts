/**
 * Any character of Unicode but surrogates, for `fc.string`: the same texts as its unit `binary` makes, which lists all
 * 1.1 million characters first and keeps the list. That takes a second of processor time and 176 MB in each process.
 */
import fc from 'fast-check'

const LAST = 0x10ffff
const SURROGATES = { first: 0xd800, count: 0x800 }

/** A unit of `fc.string`. */
export const anyCharacter: fc.Arbitrary<string> = fc.nat(LAST - SURROGATES.count).map(character, indexOf)

function character(index: number): string {
  return String.fromCodePoint(index < SURROGATES.first ? index : index + SURROGATES.count)
}

/** @throws TypeError for what is not one character, so that fast-check makes no text of it */
function indexOf(value: unknown): number {
  const code = typeof value === 'string' ? (value.codePointAt(0) ?? 0) : 0
  const index = code < SURROGATES.first ? code : code - SURROGATES.count
  if (value !== character(index)) throw new TypeError(`not one character: ${value}`)
  return index
}
