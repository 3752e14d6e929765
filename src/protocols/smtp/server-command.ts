/** Parses command lines of a client (RFC 5321 §4.1.1, 1870, 6152, 6531, 4954). */

export type Command =
  | { verb: 'EHLO' | 'HELO'; name: string }
  | { verb: 'MAIL'; path: string; parameters: Parameters }
  | { verb: 'RCPT'; path: string; parameters: Parameters }
  | { verb: 'AUTH'; mechanism: string; initial: string | null }
  | { verb: 'STARTTLS' | 'DATA' | 'RSET' | 'QUIT' | 'NOOP' | 'VRFY' | 'EXPN' | 'HELP' }
  /** The verb is known, but its argument is invalid. */
  | { verb: 'malformed'; command: 'EHLO' | 'HELO' | 'MAIL' | 'RCPT' | 'AUTH' | 'other' }
  /** An extension that is not offered: the client would continue as if it were understood. */
  | { verb: 'not-offered'; command: string }
  /** Another protocol's request; its lines must not be taken for commands. */
  | { verb: 'foreign' }
  | { verb: 'unknown' }

/** ESMTP parameters: upper-case name to value; null without one. */
export type Parameters = ReadonlyMap<string, string | null>

const BARE = new Set(['STARTTLS', 'DATA', 'RSET', 'QUIT'])
const WITH_ANYTHING = new Set(['NOOP', 'VRFY', 'EXPN', 'HELP'])
const NOT_OFFERED = new Set([
  'BDAT',
  'ETRN',
  'ATRN',
  'TURN',
  'SEND',
  'SOML',
  'SAML',
  'BURL',
  'XCLIENT',
  'XFORWARD',
])
/** HTTP: a browser can be made to send a request with SMTP commands in its body to any port. */
const FOREIGN = /^(?:GET|HEAD|POST|PUT|DELETE|CONNECT|OPTIONS|PATCH|TRACE|PRI|[a-z-]+:)$/i

/** A path in its angle brackets (quoted local parts may hold any character), then the parameters. No comments. */
const PATH = /^ *<((?:"(?:[^"\\]|\\.)*"|[^"<>() ])*)>( .*)?$/
const PARAMETER = /^([a-z0-9][a-z0-9-]*)(?:=([^ =]+))?$/i
/** All extensions that we offer have fewer together. */
const PARAMETERS_MAX = 10

/** @param line without its CRLF and without control characters */
export function parseCommand(line: string): Command {
  const space = line.indexOf(' ')
  const word = space < 0 ? line : line.slice(0, space)
  const verb = word.toUpperCase()
  const rest = space < 0 ? '' : line.slice(space + 1).trim()
  if (verb === 'EHLO' || verb === 'HELO') {
    return /^[\x21-\x7e]+$/.test(rest) ? { verb, name: rest } : { verb: 'malformed', command: verb }
  }
  if (verb === 'MAIL') return withPath('MAIL', 'FROM:', rest)
  if (verb === 'RCPT') return withPath('RCPT', 'TO:', rest)
  if (verb === 'AUTH') return authentication(rest)
  if (BARE.has(verb)) {
    return rest === '' ? ({ verb } as Command) : { verb: 'malformed', command: 'other' }
  }
  if (WITH_ANYTHING.has(verb)) return { verb } as Command
  if (NOT_OFFERED.has(verb)) return { verb: 'not-offered', command: verb }
  return { verb: FOREIGN.test(word) ? 'foreign' : 'unknown' }
}

function withPath(verb: 'MAIL' | 'RCPT', keyword: string, rest: string): Command {
  const malformed: Command = { verb: 'malformed', command: verb }
  if (rest.slice(0, keyword.length).toUpperCase() !== keyword) return malformed
  const match = PATH.exec(rest.slice(keyword.length))
  const parameters = match && readParameters(match[2] ?? '')
  return match && parameters ? { verb, path: match[1] as string, parameters } : malformed
}

/** Null for invalid ones, a parameter given twice included. */
function readParameters(text: string): Parameters | null {
  const parameters = new Map<string, string | null>()
  for (const word of text.split(/ +/)) {
    if (word === '') continue
    const match = PARAMETER.exec(word)
    const name = match?.[1]?.toUpperCase()
    if (!match || name === undefined || parameters.has(name) || parameters.size === PARAMETERS_MAX)
      return null
    parameters.set(name, match[2] ?? null)
  }
  return parameters
}

function authentication(rest: string): Command {
  const [mechanism = '', initial, more] = rest.split(/ +/)
  if (mechanism === '' || more !== undefined) return { verb: 'malformed', command: 'AUTH' }
  // "=" is an initial response of no bytes (RFC 4954 §4).
  return {
    verb: 'AUTH',
    mechanism: mechanism.toUpperCase(),
    initial: initial === '=' ? '' : (initial ?? null),
  }
}
