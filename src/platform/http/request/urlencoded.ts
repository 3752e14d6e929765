/**
 * application/x-www-form-urlencoded decoded chunk by chunk as it arrives: a large body at once would block the thread, for
 * seconds where every byte is a separator or an escape.
 */

import { StringDecoder } from 'node:string_decoder'
import { FIELDS_MAX, type Fields, tooManyParameters } from './params.ts'

/** Reads the whole form. @throws BadRequest for too many pairs, empty ones counted; and what `source` throws */
export async function readUrlencoded(source: AsyncIterable<Uint8Array>, fields: Fields): Promise<void> {
  const reader = new PairReader(fields)
  for await (const chunk of source) reader.add(chunk)
  reader.end()
}

const AMPERSAND = 0x26
const EQUALS = 0x3d
const PERCENT = 0x25
const PLUS = 0x2b
const SPACE = 0x20

class PairReader {
  readonly #fields: Fields
  readonly #text = new TextBlocks()
  /** Name of the current pair; null: not complete yet. */
  #name: string | null = null
  #separators = 0
  /** An incomplete escape at the end of the last chunk. */
  #cut: Buffer = EMPTY

  constructor(fields: Fields) {
    this.#fields = fields
  }

  add(chunk: Uint8Array): void {
    const bytes = this.#cut.byteLength === 0 ? chunk : Buffer.concat([this.#cut, chunk])
    const lastEscape = bytes.lastIndexOf(PERCENT)
    const end = lastEscape >= 0 && lastEscape > bytes.byteLength - 3 ? lastEscape : bytes.byteLength
    this.#cut = Buffer.from(bytes.subarray(end))
    this.#decode(bytes.subarray(0, end))
  }

  end(): void {
    this.#decode(this.#cut)
    this.#endPair()
  }

  #decode(bytes: Uint8Array): void {
    const decoded = Buffer.allocUnsafe(bytes.byteLength)
    let start = 0
    let length = 0
    const flush = () => {
      if (length > start) this.#text.add(decoded.subarray(start, length))
      start = length
    }
    for (let at = 0; at < bytes.byteLength; at++) {
      const byte = bytes[at] as number
      if (byte === AMPERSAND) {
        flush()
        this.#separate()
      } else if (byte === EQUALS && this.#name === null) {
        flush()
        this.#name = this.#takeText()
      } else if (byte === PERCENT) {
        const value = hexByte(bytes, at + 1)
        decoded[length++] = value < 0 ? byte : value
        if (value >= 0) at += 2
      } else {
        decoded[length++] = byte === PLUS ? SPACE : byte
      }
    }
    flush()
  }

  #separate(): void {
    if (++this.#separators > FIELDS_MAX) throw tooManyParameters()
    this.#endPair()
  }

  #endPair(): void {
    if (this.#name !== null) this.#fields.add(this.#name, this.#takeText())
    else if (!this.#text.isEmpty) this.#fields.add(this.#takeText(), '')
    this.#name = null
  }

  #takeText(): string {
    return this.#text.take()
  }
}

const EMPTY = Buffer.alloc(0)

/** Two hexadecimal digits as a byte; negative if they are none. */
function hexByte(bytes: Uint8Array, at: number): number {
  const high = HEX[bytes[at] ?? 0] as number
  const low = HEX[bytes[at + 1] ?? 0] as number
  return high < 0 || low < 0 ? -1 : high * 16 + low
}

const HEX: readonly number[] = Array.from({ length: 256 }, (_, byte) => {
  const digit = Number.parseInt(String.fromCharCode(byte), 16)
  return Number.isNaN(digit) ? -1 : digit
})

/**
 * A client that sends byte by byte would fill memory with the pieces: each has an overhead of about 100 bytes.
 */
const BLOCK_BYTES = 64 * 1024

/** Copies pieces into blocks. */
export class ByteBlocks {
  #full: Buffer[] = []
  #block: Buffer = EMPTY
  #used = 0
  #sizeBytes = 0

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  add(bytes: Uint8Array): void {
    this.#sizeBytes += bytes.byteLength
    for (let at = 0; at < bytes.byteLength; ) {
      if (this.#used === this.#block.byteLength) this.#begin(bytes.byteLength - at)
      const part = bytes.subarray(at, at + this.#block.byteLength - this.#used)
      this.#block.set(part, this.#used)
      this.#used += part.byteLength
      at += part.byteLength
    }
  }

  /** Everything so far in one piece; empty afterwards. */
  take(): Buffer {
    const last = this.#block.subarray(0, this.#used)
    const whole = this.#full.length === 0 ? last : Buffer.concat([...this.#full, last])
    this.#full = []
    this.#block = EMPTY
    this.#used = 0
    this.#sizeBytes = 0
    return whole
  }

  /** The first block has the size of the first piece, which is often the only one. */
  #begin(sizeBytes: number): void {
    if (this.#block.byteLength > 0) this.#full.push(this.#block)
    const isFirst = this.#block.byteLength === 0
    this.#block = Buffer.allocUnsafeSlow(isFirst ? sizeBytes : BLOCK_BYTES)
    this.#used = 0
  }
}

/**
 * Collects UTF-8 that arrives in pieces, as text. Each block is decoded when it is full: 50 MB at once would block the
 * thread for 0.1 to 0.5 seconds, most of them for the memory of two copies.
 */
export class TextBlocks {
  /** Begins anew after each `end`. */
  readonly #decoder = new StringDecoder('utf8')
  #text = ''
  readonly #blocks = new ByteBlocks()

  get isEmpty(): boolean {
    return this.#text === '' && this.#blocks.sizeBytes === 0
  }

  add(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.byteLength; ) {
      const part = bytes.subarray(at, at + BLOCK_BYTES - this.#blocks.sizeBytes)
      this.#blocks.add(part)
      at += part.byteLength
      if (this.#blocks.sizeBytes === BLOCK_BYTES) this.#text += this.#decoder.write(this.#blocks.take())
    }
  }

  /** Everything so far; empty afterwards. */
  take(): string {
    const text = this.#text + this.#decoder.end(this.#blocks.take())
    this.#text = ''
    return text
  }
}
