/**
 * BIMI assertion records (draft-brand-indicators-for-message-identification, §4): where the logo of a domain is, and the
 * certificate that speaks for it.
 */

/** Either may be '': both empty decline to have a logo. */
export interface BimiRecord {
  /** `l=`: the SVG file. */
  logo: string
  /** `a=`: the mark certificate, PEM. */
  certificate: string
  /** `avp=`: whether the brand's logo or a picture of the person is preferred. */
  avatar: 'brand' | 'personal'
  /** Tags whose value is of no known form, in lower case. */
  wrongTags: readonly string[]
}

const VERSION = /^v[ \t]*=[ \t]*BIMI1[ \t]*(?:;|$)/i
const RECORD_CHARS_MAX = 4_096

/** Whether a TXT record is meant as a BIMI record. */
export const isBimiRecord = (text: string): boolean =>
  text.length <= RECORD_CHARS_MAX && VERSION.test(text.trim())

/** Reads a record for which `isBimiRecord` holds. Unknown tags are ignored, and so are parts that are no tags. */
export function readBimi(text: string): BimiRecord {
  const tags = new Map<string, string>()
  for (const part of text.split(';')) {
    const equals = part.indexOf('=')
    if (equals > 0) tags.set(part.slice(0, equals).trim().toLowerCase(), part.slice(equals + 1).trim())
  }
  const wrongTags: string[] = []
  const url = (tag: string): string => {
    const given = tags.get(tag) ?? ''
    if (given !== '' && !isHttps(given)) wrongTags.push(tag)
    return given
  }
  const [logo, certificate] = [url('l'), url('a')]
  const avatar = (tags.get('avp') ?? 'brand').toLowerCase()
  if (avatar !== 'brand' && avatar !== 'personal') wrongTags.push('avp')
  return { logo, certificate, avatar: avatar === 'personal' ? 'personal' : 'brand', wrongTags }
}

const isHttps = (text: string) => /^https:\/\//i.test(text) && URL.canParse(text)
