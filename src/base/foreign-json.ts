/**
 * Untrusted JSON (decision 48). `JSON.parse` builds whatever a text describes: four megabytes of `{},` become a million
 * objects, and a reviver is called for each. So the values are counted first, in one pass that keeps nothing of
 * them, and the text is parsed only if they are few enough.
 */

/** The message is for the author of the text. */
export class ForeignJsonError extends Error {}

/**
 * Values of one document: members, elements, objects and lists. A batch has 1,000 recipients with up to 100 variables
 * each, an upload 1,000 members of a list with as many. Parsing takes at most 80 ms then.
 */
export const JSON_VALUES_MAX = 100_000
/** Names in the outermost object: ten times the recipients of a batch. Each is processed individually later. */
export const JSON_NAMES_MAX = 10_000
/** Deeper than any template reaches into its variables (100). Code that walks a document may recurse. */
export const JSON_DEPTH_MAX = 128

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const UNDERSCORE = 0x5f
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

const PROTO = '__proto__'
const ESCAPE_LENGTH = '\\u005f'.length

/** Counts the values of a JSON text, chunk by chunk. Validity is checked by the parser. */
export class JsonCount {
  #values = 1
  #names = 0
  #depth = 0
  #outermost = 0
  #inString = false
  #isEscaped = false
  /** The last string's first byte, whether it has an escape, and its length in bytes as written. */
  #first = 0
  #hasEscape = false
  #length = 0
  /** A member may be called `__proto__`, with or without escapes. */
  mayNameProto = false

  /**
   * @param bytes UTF-8, or UTF-16 as `Uint16Array`: what counts is ASCII in both
   * @throws ForeignJsonError as soon as a limit is exceeded
   */
  add(bytes: Uint8Array | Uint16Array): void {
    let at = 0
    while (at < bytes.length) {
      if (this.#inString) at = this.#insideString(bytes, at)
      else this.#outsideString(bytes[at++] as number)
    }
  }

  /** The end of the string or chunk. Most bytes are in strings: local variables make this five times as fast. */
  #insideString(bytes: Uint8Array | Uint16Array, start: number): number {
    let at = start
    let isEscaped = this.#isEscaped
    if (this.#length === 0) this.#first = bytes[at] as number
    for (; at < bytes.length; at++) {
      const byte = bytes[at]
      if (isEscaped) isEscaped = false
      else if (byte === BACKSLASH) {
        isEscaped = true
        this.#hasEscape = true
      } else if (byte === QUOTE) {
        this.#inString = false
        break
      }
    }
    this.#isEscaped = isEscaped
    this.#length += at - start
    return this.#inString ? at : at + 1
  }

  #outsideString(byte: number): void {
    switch (byte) {
      case QUOTE:
        this.#inString = true
        this.#hasEscape = false
        this.#length = 0
        break
      case COMMA:
        this.#addValue()
        break
      case COLON:
        this.#addName()
        break
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (this.#depth === 0) this.#outermost = byte
        if (++this.#depth > JSON_DEPTH_MAX) throw new ForeignJsonError('nested too deeply')
        this.#addValue()
        break
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        this.#depth--
    }
  }

  #addValue(): void {
    if (++this.#values > JSON_VALUES_MAX) throw new ForeignJsonError(`more than ${JSON_VALUES_MAX} values`)
  }

  /** The string before a colon is a name. */
  #addName(): void {
    if (this.#depth === 1 && this.#outermost === OPEN_BRACE && ++this.#names > JSON_NAMES_MAX) {
      throw new ForeignJsonError(`more than ${JSON_NAMES_MAX} names`)
    }
    const isPlain = this.#length === PROTO.length && this.#first === UNDERSCORE
    const isEscaped = this.#hasEscape && this.#length <= PROTO.length * ESCAPE_LENGTH
    if (isPlain || isEscaped) this.mayNameProto = true
  }
}

/**
 * The value of a JSON text. Members called `__proto__` are left out: they are own properties here, but the first careless
 * copy would make them a prototype.
 * @throws ForeignJsonError
 */
export function parseForeignJson(text: string): unknown {
  const count = new JsonCount()
  if (text.length <= SHORT_CHARS) count.add(Buffer.from(text))
  else countPieces(text, count)
  return parseCounted(text, count)
}

/** The same; undefined: it is no JSON, or over the limits. */
export function foreignJsonIn(text: string): unknown {
  try {
    return parseForeignJson(text)
  } catch (error) {
    if (error instanceof ForeignJsonError) return undefined
    throw error
  }
}

/** For less, encoding is quicker than a buffer of its own. */
const SHORT_CHARS = 4 * 1024
const PIECE_CHARS = 64 * 1024

function countPieces(text: string, count: JsonCount): void {
  // In pieces: an attack is refused after the first ones. As UTF-16 the text is copied; as UTF-8 it would be encoded.
  const units = new Uint16Array(Math.min(text.length, PIECE_CHARS))
  const bytes = Buffer.from(units.buffer)
  for (let at = 0; at < text.length; at += PIECE_CHARS) {
    const written = bytes.write(text.slice(at, at + PIECE_CHARS), 'utf16le')
    count.add(units.subarray(0, written / units.BYTES_PER_ELEMENT))
  }
}

/** The same for a text that was counted while it arrived. @throws ForeignJsonError */
export function parseCounted(text: string, count: JsonCount): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new ForeignJsonError((error as Error).message, { cause: error })
  }
  if (count.mayNameProto) dropProto(value)
  return value
}

/** No deeper than JSON_DEPTH_MAX. */
function dropProto(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value) && Object.hasOwn(value, PROTO)) {
    delete (value as Record<string, unknown>)[PROTO]
  }
  for (const item of Object.values(value)) dropProto(item)
}
