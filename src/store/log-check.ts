/**
 * Tells a damaged write-ahead log from one whose last transaction was cut off. SQLite takes from a log what comes before the
 * first frame that does not add up, says nothing, and writes over the rest: with a damaged page in the middle
 * that rest is mail that was accepted.
 *
 * A crash leaves frames that do not add up only in the last transaction, since each is synced before the next is
 * written. So a whole transaction behind the first bad frame means damage. Format: sqlite.org/fileformat2.html#walformat.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { endianness } from 'node:os'
import { StoreFault } from './store.ts'

const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
/** The lowest bit says in which order the bytes of the checksum's words are. */
const MAGIC = 0x377f0682
/** Of our databases; used only where the header that says so is damaged. */
const PAGE_BYTES = 4096
/** Frames read at a time. */
const READ_FRAMES = 256

interface LogHeader {
  pageBytes: number
  littleEndian: boolean
  /** Of every frame since the log began anew. */
  salts: Buffer
  /** What the first frame's checksum builds on; null: the header itself is bad. */
  sums: Sums | null
}

/** @throws StoreFault when transactions behind a bad frame would be lost silently */
export function checkLog(databaseFile: string): void {
  const file = `${databaseFile}-wal`
  const fd = openIfThere(file)
  if (fd === null) return
  try {
    const badAt = findDamage(fd)
    if (badAt === null) return
    throw new StoreFault(
      'damaged',
      `The log "${file}" is damaged at byte ${badAt}; what was committed behind it cannot be read. ` +
        'Keep a copy of the data folder and restore a backup (docs/backup.md). To go on without what is lost: ' +
        `truncate -s ${badAt} ${file}`,
    )
  } finally {
    closeSync(fd)
  }
}

function openIfThere(file: string): number | null {
  try {
    return openSync(file, 'r')
  } catch {
    return null
  }
}

/** Where the first bad frame begins if a whole transaction follows it; null: nothing is lost. */
function findDamage(fd: number): number | null {
  const header = readHeader(fd)
  if (header === null) return null
  const { pageBytes, littleEndian, salts } = header
  const frameBytes = FRAME_HEADER_BYTES + pageBytes
  const chunk = Buffer.alloc(frameBytes * READ_FRAMES)
  let sums: Sums = header.sums ?? [0, 0]
  let badAt = header.sums === null ? 0 : null
  /** Behind the bad frame a transaction has ended; what follows it was written after its sync. */
  let ended = false
  for (let at = HEADER_BYTES; ; at += chunk.length) {
    const read = readSync(fd, chunk, 0, chunk.length, at)
    for (let offset = 0; offset + frameBytes <= read; offset += frameBytes) {
      const frame = chunk.subarray(offset, offset + frameBytes)
      const written: Sums = [frame.readUInt32BE(16), frame.readUInt32BE(20)]
      // Frames of an earlier round of the log have other salts.
      const isOurs = frame.compare(salts, 0, salts.length, 8, 16) === 0
      const isGood = isOurs && isSame(addUp(frame, littleEndian, sums), written)
      if (!isGood) badAt ??= at + offset
      else if (badAt !== null) {
        if (ended) return badAt
        ended = frame.readUInt32BE(4) > 0
      }
      sums = written
    }
    if (read < chunk.length) return null
  }
}

type Sums = [number, number]
const isSame = (one: Sums, other: Sums) => one[0] === other[0] && one[1] === other[1]

/** Null: there is no first frame yet. */
function readHeader(fd: number): LogHeader | null {
  const bytes = Buffer.alloc(HEADER_BYTES + FRAME_HEADER_BYTES)
  if (readSync(fd, bytes, 0, bytes.length, 0) < bytes.length) return null
  const magic = bytes.readUInt32BE(0)
  const littleEndian = (magic & 1) === 0
  const sums = checksum(bytes.subarray(0, 24), littleEndian, [0, 0])
  const isGood =
    (magic & ~1) >>> 0 === MAGIC && isSame(sums, [bytes.readUInt32BE(24), bytes.readUInt32BE(28)])
  if (isGood) return { pageBytes: bytes.readUInt32BE(8), littleEndian, salts: bytes.subarray(16, 24), sums }
  const salts = bytes.subarray(HEADER_BYTES + 8, HEADER_BYTES + 16)
  return { pageBytes: PAGE_BYTES, littleEndian: endianness() === 'LE', salts, sums: null }
}

/** Of the first eight bytes of a frame's header and its page, on top of the frame before. */
function addUp(frame: Buffer, littleEndian: boolean, before: Sums): Sums {
  const head = checksum(frame.subarray(0, 8), littleEndian, before)
  return checksum(frame.subarray(FRAME_HEADER_BYTES), littleEndian, head)
}

function checksum(bytes: Buffer, littleEndian: boolean, [from0, from1]: Sums): Sums {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let s0 = from0
  let s1 = from1
  for (let at = 0; at < bytes.length; at += 8) {
    s0 = (s0 + view.getUint32(at, littleEndian) + s1) >>> 0
    s1 = (s1 + view.getUint32(at + 4, littleEndian) + s0) >>> 0
  }
  return [s0, s1]
}
