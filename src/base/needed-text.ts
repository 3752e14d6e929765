/**
 * Which of many patterns can occur in a text at all: a pass over the text that spares nearly all runs of the automaton.
 *
 * 1. Of each pattern is known what a text must contain for it (`neededBy`): texts, or one of several.
 * 2. Texts are compared by their pieces of three characters, which are hashed. Of each pattern the rarest pieces are
 *    looked up for each piece of the text.
 * 3. The few patterns found so are tested for all their pieces.
 *
 * Measured: 3 to 5 us for a reply of 80 characters and 480 patterns, of which one or two remain.
 */

/** All of these: the pieces of a text, or one of several alternatives. */
export type Needed = readonly (Uint16Array | readonly Needed[])[]

const TABLE_SIZE = 16_384
const hashOf = (first: number, second: number, third: number) =>
  ((first * 31 + second) * 31 + third) & (TABLE_SIZE - 1)

/** Words of scripts such as Chinese are short: there, pairs are pieces too. */
const isPair = (second: number) => second > 0xff

/** The first pattern of those that may occur in a text, in their order, that `isIt` accepts: its index; null: none. */
export type Prefilter = (text: string, isIt: (index: number) => boolean) => number | null

/**
 * @param needs of each pattern
 * @param typical texts, in lower case, whose pieces count as frequent
 */
export function createPrefilter(needs: readonly Needed[], typical: readonly string[]): Prefilter {
  const uses = new Uint32Array(TABLE_SIZE)
  for (const text of typical)
    for (const piece of new Set(piecesOf(text))) uses[piece] = (uses[piece] ?? 0) + 1
  const patternsOf = new Array<number[] | undefined>(TABLE_SIZE).fill(undefined)
  const always: number[] = []
  for (const [index, needed] of needs.entries()) {
    const keys = keysOf(needed, uses)
    if (keys.length === 0) always.push(index)
    for (const key of new Set(keys)) patternsOf[key] = [...(patternsOf[key] ?? []), index]
  }
  // Of the text of that number, so that nothing need be cleared.
  const seenIn = new Float64Array(TABLE_SIZE)
  const foundIn = new Float64Array(needs.length)
  let number = 0
  return (text, isIt) => {
    number++
    const found = [...always]
    forPieces(text, (piece) => {
      if (seenIn[piece] === number) return
      seenIn[piece] = number
      for (const index of patternsOf[piece] ?? NONE) {
        if (foundIn[index] === number) continue
        foundIn[index] = number
        found.push(index)
      }
    })
    found.sort((one, other) => one - other)
    for (const index of found) {
      if (mayOccur(needs[index] as Needed, seenIn, number) && isIt(index)) return index
    }
    return null
  }
}

const NONE: readonly number[] = []

function forPieces(text: string, add: (piece: number) => void): void {
  let [first, second] = [0, text.charCodeAt(0)]
  for (let at = 1; at < text.length; at++) {
    const third = text.charCodeAt(at)
    if (at > 1) add(hashOf(first, second, third))
    if (isPair(third)) add(hashOf(0, second, third))
    first = second
    second = third
  }
}

function piecesOf(text: string): Uint16Array {
  const pieces: number[] = []
  forPieces(text, (piece) => pieces.push(piece))
  return Uint16Array.from(pieces)
}

/** Pieces of which a text that has the pattern has at least one, seldom used ones; none: every text may have it. */
function keysOf(needed: Needed, uses: Uint32Array): number[] {
  const usesOf = (piece: number) => uses[piece] ?? 0
  const weight = (keys: readonly number[]) => keys.reduce((sum, key) => sum + 1 + usesOf(key), 0)
  return needed
    .map((one) =>
      one instanceof Uint16Array
        ? [one.reduce((best, piece) => (usesOf(piece) < usesOf(best) ? piece : best))]
        : one.flatMap((alternative) => keysOf(alternative, uses)),
    )
    .reduce<number[]>((best, keys) => (best.length === 0 || weight(keys) < weight(best) ? keys : best), [])
}

/** `seenIn`: the number of the last text that had each piece. */
function mayOccur(needed: Needed, seenIn: Float64Array, number: number): boolean {
  for (const one of needed) {
    if (!(one instanceof Uint16Array)) {
      if (!one.some((alternative) => mayOccur(alternative, seenIn, number))) return false
      continue
    }
    for (let at = 0; at < one.length; at++) if (seenIn[one[at] as number] !== number) return false
  }
  return true
}

/** `source`: in RE2's language, and valid. What is not understood needs nothing. */
export function neededBy(source: string): Needed {
  const reader = { source, at: 0 }
  const alternatives = readAlternatives(reader)
  return alternatives === null || reader.at < source.length ? [] : asNeeded(alternatives)
}

interface Reader {
  source: string
  at: number
}

/** Alternatives of which one needs nothing need nothing together. */
const asNeeded = (alternatives: readonly Needed[]): Needed =>
  alternatives.some(({ length }) => length === 0)
    ? []
    : alternatives.length === 1
      ? (alternatives[0] as Needed)
      : [alternatives]

/** Up to a closing parenthesis or the end; null: not understood. */
function readAlternatives(reader: Reader): Needed[] | null {
  const alternatives: Needed[] = []
  for (;;) {
    const sequence = readSequence(reader)
    if (sequence === null) return null
    alternatives.push(sequence)
    if (reader.source[reader.at] !== '|') return alternatives
    reader.at++
  }
}

function readSequence(reader: Reader): Needed | null {
  const needed: Needed[number][] = []
  let run = ''
  const endRun = () => {
    const pieces = piecesOf(run)
    if (pieces.length > 0) needed.push(pieces)
    run = ''
  }
  while (reader.at < reader.source.length && !/[|)]/.test(reader.source[reader.at] as string)) {
    const piece = readPiece(reader)
    if (piece === null) return null
    const count = readCount(reader)
    if (typeof piece === 'string' && count === 'once') {
      run += piece
      continue
    }
    // Repeated: it follows what is before it, and other text may follow the first time.
    if (typeof piece === 'string' && count === 'more') run += piece
    if (piece === '') continue
    endRun()
    if (typeof piece !== 'string' && count !== 'maybe') needed.push(...piece)
  }
  endRun()
  return needed
}

/** A character; '' for what has no width; what a group or a class needs; null: not understood. */
function readPiece(reader: Reader): string | Needed | null {
  const { source, at } = reader
  const rest = source.slice(at)
  const take = (length: number) => {
    reader.at += length
  }
  const escaped = /^\\([bB]|[dDsSwW]|[^A-Za-z0-9])/su.exec(rest)
  if (escaped) {
    take(escaped[0].length)
    const [, what = ''] = escaped
    return /[bB]/.test(what) ? '' : /[dDsSwW]/.test(what) ? [] : what
  }
  const characters = /^(?:\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\])/su.exec(rest)
  if (characters) {
    take(characters[0].length)
    return []
  }
  const group = /^\((?:\?:|\?P?<\w+>|(?!\?))/.exec(rest)
  if (group) {
    take(group[0].length)
    const alternatives = readAlternatives(reader)
    if (alternatives === null || source[reader.at] !== ')') return null
    take(1)
    return asNeeded(alternatives)
  }
  const [character = ''] = rest
  take(character.length)
  if (character === '^' || character === '$') return ''
  return /[\\()[*+?{]/.test(character) ? null : character
}

/** How often the piece before occurs. */
function readCount(reader: Reader): 'once' | 'more' | 'maybe' {
  const [found, sign = '', least = ''] =
    /^(?:([*+?])|\{(\d+)(?:,\d*)?\})\??/.exec(reader.source.slice(reader.at)) ?? []
  if (found === undefined) return 'once'
  reader.at += found.length
  return sign === '+' || Number(least) > 0 ? 'more' : 'maybe'
}
