/**
 * Comma-separated values (RFC 4180), as they arrive and as they are sent.
 *
 * Reading: quoted fields with doubled quotes, line breaks within
 * quotes, CRLF, LF or CR between records, UTF-8 with or without byte order mark. One odd row must not lose the
 * rows after it, so these are accepted too: a quote inside a field that does not begin with one is literal, text after a
 * closing quote belongs to the field, bytes that are no UTF-8 become U+FFFD. Empty
 * lines are not records.
 */

export class CsvSyntaxError extends Error {
  override name = 'CsvSyntaxError'
}

/** Characters of one record; the longest row of any list is a few kilobytes. */
const RECORD_LENGTH_MAX = 256 * 1024
const FIELDS_PER_RECORD_MAX = 1000

/**
 * Yields the records in order, each a list of its fields.
 * @param separator between fields: a comma, or what another program writes in its place
 * @throws CsvSyntaxError for a quoted field that does not end and a record over the limits; and whatever
 *   `source` throws.
 */
export async function* readCsv(
  source: AsyncIterable<Uint8Array>,
  separator: Separator = ',',
): AsyncGenerator<string[]> {
  const decoder = new TextDecoder('utf-8')
  const reader = new CsvReader(separator)
  for await (const bytes of source) yield* reader.take(decoder.decode(bytes, { stream: true }))
  yield* reader.take(decoder.decode())
  yield* reader.end()
}

export type Separator = ',' | ';' | '\t'

/** The position of the reader within a record. */
type Place = 'start' | 'plain' | 'quoted' | 'closed'

class CsvReader {
  private place: Place = 'start'
  private field = ''
  private record: string[] = []
  private length = 0
  private afterReturn = false
  private readonly separator: Separator
  private readonly patterns: Patterns

  constructor(separator: Separator) {
    this.separator = separator
    this.patterns = PATTERNS[separator]
  }

  /** The end of the plain characters from `at`: the next character that is special in this state. */
  private endOfRun(text: string, at: number): number {
    const { afterPlain, any } = this.patterns
    const special = this.place === 'quoted' ? QUOTE : this.place === 'plain' ? afterPlain : any
    special.lastIndex = at
    const found = special.exec(text)
    return this.place === 'closed' ? at : (found?.index ?? text.length)
  }

  /** Records that end within `text`; the rest is kept. */
  *take(text: string): Generator<string[]> {
    for (let at = 0; at < text.length; ) {
      const end = this.endOfRun(text, at)
      if (end > at) {
        this.append(text.slice(at, end))
        at = end
        continue
      }
      const char = text[at] as string
      at++
      if (char === '\n' && this.afterReturn) {
        this.afterReturn = false
        continue
      }
      this.afterReturn = char === '\r' && this.place !== 'quoted'
      const finished = this.step(char)
      if (finished) yield finished
    }
  }

  /** The last record, if the text does not end in a line break. */
  *end(): Generator<string[]> {
    if (this.place === 'quoted') throw new CsvSyntaxError('A quoted field does not end')
    const last = this.endRecord()
    if (last) yield last
  }

  private append(run: string): void {
    if (this.place === 'start') this.place = 'plain'
    this.field += run
    this.length += run.length
    this.afterReturn = false
    if (this.length > RECORD_LENGTH_MAX)
      throw new CsvSyntaxError(`A record is longer than ${RECORD_LENGTH_MAX} characters`)
  }

  private step(char: string): string[] | null {
    if (this.place === 'quoted') {
      this.place = 'closed'
      return null
    }
    if (char === '"') {
      if (this.place === 'closed') this.append('"')
      this.place = 'quoted'
      return null
    }
    if (char === this.separator) {
      this.endField()
      return null
    }
    if (char === '\r' || char === '\n') return this.endRecord()
    this.append(char)
    this.place = 'plain'
    return null
  }

  private endField(): void {
    this.record.push(this.field)
    this.field = ''
    this.place = 'start'
    this.length++
    if (this.record.length > FIELDS_PER_RECORD_MAX) {
      throw new CsvSyntaxError(`A record has more than ${FIELDS_PER_RECORD_MAX} fields`)
    }
  }

  /** Null for an empty line. */
  private endRecord(): string[] | null {
    if (this.place === 'start' && this.record.length === 0) return null
    this.endField()
    const { record } = this
    this.record = []
    this.length = 0
    return record
  }
}

const QUOTE = /"/g

/** `afterPlain` ends a field that did not begin with a quote. */
interface Patterns {
  afterPlain: RegExp
  any: RegExp
}

const PATTERNS: Readonly<Record<Separator, Patterns>> = {
  ',': { afterPlain: /[,\r\n]/g, any: /[",\r\n]/g },
  ';': { afterPlain: /[;\r\n]/g, any: /[";\r\n]/g },
  '\t': { afterPlain: /[\t\r\n]/g, any: /["\t\r\n]/g },
}

export type CsvValue = string | number | boolean | null | undefined

/**
 * Spreadsheets run a cell that begins like this as a formula, whether it is quoted or not. The wide forms are what
 * Japanese and Chinese input methods write.
 */
const FORMULA_START = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/

/**
 * One record with its CRLF. Null and undefined are empty fields. A text that a spreadsheet would run gets an apostrophe
 * in front; numbers stay as they are.
 */
export const csvRecord = (values: readonly CsvValue[]): string => `${values.map(csvField).join(',')}\r\n`

function csvField(value: CsvValue): string {
  if (value === null || value === undefined) return ''
  if (typeof value !== 'string') return String(value)
  const safe = FORMULA_START.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** A field as it was before `csvRecord` put an apostrophe in front of it. */
export const withoutGuard = (field: string): string =>
  field.startsWith("'") && FORMULA_START.test(field.slice(1)) ? field.slice(1) : field

/** Text is passed on in pieces of about this size. */
const PIECE_LENGTH = 64 * 1024

/**
 * A file of records, UTF-8, in pieces. It begins with a byte order mark, without which spreadsheets read another encoding.
 * The next record is requested only when the reader has taken the piece before.
 */
export async function* csvBytes(
  header: readonly string[],
  records: AsyncIterable<readonly CsvValue[]> | Iterable<readonly CsvValue[]>,
): AsyncGenerator<Uint8Array> {
  let text = `\uFEFF${csvRecord(header)}`
  for await (const record of records) {
    text += csvRecord(record)
    if (text.length < PIECE_LENGTH) continue
    yield Buffer.from(text)
    text = ''
  }
  yield Buffer.from(text)
}
