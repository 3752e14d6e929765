/**
 * Limits the connections of a listener, per client and in all. A connection beyond a limit gets a fixed answer, without a
 * parser and without the main thread, so that a flood of them costs little.
 */
import type { Server, Socket } from 'node:net'
import { networkOf } from '../../../base/net/client-networks.ts'
import { networkMatcher, plainAddress } from '../request/remote-address.ts'
import { JSON_TYPE } from './arrival.ts'

export interface ConnectionLimits {
  /** Of one client: an IPv4 address, or an IPv6 network of 64 bits. Default: any number. */
  perClientMax?: number | undefined
  /** Of all clients; default `HTTP_CONNECTIONS_MAX`. */
  max?: number
  /** Proxies, as addresses or CIDR networks: they bring the connections of many clients, so only `max` limits them. */
  proxies?: readonly string[]
}

/** Each costs about 10 KB. */
export const HTTP_CONNECTIONS_MAX = 10_000
/** Time for a refused client to read why. */
const LINGER_MS = 2_000
/** Refused connections that wait for that; beyond it the oldest, whose answer has been sent, is ended at once. */
const LINGERING_MAX = 500

const FROM_CLIENT = answerWith('Too many connections from this address')
const IN_ALL = answerWith('Too many connections')

export interface Admission {
  /** Ends refused connections that still wait. */
  end(): void
}

/** @param isPlain without TLS: before a handshake there is no way to answer */
export function admitConnections(server: Server, limits: ConnectionLimits, isPlain: boolean): Admission {
  const { perClientMax = Number.POSITIVE_INFINITY, max = HTTP_CONNECTIONS_MAX } = limits
  const isProxy = networkMatcher(limits.proxies ?? [])
  const perClient = new Map<string, number>()
  const lingering = new Set<Socket>()
  let count = 0

  /** Null if the connection is admitted, else the answer. */
  function refusal(socket: Socket): string | null {
    const address = plainAddress(socket.remoteAddress ?? '')
    if (count >= max) return IN_ALL
    const client = isProxy(address) ? null : networkOf(address)
    if (client !== null) {
      const known = perClient.get(client) ?? 0
      if (known >= perClientMax) return FROM_CLIENT
      perClient.set(client, known + 1)
    }
    count += 1
    socket.once('close', () => {
      count -= 1
      if (client !== null) release(client)
    })
    return null
  }

  function release(client: string): void {
    const others = (perClient.get(client) ?? 1) - 1
    if (others > 0) perClient.set(client, others)
    else perClient.delete(client)
  }

  function refuse(socket: Socket, answer: string): void {
    socket.on('error', () => {})
    if (!isPlain) {
      socket.destroy()
      return
    }
    socket.end(answer)
    // Its request is read and discarded: unread bytes would turn the answer into a reset.
    socket.resume()
    lingering.add(socket)
    const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref()
    socket.once('end', () => socket.destroy())
    socket.once('close', () => {
      clearTimeout(timer)
      lingering.delete(socket)
    })
    if (lingering.size > LINGERING_MAX) lingering.values().next().value?.destroy()
  }

  const listeners = server.listeners('connection')
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    const answer = refusal(socket)
    if (answer !== null) refuse(socket, answer)
    else for (const listener of listeners) listener.call(server, socket)
  })
  return {
    end() {
      for (const socket of lingering) socket.destroy()
    },
  }
}

function answerWith(message: string): string {
  const body = JSON.stringify({ message })
  const head = [
    'HTTP/1.1 503 Service Unavailable',
    `Content-Type: ${JSON_TYPE}`,
    `Content-Length: ${body.length}`,
    'Retry-After: 5',
    'Connection: close',
  ]
  return [...head, '', body].join('\r\n')
}
