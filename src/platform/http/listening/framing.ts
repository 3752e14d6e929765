/**
 * Requests that servers in front of us may read differently than Node's parser does. The parser refuses most of them;
 * these it passes. Where two servers disagree on where a request ends or for which host it is, one of them can
 * be made to take a part of one client's request for another's (request smuggling).
 */
import type { IncomingMessage } from 'node:http'

const CHUNKED_LAST = /(?:^|,\s*)chunked$/i

export type FramingFault = 400 | 501 | 505

/** A proxy may join two Host fields, or unfold one. */
const SEVERAL_HOSTS = /[,\s]/

/**
 * The status that refuses the request; null: its framing is plain. The connection must end with the answer, and bytes
 * that follow on it must not be read as requests.
 */
export function framingFault({ httpVersion, headers, rawHeaders }: RequestHead): FramingFault | null {
  // Node's parser also takes 0.9 and 2.0, and treats them as 1.1.
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return 505
  const { host, 'transfer-encoding': coding } = headers
  if (coding !== undefined) {
    // RFC 9112 §6.1: HTTP/1.0 does not define it, so a proxy of that version may pass it on unseen.
    if (httpVersion === '1.0') return 400
    // RFC 9112 §6.3: without chunked as the last coding nobody knows where the body ends.
    if (!CHUNKED_LAST.test(coding)) return 400
    // RFC 9112 §6.1: a coding that is not understood, such as `gzip, chunked`.
    if (coding.length !== 'chunked'.length) return 501
  }
  // RFC 9112 §3.2.
  return host !== undefined && (SEVERAL_HOSTS.test(host) || countHosts(rawHeaders) > 1) ? 400 : null
}

type RequestHead = Pick<IncomingMessage, 'httpVersion' | 'headers' | 'rawHeaders'>

/** `headers` has the first one only. */
function countHosts(rawHeaders: readonly string[]): number {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    if (name.length === 4 && name.toLowerCase() === 'host') count++
  }
  return count
}
