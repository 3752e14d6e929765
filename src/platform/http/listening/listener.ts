/**
 * The sockets below the routes: deadlines, limits, and answers to what cannot be parsed.
 * Framing that proxies read differently (RFC 9112 §6.3), such as Content-Length together with Transfer-Encoding, is refused by
 * Node's parser or by `framingFault`.
 */
import { once } from 'node:events'
import { createServer as createHttpsServer, type ServerOptions } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { SecureContextOptions } from 'node:tls'
import { createServer } from '../../../base/net/node-http.ts'
import type { HeaderFault } from '../../../protocols/proxy/accepting.ts'
import { JSON_TYPE } from './arrival.ts'
import { admitConnections, type ConnectionLimits } from './connection.ts'
import { createRequestIntake, type DirectArrival, type RequestIntake } from './direct-arrival.ts'

/** A client that has not finished its headers by then is no client (slow header attack). */
const HEADERS_DEADLINE_MS = 10_000
/** The largest send request at about 1.5 Mbit/s. */
const REQUEST_DEADLINE_MS = 5 * 60_000
/** Longer than the idle limit of common load balancers (60 s), so that they close first. */
const KEEP_ALIVE_MS = 72_000
/** How often Node looks for connections past a deadline. */
const DEADLINE_CHECK_MS = 1_000
/** A client that has not finished its handshake by then is no client; Node's default is two minutes. */
const TLS_HANDSHAKE_MS = 10_000
/** Headers of one request; paging tokens are at most 2 KiB, cookies small. */
const HEADERS_MAX_BYTES = 32 * 1024
/** Time for the last answer to be read, before a connection that cannot be parsed any more is ended. */
const LINGER_MS = 2_000
/** How often a closing server looks for connections that have become idle. */
const IDLE_SWEEP_MS = 50

export interface Deadlines {
  headersMs?: number
  requestMs?: number
  keepAliveMs?: number
  closeGraceMs?: number
  /** For a client that has an answer to read and makes no progress. */
  stalledMs?: number
}

export interface Listener {
  /**
   * Resolves with the port once it is open.
   * @param port 0: any free one
   * @throws the system's error if it cannot be
   */
  listen(port: number, host: string): Promise<number>
  /** Refuses new connections, ends the idle ones and those without a request; resolves when the last has ended. */
  close(): Promise<void>
  /** Ends all connections. */
  cut(): void
}

export interface ListenerOptions {
  deadlines?: Deadlines | undefined
  connections?: ConnectionLimits | undefined
}

export interface TlsOptions {
  options: ServerOptions
  /** Calls `apply` with each new certificate for clients that name no host. */
  follow?(apply: (options: SecureContextOptions) => void): void
}

/** What balancers do wrong (protocols/proxy/accepting.ts). */
export interface HeaderFaults {
  onHeaderFault?: ((fault: HeaderFault) => void) | undefined
}

/**
 * A listener on this thread, with `tls` over TLS. One that `isLocal` has clients on this machine, and listens at a path of the
 * file system. `collects`: as of `createRequestIntake`.
 */
export function createListener(
  options: ListenerOptions &
    HeaderFaults & { tls?: TlsOptions | undefined; isLocal?: boolean; collects?: boolean },
  handle: (arrival: DirectArrival) => void,
): Omit<Listener, 'listen'> & {
  listen(...where: [port: number, host: string] | [path: string]): Promise<number>
} {
  const { deadlines = {}, connections = {}, tls, isLocal = false, collects } = options
  const limits = {
    headersTimeout: deadlines.headersMs ?? HEADERS_DEADLINE_MS,
    requestTimeout: deadlines.requestMs ?? REQUEST_DEADLINE_MS,
    keepAliveTimeout: deadlines.keepAliveMs ?? KEEP_ALIVE_MS,
    connectionsCheckingInterval: Math.min(DEADLINE_CHECK_MS, deadlines.headersMs ?? DEADLINE_CHECK_MS),
    maxHeaderSize: HEADERS_MAX_BYTES,
    insecureHTTPParser: false,
  }
  const intake = createRequestIntake(handle, deadlines.stalledMs, isLocal, collects)
  const server = tls === undefined ? createServer(limits, intake.add) : secureServer(tls)

  function secureServer({ options: own, follow }: TlsOptions) {
    const made = createHttpsServer({ ...limits, handshakeTimeout: TLS_HANDSHAKE_MS, ...own }, intake.add)
    follow?.((renewed) => made.setSecureContext(renewed))
    return made
  }

  server.on('clientError', (error, socket) => answerUnparsable(error, socket as Socket, intake))
  const admission = admitConnections(server, connections, tls === undefined, options.onHeaderFault)
  return {
    async listen(...where) {
      const listening = once(server, 'listening') // rejects on 'error'
      server.listen(...(where as [number, string]))
      await listening
      return isLocal ? 0 : (server.address() as AddressInfo).port
    },
    async close() {
      if (!server.listening) return
      const ended = once(server, 'close')
      server.close()
      server.closeIdleConnections()
      admission.end()
      // A busy connection becomes idle later, without an event; the first request of a new one may be on its way.
      const sweep = setInterval(() => {
        server.closeIdleConnections()
        admission.endSilent()
      }, IDLE_SWEEP_MS)
      await ended.finally(() => clearInterval(sweep))
    },
    cut() {
      server.closeAllConnections()
      admission.end()
    },
  }
}

/** For what Node's parser refuses: bad framing, too large headers, a missed deadline. */
function answerUnparsable(error: Error & { code?: string }, socket: Socket, intake: RequestIntake): void {
  const state = intake.stateOf(socket)
  const isEnd = state === 'ending' || error.code === 'HPE_CLOSED_CONNECTION'
  if (isEnd && error.code?.startsWith('HPE_') && socket.writable) {
    // It follows the last request, whose answer ends the connection.
    socket.pause()
    return
  }
  if (error.code === 'ECONNRESET' || !socket.writable || state !== 'free') {
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
  // A client that does not close its side would keep the connection: no deadline covers it any more.
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}
