/**
 * Mail merge: the message of a batch composed once, with gaps for its variables; a copy is those bytes with its values
 * in the gaps. See README.md in this folder.
 *
 * The result has the bytes that composing would produce, or there is none:
 *
 * - A value that is not ASCII, that breaks a line or makes one longer than it may be, changes the transfer encoding.
 * - A boundary occurs in no text. Each begins with "=_", so the texts must not contain that, nor form it at a gap.
 * - Line ends are made CRLF in the whole text: a CR before a gap could belong to an LF after it.
 *
 * One exception: if the message contains its first boundary by chance, the boundary differs.
 */
import type { Chunk } from '../../../protocols/message/mime-message.ts'
import { encodeText, LINE_MAX } from '../../../protocols/mime/transfer-encoding.ts'
import { type CutText, joinText } from '../../record/variables.ts'
import { type Composed, composeParts, type EncodedFiles, type TextKind, type TextPart } from '../texts.ts'

/** The bytes in the gaps while the body is composed. */
const MARKS: Readonly<Record<TextKind, number>> = { text: 1, html: 2, amp: 3 }
const MARK = /[\u0001-\u0003]/

const PLAIN_VALUE = /^(?:[ -<>-~]|=(?!_|$))*$/
const FIT_BEFORE_GAP = /[^=\r]$|^$/

/** Bytes in which each gap is one byte, a mark. */
interface Gapped {
  bytes: Buffer
  /** Their offsets, in order, and which value of which text belongs there. */
  gaps: { at: number; text: number; value: number }[]
}

export class MergeBody {
  readonly #fields: string[] | null
  readonly #chunks: readonly (Chunk | Gapped)[]
  /** The longest value with which no line becomes too long. */
  readonly #valueMax: number
  /** Texts that end with a gap: with an empty value they would end differently. */
  readonly #open: readonly number[]

  private constructor(fields: string[] | null, chunks: (Chunk | Gapped)[], valueMax: number, open: number[]) {
    this.#fields = fields
    this.#chunks = chunks
    this.#valueMax = valueMax
    this.#open = open
  }

  /** Null: these texts cannot be merged. `cuts`: of the texts, at most one of each kind. */
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
    const encoded = marked.map(({ value }) => encodeText(value))
    const isEncoded = ({ value }: TextPart, at: number) =>
      MARK.test(value) && encoded[at]?.encoding !== '7bit'
    if (marked.some(isEncoded)) return null
    const { fields, body } = composeParts(marked, files, seed, encoded)
    const found = cuts.map(() => 0)
    const chunks: (Chunk | Gapped)[] = []
    for (const chunk of body) {
      const cut = chunk instanceof Uint8Array ? cutBytes(chunk, texts, cuts, found) : chunk
      if (cut === null) return null
      chunks.push(cut)
    }
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

/** How long each value of a line of the text may be. */
function valueMaxOf(text: string): number {
  let max = LINE_MAX
  for (const line of text.split(/[\r\n]/)) {
    const gaps = line.split(MARK).length - 1
    if (gaps > 0) max = Math.min(max, (LINE_MAX - line.length) / gaps)
  }
  return max
}

/** The chunk with its gaps; `found` counts them. Null: there are too many, as a file contains marks of its own. */
function cutBytes(
  chunk: Uint8Array,
  texts: readonly TextPart[],
  cuts: readonly CutText[],
  found: number[],
): Uint8Array | Gapped | null {
  const gaps: Gapped['gaps'] = []
  for (const [text, { kind }] of texts.entries()) {
    for (let at = chunk.indexOf(MARKS[kind]); at >= 0; at = chunk.indexOf(MARKS[kind], at + 1)) {
      const value = found[text] as number
      if (value === cuts[text]?.names.length) return null
      gaps.push({ at, text, value })
      found[text] = value + 1
    }
  }
  if (gaps.length === 0) return chunk
  gaps.sort((a, b) => a.at - b.at)
  return { bytes: Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength), gaps }
}

function filled({ bytes, gaps }: Gapped, values: readonly (readonly string[])[]): Buffer {
  const inGaps = gaps.map(({ text, value }) => values[text]?.[value] ?? '')
  const size = inGaps.reduce((sum, value) => sum + value.length - 1, bytes.length)
  const copy = Buffer.allocUnsafe(size)
  let from = 0
  let at = 0
  for (const [number, gap] of gaps.entries()) {
    at += bytes.copy(copy, at, from, gap.at)
    at += copy.write(inGaps[number] as string, at, 'latin1')
    from = gap.at + 1
  }
  bytes.copy(copy, at, from)
  return copy
}
