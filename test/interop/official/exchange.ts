/** What an official client asked for and was given: `recorded/<language>.json`, and how two responses are compared. */

export interface Exchanges {
  /** Of the client and of what it runs on. */
  versions: Record<string, string>
  /** Time of the run, as of RFC 3339. */
  recordedAt: string
  /** Sending domain of the run. */
  domain: string
  /** Base URL of the service, as the client knew it. */
  url: string
  exchanges: Exchange[]
}

export interface Exchange {
  /** Call of the client that the request belongs to. */
  call: string
  method: string
  /** Path and query. */
  path: string
  /** As sent, without those of the connection and without `authorization`. */
  headers: Record<string, string>
  /** As sent; empty for none. */
  body: string
  status: number
  /** Parsed if it is JSON, else text. */
  response: unknown
}

/**
 * What a client would miss in a response; null: nothing. A client reads fields by name and type: each that was recorded
 * must be there with a value of the same type, others may be added. Every kind of element of a recorded list must occur.
 * The values of truths and of the response's `message`, which clients compare, must be equal.
 * @param at path of the value, for the report
 */
export function missingIn(response: unknown, recorded: unknown, at = 'response'): string | null {
  const type = typeOf(recorded)
  if (typeOf(response) !== type) return `${at}: ${typeOf(response)} instead of ${type}`
  if (type === 'boolean' && response !== recorded) return `${at}: ${response} instead of ${recorded}`
  if (type === 'list') {
    const [found, wanted] = [response as unknown[], recorded as unknown[]]
    for (const [index, element] of wanted.entries()) {
      const differences = found.map((other) => missingIn(other, element, `${at}[${index}]`))
      if (!differences.includes(null)) return differences[0] ?? `${at}: empty`
    }
  }
  if (type === 'object') {
    const [found, wanted] = [response, recorded] as Record<string, unknown>[]
    for (const [name, value] of Object.entries(wanted ?? {})) {
      const difference = missingIn(found?.[name], value, `${at}.${name}`)
      if (difference !== null) return difference
      if (at === 'response' && name === 'message' && typeof value === 'string' && found?.[name] !== value)
        return `${at}.message: "${found?.[name]}" instead of "${value}"`
    }
  }
  return null
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'list' : typeof value
}
