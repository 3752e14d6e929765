/**
 * One query to one server over UDP or TCP. Every call owns its socket (a new source port for each query, RFC 5452 §9.2)
 * and leaves nothing open. How long it waits is the caller's decision, who ends it through `open`.
 */
import { createSocket } from 'node:dgram'
import { connect, isIPv6 } from 'node:net'
import { connectionFaultOf, shortageOf } from '../../base/process/shortage.ts'
import { isReplyTo } from './packet.ts'

/** `host` is an IP address, never a name. */
export interface ServerAddress {
  host: string
  port: number
}

/** Exchanges of one query: each is a socket, and another chance for who guesses an answer. */
export const EXCHANGES_MAX = 2

/** The exchanges of one query, which all end with it. A further one ends the oldest as a time-out. */
export class OpenExchanges {
  readonly #abandons = new Set<() => void>()
  #ended = false

  get ended(): boolean {
    return this.#ended
  }

  add(abandon: () => void): void {
    if (this.#ended) {
      abandon()
      return
    }
    const [oldest] = this.#abandons
    if (oldest && this.#abandons.size === EXCHANGES_MAX) oldest()
    this.#abandons.add(abandon)
  }

  delete(abandon: () => void): void {
    this.#abandons.delete(abandon)
  }

  /** Ends them as time-outs; further ones end at once. */
  end(): void {
    this.#ended = true
    for (const abandon of [...this.#abandons]) abandon()
  }
}

export type Exchange =
  | { kind: 'packet'; packet: Buffer }
  | { kind: 'timeout' }
  /** `localFault`: no packet has left this machine, and why. */
  | { kind: 'unreachable'; problem: string; localFault?: string }
  | { kind: 'malformed'; problem: string }
  /** So many stray datagrams arrived that someone may be guessing ids: query over TCP instead. */
  | { kind: 'flooded' }

/** Late answers to an earlier user of the port are one or two; guessing an id takes thousands. */
const STRAY_DATAGRAMS_MAX = 8

/** Sends `query` and waits for the datagram that answers it; others are ignored. */
export function queryOverUdp(server: ServerAddress, query: Buffer, open: OpenExchanges): Promise<Exchange> {
  return exchange(open, (finish) => {
    const socket = createSocket(isIPv6(server.host) ? 'udp6' : 'udp4')
    let strays = 0
    socket.on('error', (error) => finish(unreachable(error)))
    socket.on('message', (packet) => {
      if (isReplyTo(query, packet)) return finish({ kind: 'packet', packet })
      strays += 1
      if (strays > STRAY_DATAGRAMS_MAX) finish({ kind: 'flooded' })
    })
    // A connected socket receives datagrams from this server only, and ICMP errors.
    socket.on('connect', () => socket.send(query))
    socket.connect(server.port, server.host)
    return () => socket.close()
  })
}

/** The same over TCP; a message holds at most 65,535 bytes, which its two-byte length cannot exceed. RFC 7766 §8. */
export function queryOverTcp(server: ServerAddress, query: Buffer, open: OpenExchanges): Promise<Exchange> {
  return exchange(open, (finish) => {
    const socket = connect({ host: server.host, port: server.port, noDelay: true })
    const chunks: Buffer[] = []
    let received = 0
    let expected = Number.POSITIVE_INFINITY
    socket.on('error', (error) => finish(unreachable(error)))
    socket.on('close', () =>
      finish({ kind: 'malformed', problem: 'the TCP connection ended within the reply' }),
    )
    socket.on('connect', () => {
      const length = Buffer.alloc(2)
      length.writeUInt16BE(query.length)
      socket.write(Buffer.concat([length, query])) // in one segment, RFC 7766 §8
    })
    socket.on('data', (chunk) => {
      chunks.push(chunk)
      received += chunk.length
      if (expected === Number.POSITIVE_INFINITY && received >= 2)
        expected = 2 + Buffer.concat(chunks).readUInt16BE(0)
      if (received < expected) return
      const packet = Buffer.concat(chunks).subarray(2, expected)
      if (isReplyTo(query, packet)) finish({ kind: 'packet', packet })
      else finish({ kind: 'malformed', problem: 'the reply over TCP answers another question' })
    })
    return () => socket.destroy()
  })
}

function unreachable(error: Error): Exchange {
  const localFault = shortageOf(error) ?? connectionFaultOf(error)
  return { kind: 'unreachable', problem: error.message, ...(localFault !== null && { localFault }) }
}

/** Runs one exchange: the first `finish` counts; then the socket closes. */
function exchange(
  open: OpenExchanges,
  start: (finish: (outcome: Exchange) => void) => () => void,
): Promise<Exchange> {
  return new Promise((resolve) => {
    let close: (() => void) | undefined
    let ended = false
    const finish = (outcome: Exchange) => {
      if (ended) return
      ended = true
      open.delete(abandon)
      close?.()
      resolve(outcome)
    }
    const abandon = () => finish({ kind: 'timeout' })
    open.add(abandon)
    if (ended) return
    close = start(finish)
    if (ended) close()
  })
}
