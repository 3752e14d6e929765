/** What the header of a received copy says about its way: the receiver's own fields, which are above all others. Pure. */
import { isIP } from 'node:net'
import { type AddressKind, classifyAddress } from '../../base/net/ip.ts'

interface HeaderField {
  name: string
  value: string
}

/** As stored in `facts_json` and shown. */
export interface CopyFacts {
  originating_ip: string
  dkim: string
  spf: string
  dmarc: string
  headers: { key: string; value: string }[]
}

export const NO_FACTS: CopyFacts = { originating_ip: '', dkim: '', spf: '', dmarc: '', headers: [] }

/** Fields that say how a receiver judged the message. */
const SHOWN =
  /^(authentication-results|arc-authentication-results|received-spf|received|x-spam.*|x-forefront-antispam-report|x-microsoft-antispam.*|x-ymail.*|x-apple-.*|list-unsubscribe|feedback-id|message-id)$/i
const SHOWN_MAX = 20
/** Characters of a field that are kept: a result has those of up to 100 copies. */
const VALUE_LENGTH_MAX = 500
/** Characters of a field that are read. */
const READ_LENGTH_MAX = 2_000

/** The fields of a header in their order, unfolded. */
function fieldsOf(header: string): HeaderField[] {
  const lines = header.replace(/\r?\n(?=[ \t])/g, '').split(/\r?\n/)
  return lines.flatMap((line) => {
    const colon = line.indexOf(':')
    return colon > 0 ? [{ name: line.slice(0, colon).trim(), value: line.slice(colon + 1).trim() }] : []
  })
}

export function factsOf(header: string): CopyFacts {
  const fields = fieldsOf(header)
  const first = (name: string) => fields.find((field) => field.name.toLowerCase() === name)?.value ?? ''
  // The receiver adds its field on top, and removes those that claim to be its own (RFC 8601 §5).
  const results = withoutComments(first('authentication-results'))
  const resultOf = (method: string) =>
    new RegExp(`(?:^|[;\\s])${method}\\s*=\\s*([a-z]+)`, 'i').exec(results)?.[1]?.toLowerCase() ?? ''
  return {
    originating_ip: clientOf(fields),
    dkim: resultOf('dkim'),
    spf: resultOf('spf'),
    dmarc: resultOf('dmarc'),
    headers: fields
      .filter(({ name }) => SHOWN.test(name))
      .slice(0, SHOWN_MAX)
      .map(({ name, value }) => ({ key: name, value: value.slice(0, VALUE_LENGTH_MAX) })),
  }
}

const withoutComments = (text: string) => text.slice(0, READ_LENGTH_MAX).replace(/\([^()]*\)/g, ' ')

/**
 * The client's address in the first trace field that has one from outside (RFC 5321 §4.4): receivers pass mail on among their
 * own hosts, and note that above.
 */
function clientOf(fields: readonly HeaderField[]): string {
  for (const { name, value } of fields) {
    if (name.toLowerCase() !== 'received') continue
    for (const [, literal = ''] of value.slice(0, READ_LENGTH_MAX).matchAll(/\[(?:IPv6:)?([0-9a-f.:]+)\]/gi))
      if (isIP(literal) !== 0 && !INSIDE.has(classifyAddress(literal))) return literal
  }
  return ''
}

const INSIDE: ReadonlySet<AddressKind> = new Set(['loopback', 'private', 'link-local'])
