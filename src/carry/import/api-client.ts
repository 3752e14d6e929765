/**
 * Calls to an HTTP API that belongs to somebody else, for hours: one at a time, never faster than the server allows, and
 * patient when it is away.
 *
 * The key is sent to one origin only. Redirects are not followed, and of a paging link only path and query are used. What
 * an answer may take of memory and time is bounded.
 */

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { foreignJsonIn } from '../../base/foreign-json.ts'
import { isPlainObject } from '../../base/values.ts'

/** An answer of the server's limit; a page of 1,000 records is below one megabyte, of list members with variables below 7. */
const ANSWER_BYTES_MAX = 32 * 2 ** 20
const ANSWER_MAX_MS = 60_000
/** With the waits below, a server may be away for ten minutes. */
const ATTEMPTS_MAX = 14
const WAIT_FIRST_MS = 500
const WAIT_MAX_MS = 60_000
/** A server may ask for a longer wait, but not for any. */
const ASKED_WAIT_MAX_MS = 15 * 60_000

export interface ApiAnswer {
  status: number
  /** The JSON body; null if it is none. */
  body: Record<string, unknown> | null
  text: string
}

interface ApiCall {
  json?: unknown
  form?: Record<string, string | readonly string[]>
}

/** The server cannot be reached, or goes on refusing. The message is for a person. */
export class ApiUnavailable extends Error {}

export type ApiClient = ReturnType<typeof createApiClient>

export interface ApiClientOptions {
  /** `http(s)://host[:port][/path]`; a path is a prefix of all calls. */
  url: string
  key: string
  /** Default: the global one, with what `url` names. */
  fetch?(url: string, init: RequestInit): Promise<Response>
  /** Called before each wait. */
  onWait?(reason: string, waitMs: number): void
  wait?(ms: number): Promise<unknown>
}

/** @throws ApiUnavailable for a URL that is not http or https */
export function createApiClient(options: ApiClientOptions) {
  const { url, key, fetch = globalThis.fetch, onWait, wait = sleep } = options
  const base = baseOf(url)
  const authorization = `Basic ${Buffer.from(`api:${key}`).toString('base64')}`

  /**
   * Resolves to any answer except 429 and 5xx, which are repeated, as are lost connections. A POST carries an
   * Idempotency-Key, so that a repetition of it has no second effect. A path with a part `.` or `..`, which a foreign name may
   * be, is not called; the answer is a 400.
   * @throws ApiUnavailable
   */
  async function call(method: string, path: string, given: ApiCall = {}): Promise<ApiAnswer> {
    const target = base + path
    if (DOT_PART.test(path)) return { status: 400, body: null, text: `${path} has a part that is no name` }
    const once = method === 'POST' ? { 'idempotency-key': randomUUID() } : {}
    for (let attempt = 1; ; attempt++) {
      const outcome = await tryOnce(fetch, target, {
        method,
        ...requestOf(given, { authorization, ...once }),
      })
      if ('status' in outcome) return outcome
      if (attempt === ATTEMPTS_MAX)
        throw new ApiUnavailable(`${base} does not answer ${method} ${path}: ${outcome.reason}`)
      const waitMs = outcome.askedMs ?? Math.min(WAIT_MAX_MS, WAIT_FIRST_MS * 2 ** (attempt - 1))
      onWait?.(outcome.reason, waitMs)
      await wait(waitMs)
    }
  }

  return {
    /** Where it calls, for messages; without a key. */
    origin: base,
    call,
  }
}

/** A name of a foreign server as a part of a path. */
export const pathPart = (name: string): string => encodeURIComponent(name.toWellFormed())

/** Parts that would lead to another path, RFC 3986 §5.2.4. Names may be such; they have no percent signs left. */
const DOT_PART = /\/\.{1,2}(?:[/?]|$)/

function baseOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : null
  if (
    !parsed ||
    !['http:', 'https:'].includes(parsed.protocol) ||
    parsed.username !== '' ||
    parsed.search !== ''
  )
    throw new ApiUnavailable(`Not a base URL: "${url}"; expected http(s)://host`)
  return parsed.origin + parsed.pathname.replace(/\/+$/, '')
}

function requestOf({ json, form }: ApiCall, headers: Record<string, string>): RequestInit {
  if (json !== undefined)
    return { headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(json) }
  if (form === undefined) return { headers }
  const body = new URLSearchParams()
  for (const [name, value] of Object.entries(form))
    for (const one of typeof value === 'string' ? [value] : value) body.append(name, one)
  return { headers, body }
}

/** What should be repeated later, and after how long if the server said so. */
interface Postponed {
  reason: string
  askedMs: number | null
}

async function tryOnce(
  fetch: NonNullable<ApiClientOptions['fetch']>,
  url: string,
  init: RequestInit,
): Promise<ApiAnswer | Postponed> {
  try {
    const signal = AbortSignal.timeout(ANSWER_MAX_MS)
    const response = await fetch(url, { ...init, redirect: 'manual', signal })
    const { status } = response
    // 409 with a wait: the first try of this POST is still being carried out.
    const isRunning = status === 409 && response.headers.has('retry-after')
    if (status === 429 || status >= 500 || isRunning) {
      await response.body?.cancel()
      return { reason: `status ${status}`, askedMs: askedWait(response.headers) }
    }
    if (status >= 300 && status < 400)
      throw new ApiUnavailable(
        `${url} redirects to ${response.headers.get('location')}: give the URL of the API itself`,
      )
    return { status, ...(await bodyOf(response, url)) }
  } catch (error) {
    if (error instanceof ApiUnavailable) throw error
    const { cause, message } = error as Error
    return { reason: cause instanceof Error ? cause.message : message, askedMs: null }
  }
}

/** Retry-After as seconds or date (RFC 9110 §10.2.3), else X-RateLimit-Reset in Unix seconds. */
function askedWait(headers: Headers): number | null {
  const after = headers.get('retry-after')
  const reset = headers.get('x-ratelimit-reset')
  const now = Date.now()
  const asked =
    after !== null
      ? /^\d+$/.test(after)
        ? Number(after) * 1_000
        : Date.parse(after) - now
      : reset !== null
        ? Number(reset) * 1_000 - now
        : Number.NaN
  return Number.isNaN(asked) ? null : Math.min(ASKED_WAIT_MAX_MS, Math.max(0, asked))
}

async function bodyOf(response: Response, url: string): Promise<Pick<ApiAnswer, 'body' | 'text'>> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > ANSWER_BYTES_MAX)
      throw new ApiUnavailable(`${url} answers with over ${ANSWER_BYTES_MAX} bytes`)
    chunks.push(chunk)
  }
  const text = Buffer.concat(chunks).toString()
  const value = foreignJsonIn(text)
  return { text, body: isPlainObject(value) ? value : null }
}

/** What the server says is wrong, in any of the forms of its errors. */
export function errorText({ body, text, status }: ApiAnswer): string {
  for (const name of ['message', 'Reason', 'Description'])
    if (typeof body?.[name] === 'string') return body[name].slice(0, 1_000)
  return text.slice(0, 200) || `status ${status}`
}
