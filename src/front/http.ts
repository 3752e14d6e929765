/**
 * Passes HTTP requests on to a node of their pod.
 *
 * 1. The pod is found by what the head of the request says (names.ts); only a sign-in is looked into, up to NAMING_MAX_BYTES.
 * 2. A node is connected to. Until then nothing of the request was sent, so the next node may be tried; afterwards nothing is
 *    ever repeated. Each request has a connection of its own, so that no request can become a part of another.
 * 3. Bodies pass as streams, in both directions, no faster than they are taken.
 *
 * Both sides are Node's parser: what is sent is made anew from what was understood (RFC 9112 §11.2). `Expect` ends here, as the
 * listener has answered it. Nothing is upgraded: that field is a hop's (RFC 9110 §7.8).
 */
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { request as httpRequest, STATUS_CODES } from '../base/net/node-http.ts'
import { MINUTE_MS } from '../base/time/durations.ts'
import { JSON_TYPE } from '../platform/http/listening/arrival.ts'
import type { DirectArrival } from '../platform/http/listening/direct-arrival.ts'
import type { RemoteAddresses } from '../platform/http/request/origin.ts'
import { type Directory, DirectoryAway, type Name, type Pod } from './directory.ts'
import { type KeyDigest, type LinkedAccount, namesIn, namesInBody, namesInHead } from './names.ts'
import { type Dial, NoNode } from './nodes.ts'

/** A node that has all of a request and says nothing for this long is given up; streams of events say something in a minute. */
const SILENT_MAX_MS = 2 * MINUTE_MS
/** Size of the body of a sign-in. */
const NAMING_MAX_BYTES = 16 * 1024

/** Fields for one connection only (RFC 9110 §7.6.1), those that frame the body, and what only a front may say. */
const DROPPED = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'te'],
  ...['trailer', 'transfer-encoding', 'upgrade', 'http2-settings', 'content-length', 'expect'],
  ...[
    'forwarded',
    'x-forwarded-for',
    'x-forwarded-host',
    'x-forwarded-port',
    'x-forwarded-proto',
    'x-real-ip',
  ],
])

export interface HttpFrontParts {
  directory: Pick<Directory, 'find' | 'fallback'>
  dial: Dial
  digest: KeyDigest
  /** Default: no link is looked into. */
  linkedAccount?: LinkedAccount
  remote: RemoteAddresses
  /** `pod`: '' where none was found. */
  answered(request: { pod: string; status: number }): void
  /** No answer of a node: bytes may have reached it. */
  onBroken(pod: string, error: Error): void
}

/** What the listener calls for each request. Its listener must leave bodies as streams. */
export function createHttpFront(parts: HttpFrontParts): (arrival: DirectArrival) => Promise<void> {
  const { directory, dial, digest, linkedAccount, remote, answered, onBroken } = parts

  return async (arrival) => {
    let pod: Pod | null = null
    try {
      const read = namesInBody(arrival) ? await readNaming(arrival) : null
      const names: Name[] = read ? namesIn(read, arrival.headers['content-type'] ?? '', digest) : []
      names.push(...namesInHead(arrival, digest, linkedAccount))
      pod = (await directory.find(names)) ?? directory.fallback()
      if (arrival.isGone) return
      if (pod === null) return refuse(pod, arrival, 503)
      const socket = await dial(pod.http, {
        address: remote.address(arrival),
        port: arrival.request.socket.remotePort ?? 0,
        isSecure: remote.isSecure(arrival),
      })
      if (arrival.isGone) socket.destroy()
      else pass(arrival, pod, socket, read)
    } catch (error) {
      if (arrival.isGone) return
      if (error instanceof TooLong) refuse(pod, arrival, 413)
      else if (error instanceof DirectoryAway || error instanceof NoNode) refuse(pod, arrival, 503)
      else throw error
    }
  }

  function pass(arrival: DirectArrival, pod: Pod, socket: Socket, read: Buffer | null): void {
    const { method, url, request } = arrival
    const outgoing = httpRequest({
      ...{ method, path: url, headers: requestFields(request), setHost: false },
      createConnection: () => socket,
    })
    let isAnswered = false
    let answer: IncomingMessage | undefined
    arrival.onEnd(() => outgoing.destroy())
    const fail = (error: Error, status: number) => {
      outgoing.destroy()
      if (isAnswered || arrival.isGone) return
      isAnswered = true
      onBroken(pod.name, error)
      request.unpipe(outgoing)
      refuse(pod, arrival, status)
    }
    outgoing.on('error', (error) => fail(error, 502))
    outgoing.on('finish', () => socket.setTimeout(SILENT_MAX_MS))
    socket.on('timeout', () => {
      // Else it is the client that is slow, which is the listener's to judge.
      if ((answer?.readableLength ?? 0) === 0)
        fail(new Error(`the node was silent for ${SILENT_MAX_MS} ms`), 504)
    })
    outgoing.on('response', (response) => {
      if (isAnswered || arrival.isGone) return void response.destroy()
      isAnswered = true
      answer = response
      // A node that answers early reads no more of the body; the listener reads the rest and drops it.
      request.unpipe(outgoing)
      answered({ pod: pod.name, status: response.statusCode ?? 0 })
      // An answer that breaks off ends the client's connection.
      arrival.answer(response.statusCode ?? 502, answerFields(response), response, (error) =>
        onBroken(pod.name, error),
      )
      response.once('close', () => outgoing.destroy())
    })
    if (read !== null) outgoing.end(read)
    else if (arrival.body.kind === 'stream') request.pipe(outgoing)
    else outgoing.end()
  }

  function refuse(pod: Pod | null, arrival: DirectArrival, status: number): void {
    const body = JSON.stringify({ message: STATUS_CODES[status] })
    answered({ pod: pod?.name ?? '', status })
    const again = status === 503 ? { 'retry-after': '5' } : {}
    const fields = { 'content-type': JSON_TYPE, 'content-length': body.length, ...again }
    arrival.answer(status, fields, body, () => {})
  }
}

class TooLong extends Error {}

/** All of a small body. @throws TooLong */
async function readNaming({ request }: DirectArrival): Promise<Buffer> {
  const pieces: Buffer[] = []
  let size = 0
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  request.on('data', (piece: Buffer) => {
    size += piece.byteLength
    if (size > NAMING_MAX_BYTES) reject(new TooLong())
    else pieces.push(piece)
  })
  request.on('end', resolve).on('error', reject).on('close', resolve)
  await promise
  return Buffer.concat(pieces)
}

/** Names and values in turn, as sent, with framing of our own. */
function requestFields({ rawHeaders, headers }: IncomingMessage): string[] {
  const fields: string[] = []
  const dropped = droppedBy(headers.connection)
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name, value] = [rawHeaders[at] as string, rawHeaders[at + 1] as string]
    if (!dropped.has(name.toLowerCase())) fields.push(name, value)
  }
  if (headers['transfer-encoding'] !== undefined) fields.push('Transfer-Encoding', 'chunked')
  else if (headers['content-length'] !== undefined) fields.push('Content-Length', headers['content-length'])
  // RFC 9110 §7.6.3: a gateway names itself.
  fields.push('Via', '1.1 sendwright', 'Connection', 'close')
  return fields
}

function answerFields({ headersDistinct, headers }: IncomingMessage): OutgoingHttpHeaders {
  const dropped = droppedBy(headers.connection)
  const fields: OutgoingHttpHeaders = {}
  for (const [name, values] of Object.entries(headersDistinct)) if (!dropped.has(name)) fields[name] = values
  const { 'content-length': length, 'transfer-encoding': coding } = headers
  if (length !== undefined && coding === undefined) fields['content-length'] = length
  return fields
}

/** With those that the Connection field names. */
const droppedBy = (connection: string | undefined): ReadonlySet<string> =>
  connection === undefined || /^(?:keep-alive|close)$/i.test(connection)
    ? DROPPED
    : new Set([...DROPPED, ...connection.split(',').map((name) => name.trim().toLowerCase())])
