/**
 * Packs: counts of all combinations of values, many in one value of the table `figure_packs` (decision 153).
 *
 * Layout; a number is unsigned LEB128: seven bits a byte, least significant first, the high bit says that another follows.
 * 1. The version, one byte.
 * 2. How many texts there are; then of each its length in bytes, and UTF-8.
 * 3. How many sections there are. A section begins with its hour of the day, 1 to 24, or 0 for the whole interval, and how
 *    many entries it has.
 * 4. Each entry has a byte that says which of VALUE_NAMES it has, the least significant bit for the first; the place of the
 *    text of each; how many counters; and of each its place in COUNTERS and its count.
 */

import { randomInt } from 'node:crypto'
import { insert, type Statement } from '../../../platform/store/store.ts'
import { type FigureValues, type PlainValues, VALUE_NAMES } from '../counters.ts'
import type { Unit } from '../intervals.ts'
import { type CounterCounts, UNIT_NUMBERS } from './splits.ts'

const VERSION = 1
/** In place of an hour of the day: counts of the whole interval. */
export const WHOLE = -1

export interface PackedEntry {
  /** Hour of the day, 0 to 23, or WHOLE. */
  hour: number
  /** The tag is a JSON list. */
  values: FigureValues
  counts: CounterCounts
}

/** Different for different combinations of an hour and values. Made for every event, so it is one template. */
export function nameOf(
  hour: number,
  tag: string,
  { recipient_domain, provider, ip, pool, country, device, bot }: PlainValues,
): string {
  return `${hour}\n${tag}\n${recipient_domain}\n${provider}\n${ip}\n${pool}\n${country}\n${device}\n${bot}`
}

export function pack(entries: readonly PackedEntry[]): Uint8Array {
  const texts = new Map<string, number>()
  const sections = new Map<number, PackedEntry[]>()
  for (const entry of entries) {
    const section = sections.get(entry.hour)
    if (section) section.push(entry)
    else sections.set(entry.hour, [entry])
    for (const name of VALUE_NAMES) {
      const text = entry.values[name]
      if (text !== '' && !texts.has(text)) texts.set(text, texts.size)
    }
  }
  const writer = new Writer()
  writer.byte(VERSION)
  writer.number(texts.size)
  for (const text of texts.keys()) writer.text(text)
  writer.number(sections.size)
  for (const [hour, section] of [...sections].sort(([a], [b]) => a - b)) {
    writer.number(hour + 1)
    writer.number(section.length)
    for (const entry of section) writeEntry(writer, entry, texts)
  }
  return writer.bytes()
}

function writeEntry(writer: Writer, { values, counts }: PackedEntry, texts: ReadonlyMap<string, number>) {
  let has = 0
  for (const [at, name] of VALUE_NAMES.entries()) if (values[name] !== '') has |= 1 << at
  writer.byte(has)
  for (const name of VALUE_NAMES) if (values[name] !== '') writer.number(texts.get(values[name]) as number)
  writer.number(counts.length / 2)
  for (const number of counts) writer.number(number)
}

/** Grows; one is used for all packs, because most are small. */
let scratch = Buffer.allocUnsafeSlow(65_536)
const NUMBER_BYTES_MAX = 8

class Writer {
  #at = 0

  #reserve(size: number): void {
    if (this.#at + size <= scratch.length) return
    const larger = Buffer.allocUnsafeSlow(2 * (scratch.length + size))
    scratch.copy(larger, 0, 0, this.#at)
    scratch = larger
  }

  byte(value: number): void {
    this.#reserve(1)
    scratch[this.#at++] = value
  }

  number(value: number): void {
    this.#reserve(NUMBER_BYTES_MAX)
    let left = value
    while (left >= 0x80) {
      scratch[this.#at++] = (left % 0x80) | 0x80
      left = Math.floor(left / 0x80)
    }
    scratch[this.#at++] = left
  }

  text(value: string): void {
    const size = Buffer.byteLength(value)
    this.number(size)
    this.#reserve(size)
    this.#at += scratch.write(value, this.#at)
  }

  bytes(): Uint8Array {
    return Uint8Array.prototype.slice.call(scratch, 0, this.#at)
  }
}

/** Reads a pack one entry after the other, without an object for each: some queries read a million. */
export class PackReader {
  /** In place 0 the empty text; the others are numbered from 1. */
  readonly texts: string[] = ['']
  /** The entry's hour of the day, or WHOLE. */
  hour = WHOLE
  /** The entry's values: the place in `texts` of each of VALUE_NAMES. */
  readonly values = new Int32Array(VALUE_NAMES.length)
  /** The entry's counts as in PackedEntry, up to `size`; what follows is of earlier ones. */
  readonly counts: number[] = []
  size = 0
  readonly #bytes: Buffer
  #at = 0
  #sections = 0
  #entries = 0

  /** @throws Error for bytes that are no pack */
  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    if (this.#byte() !== VERSION) throw damaged()
    for (let left = this.#number(); left > 0; left--) {
      const size = this.#number()
      const end = this.#at + size
      if (end > this.#bytes.length) throw damaged()
      this.texts.push(this.#bytes.toString('utf8', this.#at, end))
      this.#at = end
    }
    this.#sections = this.#number()
  }

  /**
   * Moves to the next entry; false: there is none.
   * @throws Error for bytes that are no pack
   */
  next(): boolean {
    while (this.#entries === 0) {
      if (this.#sections === 0) {
        if (this.#at !== this.#bytes.length) throw damaged()
        return false
      }
      this.#sections--
      this.hour = this.#number() - 1
      this.#entries = this.#number()
    }
    this.#entries--
    const has = this.#byte()
    for (let at = 0; at < VALUE_NAMES.length; at++) this.values[at] = has & (1 << at) ? this.#number() + 1 : 0
    this.size = 2 * this.#number()
    for (let at = 0; at < this.size; at++) this.counts[at] = this.#number()
    return true
  }

  /** A copy of the entry. */
  entry(): PackedEntry {
    const values = {} as FigureValues
    for (const [at, name] of VALUE_NAMES.entries())
      values[name] = this.texts[this.values[at] as number] as string
    return { hour: this.hour, values, counts: this.counts.slice(0, this.size) }
  }

  #byte(): number {
    const byte = this.#bytes[this.#at++]
    if (byte === undefined) throw damaged()
    return byte
  }

  #number(): number {
    let byte = this.#byte()
    let value = byte & 0x7f
    for (let factor = 0x80; byte >= 0x80; factor *= 0x80) {
      byte = this.#byte()
      value += (byte & 0x7f) * factor
    }
    return value
  }
}

const damaged = () => new Error('a row of figure_packs cannot be read')

/** A domain's day. */
export interface DayOfScope {
  /** A number of `figure_scopes`. */
  scope: number
  /** Beginning of the day; Unix milliseconds. */
  start: number
}

/** Two rows of one interval must not have the same. */
const newPart = (): number => randomInt(2 ** 48 - 1)

export interface PackOfScope {
  /** A number of `figure_scopes`. */
  scope: number
  unit: Unit
  /** Beginning of the interval, or of the day that hours are in; Unix milliseconds. */
  start: number
  entries: readonly PackedEntry[]
}

/** One row: the database joins such inserts. */
export const packStatement = ({ scope, unit, start, entries }: PackOfScope): Statement =>
  insert('figure_packs', {
    scope,
    unit: UNIT_NUMBERS[unit],
    start_at: start,
    part: newPart(),
    entries: entries.length,
    packed: pack(entries),
  })
