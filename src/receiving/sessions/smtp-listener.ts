/** The SMTP ports: limits on connections, TLS, and shutdown. */

import { createServer, type Server, type Socket } from 'node:net'
import type { Logger } from 'pino'
import { networkOf } from '../../base/net/ip.ts'
import { CannotListen } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { ProxyHeaders } from '../../protocols/proxy/accepting.ts'
import { STATUS } from '../../protocols/smtp/codes.ts'
import { ServerChannel } from '../../protocols/smtp/server-channel.ts'

export interface ListenerOptions {
  host: string
  /** STARTTLS. 0: any free one. */
  port: number
  /** TLS from the first byte; null: none. */
  implicitTlsPort: number | null
  connectionsPerAddressMax: number
  /** From all addresses together. */
  connectionsMax: number
  /** Addresses and networks whose connections begin with a PROXY header, before TLS. Default: none. */
  balancers?: readonly string[]
  /**
   * Serves one client until its connection is closed; never rejects.
   * @param remoteAddress of the client
   * @param implicitTls the handshake comes first
   * @param loggedIn to be called when the client has logged in
   */
  serve(
    channel: ServerChannel,
    remoteAddress: string,
    implicitTls: boolean,
    loggedIn: () => void,
  ): Promise<void>
  clock: Clock
  log: Logger
}

export type SmtpListener = Awaited<ReturnType<typeof startSmtpListener>>

/** Connections of a listener; about 10 KB each in plain text, 60 KB with TLS. */
export const SMTP_CONNECTIONS_MAX = 5_000
const TOO_MANY = `${STATUS.enough} Too many connections\r\n`
/**
 * When all connections are in use, a client that has not logged in and has sent no command for this long is closed to
 * make room for the next one. Otherwise silent clients would shut out the others for as long as the idle limit.
 */
const IDLE_WHEN_FULL_MS = 1_000
/** Connections asked to close that are still open; above this the oldest of them is destroyed. */
const LEAVING_MAX = 500

/** @throws CannotListen */
export async function startSmtpListener(options: ListenerOptions) {
  const clients = new Clients(options)
  const { balancers = [] } = options
  const headers = balancers.length > 0 ? proxyHeaders(balancers, options) : null
  const servers: Server[] = []
  const listen = async (port: number, implicitTls: boolean) => {
    // Half-open: a client may send its commands and close its side before it reads the answers.
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      const peer = (socket.remoteAddress ?? '').replace(/^::ffff:(?=\d+\.)/, '')
      const isBalancers = headers?.take(socket, peer, (client, isSecure) =>
        clients.add(socket, client, implicitTls, isSecure),
      )
      if (isBalancers !== true) clients.add(socket, peer, implicitTls, false)
    })
    await listening(server, options.host, port).catch((error: Error) => {
      throw new CannotListen('SMTP', ['SMTP_HOST', implicitTls ? 'SMTPS_PORT' : 'SMTP_PORT'], error)
    })
    servers.push(server)
    return portOf(server)
  }
  try {
    const port = await listen(options.port, false)
    const { implicitTlsPort } = options
    return {
      port,
      implicitTlsPort: implicitTlsPort === null ? null : await listen(implicitTlsPort, true),
      /**
       * Accepts no more clients, sends 421 to idle ones, and lets messages in progress finish for at most `drainMs`; then
       * the remaining connections are closed.
       */
      async close(drainMs: number): Promise<void> {
        const closed = Promise.all(servers.map(closeServer))
        headers?.end()
        await clients.drain(drainMs)
        await closed
      },
    }
  } catch (error) {
    await Promise.all(servers.map(closeServer))
    throw error
  }
}

const proxyHeaders = (networks: readonly string[], { clock, log }: ListenerOptions) =>
  new ProxyHeaders({
    networks,
    clock,
    onFault: (fault) => log.warn({ ...fault }, 'SMTP: a connection of a balancer was closed'),
  })

class Clients {
  readonly #options: ListenerOptions
  readonly #running = new Map<ServerChannel, Promise<void>>()
  /** Have not logged in. */
  readonly #anonymous = new Set<ServerChannel>()
  /** Asked to close, to make room for others. */
  readonly #leaving = new Set<ServerChannel>()
  readonly #perNetwork = new Map<string, number>()
  #stopping = false

  constructor(options: ListenerOptions) {
    this.#options = options
  }

  /**
   * @param address of the client
   * @param isSecure it speaks TLS to a balancer
   */
  add(socket: Socket, address: string, implicitTls: boolean, isSecure: boolean): void {
    const network = networkOf(address)
    const fromNetwork = this.#perNetwork.get(network) ?? 0
    const { connectionsPerAddressMax, serve, clock } = this.#options
    if (this.#stopping || fromNetwork >= connectionsPerAddressMax || !this.#hasRoom()) {
      socket.on('error', () => {})
      // Before TLS there is no way to say why.
      if (implicitTls) socket.destroy()
      else socket.end(TOO_MANY, () => socket.destroySoon())
      return
    }
    this.#perNetwork.set(network, fromNetwork + 1)
    const channel = new ServerChannel(socket, clock, isSecure)
    this.#anonymous.add(channel)
    const loggedIn = () => this.#anonymous.delete(channel)
    const served = serve(channel, address, implicitTls, loggedIn).then(() => {
      this.#running.delete(channel)
      this.#anonymous.delete(channel)
      this.#leaving.delete(channel)
      const left = (this.#perNetwork.get(network) ?? 1) - 1
      if (left > 0) this.#perNetwork.set(network, left)
      else this.#perNetwork.delete(network)
    })
    this.#running.set(channel, served)
  }

  /** Whether one more may connect; if necessary the anonymous client that has been idle for longest is closed. */
  #hasRoom(): boolean {
    const { connectionsMax, clock } = this.#options
    if (this.#running.size - this.#leaving.size < connectionsMax) return true
    let longest: ServerChannel | null = null
    let sinceMs = clock.monotonic() - IDLE_WHEN_FULL_MS
    for (const channel of this.#anonymous) {
      const { idleSinceMs } = channel
      if (idleSinceMs === null || idleSinceMs > sinceMs) continue
      longest = channel
      sinceMs = idleSinceMs
    }
    if (longest === null) return false
    longest.leave('crowded')
    this.#anonymous.delete(longest)
    this.#leaving.add(longest)
    if (this.#leaving.size > LEAVING_MAX) this.#leaving.values().next().value?.destroy()
    return true
  }

  async drain(drainMs: number): Promise<void> {
    this.#stopping = true
    for (const channel of this.#running.keys()) channel.leave('stopping')
    const timer = this.#options.clock.setTimer(drainMs, () => {
      for (const channel of this.#running.keys()) channel.destroy()
    })
    await Promise.all(this.#running.values())
    timer.cancel()
  }
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
}

function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}

const closeServer = (server: Server) => new Promise<void>((resolve) => void server.close(() => resolve()))
