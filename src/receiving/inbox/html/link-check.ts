/**
 * Calls the links and images of a message, because somebody has asked for that: HEAD, and GET where a server does not take
 * HEAD. Each is a request to an address that the sender of the message chose, so all go through the service's own client for
 * such addresses (http-client.ts): no private address, no credentials, bounds of time and bytes, each redirect checked anew.
 * Links of this service are not called: they would be counted as visits.
 */
import { setImmediate } from 'node:timers/promises'
import { Parser } from 'htmlparser2'
import { createGate } from '../../../base/flow/gate.ts'
import type { Of } from '../../../base/shape.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { SECOND_MS } from '../../../base/time/durations.ts'
import { type HttpClient, type HttpOutcome, URL_LENGTH_MAX } from '../../../platform/posts/http-client.ts'
import type { LINK_CHECK } from '../shapes.ts'
import { READ_CHARS_MAX } from './html-check.ts'

export type LinkCheck = Of<typeof LINK_CHECK>
type Result = LinkCheck['items'][number]

/** Links of one message; further ones are counted only. */
export const LINKS_MAX = 50
const AT_A_TIME = 5
/** For all of them together; what is left then was not called. */
const TOTAL_MS = 30 * SECOND_MS
const ONE_MS = 5 * SECOND_MS
const REDIRECTS_MAX = 5
/** Bytes of an answer to GET: nothing of it is used. */
const BODY_BYTES = 1_024
const STEP_CHARS = 32 * 1024
const PIECE_CHARS = 4_096
const DEPTH_MAX = 300
/** A link of a text. */
const TEXT_URL = /\bhttps?:\/\/[^\s<>"]{1,2000}/gi

interface Found {
  url: string
  kind: Result['kind']
}

/** The different http and https addresses of a message, those of its HTML first. */
export async function linksOf(html: string, text: string): Promise<Found[]> {
  const found = new Map<string, Found>()
  const add = (kind: Found['kind'], value: string | undefined) => {
    const url = value?.trim() ?? ''
    if (/^https?:\/\//i.test(url) && !found.has(url)) found.set(url, { url, kind })
  }
  let depth = 0
  const parser = new Parser({
    onopentag(name, { href, src, background }) {
      depth++
      if (name === 'a' || name === 'area') add('link', href)
      if (name === 'img') add('image', src)
      add('image', background)
    },
    onclosetag() {
      depth--
    },
  })
  const end = Math.min(html.length, READ_CHARS_MAX)
  for (let at = 0; at < end && depth <= DEPTH_MAX; at += PIECE_CHARS) {
    if (at > 0 && at % STEP_CHARS === 0) await setImmediate()
    parser.write(html.slice(at, Math.min(at + PIECE_CHARS, end)))
  }
  let count = 0
  for (const [url] of text.slice(0, READ_CHARS_MAX).matchAll(TEXT_URL)) {
    if (++count % 1_000 === 0) await setImmediate()
    add('link', url.replace(/[.,;:!?')\]}]{1,10}$/, ''))
  }
  return [...found.values()]
}

interface CallingParts {
  client: Pick<HttpClient, 'send'>
  clock: Clock
  /** Whether a link is one of this service. */
  isOwn(url: URL): boolean
}

/** @param signal aborts when the caller leaves: calls end, and nothing further is called */
export async function checkLinks(
  { client, clock, isOwn }: CallingParts,
  links: readonly Found[],
  signal: AbortSignal,
): Promise<LinkCheck> {
  const gate = createGate(AT_A_TIME, LINKS_MAX)
  const until = clock.monotonic() + TOTAL_MS
  const leftMs = () => (signal.aborted ? 0 : until - clock.monotonic())
  const isOver = () => leftMs() <= 0

  async function judged({ url, kind }: Found): Promise<Result> {
    await gate.enter()
    const result: Result = { url, kind, state: 'not called', status: null, reason: null, redirects: [] }
    try {
      if (isOver()) return { ...result, reason: 'the time for all links was over' }
      return { ...result, ...(await followed(url)) }
    } finally {
      gate.leave()
    }
  }

  async function followed(first: string): Promise<Pick<Result, 'state' | 'status' | 'reason' | 'redirects'>> {
    const redirects: string[] = []
    for (let url = first; ; ) {
      const parsed = URL.parse(url)
      if (parsed !== null && isOwn(parsed))
        return {
          ...{ state: 'not called', status: null, redirects },
          reason: 'a link of this service: a call would be counted as a visit',
        }
      const outcome = await called(url)
      if (outcome.kind !== 'answered')
        return {
          ...{ state: outcome.kind === 'refused' ? 'not called' : 'failed', status: null, redirects },
          reason: outcome.why,
        }
      const { status } = outcome
      const next = isRedirect(status) ? URL.parse(outcome.location ?? '', url)?.href : undefined
      if (next === undefined || redirects.length >= REDIRECTS_MAX || isOver())
        return {
          ...{ state: status < 300 ? 'ok' : 'failed', status, redirects },
          reason: status < 300 ? null : reasonOf(status, redirects.length),
        }
      redirects.push(next.slice(0, URL_LENGTH_MAX))
      url = next
    }
  }

  async function called(url: string): Promise<HttpOutcome> {
    const send = (method: 'HEAD' | 'GET') => {
      const totalMs = Math.max(1, Math.min(ONE_MS, Math.ceil(leftMs())))
      const limits = { connectMs: totalMs, totalMs, responseBytes: BODY_BYTES }
      return client.send({ ...limits, url, method, signal })
    }
    const head = await send('HEAD')
    const isTaken = head.kind === 'refused' || (head.kind === 'answered' && head.status < 400)
    // Some servers refuse or break HEAD, and answer GET.
    return isTaken || isOver() ? head : send('GET')
  }

  const items = await Promise.all(links.slice(0, LINKS_MAX).map(judged))
  return { items, left_out: links.length - items.length }
}

const isRedirect = (status: number) => status >= 300 && status < 400 && status !== 304

function reasonOf(status: number, redirects: number): string {
  if (isRedirect(status)) return redirects >= REDIRECTS_MAX ? 'too many redirects' : 'a redirect to nowhere'
  return status >= 500 ? 'the server has an error' : 'the server refuses it, or has no such page'
}
