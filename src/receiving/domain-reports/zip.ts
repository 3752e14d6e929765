/**
 * The one file in a ZIP archive, as reporters send them: stored or deflated, without encryption. As for unzip(1), bytes
 * before and after the archive do not matter; folders, and what macOS adds to files, are left out.
 */
import { NoReport } from '../../protocols/message/report-mail.ts'

interface ZipEntry {
  deflated: boolean
  content: Buffer
}

const END_MARK = 'PK\x05\x06'
const LOCAL_MARK = 'PK\x03\x04'
const CENTRAL = 0x02014b50
const LOCAL = 0x04034b50
/** The record at the end of an archive, and a comment or other bytes after it. */
const END_BYTES = 22
const AFTER_BYTES_MAX = 65_535
const CENTRAL_BYTES = 46
/** A report with the folders above it, and what goes with them. */
const ENTRIES_MAX = 20
const [STORED, DEFLATED] = [0, 8]
/** The size of a ZIP64 entry is elsewhere; the deflated data shows its end itself. */
const SIZE_ELSEWHERE = 0xffffffff

/** True for bytes that begin as an archive does or have the end of one. */
export const isZip = (bytes: Buffer): boolean =>
  bytes.toString('latin1', 0, LOCAL_MARK.length) === LOCAL_MARK || endOf(bytes) >= 0

/** @throws NoReport for another number of files, and for archives that cannot be read */
export function readZip(archive: Buffer): ZipEntry {
  try {
    return contentOf(archive)
  } catch (error) {
    // An offset beyond the end.
    if (error instanceof RangeError) throw new NoReport('the ZIP archive is damaged')
    throw error
  }
}

interface Entry {
  name: string
  encrypted: boolean
  method: number
  size: number
  /** From the beginning of the archive. */
  offset: number
}

function contentOf(archive: Buffer): ZipEntry {
  const end = endOf(archive)
  if (end < 0) throw new NoReport('the ZIP archive has no end')
  const centralSize = archive.readUInt32LE(end + 12)
  const before = end - centralSize - archive.readUInt32LE(end + 16)
  const entries = entriesOf(archive, end - centralSize, archive.readUInt16LE(end + 10))
  const [file, ...others] = entries.filter(({ name }) => !name.endsWith('/') && !name.startsWith('__MACOSX/'))
  if (file === undefined || others.length > 0)
    throw new NoReport(`the ZIP archive has ${file === undefined ? 'no file' : 'several files'}`)
  if (file.encrypted || (file.method !== STORED && file.method !== DEFLATED))
    throw new NoReport('the ZIP archive is encrypted or packed in an unknown way')
  const local = before + file.offset
  if (archive.readUInt32LE(local) !== LOCAL) throw new NoReport('the ZIP archive is damaged')
  const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28)
  const stop = file.size === SIZE_ELSEWHERE ? archive.length : start + file.size
  if (stop > archive.length) throw new NoReport('the ZIP archive is cut off')
  return { deflated: file.method === DEFLATED, content: archive.subarray(start, stop) }
}

function entriesOf(archive: Buffer, central: number, count: number): Entry[] {
  if (count > ENTRIES_MAX) throw new NoReport(`the ZIP archive has ${count} files`)
  const entries: Entry[] = []
  for (let at = central; entries.length < count; ) {
    if (archive.readUInt32LE(at) !== CENTRAL) throw new NoReport('the ZIP archive is damaged')
    const nameBytes = archive.readUInt16LE(at + 28)
    entries.push({
      name: archive.toString('latin1', at + CENTRAL_BYTES, at + CENTRAL_BYTES + nameBytes),
      encrypted: (archive.readUInt16LE(at + 8) & 1) !== 0,
      method: archive.readUInt16LE(at + 10),
      size: archive.readUInt32LE(at + 20),
      offset: archive.readUInt32LE(at + 42),
    })
    at += CENTRAL_BYTES + nameBytes + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32)
  }
  return entries
}

/** -1: there is none. */
function endOf(archive: Buffer): number {
  const lowest = Math.max(0, archive.length - END_BYTES - AFTER_BYTES_MAX)
  const at = archive.lastIndexOf(END_MARK, archive.length - END_BYTES, 'latin1')
  return at >= lowest ? at : -1
}
