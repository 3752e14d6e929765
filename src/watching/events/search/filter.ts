/**
 * Filter expressions of the event listing (events.md rules 10 to 13), pure.
 *
 *     expression = and *( "OR" and )          precedence NOT, AND, OR
 *     and        = not *( ["AND"] not )       adjacent words: all must match
 *     not        = *"NOT" ( word | phrase | comparison | "(" expression ")" )
 *
 * Operators are upper case; everything else is compared case-insensitively. A text is parsed into a small tree;
 * `evaluate` applies it to one event, `exactWords` returns the whole values that an index can be searched for. Length,
 * terms and depth are bounded, so neither can be made slow.
 */

type Term =
  /** `text` is in lower case, `raw` as written. */
  | { kind: 'word' | 'phrase'; text: string; raw: string }
  | { kind: 'compare'; operator: '>' | '<' | '>=' | '<=' | '='; value: number }

type Expression = Term | { kind: 'not'; inner: Expression } | { kind: 'and' | 'or'; parts: Expression[] }

/** Far longer than real filters; a page token repeats the text and must fit into one path part. */
const LENGTH_MAX = 1500
const TERMS_MAX = 100
const DEPTH_MAX = 20

/** Null for a syntax error, or a text beyond the bounds. */
export function parseExpression(text: string, kind: 'text' | 'number' = 'text'): Expression | null {
  if (text.length > LENGTH_MAX) return null
  const tokens = tokenise(text, kind)
  if (!tokens || tokens.length > TERMS_MAX * 3) return null
  const parser = { tokens, at: 0, terms: 0 }
  const expression = parseOr(parser, 0)
  return expression && parser.at === tokens.length && parser.terms <= TERMS_MAX ? expression : null
}

type Token = Term | { kind: '(' | ')' | 'AND' | 'OR' | 'NOT' }

const TEXT_TOKEN = /\s*(?:([()])|"([^"]*)"|([^\s()"]+))\s*/y
const NUMBER_TOKEN = /\s*(?:([()])|(>=|<=|>|<|=)?\s*(\d{1,15})(?![^\s()<>=])|(AND|OR|NOT)(?![^\s()]))\s*/y

function tokenise(text: string, kind: 'text' | 'number'): Token[] | null {
  const pattern = new RegExp(kind === 'text' ? TEXT_TOKEN : NUMBER_TOKEN)
  const tokens: Token[] = []
  while (pattern.lastIndex < text.length) {
    const match = pattern.exec(text)
    if (!match) return null
    const token = kind === 'text' ? textToken(match) : numberToken(match)
    if (!token) return null
    tokens.push(token)
  }
  return tokens
}

function textToken([, bracket, phrase, word]: RegExpExecArray): Token | null {
  if (bracket) return { kind: bracket as '(' | ')' }
  if (phrase !== undefined) return phrase.trim() ? textTerm('phrase', phrase.trim()) : null
  if (word === 'AND' || word === 'OR' || word === 'NOT') return { kind: word }
  return textTerm('word', word as string)
}

const textTerm = (kind: 'word' | 'phrase', raw: string): Term => ({ kind, text: fold(raw), raw })

function numberToken([, bracket, operator, digits, word]: RegExpExecArray): Token {
  if (bracket) return { kind: bracket as '(' | ')' }
  if (word) return { kind: word as 'AND' | 'OR' | 'NOT' }
  return { kind: 'compare', operator: (operator ?? '=') as '=', value: Number(digits) }
}

interface Parser {
  tokens: Token[]
  at: number
  terms: number
}

function parseOr(parser: Parser, depth: number): Expression | null {
  const parts: Expression[] = []
  do {
    const part = parseAnd(parser, depth)
    if (!part) return null
    parts.push(part)
  } while (take(parser, 'OR'))
  return combine('or', parts)
}

function parseAnd(parser: Parser, depth: number): Expression | null {
  const parts: Expression[] = []
  for (;;) {
    const part = parseNot(parser, depth)
    if (!part) return null
    parts.push(part)
    if (take(parser, 'AND')) continue
    const next = parser.tokens[parser.at]?.kind
    if (next === undefined || next === 'OR' || next === ')') return combine('and', parts)
  }
}

function parseNot(parser: Parser, depth: number): Expression | null {
  if (depth > DEPTH_MAX) return null
  if (take(parser, 'NOT')) {
    const inner = parseNot(parser, depth + 1)
    return inner && { kind: 'not', inner }
  }
  if (take(parser, '(')) {
    const inner = parseOr(parser, depth + 1)
    return inner && take(parser, ')') ? inner : null
  }
  const token = parser.tokens[parser.at]
  if (token?.kind !== 'word' && token?.kind !== 'phrase' && token?.kind !== 'compare') return null
  parser.at += 1
  parser.terms += 1
  return token
}

function take(parser: Parser, kind: Token['kind']): boolean {
  if (parser.tokens[parser.at]?.kind !== kind) return false
  parser.at += 1
  return true
}

const combine = (kind: 'and' | 'or', parts: Expression[]): Expression =>
  parts.length === 1 ? (parts[0] as Expression) : { kind, parts }

/** Evaluates the expression; `test` decides each term. */
export function evaluate(expression: Expression, test: (term: Term) => boolean): boolean {
  switch (expression.kind) {
    case 'not':
      return !evaluate(expression.inner, test)
    case 'and':
      return expression.parts.every((part) => evaluate(part, test))
    case 'or':
      return expression.parts.some((part) => evaluate(part, test))
    default:
      return test(expression)
  }
}

/**
 * Whole values of which a matching event must have at least one; each in lower case and as written. Null if the
 * expression implies no such list. `isWhole`: whether a term can match only a whole value.
 */
export function exactWords(expression: Expression, isWhole: (term: Term) => boolean): Set<string> | null {
  switch (expression.kind) {
    case 'not':
    case 'compare':
      return null
    case 'word':
    case 'phrase':
      return isWhole(expression) ? new Set([expression.text, expression.raw]) : null
    case 'or': {
      const sets = expression.parts.map((part) => exactWords(part, isWhole))
      return sets.includes(null) ? null : new Set(sets.flatMap((set) => [...(set as Set<string>)]))
    }
    case 'and': {
      const sets = expression.parts.flatMap((part) => exactWords(part, isWhole) ?? [])
      return sets.sort((a, b) => a.size - b.size)[0] ?? null
    }
  }
}

/** How a field is compared (rules 11 and 12). */
type FieldKind = 'name' | 'address' | 'text' | 'tag' | 'number'

const FIELDS = {
  event: 'name',
  severity: 'name',
  recipient: 'address',
  recipients: 'address',
  list: 'address',
  'message-id': 'address',
  from: 'text',
  to: 'text',
  subject: 'text',
  attachment: 'text',
  tags: 'tag',
  size: 'number',
} as const satisfies Record<string, FieldKind>

export type FieldName = keyof typeof FIELDS

export const FIELD_NAMES = Object.keys(FIELDS) as FieldName[]
export const isFieldName = (name: string): name is FieldName => Object.hasOwn(FIELDS, name)
export const kindOf = (name: FieldName): FieldKind => FIELDS[name]

export interface Filter {
  name: FieldName
  expression: Expression
}

/** Null for a syntax error. */
export function parseFilter(name: FieldName, text: string): Filter | null {
  const expression = parseExpression(text, kindOf(name) === 'number' ? 'number' : 'text')
  return expression && { name, expression }
}

const SEPARATORS = /[\s@.,<>]+/

/** Whether this term can match an address field only as a whole. */
export function isWholeAddress(term: Pick<Term, 'kind'> & { text?: string }): boolean {
  return term.kind === 'phrase' || (term.kind === 'word' && /[@.,<>]/.test(term.text ?? ''))
}

/** Whether the event's values of a field satisfy the filter. */
export function matches({ name, expression }: Filter, values: readonly (string | number)[]): boolean {
  const kind = kindOf(name)
  if (kind === 'number') {
    return evaluate(expression, (term) => values.some((value) => compares(term, Number(value))))
  }
  const texts = values.map((value) =>
    name === 'message-id' ? bare(fold(String(value))) : fold(String(value)),
  )
  return evaluate(expression, (term) => {
    if (term.kind === 'compare') return false
    const wanted = name === 'message-id' ? bare(term.text) : term.text
    return texts.some((text) => matchesText(kind, { ...term, text: wanted }, text))
  })
}

function matchesText(
  kind: FieldKind,
  term: { kind: 'word' | 'phrase'; text: string },
  text: string,
): boolean {
  if (text === term.text) return true
  if (kind === 'name' || kind === 'tag') return false
  if (kind === 'address') return !isWholeAddress(term) && text.split(SEPARATORS).includes(term.text)
  return containsTokens(text.split(SEPARATORS), term.text.split(SEPARATORS).filter(Boolean))
}

/** A word that contains separators (an address in a header) matches its tokens in sequence. */
function containsTokens(tokens: string[], wanted: string[]): boolean {
  if (wanted.length === 0) return false
  return tokens.some((_, at) => wanted.every((word, offset) => tokens[at + offset] === word))
}

function compares(term: Term, value: number): boolean {
  if (term.kind !== 'compare') return false
  switch (term.operator) {
    case '>':
      return value > term.value
    case '<':
      return value < term.value
    case '>=':
      return value >= term.value
    case '<=':
      return value <= term.value
    case '=':
      return value === term.value
  }
}

/** For case-insensitive comparison. */
export const fold = (text: string): string => text.toLowerCase()

/** A message id without its angle brackets. */
export const bare = (text: string): string => text.replace(/^</, '').replace(/>$/, '')

/** The values of an event's field that a filter is compared with. */
function valuesOf(name: FieldName, payload: Record<string, unknown>): (string | number)[] {
  const message = objectIn(payload, 'message')
  const headers = objectIn(message, 'headers')
  const scalars = (value: unknown) => listOf(value).filter(isPlain)
  switch (name) {
    case 'from':
    case 'to':
    case 'subject':
    case 'message-id':
      return scalars(headers[name])
    case 'attachment':
      return listOf(message['attachments']).flatMap((file) => scalars(objectIn({ file }, 'file')['filename']))
    case 'size':
      return scalars(message['size'])
    case 'recipients':
      return scalars(message['recipients'])
    case 'list':
      return scalars(objectIn(payload, 'mailing-list')['address'])
    default:
      return scalars(payload[name])
  }
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value])

const isPlain = (value: unknown): value is string | number =>
  typeof value === 'string' || typeof value === 'number'

function objectIn(value: Record<string, unknown>, name: string): Record<string, unknown> {
  const inner = value[name]
  return typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>) : {}
}

/** Whether an event satisfies every filter. A deleted event (`''`) satisfies none. */
export function passes(filters: readonly Filter[], event: string, payload: Record<string, unknown>): boolean {
  if (event === '') return false
  return filters.every((filter) => matches(filter, valuesOf(filter.name, payload)))
}
