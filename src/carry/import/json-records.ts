/**
 * The records of a large JSON file, one by one: of a list of objects, of a list inside an object, of one object, and of
 * several of these one after the other (JSON lines, pages appended to a file). Only one record is held at a time.
 */
import { ForeignJsonError, parseForeignJson } from '../../base/foreign-json.ts'

/** Characters of one record; a template of the largest service has 1 MB in two forms. */
const RECORD_LENGTH_MAX = 8 * 2 ** 20
/** Deeper than any of the formats, and than what is parsed afterwards. */
const DEPTH_MAX = 128

export interface JsonRecord {
  /** The member whose list it is in; empty for a list or an object of its own. */
  member: string
  /** Parsed, or why it cannot be. */
  value: unknown
  fault: string | null
  /** The line on which it begins, from 1. */
  line: number
}

/** The file as a whole cannot be read; the message says why. */
export class JsonFileError extends Error {}

/**
 * @param lists names of members of an outermost object whose elements are the records. An outermost object without one of
 *   them is itself a record.
 * @throws JsonFileError
 */
export async function* readJsonRecords(
  source: AsyncIterable<Uint8Array>,
  lists: readonly string[],
): AsyncGenerator<JsonRecord> {
  const decoder = new TextDecoder('utf-8')
  const scanner = new RecordScanner(lists)
  for await (const bytes of source) yield* scanner.take(decoder.decode(bytes, { stream: true }))
  yield* scanner.take(decoder.decode())
  scanner.end()
}

/** Everything that matters between strings, and within one. */
const TOKEN = /[{}[\]",:\n]/g
const STRING_END = /["\\\n]/g

type Change = 'begun' | 'finished' | null

class RecordScanner {
  readonly #lists: ReadonlySet<string>
  /** The closing characters of the open objects and lists. */
  #open: string[] = []
  #inString = false
  #isEscaped = false
  #line = 1
  /** State of the outermost object: its last string, the last name, and the member whose list of records is open. */
  #lastString = ''
  #key = ''
  #member = ''
  /** The record being read: its text so far, and the number of objects and lists around it. */
  #record: { text: string; depth: number; line: number; member: string } | null = null

  constructor(lists: readonly string[]) {
    this.#lists = new Set(lists)
  }

  *take(text: string): Generator<JsonRecord> {
    let keptFrom = 0
    for (let at = 0; at < text.length; ) {
      if (this.#isEscaped) {
        this.#isEscaped = false
        at++
        continue
      }
      const pattern = this.#inString ? STRING_END : TOKEN
      pattern.lastIndex = at
      const end = pattern.exec(text)?.index ?? text.length
      if (this.#inString) this.#keepName(text.slice(at, end))
      if (end === text.length) break
      at = end + 1
      const change = this.#step(text[end] as string)
      if (change === 'begun') keptFrom = end
      if (change === 'finished') yield this.#finishRecord(text.slice(keptFrom, at))
    }
    if (this.#record) this.#grow(text.slice(keptFrom))
  }

  end(): void {
    if (this.#open.length > 0 || this.#inString) throw new JsonFileError('the file ends within a value')
  }

  #grow(text: string): void {
    const record = this.#record as { text: string; line: number }
    record.text += text
    if (record.text.length > RECORD_LENGTH_MAX)
      throw new JsonFileError(`line ${record.line}: a record is longer than ${RECORD_LENGTH_MAX} characters`)
  }

  #finishRecord(rest: string): JsonRecord {
    this.#grow(rest)
    const { text, line, member } = this.#record as { text: string; line: number; member: string }
    this.#record = null
    try {
      return { member, line, value: parseForeignJson(text), fault: null }
    } catch (error) {
      if (!(error instanceof ForeignJsonError)) throw error
      return { member, line, value: null, fault: error.message }
    }
  }

  /** Names in the outermost object, cut: no list has a longer one. */
  #keepName(text: string): void {
    if (this.#open.length === 1) this.#lastString = (this.#lastString + text.slice(0, 256)).slice(0, 256)
  }

  #step(char: string): Change {
    if (char === '\n') this.#line++
    if (this.#inString) {
      if (char === '\\') this.#isEscaped = true
      else if (char === '"') this.#inString = false
      return null
    }
    if (char === '"') {
      this.#inString = true
      if (this.#open.length === 1) this.#lastString = ''
    } else if (char === ':' && this.#open.length === 1) this.#key = this.#lastString
    else if (char === '{' || char === '[') return this.#begin(char === '[')
    else if (char === '}' || char === ']') return this.#close(char)
    return null
  }

  #begin(isList: boolean): Change {
    const depth = this.#open.length
    if (depth === DEPTH_MAX) throw new JsonFileError(`line ${this.#line}: nested too deeply`)
    const isInObject = this.#open[0] === '}'
    this.#open.push(isList ? ']' : '}')
    if (isList) {
      // The outermost object is not a record then, but holds them.
      if (depth === 1 && isInObject && this.#lists.has(this.#key)) {
        this.#member = this.#key
        this.#record = null
      }
      return null
    }
    const isElement = depth === 1 ? !isInObject : depth === 2 && isInObject && this.#member !== ''
    if (this.#record !== null || (depth > 0 && !isElement)) return null
    this.#record = { text: '', depth, line: this.#line, member: this.#member }
    return 'begun'
  }

  #close(char: string): Change {
    if (this.#open.pop() !== char) throw new JsonFileError(`line ${this.#line}: unexpected "${char}"`)
    const depth = this.#open.length
    if (depth === 1) this.#member = ''
    return this.#record?.depth === depth ? 'finished' : null
  }
}
