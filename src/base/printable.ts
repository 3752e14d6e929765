/** Texts of others on a terminal, which acts on control characters: moves the cursor, changes what was written, sets its title. */

/** Control characters of C0 and C1 (ISO 6429), and those that reverse the direction of what follows (UAX 9). */
const CONTROLS = /[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g
const LINE_CONTROLS = /[\t\n\u2028\u2029]/g

const escaped = (character: string): string =>
  `\\u${(character.codePointAt(0) as number).toString(16).padStart(4, '0')}`

/** The text with control characters written out, such as `\u001b`. Line ends and tabs stay. */
export const printable = (text: string): string => text.replace(CONTROLS, escaped)

/** The same on one line, for a name among others: a line end could forge what follows. */
export const printableLine = (text: string): string => printable(text).replace(LINE_CONTROLS, escaped)

/**
 * A URL for logs: without user, password, query and fragment, where callers put secrets. A text that is no http or https
 * URL is left out as a whole.
 */
export function loggableUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol)) return '(no http URL)'
  return `${url.origin}${url.pathname}`
}
