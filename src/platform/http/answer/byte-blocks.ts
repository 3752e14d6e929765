/** Collects bytes that arrive in pieces. */
import { StringDecoder } from 'node:string_decoder'

/** A client that sends byte by byte would fill memory with the pieces: each has an overhead of about 100 bytes. */
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

const EMPTY = Buffer.alloc(0)
