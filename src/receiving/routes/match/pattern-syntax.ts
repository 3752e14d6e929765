/** Rewrites a Python regular expression for RE2, in lower case, and bounds the size of the compiled program. */

export class PatternSyntaxError extends Error {
  override name = 'PatternSyntaxError'
}

interface Translated {
  text: string
  /** At least about as many instructions as RE2 makes of it; lower bounds of repeats count fully. */
  size: number
}

/** Escapes that mean the same in both. */
const SAME_ESCAPES = new Set('AbBdDsSwWntrfva')
/** Flags of a group; case never matters here. */
const FLAGS = /^\(\?([ims]+)([):])/
const NAMED = /^\(\?P<([A-Za-z_]\w{0,99})>/
const REPEAT = /^\{(\d{0,4})(?:(,)(\d{0,4}))?\}/

/** @throws PatternSyntaxError for what RE2 has not; RE2 finds other faults */
export function translate(source: string): Translated {
  return new Translator(source).run()
}

class Translator {
  readonly #source: string
  #at = 0
  #text = ''
  /** Sizes of the open groups, outermost first. */
  readonly #sizes = [0]
  /** Size of what a repeat would apply to. */
  #lastSize = 0

  constructor(source: string) {
    this.#source = source
  }

  run(): Translated {
    while (this.#at < this.#source.length) this.#next()
    return { text: this.#text, size: this.#sizes.reduce((sum, size) => sum + size, 0) }
  }

  #next(): void {
    const character = String.fromCodePoint(this.#source.codePointAt(this.#at) as number)
    if (character === '\\') this.#escape()
    else if (character === '[') this.#class()
    else if (character === '(') this.#group()
    else if (character === ')') this.#endGroup()
    else if (character === '{') this.#repeat()
    else if ('*+?'.includes(character)) this.#take(1, character)
    else if ('^$.|'.includes(character)) this.#atom(1, character)
    else this.#atom(character.length, literal(character))
  }

  #take(length: number, text: string): void {
    this.#at += length
    this.#text += text
  }

  #atom(length: number, text: string): void {
    this.#take(length, text)
    this.#count(1)
  }

  #count(size: number): void {
    this.#sizes[this.#sizes.length - 1] = (this.#sizes.at(-1) as number) + size
    this.#lastSize = size
  }

  #escape(): void {
    const { length, code, text } = this.#readEscape()
    this.#atom(length, code === null ? text : literal(String.fromCodePoint(code)))
  }

  /** The escape at the present place. `code`: of the character that it means; null: it means a class or a place. */
  #readEscape(): { length: number; code: number | null; text: string } {
    const rest = this.#source.slice(this.#at, this.#at + 6)
    const numbered = /^\\(?:x([\da-f]{2})|u([\da-f]{4}))/i.exec(rest)
    if (numbered) {
      const code = Number.parseInt((numbered[1] ?? numbered[2]) as string, 16)
      return { length: numbered[0].length, code, text: '' }
    }
    const letter = rest[1]
    if (letter === undefined) throw new PatternSyntaxError('ends with a backslash')
    if (letter === 'Z') return { length: 2, code: null, text: '\\z' }
    if (SAME_ESCAPES.has(letter)) return { length: 2, code: null, text: `\\${letter}` }
    if (/[1-9]/.test(letter)) throw new PatternSyntaxError('back references are not supported')
    if (/[A-Za-z0-9]/.test(letter)) throw new PatternSyntaxError(`unknown escape \\${letter}`)
    const code = this.#source.codePointAt(this.#at + 1) as number
    return { length: 1 + String.fromCodePoint(code).length, code, text: '' }
  }

  #group(): void {
    const rest = this.#source.slice(this.#at, this.#at + 110)
    const flags = FLAGS.exec(rest)
    if (flags) {
      this.#flags(flags[0].length, flags[1] as string, flags[2] === ':')
      return
    }
    const open = NAMED.exec(rest)?.[0] ?? (rest.startsWith('(?:') ? '(?:' : '(')
    if (open === '(' && rest[1] === '?') throw new PatternSyntaxError(groupFault(rest))
    this.#take(open.length, open)
    this.#sizes.push(2)
  }

  #flags(length: number, given: string, opens: boolean): void {
    const kept = given.replaceAll('i', '')
    if (opens) {
      this.#take(length, `(?${kept}:`)
      this.#sizes.push(0)
    } else this.#take(length, kept === '' ? '' : `(?${kept})`)
  }

  #endGroup(): void {
    if (this.#sizes.length === 1) throw new PatternSyntaxError('missing (')
    const size = this.#sizes.pop() as number
    this.#take(1, ')')
    this.#count(size)
  }

  #repeat(): void {
    const match = REPEAT.exec(this.#source.slice(this.#at, this.#at + 12))
    if (!match || match[0] === '{}' || match[0] === '{,}') {
      this.#atom(1, '\\{')
      return
    }
    const [whole, least, comma, most] = match
    const from = Number(least)
    const times = comma === undefined ? from : most === '' ? from + 1 : Number(most)
    const size = this.#lastSize
    this.#count(size * times - size)
    this.#lastSize = size * times
    this.#take(whole.length, comma === undefined ? `{${from}}` : `{${from},${most}}`)
  }

  #class(): void {
    this.#take(1, '[')
    if (this.#source[this.#at] === '^') this.#take(1, '^')
    for (let first = true; first || this.#source[this.#at] !== ']'; first = false) this.#member()
    this.#atom(1, ']')
  }

  /** A character, a range or an escape within a class. */
  #member(): void {
    const low = this.#classCharacter()
    if (typeof low === 'string') {
      this.#text += low
      return
    }
    const isRange =
      this.#source[this.#at] === '-' && !/^-(?:\]|$)/.test(this.#source.slice(this.#at, this.#at + 2))
    if (!isRange) {
      this.#text += rangeText(low, low)
      return
    }
    this.#at += 1
    const high = this.#classCharacter()
    if (typeof high === 'string' || high < low) throw new PatternSyntaxError('invalid character class range')
    this.#text += rangeText(low, high)
  }

  /** The code of the next character, or the text of a class such as `\d`. */
  #classCharacter(): number | string {
    const code = this.#source.codePointAt(this.#at)
    if (code === undefined) throw new PatternSyntaxError('missing closing ]')
    if (code !== 0x5c) {
      this.#at += String.fromCodePoint(code).length
      return code
    }
    const escaped = this.#readEscape()
    this.#at += escaped.length
    if (escaped.text === '\\b') return 8
    if (/^\\[ABz]$/.test(escaped.text))
      throw new PatternSyntaxError(`unknown escape ${escaped.text} in a class`)
    return escaped.code ?? escaped.text
  }
}

function groupFault(rest: string): string {
  if (/^\(\?(?:=|!|<=|<!)/.test(rest)) return 'look-ahead and look-behind are not supported'
  if (rest.startsWith('(?(')) return 'conditionals are not supported'
  return rest.startsWith('(?P=') ? 'back references are not supported' : `unknown group ${rest.slice(0, 4)}`
}

const lower = (character: string) => {
  const one = character.toLowerCase()
  return one.length === character.length ? one : character
}

function literal(character: string): string {
  const one = lower(character)
  return /[A-Za-z0-9 @_-]/.test(one) || one > '\x7f' ? one : coded(one.codePointAt(0) as number)
}

const coded = (code: number) => `\\x{${code.toString(16)}}`
const lowerCode = (code: number) => lower(String.fromCodePoint(code)).codePointAt(0) as number
const [UPPER_A, UPPER_Z] = [0x41, 0x5a]

/** The range and, of the capital letters in it, the small ones. */
function rangeText(low: number, high: number): string {
  const given = low === high ? coded(low) : `${coded(low)}-${coded(high)}`
  const [from, to] =
    low > 0x7f && lowerCode(low) !== low ? [low, high] : [Math.max(low, UPPER_A), Math.min(high, UPPER_Z)]
  if (from > to || lowerCode(from) > lowerCode(to)) return given
  return `${given}${coded(lowerCode(from))}-${coded(lowerCode(to))}`
}
