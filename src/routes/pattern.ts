/**
 * Patterns of routes (routes-inbound.md section 2): Python's regular expressions, matched without case in time linear in
 * the text, by RE2 (decision 69).
 *
 * 1. `translate` rewrites Python's syntax for RE2 in lower case. It refuses what RE2 has not, and bounds the compiled
 *    size before anything is compiled: 3,000 characters may otherwise compile to 800,000 instructions.
 * 2. A text is matched in lower case as well. Captures are cut from the text as given.
 */
import { RE2JS, RE2JSException } from 're2js'
import { PatternSyntaxError, translate } from './pattern-syntax.ts'

/** What the groups of a pattern matched; null: the group took no part. */
export interface Captures {
  /** 0 is the whole match. */
  numbered: readonly (string | null)[]
  named: Readonly<Record<string, string | null>>
}

export interface Pattern {
  /** Instructions. */
  size: number
  /** Matches at the start of the text; the end is free. Null: no match, or `isTooCostly`. */
  atStart(text: string): Captures | null
  /** Matches anywhere. */
  anywhere(text: string): Captures | null
  /** Whether matching the text could take longer than 50 ms. */
  isTooCostly(text: string): boolean
}

/** Instructions; patterns that people write have fewer than 200. */
const SIZE_MAX = 2_000
/** Instructions times characters: at most 50 ms (rule 8). */
const COST_MAX = 500_000

/** @throws PatternSyntaxError */
export function compilePattern(source: string): Pattern {
  const { text: translated, size } = translate(source)
  if (size > SIZE_MAX) throw new PatternSyntaxError('the pattern is too large')
  const compiled = compile(translated)
  if (compiled.programSize() > SIZE_MAX) throw new PatternSyntaxError('the pattern is too large')
  const names = Object.keys(compiled.namedGroups())
  const isTooCostly = (text: string) => text.length * compiled.programSize() > COST_MAX
  const matched = (text: string, way: 'lookingAt' | 'find'): Captures | null => {
    if (isTooCostly(text)) return null
    const matcher = compiled.matcher(lowered(text))
    if (!matcher[way]()) return null
    const group = (key: number | string) => {
      const start = matcher.start(key)
      return start < 0 ? null : text.slice(start, matcher.end(key))
    }
    return {
      numbered: Array.from({ length: matcher.groupCount() + 1 }, (_, at) => group(at)),
      named: Object.fromEntries(names.map((name) => [name, group(name)])),
    }
  }
  return {
    size: compiled.programSize(),
    atStart: (text) => matched(text, 'lookingAt'),
    anywhere: (text) => matched(text, 'find'),
    isTooCostly,
  }
}

function compile(source: string): RE2JS {
  try {
    return RE2JS.compile(source, RE2JS.DOTALL)
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    throw new PatternSyntaxError(error.message.replace('error parsing regexp: ', ''), { cause: error })
  }
}

/** In lower case, with every character at the same offset. */
function lowered(text: string): string {
  // Without the final form of sigma, which depends on what follows.
  const lower = text.replaceAll('Σ', 'σ').toLowerCase()
  if (lower.length === text.length) return lower
  const same = (character: string) => {
    const one = character.toLowerCase()
    return one.length === character.length ? one : character
  }
  return Array.from(text, same).join('')
}
