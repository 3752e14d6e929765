import { randomBytes, randomFillSync } from 'node:crypto'

/** URL-safe digits in ASCII order, so that ids compare as text in the order of their creation. */
const DIGITS = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'

export const ID_PATTERN = /^[-0-9A-Z_a-z]{22}$/

/** Sets the first bit, so that no id begins with a hyphen, which command lines would read as an option. */
const TIME_OFFSET = 2 ** 47

/** The newest id of one clock: its time, and how many before it have the same. */
interface Newest {
  ms: number
  sequence: number
}

/**
 * Ids never run further ahead of the time that they are made for: until a clock caught up with them, ranges of ids by time would miss them.
 */
const AHEAD_MAX_MS = 60_000

/** A process has its own clock and that of the system, which can be set; tests have more. */
const CLOCKS_MAX = 4

/** By use, the latest first. */
const clocks: Newest[] = []
const idBytes = Buffer.alloc(16)

/**
 * A new 128-bit id in 22 URL-safe characters: 48 bits of Unix milliseconds, 16 bits counting within the
 * millisecond, 64 random bits. Ids of one process sort by the order of their creation, also where their times go back by up to a
 * minute; times further apart are different clocks, each with an order of its own. Two processes never collide in practice.
 */
export function newId(nowMs: number = Date.now()): string {
  const newest = newestNear(Math.floor(nowMs))
  newest.sequence += 1
  if (newest.sequence > 0xffff) {
    newest.ms += 1
    newest.sequence = 0
  }
  takeRandom(idBytes, 8)
  idBytes.writeUIntBE(newest.ms + TIME_OFFSET, 0, 6)
  idBytes.writeUInt16BE(newest.sequence, 6)
  return encodeSortable(idBytes)
}

/** The newest id of the clock that shows about this time, moved on to it. */
function newestNear(ms: number): Newest {
  const at = clocks.findIndex((newest) => Math.abs(newest.ms - ms) <= AHEAD_MAX_MS)
  const newest = clocks[at] ?? { ms, sequence: -1 }
  if (at !== 0) {
    clocks.splice(at < 0 ? CLOCKS_MAX - 1 : at, 1)
    clocks.unshift(newest)
  }
  if (newest.ms < ms) {
    newest.ms = ms
    newest.sequence = -1
  }
  return newest
}

/** Random bytes drawn ahead: one call for 512 ids; a call for each costs 7 µs, most of a new id. */
const pool = Buffer.alloc(4096)
let poolAt = pool.length

const POOLED_MAX_BYTES = 64

/** Fills `bytes` from `start` on with random bytes that are not used again. */
function takeRandom(bytes: Buffer, start: number): void {
  const count = bytes.length - start
  if (poolAt + count > pool.length) {
    randomFillSync(pool)
    poolAt = 0
  }
  // Byte by byte: for so few, a call to copy costs more.
  for (let at = start; at < bytes.length; at++) bytes[at] = pool[poolAt++] as number
}

const DIGIT_CODES = Buffer.from(DIGITS, 'latin1')
const DIGIT_VALUES = new Uint8Array(128)
DIGIT_CODES.forEach((code, value) => {
  DIGIT_VALUES[code] = value
})

/** Scratch buffer; shared, as it is used synchronously. */
const digits = Buffer.alloc(22)

/** Six bits a character, most significant first; of at most 16 bytes. */
function encodeSortable(bytes: Uint8Array): string {
  let length = 0
  let bits = 0
  let held = 0
  for (let at = 0; at < bytes.length; at++) {
    held = (held << 8) | (bytes[at] as number)
    bits += 8
    while (bits >= 6) {
      bits -= 6
      digits[length++] = DIGIT_CODES[(held >> bits) & 63] as number
    }
    held &= (1 << bits) - 1
  }
  if (bits > 0) digits[length++] = DIGIT_CODES[(held << (6 - bits)) & 63] as number
  return digits.toString('latin1', 0, length)
}

/** The lowest id that `newId` can make at a time, for ranges of ids by time. */
export function firstIdAt(ms: number): string {
  const bytes = Buffer.alloc(16)
  const last = 2 ** 47 - 1
  bytes.writeUIntBE(Math.min(Math.max(Math.floor(ms), 0), last) + TIME_OFFSET, 0, 6)
  return encodeSortable(bytes)
}

const hexBytes = Buffer.alloc(POOLED_MAX_BYTES)

/** `count` random bytes as lower-case hex. */
export function randomHex(count: number): string {
  if (count > POOLED_MAX_BYTES) return randomBytes(count).toString('hex')
  takeRandom(hexBytes, hexBytes.length - count)
  return hexBytes.toString('hex', hexBytes.length - count)
}

/** The 16 bytes of an id of `newId`; null for any other text. */
export function idToBytes(id: string): Buffer | null {
  if (!ID_PATTERN.test(id)) return null
  const bytes = Buffer.alloc(16)
  let bits = 0
  let held = 0
  let at = 0
  for (let index = 0; index < id.length; index++) {
    held = ((held << 6) | (DIGIT_VALUES[id.charCodeAt(index)] as number)) & 0xffff
    bits += 6
    if (bits >= 8) {
      bits -= 8
      if (at < 16) bytes[at++] = (held >> bits) & 0xff
    }
  }
  return encodeSortable(bytes) === id ? bytes : null
}

/** The id of 16 bytes; the inverse of `idToBytes`. */
export function bytesToId(bytes: Uint8Array): string {
  return encodeSortable(bytes.subarray(0, 16))
}
