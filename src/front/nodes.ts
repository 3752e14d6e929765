/** Connections from a front to the nodes of pods. A PROXY header names the client (protocols/proxy). */
import { connect, isIPv6, type Socket } from 'node:net'
import { canonicalIp } from '../base/net/ip.ts'
import type { Clock } from '../base/time/clock.ts'
import { writeProxyHeader } from '../protocols/proxy/header.ts'

/** Whom a connection is made for. */
export interface Client {
  address: string
  port: number
  /** It speaks TLS to the front. */
  isSecure: boolean
}

/** A connection whose header is written; nothing else was sent. @throws NoNode */
export type Dial = (addresses: readonly string[], client: Client) => Promise<Socket>

/** No node of the pod can be connected to. */
export class NoNode extends Error {
  override name = 'NoNode'
}

/** A node is near: one that does not accept by then is passed over. */
const CONNECT_MAX_MS = 2_000
/** One that could not be connected to is tried last for this long. */
const AVOIDED_MS = 5_000
const ATTEMPTS_MAX = 4

/** @param onFailure called for each node that is passed over */
export function createDial(clock: Clock, onFailure: (node: string, cause: Error) => void): Dial {
  const avoidedUntil = new Map<string, number>()
  let turn = 0

  /** In turn, those that failed of late at the end. */
  function inOrder(addresses: readonly string[]): string[] {
    const now = clock.monotonic()
    for (const [address, until] of avoidedUntil) if (until <= now) avoidedUntil.delete(address)
    const first = turn++ % Math.max(1, addresses.length)
    const turned = [...addresses.slice(first), ...addresses.slice(0, first)]
    return turned.sort((a, b) => Number(avoidedUntil.has(a)) - Number(avoidedUntil.has(b)))
  }

  return async (addresses, client) => {
    let cause: unknown
    for (const address of inOrder(addresses).slice(0, ATTEMPTS_MAX)) {
      try {
        const socket = await connected(clock, address)
        socket.write(headerFor(client))
        return socket
      } catch (error) {
        cause = error
        avoidedUntil.set(address, clock.monotonic() + AVOIDED_MS)
        onFailure(address, error as Error)
      }
    }
    throw new NoNode('No node of the pod can be reached', { cause })
  }
}

function connected(clock: Clock, address: string): Promise<Socket> {
  const [, host = '', port = ''] = /^\[?([^\]]*)\]?:(\d{1,5})$/.exec(address) ?? []
  const socket = connect({ host, port: Number(port), noDelay: true, keepAlive: true, allowHalfOpen: true })
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(CONNECT_MAX_MS, () =>
      socket.destroy(new Error(`no connection within ${CONNECT_MAX_MS} ms`)),
    )
    socket.once('close', () => timer.cancel())
    socket.once('error', reject)
    socket.once('connect', () => {
      timer.cancel()
      socket.off('error', reject)
      // Until somebody else listens.
      socket.on('error', () => {})
      resolve(socket)
    })
  })
}

/** Nodes read the client only; what it connected to is the front's business. */
function headerFor({ address, port, isSecure }: Client): Buffer {
  const source = canonicalIp(address.replace(/%.*$/, '')) ?? '0.0.0.0'
  const target = { address: isIPv6(source) ? '::' : '0.0.0.0', port: 0 }
  return writeProxyHeader({ address: source, port }, target, isSecure)
}
