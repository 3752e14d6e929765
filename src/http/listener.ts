/**
 * The sockets below the routes: deadlines, limits, and answers to what cannot be parsed.
 * Requests with both Content-Length and Transfer-Encoding, or other framing that proxies read differently
 * (RFC 9112 §6.3), never get past Node's parser.
 */
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Clock, Timer } from '../base/clock.ts'
import { JSON_TYPE } from './exchange.ts'

/** A client that has not finished its headers by then is no client (slow header attack). */
const HEADERS_DEADLINE_MS = 10_000
/** The largest send request at about 1.5 Mbit/s. */
const REQUEST_DEADLINE_MS = 5 * 60_000
/** Longer than the idle limit of common load balancers (60 s), so that they close first. */
const KEEP_ALIVE_MS = 72_000
/** How often Node looks for connections past a deadline. */
const DEADLINE_CHECK_MS = 1_000
/** Headers of one request; paging tokens are at most 2 KiB, cookies small. */
const HEADERS_MAX_BYTES = 32 * 1024
/** Open connections; each costs some 10 KB. Above it the system's backlog waits. */
const CONNECTIONS_MAX = 10_000
/** How often a closing server looks for connections that have become idle. */
const IDLE_SWEEP_MS = 50

export interface Deadlines {
  headersMs?: number
  requestMs?: number
  keepAliveMs?: number
  closeGraceMs?: number
}

export function serverLimits(deadlines: Deadlines) {
  return {
    headersTimeout: deadlines.headersMs ?? HEADERS_DEADLINE_MS,
    requestTimeout: deadlines.requestMs ?? REQUEST_DEADLINE_MS,
    keepAliveTimeout: deadlines.keepAliveMs ?? KEEP_ALIVE_MS,
    connectionsCheckingInterval: Math.min(DEADLINE_CHECK_MS, deadlines.headersMs ?? DEADLINE_CHECK_MS),
    maxHeaderSize: HEADERS_MAX_BYTES,
    insecureHTTPParser: false,
  }
}

export function limitConnections(server: { maxConnections: number }): void {
  server.maxConnections = CONNECTIONS_MAX
}

/** What Node's parser refuses: bad framing, too large headers, a missed deadline. */
export function answerUnparsable(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const answers: Record<string, string> = {
    HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
    ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
  }
  const status = answers[error.code ?? ''] ?? '400 Bad Request'
  const body = JSON.stringify({ message: status.slice(4) })
  const head = [`HTTP/1.1 ${status}`, `Content-Type: ${JSON_TYPE}`, `Content-Length: ${body.length}`]
  socket.end([...head, 'Connection: close', '', body].join('\r\n'))
}

/** Resolves once the server is open. @throws the system's error if it cannot be */
export async function listening(server: Server | HttpsServer, port: number, host: string): Promise<void> {
  const opened = once(server, 'listening') // rejects on 'error'
  server.listen({ port, host })
  await opened
}

/** A connection that was busy when the server closed turns idle later, and nobody tells. */
export function everySweep(clock: Clock, run: () => void): Timer {
  let timer: Timer
  const arm = () => {
    run()
    timer = clock.setTimer(IDLE_SWEEP_MS, arm)
  }
  timer = clock.setTimer(IDLE_SWEEP_MS, arm)
  return { cancel: () => timer.cancel() }
}

export async function closed(server: Server | HttpsServer): Promise<void> {
  if (!server.listening) return
  const ended = once(server, 'close')
  server.close()
  server.closeIdleConnections()
  await ended
}
