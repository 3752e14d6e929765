/** The one file in a ZIP archive, as reporters send them: stored or deflated, without encryption or ZIP64. */
import { NoReport } from '../base/report-mail.ts'

export interface ZipEntry {
  deflated: boolean
  content: Buffer
}

const END = 0x06054b50
const CENTRAL = 0x02014b50
const LOCAL = 0x04034b50
/** The record at the end of an archive, without and with the longest comment. */
const END_BYTES = 22
const COMMENT_BYTES_MAX = 65_535
const [STORED, DEFLATED] = [0, 8]

/** @throws NoReport for another number of files, and for archives that cannot be read */
export function readZip(archive: Buffer): ZipEntry {
  try {
    return entryOf(archive)
  } catch (error) {
    // An offset beyond the end.
    if (error instanceof RangeError) throw new NoReport('the ZIP archive is damaged')
    throw error
  }
}

function entryOf(archive: Buffer): ZipEntry {
  const end = endOf(archive)
  const count = archive.readUInt16LE(end + 10)
  const central = archive.readUInt32LE(end + 16)
  if (count !== 1) throw new NoReport(`the ZIP archive has ${count} files`)
  if (archive.readUInt32LE(central) !== CENTRAL) throw new NoReport('the ZIP archive is damaged')
  const isEncrypted = (archive.readUInt16LE(central + 8) & 1) !== 0
  const method = archive.readUInt16LE(central + 10)
  if (isEncrypted || (method !== STORED && method !== DEFLATED))
    throw new NoReport('the ZIP archive is encrypted or packed in an unknown way')
  const size = archive.readUInt32LE(central + 20)
  const local = archive.readUInt32LE(central + 42)
  if (archive.readUInt32LE(local) !== LOCAL) throw new NoReport('the ZIP archive is damaged')
  const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28)
  if (start + size > archive.length) throw new NoReport('the ZIP archive is cut off')
  return { deflated: method === DEFLATED, content: archive.subarray(start, start + size) }
}

function endOf(archive: Buffer): number {
  const lowest = Math.max(0, archive.length - END_BYTES - COMMENT_BYTES_MAX)
  for (let at = archive.length - END_BYTES; at >= lowest; at--)
    if (archive.readUInt32LE(at) === END) return at
  throw new NoReport('the ZIP archive has no end')
}
