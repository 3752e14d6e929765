/** Files that callers may have packed with gzip. */
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'

/** The file cannot be unpacked; retrying does not help. */
export class UnpackFailure extends Error {}

/**
 * The bytes of a file, unpacked if it is gzip (RFC 1952 §2.3.1), at most `bytesMax` of them.
 * @throws UnpackFailure for broken gzip data, with its cause, or over `bytesMax`
 */
export async function* unpacked(
  bytes: AsyncIterable<Uint8Array>,
  bytesMax: number,
): AsyncGenerator<Uint8Array> {
  const iterator = bytes[Symbol.asyncIterator]()
  const first = await iterator.next()
  if (first.done) return
  const whole = rejoin(first.value, iterator)
  const [byte1, byte2] = first.value
  let size = 0
  for await (const chunk of byte1 === 0x1f && byte2 === 0x8b ? gunzipped(whole) : whole) {
    size += chunk.byteLength
    if (size > bytesMax) throw new UnpackFailure(`The file unpacks to more than ${bytesMax} bytes`)
    yield chunk
  }
}

async function* rejoin(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield first
    yield* { [Symbol.asyncIterator]: () => rest }
  } finally {
    await rest.return?.()
  }
}

async function* gunzipped(packed: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip()
  const piping = pipeline(packed, gunzip).catch(() => {}) // the reader of `gunzip` sees the same error
  try {
    yield* gunzip
  } catch (error) {
    throw new UnpackFailure('The file cannot be unpacked', { cause: error })
  } finally {
    gunzip.destroy()
    await piping
  }
}

/** Bytes in memory, as a file that is read in pieces. */
export async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
