/**
 * Connections that balancers hand over with a PROXY header (docs/behind-nat-and-balancers.md, decision 188).
 *
 * - A connection from one of the networks must begin with a header. One from elsewhere is never read for it: nobody else can
 *   claim an address.
 * - One that begins otherwise, or sends no header in time, is closed without an answer. One that ends before its first byte is
 *   a balancer's check of the port: it leaves no trace.
 * - What waits for its header counts for the balancer's network, so that a client cannot use up the connections of others
 *   before it is known.
 */
import type { Socket } from 'node:net'
import { type Cidr, cidrContains, classifyAddress, parseCidr } from '../../base/net/ip.ts'
import { type Clock, systemClock, type Timer } from '../../base/time/clock.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import { readHead } from './head.ts'
import { readProxyHeader } from './header.ts'

/** The specification recommends at least 3 seconds: a lost packet is sent again in that time (section 3). */
const HEADER_MS = 5_000
/** Connections of one network without their headers; balancers send these with the first packet. */
const WAITING_MAX = 1_000

/** What an operator has to know, once a minute; `times`: since the last one. */
export interface HeaderFault {
  peer: string
  fault: string
  times: number
}

export interface HeaderParts {
  /** Addresses or CIDR networks of the balancers. */
  networks: readonly string[]
  onFault(fault: HeaderFault): void
  clock?: Clock
}

type Accepted = (client: string, isSecure: boolean) => void

interface Network {
  cidr: Cidr
  waiting: Set<Socket>
}

export class ProxyHeaders {
  readonly #networks: readonly Network[]
  readonly #onFault: HeaderParts['onFault']
  readonly #clock: Clock
  #faultAt = Number.NEGATIVE_INFINITY
  #faults = 0

  constructor({ networks, onFault, clock = systemClock }: HeaderParts) {
    this.#networks = networks.map((text) => {
      const cidr = parseCidr(text)
      if (cidr === null) throw new RangeError(`"${text}" is neither an address nor a network`)
      return { cidr, waiting: new Set() }
    })
    this.#onFault = onFault
    this.#clock = clock
  }

  /**
   * Whether the connection is a balancer's. Then `accepted` is called after its header with the address of the client, which is
   * the balancer's own where the header names none, and whether that client speaks TLS to the balancer; not at all if there is no
   * proper header.
   * @param peer the address that the connection comes from
   */
  take(socket: Socket, peer: string, accepted: Accepted): boolean {
    const network = this.#networks.find(({ cidr }) => cidrContains(cidr, peer))
    if (network === undefined) return false
    socket.on('error', ignore)
    if (network.waiting.size >= WAITING_MAX)
      this.#refuse(socket, peer, 'too many connections wait for their headers')
    else this.#read(network, socket, peer, accepted)
    return true
  }

  /** Ends connections that wait for their headers. */
  end(): void {
    for (const { waiting } of this.#networks) for (const socket of waiting) socket.destroy()
  }

  #read({ waiting }: Network, socket: Socket, peer: string, accepted: Accepted): void {
    let client = peer
    let isSecure = false
    let isBegun = false
    const left = () => {
      timer.cancel()
      waiting.delete(socket)
      socket.off('end', gone)
      socket.off('close', left)
    }
    const gone = () => {
      if (isBegun) this.#refuse(socket, peer, 'the connection ended within the PROXY header')
      else socket.destroy()
    }
    const timer: Timer = this.#clock.setTimer(HEADER_MS, () =>
      this.#refuse(socket, peer, `there was no PROXY header within ${HEADER_MS / 1000} s`),
    )
    waiting.add(socket)
    socket.on('end', gone)
    socket.on('close', left)
    readHead(
      socket,
      (bytes) => {
        isBegun = bytes.length > 0
        const read = readProxyHeader(bytes)
        if (read.kind === 'malformed') this.#refuse(socket, peer, read.fault)
        if (read.kind !== 'header') return null
        client = clientOf(read.client?.address ?? peer, peer)
        isSecure = read.isSecure
        return read.length
      },
      () => {
        left()
        socket.off('error', ignore)
        accepted(client, isSecure)
      },
    )
  }

  #refuse(socket: Socket, peer: string, fault: string): void {
    socket.destroy()
    this.#faults++
    const now = this.#clock.monotonic()
    if (now - this.#faultAt < MINUTE_MS) return
    this.#onFault({ peer, fault, times: this.#faults })
    this.#faultAt = now
    this.#faults = 0
  }
}

/**
 * A client on the balancer's own machine is no client on this one, which may do more: its loopback address counts for nothing
 * unless the balancer is here.
 */
function clientOf(claimed: string, peer: string): string {
  return classifyAddress(claimed) === 'loopback' && classifyAddress(peer) !== 'loopback' ? peer : claimed
}

function ignore(): void {}
