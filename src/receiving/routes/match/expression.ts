/**
 * Expressions of routes (routes-inbound.md section 2):
 *
 *     expr  = and { "or" and }
 *     and   = not { "and" not }
 *     not   = [ "not" ] prim
 *     prim  = call | "(" expr ")"
 */
import { type Captures, compilePattern, type Pattern, readPattern } from './pattern.ts'
import { matchCost, type PatternWork } from './pattern-work.ts'

export type Expression =
  | { kind: 'and' | 'or'; of: readonly [Expression, ...Expression[]] }
  | { kind: 'not'; of: Expression }
  | { kind: 'recipient'; pattern: Pattern }
  /** `name` in lower case. */
  | { kind: 'header'; name: string; pattern: Pattern }
  | { kind: 'catch-all' }

export class ExpressionSyntaxError extends Error {
  override name = 'ExpressionSyntaxError'
}

/** Rule 9; of an action too. */
export const TEXT_LENGTH_MAX = 4096
const DEPTH_MAX = 50
const CALLS_MAX = 100
/** Instructions of all patterns of an expression (rule 9): more than 4,096 characters are without counted repeats. */
const SIZE_MAX = 6_000
const TOKEN = /\s*(?:([a-z_]+)|([(),])|(["'])((?:\\.|(?!\3)[^\\])*)\3|(.))/isy

type Token = { kind: 'word' | 'sign' | 'text'; text: string }

/** A new expression, with all its patterns compiled. @throws ExpressionSyntaxError, PatternSyntaxError */
export function parseExpression(source: string): Expression {
  if (source.length > TEXT_LENGTH_MAX)
    throw new ExpressionSyntaxError(`it has more than ${TEXT_LENGTH_MAX} characters`)
  const { all } = sizesOf(readExpression(source))
  if (all > SIZE_MAX) throw new ExpressionSyntaxError(`its patterns have more than ${SIZE_MAX} instructions`)
  return new Parser(tokensOf(source), compilePattern).parse()
}

/** One that is stored: `parseExpression` has accepted it, perhaps of an earlier release. */
export const readExpression = (source: string): Expression =>
  new Parser(tokensOf(source), readPattern).parse()

/** Instructions of its patterns: of all of them, and of those for recipients, which have `recipientCalls`. */
export interface ExpressionSizes {
  all: number
  recipient: number
  recipientCalls: number
}

export function sizesOf(expression: Expression): ExpressionSizes {
  switch (expression.kind) {
    case 'catch-all':
      return { all: 0, recipient: 0, recipientCalls: 0 }
    case 'header':
      return { all: expression.pattern.size, recipient: 0, recipientCalls: 0 }
    case 'recipient':
      return { all: expression.pattern.size, recipient: expression.pattern.size, recipientCalls: 1 }
    case 'not':
      return sizesOf(expression.of)
    default: {
      const sizes = expression.of.map(sizesOf)
      const sum = (key: keyof ExpressionSizes) => sizes.reduce((total, one) => total + one[key], 0)
      return { all: sum('all'), recipient: sum('recipient'), recipientCalls: sum('recipientCalls') }
    }
  }
}

function tokensOf(source: string): Token[] {
  const tokens: Token[] = []
  const text = source.trimEnd()
  for (let at = 0; at < text.length; ) {
    TOKEN.lastIndex = at
    const [whole = '', word, sign, quote, quoted, other] = TOKEN.exec(text) ?? []
    if (other !== undefined) {
      const isText = other === '"' || other === "'"
      throw new ExpressionSyntaxError(isText ? 'a string is not closed' : `unexpected "${other}"`)
    }
    if (word !== undefined) tokens.push({ kind: 'word', text: word.toLowerCase() })
    else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign })
    else tokens.push({ kind: 'text', text: unquoted(quoted ?? '', quote as string) })
    at += whole.length
  }
  return tokens
}

/** A backslash is dropped before the quote only: elsewhere it belongs to the pattern (rule 2). */
const unquoted = (text: string, quote: string) =>
  text.replaceAll(/\\(.)/gs, (pair, character: string) => (character === quote ? quote : pair))

class Parser {
  readonly #tokens: readonly Token[]
  readonly #pattern: (source: string) => Pattern
  #at = 0
  #depth = 0
  #calls = 0

  constructor(tokens: readonly Token[], pattern: (source: string) => Pattern) {
    this.#tokens = tokens
    this.#pattern = pattern
  }

  parse(): Expression {
    const expression = this.#or()
    const rest = this.#tokens[this.#at]
    if (rest) throw new ExpressionSyntaxError(`unexpected "${rest.text}"`)
    return expression
  }

  #or(): Expression {
    return this.#chain('or', () => this.#chain('and', () => this.#not()))
  }

  #chain(kind: 'and' | 'or', read: () => Expression): Expression {
    const of: [Expression, ...Expression[]] = [read()]
    while (this.#skips('word', kind)) of.push(read())
    return of.length === 1 ? of[0] : { kind, of }
  }

  #not(): Expression {
    return this.#skips('word', 'not') ? { kind: 'not', of: this.#primary() } : this.#primary()
  }

  #primary(): Expression {
    if (!this.#skips('sign', '(')) return this.#call()
    this.#depth += 1
    if (this.#depth > DEPTH_MAX) throw new ExpressionSyntaxError(`more than ${DEPTH_MAX} levels of brackets`)
    const inner = this.#or()
    this.#expect(')')
    this.#depth -= 1
    return inner
  }

  #call(): Expression {
    const token = this.#tokens[this.#at++]
    if (token === undefined) throw new ExpressionSyntaxError('unexpected end')
    if (token.kind !== 'word') throw new ExpressionSyntaxError(`unexpected "${token.text}"`)
    this.#calls += 1
    if (this.#calls > CALLS_MAX) throw new ExpressionSyntaxError(`more than ${CALLS_MAX} calls`)
    this.#expect('(')
    const expression = this.#arguments(token.text)
    this.#expect(')')
    return expression
  }

  #arguments(name: string): Expression {
    switch (name) {
      case 'match_recipient':
        return { kind: 'recipient', pattern: this.#pattern(this.#text()) }
      case 'match_header': {
        const header = this.#text().trim().toLowerCase()
        this.#expect(',')
        return { kind: 'header', name: header, pattern: this.#pattern(this.#text()) }
      }
      case 'catch_all':
      case 'catchall':
        return { kind: 'catch-all' }
      default:
        throw new ExpressionSyntaxError(`unknown function "${name}"`)
    }
  }

  #text(): string {
    const token = this.#tokens[this.#at++]
    if (token?.kind !== 'text') throw new ExpressionSyntaxError('a string is expected')
    return token.text
  }

  #skips(kind: Token['kind'], text: string): boolean {
    const token = this.#tokens[this.#at]
    if (token?.kind !== kind || token.text !== text) return false
    this.#at += 1
    return true
  }

  #expect(sign: string): void {
    if (!this.#skips('sign', sign)) throw new ExpressionSyntaxError(`"${sign}" is expected`)
  }
}

/** What a pattern has found in the headers of a name. */
interface HeaderMatch {
  captures: Captures | null
  /** It is too costly for one of the values, which it is then not searched for in (rule 8). */
  tooCostly: boolean
}

/** The headers of one mail. Each pattern is searched for once, however many routes and recipients have it. */
export class MailHeaders {
  readonly #values: (name: string) => readonly string[]
  readonly #work: PatternWork
  readonly #known = new Map<string, Promise<HeaderMatch>>()

  /** @param values of the header of that name (lower case), decoded and unfolded */
  constructor(values: (name: string) => readonly string[], work: PatternWork) {
    this.#values = values
    this.#work = work
  }

  /** @throws TooMuchWork */
  match(name: string, pattern: Pattern): Promise<HeaderMatch> {
    const key = `${name}\n${pattern.text}`
    const known = this.#known.get(key) ?? this.#search(name, pattern)
    this.#known.set(key, known)
    return known
  }

  async #search(name: string, pattern: Pattern): Promise<HeaderMatch> {
    let tooCostly = false
    for (const value of this.#values(name)) {
      if (pattern.isTooCostly(value)) {
        tooCostly = true
        continue
      }
      this.#work.reserve(matchCost(pattern.size, value.length))
      await this.#work.before(pattern.size, value.length)
      const captures = pattern.anywhere(value)
      if (captures) return { captures, tooCostly }
    }
    return { captures: null, tooCostly }
  }
}

/** What an expression is evaluated on. */
export interface Subject {
  /** Envelope recipient, `local@domain`. */
  recipient: string
  /** Null: not known yet. */
  headers: Pick<MailHeaders, 'match'> | null
  /** No route before this one matched the recipient. */
  isFirstMatch: boolean
  /** The matches of the recipient have been reserved. */
  work: PatternWork
  /** Called for each pattern that is too costly for its text; the call is false then (rule 8). */
  tooCostly?(): void
}

/** `maybe`: it depends on headers that are not known. `captures`: of the first call that is true. */
export type Verdict = { kind: 'true'; captures: Captures | null } | { kind: 'false' } | { kind: 'maybe' }

const NO: Verdict = { kind: 'false' }
const MAYBE: Verdict = { kind: 'maybe' }

/** @throws TooMuchWork */
export async function evaluate(expression: Expression, subject: Subject): Promise<Verdict> {
  switch (expression.kind) {
    case 'catch-all':
      return subject.isFirstMatch ? { kind: 'true', captures: null } : NO
    case 'not': {
      const { kind } = await evaluate(expression.of, subject)
      if (kind === 'maybe') return MAYBE
      return kind === 'true' ? NO : { kind: 'true', captures: null }
    }
    case 'and':
    case 'or':
      return evaluateChain(expression.kind, expression.of, subject)
    case 'recipient': {
      const { recipient, work } = subject
      const { pattern } = expression
      if (pattern.isTooCostly(recipient)) subject.tooCostly?.()
      else await work.before(pattern.size, recipient.length)
      return found(pattern.atStart(recipient))
    }
    case 'header': {
      if (subject.headers === null) return MAYBE
      const { captures, tooCostly } = await subject.headers.match(expression.name, expression.pattern)
      if (tooCostly) subject.tooCostly?.()
      return found(captures)
    }
  }
}

const found = (captures: Captures | null): Verdict => (captures ? { kind: 'true', captures } : NO)

async function evaluateChain(
  kind: 'and' | 'or',
  of: readonly Expression[],
  subject: Subject,
): Promise<Verdict> {
  const decides = kind === 'and' ? 'false' : 'true'
  let isMaybe = false
  let captures: Captures | null = null
  for (const one of of) {
    const verdict = await evaluate(one, subject)
    if (verdict.kind === decides) return verdict
    if (verdict.kind === 'maybe') isMaybe = true
    if (verdict.kind === 'true') captures ??= verdict.captures
  }
  if (isMaybe) return MAYBE
  return kind === 'and' ? { kind: 'true', captures } : NO
}
