/**
 * Makes recorded requests again, at a service of another domain and address. What the service names by itself (ids,
 * storage keys, pages) differs: wherever a response has another text than the recorded one, later requests say the new.
 */
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Exchange, type Exchanges, missingIn } from './exchange.ts'

/** Longest wait for a response that follows from work in the background, such as a delivery. */
const WAIT_MS = 15_000
const ASK_EVERY_MS = 20
/** Shorter texts are words. */
const NAME_MIN_LENGTH = 8
const RFC_5322_DATE = /[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g

export interface Place {
  url: string
  domain: string
  authorization: string
}

/** @returns what a client would miss, with its call; null for nothing */
export async function replay({ exchanges, ...recorded }: Exchanges, place: Place): Promise<string | null> {
  const names = new Map<string, string>()
  const here = (text: string) =>
    text.replaceAll(recorded.url, place.url).replaceAll(recorded.domain, place.domain)
  const laterMs = Date.now() - Date.parse(recorded.recordedAt)
  for (const exchange of exchanges) {
    const now = { ...exchange, path: renamed(here(exchange.path), names) }
    now.body = renamed(here(exchange.body), names).replaceAll(RFC_5322_DATE, (date) => moved(date, laterMs))
    const { response, difference } = await ask(now, place)
    if (difference !== null) return `${exchange.call}: ${exchange.method} ${now.path}: ${difference}`
    learn(exchange.response, response, here, names)
  }
  return null
}

/** Asks until nothing is missing, if the request changes nothing. */
async function ask(
  exchange: Exchange,
  place: Place,
): Promise<{ response: unknown; difference: string | null }> {
  const until = performance.now() + WAIT_MS
  const changes = exchange.method !== 'GET' && !exchange.path.startsWith('/v1/analytics/')
  for (;;) {
    const { status, response } = await send(exchange, place)
    const difference =
      status === exchange.status
        ? missingIn(response, exchange.response)
        : `status ${status} instead of ${exchange.status}: ${JSON.stringify(response)}`
    if (difference === null || changes || performance.now() > until) return { response, difference }
    await sleep(ASK_EVERY_MS)
  }
}

function send(
  { method, path, headers, body }: Exchange,
  { url, authorization }: Place,
): Promise<{ status: number; response: unknown }> {
  return new Promise((resolve, reject) => {
    const length = body === '' && method === 'GET' ? {} : { 'content-length': Buffer.byteLength(body) }
    request(new URL(path, url), { method, headers: { ...headers, ...length, authorization } }, (answer) => {
      answer.toArray().then((chunks: Buffer[]) => {
        const text = Buffer.concat(chunks).toString()
        resolve({ status: answer.statusCode ?? 0, response: parsed(text) })
      }, reject)
    })
      .on('error', reject)
      .end(body)
  })
}

/** Remembers the texts that are others now: names without their service, as requests have them. */
function learn(
  recorded: unknown,
  response: unknown,
  here: (text: string) => string,
  names: Map<string, string>,
): void {
  if (typeof recorded === 'string' && typeof response === 'string') {
    const [before, now] = [here(recorded), response].map(pathOf) as [string, string]
    if (before !== now && before.length >= NAME_MIN_LENGTH) names.set(before, now)
  } else if (isObject(recorded) && isObject(response)) {
    for (const [name, value] of Object.entries(recorded)) learn(value, response[name], here, names)
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

const pathOf = (text: string) => text.replace(/^http:\/\/[^/]+/, '')

/** Longest first: a page's path may contain an id. */
function renamed(text: string, names: ReadonlyMap<string, string>): string {
  let now = text
  for (const [before, after] of [...names].sort(([one], [other]) => other.length - one.length)) {
    now = now.replaceAll(before, after)
    if (now === text) now = now.replaceAll(encodeURIComponent(before), encodeURIComponent(after))
  }
  return now
}

function moved(date: string, byMs: number): string {
  const time = new Date(Date.parse(date) + byMs)
  return time.toUTCString().replace('GMT', '+0000')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
