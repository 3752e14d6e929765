/**
 * What the log of a key's calls keeps of a call: a function of the operation, the request and its answer alone. Of values
 * it keeps those that the audit log would (audit.ts), and none that could be an address or a secret.
 */
import { isPlainObject } from '../../../base/values.ts'
import type { Exchange, Holder } from '../exchange.ts'
import { acceptsFiles, isDescribedName, type Operation, pathNames } from '../operation.ts'
import type { Params } from '../request/params.ts'
import { givenValues, NOT_RECORDED } from './audit.ts'

export interface NotedCall {
  /** The holder of the key, for itself. */
  holder: Holder
  method: string
  /** With `{name}` in place of parts that could be an address. */
  path: string
  operation: string
  /** How the parameters came. */
  form: 'query' | 'form' | 'multipart' | 'json'
  /** Declared parameters by name; null: the value is not kept. */
  given: Readonly<Record<string, unknown>>
  status: number
  /** The error in words; null: there was none. */
  message: string | null
  durationMs: number
  remoteAddress: string
  requestId: string
  /** The subaccount that the key acted for. */
  actedFor: string | null
}

/** Handed in by the accounts area. */
export interface RequestLog {
  /** Whether another call of the key is kept now; asked for each call, so it costs next to nothing. */
  wants(holder: Holder, isFailure: boolean): boolean
  /** Notes it in memory. */
  note(call: NotedCall): void
}

/** Values of one parameter. */
const VALUES_MAX = 5
const MESSAGE_LENGTH_MAX = 300
/** Values that a message is searched for. */
const SEARCHED_MAX = 200
/** An error text repeats no more of a value (`quotable`). */
const QUOTED_LENGTH_MAX = 256
/** Shorter ones say nothing. */
const QUOTED_LENGTH_MIN = 3
const KEPT_PART = /^[\w.-]{1,128}$/

/** @param params undefined: the call was refused before they were read */
export function notedCall(
  spec: Operation,
  { method, status, refusal, id, path, startedAt }: Exchange,
  params: Params | undefined,
  { presented, caller, remoteAddress }: { presented: Holder; caller: Holder | null; remoteAddress: string },
): NotedCall {
  const given = params === undefined ? {} : keptValues(spec, params)
  const actsFor = caller !== null && caller.accountId !== presented.accountId
  return {
    holder: presented,
    method,
    path: keptPath(spec.path, path),
    operation: spec.id,
    form: formOf(spec, method),
    given,
    status,
    message: refusal === undefined ? null : keptMessage(refusal, spec, given, params, path),
    durationMs: Math.round(performance.now() - startedAt),
    remoteAddress,
    requestId: id,
    actedFor: actsFor ? caller.accountId : null,
  }
}

function formOf(spec: Operation, method: string): NotedCall['form'] {
  if (spec.body !== undefined || spec.bytesOf !== undefined) return 'json'
  if (method === 'GET' || method === 'HEAD' || method === 'DELETE') return 'query'
  return acceptsFiles(spec) || spec.multipartOnly === true ? 'multipart' : 'form'
}

const keptPath = (template: string, parts: Readonly<Record<string, string>>): string =>
  pathNames(template).reduce((path, name) => {
    const value = parts[name] ?? ''
    return KEPT_PART.test(value) ? path.replace(`{${name}}`, value) : path
  }, template)

function keptValues(spec: Operation, params: Params): Record<string, unknown> {
  const kept = (value: unknown) =>
    value === NOT_RECORDED ? null : Array.isArray(value) ? value.slice(0, VALUES_MAX) : value
  const values = Object.entries(givenValues(spec, {}, params))
  return Object.fromEntries(values.map(([name, value]) => [name, kept(value)]))
}

/** A text in quotes, and what looks like an address: a part of a value, or one from within a document. */
const QUOTED = /"([^"]{1,600})"|(?<=^|[\s(])'([^']{1,600})'(?=$|[\s.,:;)])/g
const ADDRESS = /[^\s"'<>(){}:,]{1,600}@[^\s"'<>(){}:,]{1,600}/g

/** Values that are not kept elsewhere are not kept here either: they become the names of their parameters, or `{...}`. */
function keptMessage(
  message: string,
  spec: Operation,
  given: Readonly<Record<string, unknown>>,
  params: Params | undefined,
  path: Readonly<Record<string, string>>,
): string {
  const hidden = [
    ...(params?.names() ?? []).flatMap((name) =>
      given[name] == null ? (params?.texts(name) ?? []).map((value) => [name, value] as const) : [],
    ),
    ...leavesOf(params?.json()).map((value) => ['...', value] as const),
    ...Object.entries(path).filter(([, value]) => !KEPT_PART.test(value)),
  ].slice(0, SEARCHED_MAX)
  let kept = message.slice(0, 2 * MESSAGE_LENGTH_MAX)
  for (const [name, value] of hidden) {
    const quoted = value.slice(0, QUOTED_LENGTH_MAX)
    if (quoted.length >= QUOTED_LENGTH_MIN)
      kept = kept.replaceAll(quoted, () => `{${isDescribedName(spec, name) ? shortName(name) : '...'}}`)
  }
  kept = kept
    .replace(QUOTED, (whole, one?: string, other?: string) => {
      const text = one ?? other ?? ''
      const isKept =
        isDescribedName(spec, text) || /^\{.*\}$/.test(text) || Object.values(path).includes(text)
      return isKept ? whole : '{...}'
    })
    .replace(ADDRESS, '{...}')
    .replace(TOKEN, (token) =>
      isOurWord(token) || isDescribedName(spec, token.replace(END, '')) ? token : '{...}',
    )
  return kept.slice(0, MESSAGE_LENGTH_MAX).toWellFormed().replaceAll('\0', '\uFFFD')
}

/** Texts below the first level of a document, which no parameter is named after. */
function leavesOf(document: unknown): string[] {
  const texts: string[] = []
  const level = isPlainObject(document)
    ? Object.values(document).filter((value) => typeof value === 'object')
    : [document]
  for (let at = 0; at < level.length && at < SEARCHED_MAX; at++) {
    const value = level[at]
    if (typeof value === 'string') texts.push(value)
    else if (typeof value === 'object' && value !== null)
      level.push(...Object.values(value).slice(0, SEARCHED_MAX))
  }
  return texts
}

/** What stands between spaces and punctuation; `{...}` and names of parameters in braces are ours. */
const TOKEN = /(?<![^\s"'([,;=|])[^\s"'()[\],;=|{}]+/g

/**
 * What an error text of the service is made of: words, numbers, and names of fields and paths. A key, code, token or host, which
 * has digits among its letters, mixed case or a dot, is none, whoever wrote it into the text.
 */
const OUR_WORDS = [
  /^[A-Za-z]?[a-z]{0,23}(?:['’-][A-Za-z][a-z]{0,15}){0,4}$/,
  /^[A-Z]{2,12}$/,
  /^[+-]?\d{1,3}(?:[.,]?\d{3}){0,2}(?:\.\d{1,3})?%?$/,
  /^[A-Za-z][a-z]{0,23}(?:[_:/-][A-Za-z][a-z]{0,23}){1,6}$/,
  /^(?:\/[a-z]{1,24}|\/v[1-9])(?:[/-](?:[a-z]{1,24}|v[1-9]))*$/,
  /^(?:IPv4|IPv6|OpenID|WebAuthn|SHA-256|base64|UTF-8)$/,
  /^[^A-Za-z0-9]{1,3}$/,
]

const END = /[.:!?]+$/

function isOurWord(token: string): boolean {
  const word = token.replace(END, '')
  return word === '' || OUR_WORDS.some((form) => form.test(word))
}

const shortName = (name: string) => name.slice(0, 64)
