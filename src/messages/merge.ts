/**
 * Mail merge: what the copies of a batch have in common, composed once with gaps where the variables stand. A copy is
 * then its values, written into the gaps: of 10 KB 3 us instead of 20. To make it takes 43.
 *
 * It gives the bytes that composing would give, or nothing:
 *
 * - A value that is not ASCII, that breaks a line or makes one longer than it may be, changes the transfer encoding.
 * - A boundary occurs in no text. Each begins with "=_", so that must neither be there nor come about at a gap.
 * - Line ends are made CRLF in the whole text: a CR before a gap could belong to an LF behind it.
 */
import type { Chunk } from '../base/mime-message.ts'
import { encodeText, LINE_MAX } from '../mime/transfer-encoding.ts'
import { type Composed, composeParts, type EncodedFiles, type TextKind, type TextPart } from './texts.ts'
import { type CutText, joinText } from './variables.ts'

/** What stands in the gaps while the body is composed. */
const MARKS: Readonly<Record<TextKind, number>> = { text: 1, html: 2, amp: 3 }
const MARK = /[\u0001-\u0003]/

const PLAIN_VALUE = /^(?:[ -<>-~]|=(?!_|$))*$/
const FIT_BEFORE_GAP = /[^=\r]$|^$/

/** Pieces of bytes with a gap between each two: which value of which text. */
interface Gapped {
  pieces: Uint8Array[]
  gaps: { text: number; value: number }[]
  sizeBytes: number
}

export class MergeBody {
  readonly #fields: string[] | null
  readonly #chunks: readonly (Chunk | Gapped)[]
  /** Characters of a value with which no line becomes too long. */
  readonly #valueMax: number
  /** Texts with a gap as their last character: with nothing in it they would end otherwise. */
  readonly #open: readonly number[]

  private constructor(fields: string[] | null, chunks: (Chunk | Gapped)[], valueMax: number, open: number[]) {
    this.#fields = fields
    this.#chunks = chunks
    this.#valueMax = valueMax
    this.#open = open
  }

  /** Null: these texts cannot be had this way. `cuts` are the texts' own, one of each kind at the most. */
  static of(
    texts: readonly TextPart[],
    cuts: readonly CutText[],
    files: EncodedFiles,
    seed: string,
  ): MergeBody | null {
    if (!cuts.every(isFit)) return null
    const marked = texts.map((part, at) => {
      const cut = cuts[at] as CutText
      const mark = String.fromCharCode(MARKS[part.kind])
      const marks = cut.names.map(() => mark)
      return { ...part, value: joinText(cut, marks) }
    })
    const isEncoded = ({ value }: TextPart) => MARK.test(value) && encodeText(value).encoding !== '7bit'
    if (marked.some(isEncoded)) return null
    const { fields, body } = composeParts(marked, files, seed)
    const found = texts.map(() => 0)
    const chunks = body.map((chunk) => (chunk instanceof Uint8Array ? cutBytes(chunk, texts, found) : chunk))
    // A file may have such characters of its own.
    if (cuts.some(({ names }, at) => names.length !== found[at])) return null
    const valueMax = Math.min(...marked.map(({ value }) => valueMaxOf(value)))
    const open = cuts.flatMap(({ literals, names }, at) =>
      names.length > 0 && literals.at(-1) === '' ? [at] : [],
    )
    return new MergeBody(fields, chunks, valueMax, open)
  }

  /** The copy with these values, for each text in order; null: it has to be composed. */
  fill(values: readonly (readonly string[])[]): Composed | null {
    const isPlain = (value: string) => value.length <= this.#valueMax && PLAIN_VALUE.test(value)
    if (!values.every((ofText) => ofText.every(isPlain))) return null
    if (this.#open.some((text) => values[text]?.at(-1) === '')) return null
    const body = this.#chunks.map((chunk) => ('gaps' in chunk ? filled(chunk, values) : chunk))
    return { fields: this.#fields, body, composed: true }
  }
}

const isFit = ({ literals, names }: CutText) =>
  !literals.some((literal) => MARK.test(literal)) &&
  (names.length === 0 ||
    literals.every(
      (literal, at) => !literal.includes('=_') && (at === names.length || FIT_BEFORE_GAP.test(literal)),
    ))

/** How long the values in a line of the text may be, all being of one length. */
function valueMaxOf(text: string): number {
  let max = LINE_MAX
  for (const line of text.split(/[\r\n]/)) {
    const gaps = line.split(MARK).length - 1
    if (gaps > 0) max = Math.min(max, (LINE_MAX - line.length) / gaps)
  }
  return max
}

/** Cut at the marks of the texts, which `found` counts. */
function cutBytes(bytes: Uint8Array, texts: readonly TextPart[], found: number[]): Uint8Array | Gapped {
  const marks: { at: number; text: number; value: number }[] = []
  for (const [text, { kind }] of texts.entries()) {
    for (let at = bytes.indexOf(MARKS[kind]); at >= 0; at = bytes.indexOf(MARKS[kind], at + 1)) {
      marks.push({ at, text, value: found[text] as number })
      found[text] = (found[text] as number) + 1
    }
  }
  if (marks.length === 0) return bytes
  marks.sort((a, b) => a.at - b.at)
  const ends = [...marks.map(({ at }) => at), bytes.length]
  const pieces = ends.map((end, number) =>
    bytes.subarray(number === 0 ? 0 : (ends[number - 1] as number) + 1, end),
  )
  return { pieces, gaps: marks, sizeBytes: bytes.length - marks.length }
}

function filled({ pieces, gaps, sizeBytes }: Gapped, values: readonly (readonly string[])[]): Buffer {
  const inGaps = gaps.map(({ text, value }) => values[text]?.[value] ?? '')
  const bytes = Buffer.allocUnsafe(inGaps.reduce((sum, value) => sum + value.length, sizeBytes))
  let at = 0
  for (const [number, piece] of pieces.entries()) {
    bytes.set(piece, at)
    at += piece.length
    at += bytes.write(inGaps[number] ?? '', at, 'latin1')
  }
  return bytes
}
