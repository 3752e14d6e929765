/**
 * The form of a shaping file, and what two of them mean together: ours (shaping.json), and an operator's over it. Pure.
 *
 * A file is JSON: `{version, default?, providers?}`. A provider is known by its `site`. What an operator's file says of a
 * site replaces what ours says, member by member; what a provider says replaces the default. Objects may have a `comment`.
 * Every fault of a file is found, with the line that it is in.
 */
import { type JsonLines, jsonLines } from '../../../base/json-lines.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../base/time/durations.ts'
import { isPlainObject } from '../../../base/values.ts'
import { compilePattern, type Pattern } from '../../../protocols/smtp/reply-pattern.ts'

/** What a reply asks for. `block`: the address is not used for this provider for a while. */
export const REPLY_ACTIONS = ['slow-down', 'fewer-connections', 'ignore', 'block'] as const
export type ReplyAction = (typeof REPLY_ACTIONS)[number]

/** Which addresses of the provider's hosts come first, or are the only ones. */
export const ADDRESS_PREFERENCES = ['ipv4', 'ipv6', 'ipv4-only', 'ipv6-only'] as const
export type AddressPreference = (typeof ADDRESS_PREFERENCES)[number]

export interface ReplyRule {
  /** A code, or the class of codes. */
  code: string
  /** Alternatives; none: every reply of that code. */
  patterns: readonly Pattern[]
  action: ReplyAction
}

export interface BackOff {
  /** From a cut to full speed. */
  recoveryMs: number
  /** In the order in which they are tried; those of a provider come before the default's. */
  replies: readonly ReplyRule[]
  /** How long an address is not used for the provider after a reply that blocks it, and at the most if that repeats. */
  blockedPauseMs: number
  blockedPauseMaxMs: number
}

/** What one file says, all of it optional. */
export interface GivenShape {
  name?: string
  mx?: readonly string[]
  prefer?: AddressPreference | null
  connections?: number
  messagesPerConnection?: number
  messagesPerSecond?: number | null
  recoveryMs?: number
  blockedPauseMs?: number
  blockedPauseMaxMs?: number
  replies?: readonly ReplyRule[]
}

export interface ShapingFile {
  version: string
  default: GivenShape
  providers: ReadonlyMap<string, GivenShape>
}

/** A file has faults; `faults` are sentences that begin with the line. */
export class ShapingFileError extends Error {
  override name = 'ShapingFileError'
  readonly faults: readonly string[]
  constructor(faults: readonly string[]) {
    super(faults.join('; '))
    this.faults = faults
  }
}

export const FILE_BYTES_MAX = 1024 * 1024
const PROVIDERS_MAX = 1_000
const MX_MAX = 200
/** Each is tried against each reply that does not accept. */
const REPLIES_MAX = 50
const PATTERNS_MAX = 50
/** A file that is not meant for this has a fault in each line. */
const FAULTS_MAX = 50
export const CONNECTIONS_MAX = 1_000
const MESSAGES_MAX = 1_000_000
const PAUSE_MAX_MS = 30 * DAY_MS

const VERSION = /^[A-Za-z0-9._-]{1,64}$/
const SITE = /^[a-z0-9][a-z0-9-]{0,63}$/
/** Lanes of these names have other limits. */
const RESERVED_SITES = ['relay']
const HOST = /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const SPAN = /^(\d{1,6})([smhd])$/
const CODE = /^(?:any|[45]xx|[45]\d\d)$/
const UNITS_MS: Readonly<Record<string, number>> = { s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS }

const SHAPE_MEMBERS = [
  'comment',
  'connections',
  'messages_per_connection',
  'rate',
  'recovery',
  'blocked_pause',
  'blocked_pause_max',
  'prefer',
  'replies',
]
const PROVIDER_MEMBERS = ['site', 'name', 'mx', ...SHAPE_MEMBERS]

/** `base`: the sites that need no `mx`, as a file below has it. @throws ShapingFileError naming every fault */
export function readShapingFile(text: string, base: Pick<ShapingFile, 'providers'> | null): ShapingFile {
  if (Buffer.byteLength(text) > FILE_BYTES_MAX)
    throw new ShapingFileError([`line 1: the file is larger than ${FILE_BYTES_MAX / 1024} KB`])
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (error) {
    throw new ShapingFileError([
      `line ${lineOfSyntaxError(text, error as Error)}: ${(error as Error).message}`,
    ])
  }
  const reader = new Reader(jsonLines(text))
  const file = reader.file(document, base)
  reader.end()
  return file
}

/** The parser names a position, or for a text that ends too early none. */
function lineOfSyntaxError(text: string, { message }: Error): number {
  const at = /at position (\d+)/.exec(message)?.[1]
  return text.slice(0, at === undefined ? text.length : Number(at)).split('\n').length
}

class Reader {
  readonly #lines: JsonLines
  readonly #faults: { line: number; text: string }[] = []

  constructor(lines: JsonLines) {
    this.#lines = lines
    for (const path of lines.repeated) this.fault(path, 'is given twice')
  }

  fault(path: string, what: string): void {
    const line = this.#lines.lineOf(path)
    this.#faults.push({ line, text: `line ${line}: ${path === '' ? 'the file' : path}: ${what}` })
  }

  /** @throws ShapingFileError if there was a fault */
  end(): void {
    if (this.#faults.length === 0) return
    const sorted = this.#faults.sort((one, other) => one.line - other.line).map(({ text }) => text)
    const more = sorted.length - FAULTS_MAX
    throw new ShapingFileError(more > 0 ? [...sorted.slice(0, FAULTS_MAX), `${more} more faults`] : sorted)
  }

  file(document: unknown, base: Pick<ShapingFile, 'providers'> | null): ShapingFile {
    const root = this.#object('', document, ['comment', 'version', 'default', 'providers'])
    const version = root['version']
    if (typeof version !== 'string' || !VERSION.test(version))
      this.fault('version', 'must be 1 to 64 letters, digits, dots and hyphens')
    const common =
      root['default'] === undefined
        ? {}
        : this.#shape('default', this.#object('default', root['default'], SHAPE_MEMBERS))
    return {
      version: String(version),
      default: common,
      providers: this.#providers(root['providers'] ?? [], base),
    }
  }

  #providers(value: unknown, base: Pick<ShapingFile, 'providers'> | null): Map<string, GivenShape> {
    const providers = new Map<string, GivenShape>()
    const siteOfMx = new Map<string, string>()
    for (const [at, entry] of this.#list('providers', value, 0, PROVIDERS_MAX).entries()) {
      const path = `providers[${at}]`
      const given = this.#object(path, entry, PROVIDER_MEMBERS)
      const { site } = given
      if (typeof site !== 'string' || !SITE.test(site) || RESERVED_SITES.includes(site)) {
        this.fault(
          `${path}.site`,
          `must be lower-case letters, digits and hyphens, at most 64, and not "relay"`,
        )
        continue
      }
      if (providers.has(site)) this.fault(`${path}.site`, `"${site}" is given twice`)
      const shape = this.#shape(path, given)
      const name = this.#name(`${path}.name`, given['name'])
      const mx = given['mx'] === undefined ? undefined : this.#mx(`${path}.mx`, given['mx'], site, siteOfMx)
      if (mx === undefined && !base?.providers.has(site))
        this.fault(path, `"${site}" is a new site, and needs "mx"`)
      providers.set(site, { ...shape, ...(name !== undefined && { name }), ...(mx && { mx }) })
    }
    return providers
  }

  #name(path: string, value: unknown): string | undefined {
    if (value === undefined) return undefined
    if (typeof value === 'string' && value !== '' && value.length <= 64 && !/\p{Cc}/u.test(value))
      return value
    this.fault(path, 'must be a text of 1 to 64 characters')
    return undefined
  }

  #mx(path: string, value: unknown, site: string, siteOfMx: Map<string, string>): string[] {
    return this.#list(path, value, 1, MX_MAX).flatMap((entry, at) => {
      const host = typeof entry === 'string' ? entry.toLowerCase() : ''
      if (!HOST.test(host)) {
        this.fault(`${path}[${at}]`, 'must be a host name with a dot; it stands for itself and all below it')
        return []
      }
      const other = siteOfMx.get(host)
      if (other !== undefined) this.fault(`${path}[${at}]`, `"${host}" belongs to "${other}" already`)
      siteOfMx.set(host, site)
      return [host]
    })
  }

  #shape(path: string, given: Record<string, unknown>): GivenShape {
    const shape: GivenShape = {}
    const take = <K extends keyof GivenShape>(
      key: K,
      name: string,
      read: (path: string, value: unknown) => GivenShape[K] | undefined,
    ) => {
      const value = given[name] === undefined ? undefined : read(`${path}.${name}`, given[name])
      if (value !== undefined) shape[key] = value
    }
    const count = (max: number) => (at: string, value: unknown) => this.#count(at, value, max)
    const span = (at: string, value: unknown) => this.#span(at, value)
    take('connections', 'connections', count(CONNECTIONS_MAX))
    take('messagesPerConnection', 'messages_per_connection', count(MESSAGES_MAX))
    take('messagesPerSecond', 'rate', (at, value) => this.#rate(at, value))
    take('recoveryMs', 'recovery', span)
    take('blockedPauseMs', 'blocked_pause', span)
    take('blockedPauseMaxMs', 'blocked_pause_max', span)
    take('prefer', 'prefer', (at, value) => this.#preference(at, value))
    take('replies', 'replies', (at, value) => this.#replies(at, value))
    return shape
  }

  #replies(path: string, value: unknown): ReplyRule[] {
    return this.#list(path, value, 0, REPLIES_MAX).flatMap((entry, at) => {
      const where = `${path}[${at}]`
      const given = this.#object(where, entry, ['comment', 'code', 'patterns', 'action'])
      const { code = '4xx' } = given
      const action = REPLY_ACTIONS.find((known) => known === given['action'])
      if (action === undefined) this.fault(`${where}.action`, `must be one of ${REPLY_ACTIONS.join(', ')}`)
      const isCode = typeof code === 'string' && CODE.test(code)
      if (!isCode) this.fault(`${where}.code`, 'must be any, 4xx, 5xx or a code such as "421"')
      const patterns =
        given['patterns'] === undefined
          ? []
          : this.#list(`${where}.patterns`, given['patterns'], 1, PATTERNS_MAX).flatMap((source, index) =>
              this.#pattern(`${where}.patterns[${index}]`, source),
            )
      if (given['patterns'] === undefined && given['code'] === undefined)
        this.fault(where, 'needs "code" or "patterns"')
      return action === undefined || !isCode ? [] : [{ code, patterns, action }]
    })
  }

  #pattern(path: string, source: unknown): Pattern[] {
    if (typeof source !== 'string') {
      this.fault(path, 'must be a text')
      return []
    }
    try {
      return [compilePattern(source)]
    } catch (error) {
      this.fault(path, (error as Error).message)
      return []
    }
  }

  #count(path: string, value: unknown, max: number): number | undefined {
    if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max) return value
    this.fault(path, `must be a whole number from 1 to ${max}`)
    return undefined
  }

  /** `300/1m` in messages per second; null: no rate. */
  #rate(path: string, value: unknown): number | null | undefined {
    if (value === null) return null
    const rate = typeof value === 'string' ? rateOf(value) : undefined
    if (rate !== undefined) return rate
    this.fault(path, 'must be messages in a time of up to a day, such as "300/1m", or null')
    return undefined
  }

  /** Null: no preference, where the default has one. */
  #preference(path: string, value: unknown): AddressPreference | null | undefined {
    if (value === null) return null
    const preference = ADDRESS_PREFERENCES.find((known) => known === value)
    if (preference === undefined)
      this.fault(path, `must be one of ${ADDRESS_PREFERENCES.join(', ')}, or null`)
    return preference
  }

  #span(path: string, value: unknown): number | undefined {
    const ms = typeof value === 'string' ? msOf(value) : Number.NaN
    if (ms >= MINUTE_MS && ms <= PAUSE_MAX_MS) return ms
    this.fault(path, 'must be a time from "1m" to "30d"')
    return undefined
  }

  #object(path: string, value: unknown, members: readonly string[]): Record<string, unknown> {
    if (!isPlainObject(value)) {
      this.fault(path, 'must be an object')
      return {}
    }
    for (const name of Object.keys(value))
      if (!members.includes(name))
        this.fault(
          path === '' ? name.slice(0, 64) : `${path}.${name.slice(0, 64)}`,
          `is unknown; known are ${members.join(', ')}`,
        )
    return value
  }

  #list(path: string, value: unknown, min: number, max: number): unknown[] {
    if (Array.isArray(value) && value.length >= min && value.length <= max) return value
    this.fault(path, `must be a list of ${min} to ${max} entries`)
    return []
  }
}

/** `300/1m` in messages per second; undefined: it is no rate. */
export function rateOf(text: string): number | undefined {
  const [, count = '', span = ''] = /^(\d{1,9})\/(\d{1,6}[smhd])$/.exec(text) ?? []
  const ms = msOf(span)
  return Number(count) >= 1 && ms >= 1_000 && ms <= DAY_MS ? Number(count) / (ms / 1_000) : undefined
}

/** NaN for what is no time. */
function msOf(text: string): number {
  const [, count, unit = ''] = SPAN.exec(text) ?? []
  return count === undefined ? Number.NaN : Number(count) * (UNITS_MS[unit] ?? Number.NaN)
}
