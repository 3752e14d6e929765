/**
 * Which connections a listener takes: so many from one client, and so many in all. A connection beyond that gets an
 * answer of its own, given without a parser and without the main thread, so that a flood of them costs little.
 */
import type { Server, Socket } from 'node:net'
import { JSON_TYPE } from './arrival.ts'
import { networkOf } from './failed-attempts.ts'
import { networkMatcher, plainAddress } from './remote-address.ts'

export interface ConnectionLimits {
  /** Of one client: an IPv4 address, or an IPv6 network of 64 bits. Default: any number. */
  perClientMax?: number | undefined
  /** Of all clients; default `HTTP_CONNECTIONS_MAX`. */
  max?: number
  /** Proxies, as addresses or CIDR networks: they bring the connections of many clients. Only `max` is for them. */
  proxies?: readonly string[]
}

/** Each costs some 10 KB. */
export const HTTP_CONNECTIONS_MAX = 10_000
/** For a client that is sent away to read why. */
const LINGER_MS = 2_000
/** That are read by nobody and only wait for that; beyond it the oldest goes at once, its answer having been sent. */
const LINGERING_MAX = 500

const FROM_CLIENT = answerWith('Too many connections from this address')
const IN_ALL = answerWith('Too many connections')

export interface Admission {
  /** Ends those that are being sent away. */
  end(): void
}

/** @param isPlain the client can read an answer; before TLS there is no way to say why */
export function admitConnections(server: Server, limits: ConnectionLimits, isPlain: boolean): Admission {
  const { perClientMax = Number.POSITIVE_INFINITY, max = HTTP_CONNECTIONS_MAX } = limits
  const isProxy = networkMatcher(limits.proxies ?? [])
  const perClient = new Map<string, number>()
  const lingering = new Set<Socket>()
  let count = 0

  /** Null if it is taken, else the answer. */
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
      if (client !== null) left(client)
    })
    return null
  }

  function left(client: string): void {
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
    // Its request is read and thrown away: unread bytes would turn the answer into a reset.
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

  const takers = server.listeners('connection')
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    const answer = refusal(socket)
    if (answer !== null) refuse(socket, answer)
    else for (const take of takers) take.call(server, socket)
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
