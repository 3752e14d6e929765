/**
 * One person, known by a mail address: where a text names it, and what stands for it afterwards. The address is found in
 * any letter case, with its domain in ASCII or Unicode (UTS 46), its local part composed or decomposed (UAX 15), and with
 * the `@` escaped as in URLs (RFC 3986 §2.1) or quoted-printable (RFC 2045 §6.7). `ann+news@` is another address than `ann@`.
 */
import { domainToUnicode } from 'node:url'
import { addressKey } from '../../protocols/mime/address.ts'

export type Person = ReturnType<typeof createPerson>

/** `Name <address>`: characters before the bracket that are looked at. */
const NAME_LENGTH_MAX = 128
const NAME_ENDS = /[,;:<>()[\]\r\n]/

export function createPerson(address: string, pseudonymOf: (key: string) => string) {
  /** From `addressKey`. */
  const key = addressKey(address)
  const at = key.lastIndexOf('@')
  const [local, domain] = [key.slice(0, at), key.slice(at + 1)]
  const locals = [...new Set([local, local.normalize('NFD')])]
  const domains = [...new Set([domain, domainToUnicode(domain) || domain])]
  const text = textPattern(locals, domains, 'iu')
  const everyText = textPattern(locals, domains, 'giu')
  const bytes = bytePattern(locals, domains)
  /** What stands for the address in texts. */
  const pseudonym = pseudonymOf(key)
  return {
    key,
    pseudonym,
    /** For LIKE with ESCAPE '\': matches every text that may name the address, and some others. */
    pattern: `%${selective(local)}%${selective(domains.length > 1 ? '' : domain)}%`,
    is: (other: string) => addressKey(other) === key,
    isIn: (other: string): boolean => text.test(other),
    /** With the pseudonym in place of each address; a display name in front of it goes too (RFC 5322 §3.4). */
    replaced: (other: string) => (text.test(other) ? replacedIn(other, everyText, pseudonym) : other),
    /** The same bytes with zeros in place of the letters, so that nothing moves; null: the address is not in them. */
    masked(given: Buffer): Buffer | null {
      const before = given.toString('latin1')
      if (!bytes.test(before)) return null
      const masked = before.replace(new RegExp(bytes, 'gi'), (found) => found.replace(LETTERS, zero))
      return Buffer.from(masked, 'latin1')
    },
  }
}

/** What stays of an address in bytes: the `@`, its escapes, dots and soft line breaks. */
const LETTERS = /(%40|=40|=\r?\n|[@.])|[\s\S]/g
const zero = (_: string, kept?: string) => kept ?? '0'

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
const anyOf = (texts: readonly string[]) => `(?:${texts.map(escaped).join('|')})`

/** Nothing of a longer address may be around it. After an escape begins another character. */
function textPattern(locals: readonly string[], domains: readonly string[], flags: string): RegExp {
  const before = String.raw`(?:(?<![\p{L}\p{N}._+\-])|(?<=[%=][0-9A-Fa-f]{2})|(?<=\\[nrt]))`
  const after = String.raw`(?![\p{L}\p{N}_\-]|\.[\p{L}\p{N}])`
  return new RegExp(`${before}${anyOf(locals)}(?:@|%40|=40)${anyOf(domains)}${after}`, flags)
}

/** The same on bytes as Latin 1. Lines of quoted-printable may be broken anywhere (RFC 2045 §6.7 rule 5). */
function bytePattern(locals: readonly string[], domains: readonly string[]): RegExp {
  const soft = '(?:=\\r?\\n)?'
  const broken = (text: string) =>
    [...Buffer.from(text).toString('latin1')].map((character) => escaped(character)).join(soft)
  const any = (texts: readonly string[]) => `(?:${texts.map(broken).join('|')})`
  const before = String.raw`(?:(?<![A-Za-z0-9._+\-\x80-\xff])|(?<=[%=][0-9A-Fa-f]{2}))`
  const after = String.raw`(?![A-Za-z0-9_\-\x80-\xff]|\.[A-Za-z0-9\x80-\xff])`
  return new RegExp(`${before}${any(locals)}${soft}(?:@|%40|=40)${soft}${any(domains)}${after}`, 'i')
}

/** The longest run that is written the same in every form; '' matches anything. */
function selective(text: string): string {
  const runs = text.match(/[a-z0-9.+-]+/g) ?? []
  return runs.reduce((longest, run) => (run.length > longest.length ? run : longest), '')
}

function replacedIn(text: string, pattern: RegExp, pseudonym: string): string {
  let result = ''
  let from = 0
  for (const { 0: found, index } of text.matchAll(pattern)) {
    const end = index + found.length
    const isAngle = text[index - 1] === '<' && text[end] === '>'
    const start = isAngle ? Math.max(from, nameStart(text, index - 1)) : index
    const gap = start > 0 && /\s/.test(text[start] ?? '') ? ' ' : ''
    result += `${text.slice(from, start)}${isAngle ? `${gap}<${pseudonym}>` : pseudonym}`
    from = isAngle ? end + 1 : end
  }
  return result + text.slice(from)
}

/** Where the display name in front of a bracket begins; numbers are none, such as the code of a reply. */
function nameStart(text: string, bracket: number): number {
  const start = phraseStart(text, bracket)
  return /\p{L}/u.test(text.slice(start, bracket)) ? start : bracket
}

function phraseStart(text: string, bracket: number): number {
  const earliest = Math.max(0, bracket - NAME_LENGTH_MAX)
  const before = text.slice(earliest, bracket)
  const trimmed = before.trimEnd()
  if (trimmed.endsWith('"')) {
    const quote = /(?<!\\)"(?:[^"\\]|\\.)*"$/.exec(trimmed)
    if (quote) return earliest + quote.index
  }
  for (let at = before.length - 1; at >= 0; at--)
    if (NAME_ENDS.test(before[at] as string)) return earliest + at + 1
  return earliest
}

/** What is about the person who is named beside it. */
const NOTES = /^(?:name|note|reason|error|vars)$/

/**
 * The same for a value of JSON: its strings, and the names of its members. `takesNotes`: of an object with a member that is
 * the address, notes go too.
 */
export function replacedValue(value: unknown, person: Person, takesNotes = false): unknown {
  if (typeof value === 'string') return person.replaced(value)
  if (Array.isArray(value)) return value.map((item) => replacedValue(item, person, takesNotes))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value)
  const isAbout = takesNotes && members.some(([, member]) => typeof member === 'string' && person.is(member))
  const kept = isAbout ? members.filter(([name]) => !NOTES.test(name)) : members
  return Object.fromEntries(
    kept.map(([name, member]) => [person.replaced(name), replacedValue(member, person, takesNotes)]),
  )
}

/** A text of a row, which may be JSON. */
export function replacedText(text: string, person: Person, takesNotes = false): string {
  if (!/^\s*[[{]/.test(text)) return person.replaced(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return person.replaced(text)
  }
  const replaced = JSON.stringify(replacedValue(value, person, takesNotes))
  return replaced === JSON.stringify(value) ? text : replaced
}
