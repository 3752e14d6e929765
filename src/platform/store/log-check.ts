/**
 * Distinguishes a damaged write-ahead log from one whose last transaction was cut off. SQLite recovers the frames before
 * the first one with a wrong checksum and silently overwrites the rest: with a damaged page in the middle, that rest is
 * mail that was accepted.
 *
 * A crash leaves wrong checksums only in the last transaction, since each is synced before the next is written. So a
 * complete transaction after the first bad frame means damage. Format: sqlite.org/fileformat2.html#walformat.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { endianness } from 'node:os'
import { StoreFault } from './store.ts'

const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
/** The lowest bit gives the byte order of the checksum's words. */
const MAGIC = 0x377f0682
/** Page size of our databases; used only if the log's header is damaged. */
const PAGE_BYTES = 4096
/** Frames read at a time. */
const READ_FRAMES = 256

interface LogHeader {
  pageBytes: number
  littleEndian: boolean
  /** Stored in every frame since the log last restarted. */
  salts: Buffer
  /** The header's checksum, on which the first frame's one builds; null: the header itself is bad. */
  sums: Sums | null
}

/** @throws StoreFault if SQLite would silently drop complete transactions after a bad frame */
export function checkLog(databaseFile: string): void {
  const file = `${databaseFile}-wal`
  const fd = openIfPresent(file)
  if (fd === null) return
  try {
    const badAt = findDamage(fd)
    if (badAt === null) return
    throw new StoreFault(
      'damaged',
      `The log "${file}" is damaged at byte ${badAt}; what was committed after it cannot be read. ` +
        'Keep a copy of the data folder and restore a backup (docs/backup.md). To go on without what is lost: ' +
        `truncate -s ${badAt} ${file}`,
    )
  } finally {
    closeSync(fd)
  }
}

function openIfPresent(file: string): number | null {
  try {
    return openSync(file, 'r')
  } catch {
    return null
  }
}

/** Offset of the first bad frame if a complete transaction follows it; null: nothing is lost. */
function findDamage(fd: number): number | null {
  const header = readHeader(fd)
  if (header === null) return null
  const { pageBytes, littleEndian, salts } = header
  const frameBytes = FRAME_HEADER_BYTES + pageBytes
  const chunk = Buffer.alloc(frameBytes * READ_FRAMES)
  let sums: Sums = header.sums ?? [0, 0]
  let badAt = header.sums === null ? 0 : null
  /** A transaction has ended after the bad frame; any frame that follows was written after its sync. */
  let ended = false
  for (let at = HEADER_BYTES; ; at += chunk.length) {
    const read = readSync(fd, chunk, 0, chunk.length, at)
    for (let offset = 0; offset + frameBytes <= read; offset += frameBytes) {
      const frame = chunk.subarray(offset, offset + frameBytes)
      const written: Sums = [frame.readUInt32BE(16), frame.readUInt32BE(20)]
      // Frames of an earlier round of the log have other salts.
      const isOurs = frame.compare(salts, 0, salts.length, 8, 16) === 0
      const isGood = isOurs && isSame(frameChecksum(frame, littleEndian, sums), written)
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

/** Null: the log has no complete first frame. */
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

/** Checksum of a frame: of its header's first eight bytes and its page, continuing the previous frame's one. */
function frameChecksum(frame: Buffer, littleEndian: boolean, before: Sums): Sums {
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
