/**
 * Patterns of routes (routes-inbound.md section 2): Python's regular expressions, matched without case in time linear in
 * the text, by RE2 (decision 69).
 *
 * 1. `translate` rewrites Python's syntax for RE2 in lower case. It refuses what RE2 has not, and bounds the compiled
 *    size before anything is compiled: 3,000 characters may otherwise compile to 800,000 instructions.
 * 2. A text is matched in lower case as well. Captures are cut from the text as given.
 *
 * What is compiled is kept for all patterns of the process together, up to a size: it takes milliseconds and about 160
 * bytes an instruction, and an account may have a thousand routes (decision 163).
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
  /** In RE2's syntax; the same for patterns that mean the same. */
  text: string
  /** Instructions: about as many as RE2 makes of it, or more. */
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
/** Instructions that are kept compiled, 50 MB, where each pattern counts some more for itself. */
const COMPILED_MAX = 300_000
const COMPILED_OWN = 32

/** @throws PatternSyntaxError */
export function compilePattern(source: string): Pattern {
  const pattern = readPattern(source)
  if (compiled(pattern).programSize() > SIZE_MAX) throw new PatternSyntaxError('the pattern is too large')
  return pattern
}

/** One that `compilePattern` has accepted; it is compiled when it is first matched. @throws PatternSyntaxError */
export function readPattern(source: string): Pattern {
  const { text: translated, size } = translate(source)
  if (size > SIZE_MAX) throw new PatternSyntaxError('the pattern is too large')
  const isTooCostly = (text: string) => text.length * size > COST_MAX
  const matched = (text: string, way: 'lookingAt' | 'find'): Captures | null => {
    if (isTooCostly(text)) return null
    const program = compiled(pattern)
    const matcher = program.matcher(lowered(text))
    if (!matcher[way]()) return null
    const group = (key: number | string) => {
      const start = matcher.start(key)
      return start < 0 ? null : text.slice(start, matcher.end(key))
    }
    return {
      numbered: Array.from({ length: matcher.groupCount() + 1 }, (_, at) => group(at)),
      named: Object.fromEntries(Object.keys(program.namedGroups()).map((name) => [name, group(name)])),
    }
  }
  const pattern: Pattern = {
    text: translated,
    size,
    atStart: (text) => matched(text, 'lookingAt'),
    anywhere: (text) => matched(text, 'find'),
    isTooCostly,
  }
  return pattern
}

/** By text, the least recently used first. */
const programs = new Map<string, { program: RE2JS; size: number }>()
let programsSize = 0

function compiled({ text, size }: Pick<Pattern, 'text' | 'size'>): RE2JS {
  const known = programs.get(text)
  if (known) {
    programs.delete(text)
    programs.set(text, known)
    return known.program
  }
  const made = { program: compile(text), size: size + COMPILED_OWN }
  programs.set(text, made)
  programsSize += made.size
  for (const [oldest, { size: freed }] of programs) {
    if (programsSize <= COMPILED_MAX) break
    programs.delete(oldest)
    programsSize -= freed
  }
  return made.program
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
