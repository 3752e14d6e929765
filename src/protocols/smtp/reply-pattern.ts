/**
 * Patterns of the rules, found in time that grows with the text alone. JavaScript's own regular expressions
 * backtrack: a server that knows a pattern can answer with a text that keeps the delivery loop busy for seconds, and
 * an operator's pattern may do so with any text. RE2's language has no look-around and no back references, which
 * have no such bound (docs/decisions: a library for patterns).
 *
 * Letters match without case: patterns are in lower case, as the text is. RE2's own flag for that would cost ten times
 * as much, since it switches off the search for literals that precedes the automaton's.
 */
import { RE2JS, RE2JSException } from 're2js'
import { type Needed, neededBy } from '../../base/needed-text.ts'

export class PatternSyntaxError extends Error {
  override name = 'PatternSyntaxError'
}

export interface Pattern {
  /** As it was given. */
  readonly source: string
  /** Whether it occurs anywhere in `text`, which is in lower case. */
  isIn(text: string): boolean
  /** What a text must contain for it. */
  readonly needed: Needed
}

const PATTERN_LENGTH_MAX = 500
/** Instructions. The largest of our own patterns has 446. */
const PROGRAM_MAX = 2_000
/** One of these is matched at no characters by whatever can match none, assertions included. */
const EMPTY_MATCH_PROBES = ['', 'a', '-']

/** @throws PatternSyntaxError for what is not in the language, is too large, or matches every text. */
export function compilePattern(source: string): Pattern {
  if (source === '' || source.length > PATTERN_LENGTH_MAX) {
    throw new PatternSyntaxError(`a pattern has 1 to ${PATTERN_LENGTH_MAX} characters`)
  }
  const lowered = inLowerCase(source)
  const literal = literalOf(lowered)
  if (literal !== null) {
    return { source, needed: neededBy(lowered), isIn: (text) => text.includes(literal) }
  }
  const compiled = compile(lowered)
  if (compiled.programSize() > PROGRAM_MAX) throw new PatternSyntaxError('the pattern is too large')
  if (EMPTY_MATCH_PROBES.some((text) => matchesNothing(compiled, text))) {
    throw new PatternSyntaxError('matches the empty text, so every reply')
  }
  return { source, needed: neededBy(lowered), isIn: (text) => compiled.test(text) }
}

/** One that `compilePattern` has accepted; it is compiled when a text is first matched with it, which few patterns ever are. */
export function readPattern(source: string): Pattern {
  let pattern: Pattern | undefined
  return {
    source,
    get needed() {
      return neededBy(inLowerCase(source))
    },
    isIn(text) {
      pattern ??= compilePattern(source)
      return pattern.isIn(text)
    },
  }
}

const inLowerCase = (source: string) =>
  source.replaceAll(/\\.|[A-Z]/gs, (found) => (found.length === 1 ? found.toLowerCase() : found))

/** The text that a pattern without operators stands for, else null. Half of ours are such; `includes` is quicker. */
function literalOf(source: string): string | null {
  const withoutEscapes = source.replaceAll(/\\[^A-Za-z0-9]/g, '')
  return /[\\^$.*+?()[\]{}|]/.test(withoutEscapes) ? null : source.replaceAll(/\\(.)/gs, '$1')
}

function compile(source: string): RE2JS {
  try {
    return RE2JS.compile(source, RE2JS.DOTALL)
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    throw new PatternSyntaxError(error.message.replace('error parsing regexp: ', ''), { cause: error })
  }
}

function matchesNothing(pattern: RE2JS, text: string): boolean {
  const matcher = pattern.matcher(text)
  return matcher.find() && matcher.start() === matcher.end()
}
