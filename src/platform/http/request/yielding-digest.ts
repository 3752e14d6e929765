/**
 * SHA-256 over texts of any size, yielding to the event loop: a form holds up to 50 MB, and as JSON a text can be six times
 * as long.
 */
import { createHash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'

const PIECE_LENGTH = 64 * 1024
/** Hashed between two turns of the event loop: some 10 ms where every character is an escape. */
const TURN_LENGTH = 256 * 1024
const ENDS_IN_HALF_A_PAIR = /[\ud800-\udbff]$/

export class YieldingDigest {
  readonly #hash = createHash('sha256')
  #sinceTurn = 0

  async add(text: string): Promise<void> {
    this.#hash.update(text)
    this.#sinceTurn += text.length
    if (this.#sinceTurn < TURN_LENGTH) return
    this.#sinceTurn = 0
    await nextTurn()
  }

  /** `[name, values]` as `JSON.stringify` writes it. */
  async addField(name: string, values: readonly string[]): Promise<void> {
    const length = values.reduce((sum, value) => sum + value.length, name.length)
    if (length <= PIECE_LENGTH) return this.add(JSON.stringify([name, values]))
    await this.add('[')
    await this.#addText(name)
    await this.add(',[')
    for (const [index, value] of values.entries()) {
      if (index > 0) await this.add(',')
      await this.#addText(value)
    }
    await this.add(']]')
  }

  hex(): string {
    return this.#hash.digest('hex')
  }

  async #addText(text: string): Promise<void> {
    await this.add('"')
    for (let start = 0; start < text.length; ) {
      let piece = text.slice(start, start + PIECE_LENGTH)
      // Each half of a split surrogate pair would be written as an escape.
      if (ENDS_IN_HALF_A_PAIR.test(piece) && start + piece.length < text.length) piece = piece.slice(0, -1)
      await this.add(JSON.stringify(piece).slice(1, -1))
      start += piece.length
    }
    await this.add('"')
  }
}
