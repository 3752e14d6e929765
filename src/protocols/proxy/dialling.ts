/**
 * Connections that leave from another machine's address, through a proxy there (decision 189):
 *
 * - `socks5`: the proxy connects to the address that we name (RFC 1928), after a login by user and password if it asks for one
 *   (RFC 1929). It resolves no names for us: what may be connected to was decided by address.
 * - `haproxy`: a PROXY header says from which address to which the connection is to be; HAProxy binds and connects accordingly.
 *   It says nothing when that fails, and only closes the connection.
 *
 * The socket that results is the connection to the target; its protocol begins with the next byte.
 */
import { lookup } from 'node:dns/promises'
import { connect, isIP, type Socket } from 'node:net'
import { parseIp } from '../../base/net/ip.ts'
import { ProxyDown, shortageOf } from '../../base/process/shortage.ts'
import { type Clock, systemClock } from '../../base/time/clock.ts'
import { readHead } from './head.ts'
import { addressBytes, type Endpoint, writeProxyHeader } from './header.ts'

export interface OutgoingProxy {
  kind: 'socks5' | 'haproxy'
  host: string
  port: number
  /** For SOCKS. */
  login: { user: string; password: string } | null
}

/** For people: without the login. */
export const proxyName = ({ kind, host, port }: OutgoingProxy): string =>
  `${kind}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`

/** The proxy works, and cannot reach the target. */
export class TargetUnreached extends Error {
  override name = 'TargetUnreached'
}

interface DialLimits {
  /** Until the target is connected, or the proxy says that it is not. */
  timeoutMs: number
  signal?: AbortSignal | undefined
  clock?: Clock | undefined
}

/** Time for the proxy to accept, and for each of its replies but the last one: it is near, or not of much use. */
const PROXY_MS = 10_000

const SOCKS_VERSION = 5
const NO_LOGIN = 0x00
const USER_PASSWORD = 0x02
const LOGIN_VERSION = 1
const CONNECT = 1
const IPV4 = 1
const NAME = 3
const IPV6 = 4
const SUCCEEDED = 0
/** Replies about the target or the way there (RFC 1928 §6). The first is what proxies say when they know no better. */
const TARGET_REPLIES: Readonly<Record<number, string>> = {
  1: 'general failure',
  3: 'network unreachable',
  4: 'host unreachable',
  5: 'connection refused',
  6: 'time to live expired',
}
/** Replies about what the proxy does. */
const PROXY_REPLIES: Readonly<Record<number, string>> = {
  2: 'not allowed by its rules',
  7: 'it does not know CONNECT',
  8: 'it does not know this kind of address',
}

/**
 * A connection from `source` to `target`, whose far end is the target for all that asks the socket.
 * @param source the address that it leaves from
 * @param target a name is resolved here, to an address of the source's family
 * @throws ProxyDown if the proxy cannot be used, TargetUnreached if it cannot connect, or the signal's reason
 */
export async function dialThrough(
  proxy: OutgoingProxy,
  source: string,
  target: { host: string; port: number },
  limits: DialLimits,
): Promise<Socket> {
  const address = await addressOf(target.host, source)
  const to = { address, port: target.port }
  const steps = new Steps(proxy, limits)
  try {
    await steps.connected()
    if (proxy.kind === 'haproxy') steps.socket.write(writeProxyHeader({ address: source, port: 0 }, to))
    else {
      await logIn(steps, proxy)
      await requestConnection(steps, to, limits.timeoutMs)
    }
    return steps.done(address)
  } catch (error) {
    steps.socket.destroy()
    throw error
  }
}

/**
 * Whether the proxy accepts a connection, and a login if there is one.
 * @throws ProxyDown
 */
export async function tryProxy(proxy: OutgoingProxy): Promise<void> {
  const steps = new Steps(proxy, {})
  try {
    await steps.connected()
    if (proxy.kind === 'socks5') await logIn(steps, proxy)
  } finally {
    steps.socket.destroy()
  }
}

async function addressOf(host: string, source: string): Promise<string> {
  if (isIP(host) !== 0) return host
  const family = parseIp(source)?.family ?? 0
  try {
    return (await lookup(host, { family })).address
  } catch (cause) {
    throw new TargetUnreached(`${host} has no address of the family of ${source}`, { cause })
  }
}

async function logIn(steps: Steps, { login }: OutgoingProxy): Promise<void> {
  const methods = login === null ? [NO_LOGIN] : [NO_LOGIN, USER_PASSWORD]
  steps.socket.write(Buffer.from([SOCKS_VERSION, methods.length, ...methods]))
  const [version, method] = await steps.read(() => 2, PROXY_MS)
  if (version !== SOCKS_VERSION) throw steps.down('it does not speak SOCKS5')
  if (method === NO_LOGIN) return
  if (method !== USER_PASSWORD || login === null) throw steps.down('it asks for another login')
  const parts = [login.user, login.password].map((text) => Buffer.from(text))
  const fields = parts.flatMap((part) => [Buffer.of(part.length), part])
  steps.socket.write(Buffer.concat([Buffer.of(LOGIN_VERSION), ...fields]))
  const [, status] = await steps.read(() => 2, PROXY_MS)
  if (status !== SUCCEEDED) throw steps.down('it refuses the login')
}

async function requestConnection(steps: Steps, { address, port }: Endpoint, timeoutMs: number) {
  const bytes = addressBytes(address)
  const request = [
    SOCKS_VERSION,
    CONNECT,
    0,
    bytes.length === 4 ? IPV4 : IPV6,
    ...bytes,
    port >> 8,
    port & 0xff,
  ]
  steps.socket.write(Buffer.from(request))
  const reply = await steps.read(
    replyBytes,
    timeoutMs,
    (waited) => new TargetUnreached(`no answer within ${waited} ms`),
  )
  const status = reply[1] ?? -1
  if (reply[0] === SOCKS_VERSION && status === SUCCEEDED) return
  const reason = TARGET_REPLIES[status]
  if (reason !== undefined) throw new TargetUnreached(`${reason} (reply ${status} of ${steps.name})`)
  throw steps.down(PROXY_REPLIES[status] ?? `it replies ${status}`)
}

/** Length of the reply to a request, which ends with the address that the proxy has bound; null: too few bytes to say. */
function replyBytes(bytes: Buffer): number | null {
  const [version, status, , type, first] = bytes
  // Proxies cut failures short, in ways of their own.
  if (version !== SOCKS_VERSION || (status !== undefined && status !== SUCCEEDED))
    return Math.min(bytes.length, 2)
  if (type === IPV4) return 10
  if (type === IPV6) return 22
  return type === NAME && first !== undefined ? 7 + first : null
}

/** The socket to the proxy and one wait at a time. */
class Steps {
  readonly socket: Socket
  readonly name: string
  readonly #clock: Clock
  readonly #signal: AbortSignal | undefined
  #fault: Error | null = null
  /** Ends the wait in progress. */
  #wake: (() => void) | null = null
  readonly #abort = () => this.#end(this.#signal?.reason as Error)
  readonly #listeners = {
    error: (cause: Error) => this.#end(this.down(cause.message, cause)),
    end: () => this.#end(this.down('it closes the connection')),
    close: () => this.#end(this.down('it closes the connection')),
  }

  constructor(proxy: OutgoingProxy, { signal, clock = systemClock }: Omit<DialLimits, 'timeoutMs'>) {
    this.name = proxyName(proxy)
    this.#clock = clock
    this.#signal = signal
    this.socket = connect({ host: proxy.host, port: proxy.port, noDelay: true })
    for (const [event, listener] of Object.entries(this.#listeners)) this.socket.on(event, listener)
    if (signal?.aborted) this.#abort()
    else signal?.addEventListener('abort', this.#abort, { once: true })
  }

  /** The proxy cannot be used; a shortage of our own stays one. */
  down(why: string, cause?: Error): Error {
    if (cause !== undefined && shortageOf(cause) !== null) return cause
    return new ProxyDown(`the proxy ${this.name} cannot be used: ${why}`, { cause })
  }

  connected(): Promise<void> {
    return this.#wait(PROXY_MS, (done) => {
      this.socket.once('connect', done)
      return () => this.socket.off('connect', done)
    })
  }

  /** As many bytes as `lengthOf` says of those received so far; null: more are needed to say. */
  async read(
    lengthOf: (bytes: Buffer) => number | null,
    timeoutMs: number,
    late?: (waitedMs: number) => Error,
  ): Promise<Buffer> {
    let read: Buffer = Buffer.alloc(0)
    const judge = (bytes: Buffer) => {
      const length = bytes.length === 0 ? null : lengthOf(bytes)
      if (length === null || bytes.length < length) return null
      read = bytes.subarray(0, length)
      return length
    }
    await this.#wait(timeoutMs, (done) => readHead(this.socket, judge, done), late)
    return read
  }

  /** @param address of the target, which is at the other end from now on: not every rule for a loopback peer holds for it */
  done(address: string): Socket {
    this.#signal?.removeEventListener('abort', this.#abort)
    // Until somebody else listens.
    this.socket.on('error', () => {})
    for (const [event, listener] of Object.entries(this.#listeners)) this.socket.off(event, listener)
    return Object.defineProperty(this.socket, 'remoteAddress', { value: address })
  }

  async #wait(
    timeoutMs: number,
    start: (done: () => void) => () => unknown,
    late = (waitedMs: number) => this.down(`no answer within ${waitedMs} ms`),
  ): Promise<void> {
    await new Promise<void>((resolve) => {
      if (this.#fault !== null) return resolve()
      const stop = start(() => this.#wake?.())
      const timer = this.#clock.setTimer(timeoutMs, () => this.#end(late(timeoutMs)))
      this.#wake = () => {
        this.#wake = null
        timer.cancel()
        stop()
        resolve()
      }
    })
    if (this.#fault !== null) throw this.#fault
  }

  #end(fault: Error): void {
    this.#fault ??= fault
    this.#wake?.()
  }
}
