/**
 * Patterns of the rules, found in time that grows with the text alone. JavaScript's own regular expressions
 * backtrack: a server that knows a pattern can answer with a text that keeps the delivery loop busy for seconds, and
 * an operator's pattern may do so with any text. Here all ways through a pattern are followed at once, one character
 * at a time (Thompson 1968): at most `instructions x characters` steps.
 *
 * The language is what rules need of the usual one: literals, `.`, classes, `\d \w \s` and their opposites, `\b \B`,
 * `^ $`, groups, `|`, `? * + {n} {n,} {n,m}`. Letters match without case. No look-around and no back references:
 * they have no such bound. Which part matched is not told, so greed makes no difference, and is refused.
 */

export class PatternSyntaxError extends Error {
  override name = 'PatternSyntaxError'
}

export interface Pattern {
  /** At least one of these stands in every text with a match; empty: nothing is known. Lower case. */
  literals: readonly string[]
  program: Program
}

/** Steps that may still be made; shared by all patterns that one text is held against. */
export interface Budget {
  steps: number
}

type Node =
  | { kind: 'char'; code: number }
  | { kind: 'class'; of: CharClass }
  | { kind: 'assert'; what: Assertion }
  | { kind: 'concat' | 'either'; parts: Node[] }
  | { kind: 'repeat'; part: Node; min: number; max: number }

type Assertion = 'word-edge' | 'no-word-edge' | 'start' | 'end'

/** Membership of the 128 ASCII codes; one answer for all others. */
interface CharClass {
  ascii: Uint8Array
  others: boolean
}

type Instruction =
  | { op: 'char'; code: number }
  | { op: 'class'; of: CharClass }
  | { op: 'assert'; what: Assertion }
  | { op: 'split'; a: number; b: number }
  | { op: 'jump'; a: number }
  | { op: 'match' }

interface Program {
  instructions: readonly Instruction[]
  /** Characters that a match can begin with; null: it may be empty. */
  first: CharClass | null
}

const PATTERN_LENGTH_MAX = 500
/** Of one counted repetition. */
const REPEAT_MAX = 500
/** The largest of our own patterns has 457. */
const INSTRUCTIONS_MAX = 2_000
const DEPTH_MAX = 20

/** @throws PatternSyntaxError for what is not in the language, or too large. */
export function compilePattern(source: string): Pattern {
  if (source === '' || source.length > PATTERN_LENGTH_MAX) {
    throw new PatternSyntaxError(`a pattern has 1 to ${PATTERN_LENGTH_MAX} characters`)
  }
  const tree = new PatternParser(source).parse()
  const instructions: Instruction[] = []
  emit(tree, instructions)
  instructions.push({ op: 'match' })
  if (instructions.length > INSTRUCTIONS_MAX) throw new PatternSyntaxError('the pattern is too large')
  const first = firstOf(instructions)
  if (canBeEmpty(instructions)) throw new PatternSyntaxError('matches the empty text, so every reply')
  return { literals: requiredLiterals(tree) ?? [], program: { instructions, first } }
}

class PatternParser {
  private readonly source: string
  private at = 0
  private depth = 0

  constructor(source: string) {
    this.source = source
  }

  parse(): Node {
    const tree = this.either()
    if (this.at < this.source.length) throw this.fault('")" without "("')
    return tree
  }

  private either(): Node {
    if (++this.depth > DEPTH_MAX) throw this.fault('groups are nested too deep')
    const parts = [this.concat()]
    while (this.take('|')) parts.push(this.concat())
    this.depth--
    return parts.length === 1 ? (parts[0] as Node) : { kind: 'either', parts }
  }

  private concat(): Node {
    const parts: Node[] = []
    while (this.at < this.source.length && !'|)'.includes(this.source[this.at] as string)) {
      parts.push(this.repeated(this.atom()))
    }
    return { kind: 'concat', parts }
  }

  private repeated(part: Node): Node {
    const range = this.quantifier()
    if (range === null) return part
    if (part.kind === 'assert') throw this.fault('nothing to repeat')
    if (this.quantifier() !== null) throw this.fault('lazy and double quantifiers are not known')
    return { kind: 'repeat', part, ...range }
  }

  private quantifier(): { min: number; max: number } | null {
    if (this.take('?')) return { min: 0, max: 1 }
    if (this.take('*')) return { min: 0, max: Infinity }
    if (this.take('+')) return { min: 1, max: Infinity }
    if (this.source[this.at] !== '{') return null
    const counted = /^\{(\d{1,4})(,(\d{0,4}))?\}/.exec(this.source.slice(this.at, this.at + 12))
    if (!counted) throw this.fault('a "{" that is not a count is written "\\{"')
    this.at += counted[0].length
    const min = Number(counted[1])
    const max = counted[2] === undefined ? min : counted[3] === '' ? Infinity : Number(counted[3])
    if (max < min || Math.max(min, max === Infinity ? 0 : max) > REPEAT_MAX) {
      throw this.fault(`the count ${counted[0]} is out of range`)
    }
    return { min, max }
  }

  private atom(): Node {
    const char = this.source[this.at++] as string
    switch (char) {
      case '(': {
        if (this.take('?') && !this.take(':')) throw this.fault('only groups of the form (?:...) are known')
        const tree = this.either()
        if (!this.take(')')) throw this.fault('"(" without ")"')
        return tree
      }
      case '[':
        return { kind: 'class', of: this.charClass() }
      case '.':
        return { kind: 'class', of: { ascii: new Uint8Array(128).fill(1), others: true } }
      case '^':
        return { kind: 'assert', what: 'start' }
      case '$':
        return { kind: 'assert', what: 'end' }
      case '\\':
        return this.escaped()
      case '?':
      case '*':
      case '+':
      case '{':
        throw this.fault('nothing to repeat')
      default:
        return { kind: 'char', code: lower(char) }
    }
  }

  private escaped(): Node {
    const char = this.source[this.at++]
    if (char === 'b') return { kind: 'assert', what: 'word-edge' }
    if (char === 'B') return { kind: 'assert', what: 'no-word-edge' }
    const of = char === undefined ? null : namedClass(char)
    if (of) return { kind: 'class', of }
    return { kind: 'char', code: this.escapedChar(char) }
  }

  private escapedChar(char: string | undefined): number {
    if (char === undefined || /[A-Za-z0-9]/.test(char))
      throw this.fault(`the escape "\\${char ?? ''}" is not known`)
    return char.charCodeAt(0)
  }

  private charClass(): CharClass {
    const negated = this.take('^')
    const found: CharClass = { ascii: new Uint8Array(128), others: false }
    for (;;) {
      const char = this.source[this.at++]
      if (char === undefined) throw this.fault('"[" without "]"')
      if (char === ']') break
      const named = char === '\\' ? namedClass(this.source[this.at] ?? '') : null
      if (named) {
        this.at++
        for (let code = 0; code < 128; code++) if (named.ascii[code]) found.ascii[code] = 1
        found.others ||= named.others
        continue
      }
      const from = char === '\\' ? this.escapedChar(this.source[this.at++]) : char.charCodeAt(0)
      let to = from
      if (this.source[this.at] === '-' && this.source[this.at + 1] !== ']') {
        this.at++
        const end = this.source[this.at++] ?? ''
        to = end === '\\' ? this.escapedChar(this.source[this.at++]) : end.charCodeAt(0)
      }
      if (!(from <= to && to < 128)) throw this.fault('a class holds ASCII characters and ranges')
      for (let code = from; code <= to; code++) found.ascii[lower(String.fromCharCode(code))] = 1
    }
    return negated ? opposite(found) : found
  }

  private take(char: string): boolean {
    if (this.source[this.at] !== char) return false
    this.at++
    return true
  }

  private fault(what: string): PatternSyntaxError {
    return new PatternSyntaxError(`${what}, near character ${this.at}`)
  }
}

const lower = (char: string) => char.toLowerCase().charCodeAt(0)

const opposite = ({ ascii, others }: CharClass): CharClass => ({
  ascii: ascii.map((member) => 1 - member),
  others: !others,
})

const classOf = (chars: RegExp): CharClass => ({
  ascii: Uint8Array.from({ length: 128 }, (_, code) => Number(chars.test(String.fromCharCode(code)))),
  others: false,
})

const WORD = classOf(/\w/)
const DIGIT = classOf(/\d/)
const SPACE = classOf(/\s/)

function namedClass(letter: string): CharClass | null {
  const base = { d: DIGIT, w: WORD, s: SPACE }[letter.toLowerCase()]
  if (!base) return null
  return letter === letter.toLowerCase() ? base : opposite(base)
}

const isIn = ({ ascii, others }: CharClass, code: number) => (code < 128 ? ascii[code] === 1 : others)

function emit(node: Node, to: Instruction[]): void {
  if (to.length > INSTRUCTIONS_MAX) throw new PatternSyntaxError('the pattern is too large')
  switch (node.kind) {
    case 'char':
      to.push({ op: 'char', code: node.code })
      return
    case 'class':
      to.push({ op: 'class', of: node.of })
      return
    case 'assert':
      to.push({ op: 'assert', what: node.what })
      return
    case 'concat':
      for (const part of node.parts) emit(part, to)
      return
    case 'either':
      emitEither(node.parts, to)
      return
    case 'repeat':
      emitRepeat(node, to)
  }
}

function emitEither(parts: readonly Node[], to: Instruction[]): void {
  const jumps: { op: 'jump'; a: number }[] = []
  for (const part of parts.slice(0, -1)) {
    const split = { op: 'split' as const, a: to.length + 1, b: 0 }
    to.push(split)
    emit(part, to)
    const jump = { op: 'jump' as const, a: 0 }
    to.push(jump)
    jumps.push(jump)
    split.b = to.length
  }
  emit(parts.at(-1) as Node, to)
  for (const jump of jumps) jump.a = to.length
}

function emitRepeat({ part, min, max }: Extract<Node, { kind: 'repeat' }>, to: Instruction[]): void {
  for (let count = 0; count < min; count++) emit(part, to)
  if (max === Infinity) {
    const again = to.length
    const split = { op: 'split' as const, a: again + 1, b: 0 }
    to.push(split)
    emit(part, to)
    to.push({ op: 'jump', a: again })
    split.b = to.length
    return
  }
  const splits: { b: number }[] = []
  for (let count = min; count < max; count++) {
    const split = { op: 'split' as const, a: to.length + 1, b: 0 }
    to.push(split)
    splits.push(split)
    emit(part, to)
  }
  for (const split of splits) split.b = to.length
}

/** Every instruction that can be reached without reading; assertions are taken to hold. */
function reachable(instructions: readonly Instruction[]): Set<number> {
  const seen = new Set([0])
  for (const at of seen) {
    const of = instructions[at] as Instruction
    if (of.op === 'assert') seen.add(at + 1)
    if (of.op === 'split') seen.add(of.b)
    if (of.op === 'split' || of.op === 'jump') seen.add(of.a)
  }
  return seen
}

const canBeEmpty = (instructions: readonly Instruction[]) =>
  reachable(instructions).has(instructions.length - 1)

function firstOf(instructions: readonly Instruction[]): CharClass | null {
  const first: CharClass = { ascii: new Uint8Array(128), others: false }
  for (const at of reachable(instructions)) {
    const of = instructions[at] as Instruction
    if (of.op === 'match') return null
    if (of.op === 'char') {
      if (of.code < 128) first.ascii[of.code] = 1
      else first.others = true
    } else if (of.op === 'class') {
      for (let code = 0; code < 128; code++) if (of.of.ascii[code]) first.ascii[code] = 1
      first.others ||= of.of.others
    }
  }
  return first
}

/** Texts of which one must occur; the longest that one look at the tree finds. Null: none is known. */
function requiredLiterals(node: Node): string[] | null {
  switch (node.kind) {
    case 'char':
      return [String.fromCharCode(node.code)]
    case 'repeat':
      return node.min > 0 ? requiredLiterals(node.part) : null
    case 'either': {
      const each = node.parts.map(requiredLiterals)
      return each.every((found) => found !== null) ? [...new Set(each.flat())] : null
    }
    case 'concat':
      return longest(runsOf(node.parts))
    default:
      return null
  }
}

/** Neighbouring characters as one text each; other parts as what they need themselves. */
function runsOf(parts: readonly Node[]): string[][] {
  const found: string[][] = []
  let run = ''
  for (const part of parts) {
    if (part.kind === 'char') {
      run += String.fromCharCode(part.code)
      continue
    }
    if (part.kind === 'assert') continue
    if (run !== '') found.push([run])
    run = ''
    const inner = requiredLiterals(part)
    if (inner) found.push(inner)
  }
  if (run !== '') found.push([run])
  return found
}

function longest(candidates: readonly string[][]): string[] | null {
  const shortestOf = (texts: readonly string[]) => Math.min(...texts.map(({ length }) => length))
  let best: string[] | null = null
  for (const texts of candidates) if (!best || shortestOf(texts) > shortestOf(best)) best = texts
  return best
}

/** Instructions waiting at one place of the text: a set that is emptied without touching its members. */
class Waiting {
  readonly at = new Uint16Array(INSTRUCTIONS_MAX * 2)
  private readonly seen = new Uint32Array(INSTRUCTIONS_MAX * 2)
  private round = 0
  size = 0

  clear(): void {
    this.size = 0
    this.round++
    if (this.round === 0xffffffff) {
      this.seen.fill(0)
      this.round = 1
    }
  }

  /** False: it had been added already. */
  visit(instruction: number): boolean {
    if (this.seen[instruction] === this.round) return false
    this.seen[instruction] = this.round
    return true
  }

  add(instruction: number): void {
    this.at[this.size++] = instruction
  }
}

// One search at a time: nothing in it waits.
let here = new Waiting()
let next = new Waiting()
const stack = new Uint16Array(INSTRUCTIONS_MAX * 4)

/**
 * Whether the pattern occurs anywhere in `text`, which is in lower case. Takes its steps from `budget`; without
 * any left the answer is false.
 */
export function isFound({ program }: Pattern, text: string, budget: Budget): boolean {
  const { instructions, first } = program
  here.clear()
  for (let at = 0; at <= text.length; at++) {
    const code = at < text.length ? text.charCodeAt(at) : -1
    if (first === null || (code >= 0 && isIn(first, code))) {
      if (follow(instructions, 0, text, at, here, budget)) return true
    }
    if (here.size === 0) {
      // What was looked at in vain here may hold at the next place.
      here.clear()
      continue
    }
    if (budget.steps <= 0) return false
    budget.steps -= here.size
    next.clear()
    for (let index = 0; index < here.size; index++) {
      const waiting = here.at[index] as number
      const instruction = instructions[waiting] as Instruction
      const goesOn =
        instruction.op === 'char'
          ? instruction.code === code
          : instruction.op === 'class' && code >= 0 && isIn(instruction.of, code)
      if (goesOn && follow(instructions, waiting + 1, text, at + 1, next, budget)) return true
    }
    const emptied = here
    here = next
    next = emptied
  }
  return false
}

/** Adds what can be reached from `from` without reading; true when that is the end of the pattern. */
function follow(
  instructions: readonly Instruction[],
  from: number,
  text: string,
  at: number,
  into: Waiting,
  budget: Budget,
): boolean {
  let depth = 0
  stack[depth++] = from
  while (depth > 0) {
    const waiting = stack[--depth] as number
    if (!into.visit(waiting)) continue
    budget.steps--
    const instruction = instructions[waiting] as Instruction
    switch (instruction.op) {
      case 'match':
        return true
      case 'jump':
        stack[depth++] = instruction.a
        break
      case 'split':
        stack[depth++] = instruction.b
        stack[depth++] = instruction.a
        break
      case 'assert':
        if (holds(instruction.what, text, at)) stack[depth++] = waiting + 1
        break
      default:
        into.add(waiting)
    }
  }
  return false
}

function holds(what: Assertion, text: string, at: number): boolean {
  if (what === 'start') return at === 0
  if (what === 'end') return at === text.length
  const edge = isWord(text, at - 1) !== isWord(text, at)
  return what === 'word-edge' ? edge : !edge
}

const isWord = (text: string, at: number) => at >= 0 && at < text.length && isIn(WORD, text.charCodeAt(at))
