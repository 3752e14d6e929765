/**
 * Requests to the HTTP interfaces of DNS providers: with the limits of time and size, and the check of addresses, that all
 * outgoing requests have. A provider that asks for a short wait is asked again; a longer one is passed on.
 */

import { pause } from '../../../base/flow/pause.ts'
import { foreignJsonIn } from '../../../base/foreign-json.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { SECOND_MS } from '../../../base/time/durations.ts'
import { isPlainObject } from '../../../base/values.ts'
import {
  type HttpClient,
  type HttpOutcome,
  type HttpRequest,
  retryAfterMs,
  withAdvice,
} from '../../../platform/posts/http-client.ts'
import { canonicalData, isWritable } from '../../../protocols/dns/presentation.ts'
import { ProviderFault, type RecordSet, type Zone } from '../provider.ts'

export interface ApiParts {
  client: Pick<HttpClient, 'send'>
  clock: Clock
  signal: AbortSignal
  /** Monotonic time after which no request is sent. */
  untilMs: number
}

interface ApiOptions {
  /** As people know the provider. */
  who: string
  baseUrl: string
  secret: string
  /** `path` with its query. */
  headers(call: { method: string; path: string; body: Buffer }): Record<string, string>
  /** The provider's own words in the body of a refusal. */
  wordsOf(body: unknown): string
  /** Default JSON. */
  read?(text: string): unknown
  /** Further statuses that mean "again after a moment". */
  isBusy?(status: number, body: unknown): boolean
}

export type Api = <T = Record<string, unknown>>(
  method: NonNullable<HttpRequest['method']>,
  path: string,
  body?: unknown,
) => Promise<T>

const ANSWER_BYTES_MAX = 256 * 1024
/** Names have at most 20 records or so; more than this is not a name of mail. */
export const RECORDS_PER_NAME_MAX = 100
const WAIT_MAX_MS = 5 * SECOND_MS
const BUSY_WAIT_MS = SECOND_MS
const TRIES_MAX = 3

type Answered = Extract<HttpOutcome, { kind: 'answered' }>

export function createApi({ client, clock, signal, untilMs }: ApiParts, options: ApiOptions): Api {
  const { who, baseUrl, read = foreignJsonIn } = options

  async function send(method: NonNullable<HttpRequest['method']>, path: string, given: unknown) {
    const isText = typeof given === 'string'
    const body = given === undefined ? Buffer.alloc(0) : Buffer.from(isText ? given : JSON.stringify(given))
    for (let tries = 1; ; tries++) {
      if (signal.aborted || clock.monotonic() > untilMs)
        throw new ProviderFault('away', `${who} takes too long to answer.`)
      const outcome = await client.send({
        url: baseUrl + path,
        method,
        headers: {
          accept: isText ? 'application/xml' : 'application/json',
          ...(body.length > 0 && { 'content-type': isText ? 'application/xml' : 'application/json' }),
          ...options.headers({ method, path, body }),
        },
        ...(body.length > 0 && { body }),
        responseBytes: ANSWER_BYTES_MAX,
      })
      if (outcome.kind !== 'answered')
        throw new ProviderFault('away', `${who} cannot be reached: ${withAdvice(outcome.why)}.`)
      const answer = parsed(outcome)
      const waitMs = outcome.status < 400 ? null : waitOf(outcome, answer)
      if (waitMs === null || waitMs > WAIT_MAX_MS || tries >= TRIES_MAX) return { outcome, answer, waitMs }
      await pause(clock, waitMs, signal)
    }
  }

  /** Null for what cannot be read. */
  function parsed({ body }: Answered): unknown {
    if (body.byteLength >= ANSWER_BYTES_MAX)
      throw new ProviderFault('refused', `${who} sent more than ${ANSWER_BYTES_MAX} bytes.`)
    return body.byteLength === 0 ? {} : (read(body.toString()) ?? null)
  }

  /** Null: waiting does not help. */
  function waitOf({ status, retryAfter }: Answered, answer: unknown): number | null {
    const isBusy = status === 429 || status === 503 || options.isBusy?.(status, answer)
    return isBusy ? (retryAfterMs(retryAfter, clock.now()) ?? BUSY_WAIT_MS) : null
  }

  return async (method, path, given) => {
    const { outcome, answer, waitMs } = await send(method, path, given)
    const { status } = outcome
    if (status < 300 && answer !== null) return answer as never
    const told = answer === null ? '' : options.wordsOf(answer).replaceAll(options.secret, '[hidden]')
    const words = `(status ${status}${told === '' ? '' : `: ${told}`})`
    if (status < 300) throw new ProviderFault('away', `${who} sent an answer that cannot be read ${words}.`)
    if (waitMs !== null) {
      const seconds = Math.ceil(waitMs / SECOND_MS)
      throw new ProviderFault('limit', `${who} takes no more requests for ${seconds} s ${words}.`, seconds)
    }
    if (status === 401 || status === 403)
      throw new ProviderFault('login', `${who} does not take the credentials, or not for this ${words}.`)
    if (status >= 500) throw new ProviderFault('away', `${who} could not answer ${words}.`)
    if (status === 409 || status === 404)
      throw new ProviderFault('changed', `${who} has something else there by now ${words}.`)
    throw new ProviderFault('refused', `${who} refused ${words}.`)
  }
}

/** The name and those above it, longest first, as zones that may hold it; not top-level domains. */
export function zoneNames(name: string): string[] {
  const labels = name.split('.').slice(-LABELS_MAX)
  return labels.slice(0, -1).map((_, at) => labels.slice(at).join('.'))
}

/** Each is a request, and no zone of a sending domain is deeper. */
const LABELS_MAX = 8

/** Finds the longest zone that holds a name; each possible zone is looked for once. */
export function longestZone(
  find: (zone: string) => Promise<Zone | null>,
): (name: string) => Promise<Zone | null> {
  const known = new Map<string, Zone | null>()
  return async (name) => {
    for (const zone of zoneNames(name)) {
      const found = known.has(zone) ? known.get(zone) : await find(zone)
      known.set(zone, found ?? null)
      if (found) return found
    }
    return null
  }
}

/** A name in a zone, as most interfaces want it; the zone itself is `apex`. */
export const nameInZone = (name: string, zone: string, apex: string): string =>
  name === zone ? apex : name.slice(0, -zone.length - 1)

/** One record as an interface lists it. */
export interface ListedRecord {
  type: string
  data: string
  handle: string
  ttlSeconds: number | null
  lock?: string | null
}

/** A 4096-bit key takes 700 characters; changes are stored. */
const DATA_LENGTH_MAX = 8_192

/** The sets of one name. */
export function setsOf(name: string, records: readonly ListedRecord[]): RecordSet[] {
  const tooMany =
    records.length >= RECORDS_PER_NAME_MAX ? `it has ${RECORDS_PER_NAME_MAX} records or more` : null
  return [...Map.groupBy(records, ({ type }) => type)].map(([type, list]) => {
    const values = list.map(({ data }) =>
      !isWritable(type) ? data : data.length > DATA_LENGTH_MAX ? null : canonicalData(type, data),
    )
    const locks = list.map(({ lock = null }) => lock).filter((lock) => lock !== null)
    return {
      ...{ name, type, ttlSeconds: list[0]?.ttlSeconds ?? null },
      values: values.map((value, at) => value ?? (list[at]?.data ?? '').slice(0, DATA_LENGTH_MAX)),
      handles: list.map(({ handle }) => handle),
      lock: locks[0] ?? tooMany ?? (values.includes(null) ? 'it holds a value that cannot be read' : null),
    }
  })
}

export const listIn = (answer: unknown, member?: string): Record<string, unknown>[] => {
  const value = member === undefined ? answer : isPlainObject(answer) ? answer[member] : null
  return Array.isArray(value) ? value.filter(isPlainObject) : []
}

export const textIn = (item: Readonly<Record<string, unknown>>, member: string): string =>
  typeof item[member] === 'string' || typeof item[member] === 'number' ? String(item[member]) : ''

export const numberIn = (item: Readonly<Record<string, unknown>>, member: string): number | null =>
  typeof item[member] === 'number' ? item[member] : null
