/**
 * Unpacks a report: gzip, ZIP or plain, recognised by its bytes, since types and names of attachments differ between
 * reporters. As for gzip(1), bytes after the last gzip member do not matter. A packed file may be packed once more.
 */
import { Readable } from 'node:stream'
import { crc32, createInflateRaw, type InflateRaw } from 'node:zlib'
import { NoReport } from '../../protocols/message/report-mail.ts'
import { isZip, readZip } from './zip.ts'

/** As sent; Gmail's reports about busy domains have 100 KB. */
export const PACKED_BYTES_MAX = 2_000_000
const LAYERS_MAX = 2
/** Members of one gzip file: programs that pack in blocks make one for 64 KB. */
const MEMBERS_MAX = 1_000
const PIECE_BYTES = 65_536

export const isPacked = (bytes: Buffer): boolean => isGzip(bytes) || isZip(bytes)

const isGzip = (bytes: Buffer) => bytes[0] === 0x1f && bytes[1] === 0x8b && bytes[2] === DEFLATE

/** The content in pieces, as it is read: who counts it can end early. @throws NoReport for damaged data */
export async function* unpacked(bytes: Buffer, layers = LAYERS_MAX): AsyncGenerator<Buffer> {
  const content = isGzip(bytes) ? gzipContent(bytes) : isZip(bytes) ? zipContent(bytes) : null
  if (content === null) return yield* pieces(bytes)
  if (layers === 0) throw new NoReport('the report is packed too often')
  const first = await content.next()
  if (first.done) return
  if (isPacked(first.value)) return yield* unpacked(await collected(first.value, content), layers - 1)
  yield first.value
  yield* content
}

async function collected(first: Buffer, rest: AsyncIterable<Buffer>): Promise<Buffer> {
  const all = [first]
  let sizeBytes = first.length
  for await (const piece of rest) {
    sizeBytes += piece.length
    if (sizeBytes > PACKED_BYTES_MAX) throw new NoReport('the packed data is too large')
    all.push(piece)
  }
  return Buffer.concat(all)
}

async function* zipContent(archive: Buffer): AsyncGenerator<Buffer> {
  const { deflated, content } = readZip(archive)
  yield* deflated ? inflated(content, inflater()) : pieces(content)
}

/** All members (RFC 1952 §2.2). The package's own reader refuses other bytes after them. */
async function* gzipContent(bytes: Buffer): AsyncGenerator<Buffer> {
  let at = 0
  for (let members = 0; members === 0 || isGzip(bytes.subarray(at)); members++) {
    if (members === MEMBERS_MAX) throw new NoReport(`the gzip file has more than ${MEMBERS_MAX} members`)
    at = memberStart(bytes, at)
    const inflate = inflater()
    let crc = 0
    for await (const piece of inflated(bytes.subarray(at), inflate)) {
      crc = crc32(piece, crc)
      yield piece
    }
    at += inflate.bytesWritten
    if (at + TRAILER_BYTES > bytes.length || bytes.readUInt32LE(at) !== crc) throw damaged()
    at += TRAILER_BYTES
  }
}

const DEFLATE = 8
/** CRC32 and length. */
const TRAILER_BYTES = 8
const [HAS_CRC, HAS_EXTRA, HAS_NAME, HAS_COMMENT] = [2, 4, 8, 16]

/** Where the deflated data of the member at `at` begins, RFC 1952 §2.3. */
function memberStart(bytes: Buffer, at: number): number {
  const flags = bytes[at + 3] ?? 0
  let start = at + 10
  if (flags & HAS_EXTRA) start += 2 + (bytes[start] ?? 0) + 256 * (bytes[start + 1] ?? 0)
  for (const text of [HAS_NAME, HAS_COMMENT]) {
    if (!(flags & text)) continue
    const end = bytes.indexOf(0, start)
    if (end < 0) throw damaged()
    start = end + 1
  }
  return flags & HAS_CRC ? start + 2 : start
}

const inflater = () => createInflateRaw({ chunkSize: PIECE_BYTES })

/** Up to the end of the deflated data; `inflate.bytesWritten` is its length then. */
async function* inflated(bytes: Buffer, inflate: InflateRaw): AsyncGenerator<Buffer> {
  try {
    for await (const piece of Readable.from([bytes]).pipe(inflate)) yield piece as Buffer
  } catch (error) {
    if (!String((error as NodeJS.ErrnoException).code).startsWith('Z_')) throw error
    throw damaged()
  }
}

const damaged = () => new NoReport('the packed data is damaged')

async function* pieces(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    // Other work runs in between.
    if (at > 0) await new Promise((resolve) => setImmediate(resolve))
    yield bytes.subarray(at, at + PIECE_BYTES)
  }
}
