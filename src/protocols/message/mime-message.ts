/**
 * The shape in which a message travels between composing, signing and the SMTP client, so that none of
 * the three needs to know the others.
 */

/** Bytes in memory, or bytes that are read when needed (a large attachment in the blob store). */
export type Chunk = Uint8Array | LazyChunk

export interface LazyChunk {
  /** Exact number of bytes that `open` yields. */
  sizeBytes: number
  /** May be called more than once; yields the same bytes each time. */
  open(): AsyncIterable<Uint8Array>
  /**
   * The same bytes, but a piece is valid only until the next one is requested: all pieces share their memory. For readers
   * that keep no piece; a large file read in fresh pieces costs its size in memory until they are collected.
   */
  openScratch?(): AsyncIterable<Uint8Array>
  /** Where the bytes are now, for another thread to read them; absent: not in a file. */
  file?(): FileRange
  /** The bytes from `start` to before `end`, which are read without those before them. */
  slice?(start: number, end: number): LazyChunk
}

/** Bytes `start` to before `end` of a file. */
export interface FileRange {
  path: string
  start: number
  end: number
}

export interface MimeMessage {
  /** Raw header fields in order, folded with CRLF where needed, each without its final CRLF. UTF-8 only with SMTPUTF8. */
  headers: string[]
  /** Everything after the empty line. CRLF line ends only; not dot-stuffed. */
  body: Chunk[]
  /**
   * True: the body was composed here. Then it is ASCII without NUL, CR and LF occur in pairs only, and it ends with a
   * line end: readers need not check its bytes.
   */
  composed?: boolean
}

export function chunkSize(chunk: Chunk): number {
  return chunk instanceof Uint8Array ? chunk.byteLength : chunk.sizeBytes
}

/** Bytes in memory as a lazy chunk, so that no stage copies all of them at once. */
export function inPieces(bytes: Uint8Array): LazyChunk {
  return {
    sizeBytes: bytes.byteLength,
    async *open() {
      for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES)
    },
  }
}

const PIECE_BYTES = 256 * 1024

/** Size in bytes as sent: header fields, the empty line, the body (RFC 1870 §3; without dot-stuffing). */
export function messageSize(message: MimeMessage): number {
  let size = 2
  for (const header of message.headers) size += Buffer.byteLength(header) + 2
  for (const chunk of message.body) size += chunkSize(chunk)
  return size
}

/** The bytes of the body in order, lazy parts opened one after the other. */
export async function* readChunks(chunks: readonly Chunk[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) {
    if (chunk instanceof Uint8Array) yield chunk
    else yield* chunk.open()
  }
}

/** As `readChunks`, but a piece is valid only until the next one is requested. */
export async function* scanChunks(chunks: readonly Chunk[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) {
    if (chunk instanceof Uint8Array) yield chunk
    else yield* scanChunk(chunk)
  }
}

/** One lazy chunk, in pieces that are valid only until the next one is requested. */
export const scanChunk = (chunk: LazyChunk): AsyncIterable<Uint8Array> =>
  chunk.openScratch?.() ?? chunk.open()

const headBytes = ({ headers }: MimeMessage): Uint8Array =>
  Buffer.from(`${headers.map((header) => `${header}\r\n`).join('')}\r\n`)

/** The whole message in pieces, each valid only until the next one is requested. */
export async function* scanMessage(message: MimeMessage): AsyncGenerator<Uint8Array> {
  yield headBytes(message)
  yield* scanChunks(message.body.map((chunk) => (chunk instanceof Uint8Array ? inPieces(chunk) : chunk)))
}

/** The whole message as one buffer: for messages known to be small, the inbox and tests. */
export async function messageBytes(message: MimeMessage): Promise<Buffer> {
  const parts: Uint8Array[] = [headBytes(message)]
  for await (const bytes of readChunks(message.body)) parts.push(bytes)
  return Buffer.concat(parts)
}

/** The bytes from `start` to before `end`; a lazy chunk stays lazy. */
export function sliceChunk(chunk: Chunk, start: number, end: number): Chunk {
  if (chunk instanceof Uint8Array) return chunk.subarray(start, end)
  if (start === 0 && end === chunk.sizeBytes) return chunk
  // A message has up to a thousand parts: each is read alone, not with everything before it.
  if (chunk.slice) return chunk.slice(start, end)
  const slice: LazyChunk = { sizeBytes: end - start, open: () => readSlice(chunk.open(), start, end) }
  if (chunk.openScratch) slice.openScratch = () => readSlice(scanChunk(chunk), start, end)
  return slice
}

async function* readSlice(
  pieces: AsyncIterable<Uint8Array>,
  start: number,
  end: number,
): AsyncGenerator<Uint8Array> {
  let at = 0
  for await (const bytes of pieces) {
    const wanted = bytes.subarray(Math.max(0, start - at), Math.max(0, end - at))
    if (wanted.byteLength > 0) yield wanted
    at += bytes.byteLength
    if (at >= end) return
  }
}

export async function readChunk(chunk: Chunk): Promise<Buffer> {
  if (chunk instanceof Uint8Array) return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  // In memory of its own, so that it can be transferred to a thread.
  const whole = Buffer.allocUnsafeSlow(chunk.sizeBytes)
  let at = 0
  for await (const bytes of scanChunk(chunk)) {
    whole.set(bytes, at)
    at += bytes.byteLength
  }
  return whole.subarray(0, at)
}
