/**
 * One client's socket on the server side: lines and content in, replies out, with or without TLS; every wait is bounded.
 *
 * Replies are held back while further commands have been received, so that the answers to a pipelined group are one
 * write (RFC 2920 §3.2). While the service works on a command, only a bounded amount is read ahead, and nothing from a
 * client that does not take its replies.
 */
import type { Socket } from 'node:net'
import { type SecureContext, TLSSocket } from 'node:tls'
import type { Clock, Timer } from '../../base/time/clock.ts'

/** Bytes read ahead; beyond this the socket is paused. */
const HELD_BYTES_MAX = 64 * 1024
/** After the end of the dialogue a client has this long to take the last reply. */
const GOODBYE_MS = 5_000
const LF = 10
const CR = 13

/** Why a dialogue has ended. `stopping` and `crowded` end it only while the client is idle. */
type ClosedReason = 'gone' | 'timeout' | 'stopping' | 'crowded'

/** The dialogue is over. */
export class ChannelClosed extends Error {
  override name = 'ChannelClosed'
  readonly why: ClosedReason

  constructor(why: ClosedReason) {
    super(`The connection ended: ${why}`)
    this.why = why
  }
}

type Line = { kind: 'line'; line: Buffer } | { kind: 'too-long' } | { kind: 'bare-lf' }

export class ServerChannel {
  #socket: Socket
  readonly #clock: Clock
  readonly #isSecure: boolean
  #held: Buffer = Buffer.alloc(0)
  #replies = ''
  #gone = false
  /** The client has closed its side; what it sent before is still processed. */
  #ended = false
  /** Why the next wait for a command ends at once. */
  #leaving: 'stopping' | 'crowded' | null = null
  #idleSinceMs: number | null = null
  /** Ends the wait in progress. */
  #wake: (() => void) | null = null
  readonly #listeners = {
    data: (bytes: Buffer) => {
      this.#held = this.#held.length > 0 ? Buffer.concat([this.#held, bytes]) : bytes
      if (this.#held.length >= HELD_BYTES_MAX) this.#socket.pause()
      this.#wake?.()
    },
    end: () => {
      this.#ended = true
      this.#wake?.()
    },
    drain: () => this.#wake?.(),
    close: () => this.#closed(),
    error: () => this.#closed(),
  }

  /** @param isSecure a balancer has ended the client's TLS */
  constructor(socket: Socket, clock: Clock, isSecure = false) {
    this.#socket = socket
    this.#clock = clock
    this.#isSecure = isSecure
    this.#attach()
  }

  /** The client speaks TLS, to us or to a balancer. */
  get isSecure(): boolean {
    return this.#isSecure || this.#socket instanceof TLSSocket
  }

  /** Since when it has waited for a command, in monotonic time; null: it does not wait. */
  get idleSinceMs(): number | null {
    return this.#idleSinceMs
  }

  /** Adds a reply, one or more lines without the last CRLF. It is written before the next wait. */
  reply(text: string): void {
    this.#replies += `${text}\r\n`
  }

  /**
   * The next command line, without CRLF. After a line of more than `maxBytes` or an LF without CR reading cannot
   * continue.
   * @throws ChannelClosed
   */
  async line(maxBytes: number, timeoutMs: number): Promise<Line> {
    const since = this.#clock.monotonic()
    for (;;) {
      const end = this.#held.indexOf(LF)
      if (end > 0 && this.#held[end - 1] === CR && end < maxBytes) {
        const line = this.#held.subarray(0, end - 1)
        this.#held = this.#held.subarray(end + 1)
        return { kind: 'line', line }
      }
      if (end >= 0 && end < maxBytes) return { kind: 'bare-lf' }
      if (this.#held.length >= maxBytes) return { kind: 'too-long' }
      this.#idleSinceMs = since
      await this.#more(since + timeoutMs, true)
      this.#idleSinceMs = null
    }
  }

  /** Whatever has been received, at least one byte. @throws ChannelClosed */
  async bytes(until: number): Promise<Buffer> {
    if (this.#held.length === 0) await this.#more(until, false)
    const bytes = this.#held
    this.#held = Buffer.alloc(0)
    return bytes
  }

  /** Puts back the unused rest of what `bytes` returned. */
  unread(bytes: Buffer): void {
    this.#held = this.#held.length > 0 ? Buffer.concat([bytes, this.#held]) : bytes
  }

  /**
   * Server side of a handshake: after STARTTLS, what the client sent in plain text is dropped unread (RFC 3207 §5,
   * CVE-2011-0411). `implicit`: the handshake is all that has been sent so far.
   * @throws ChannelClosed
   */
  async secure(context: SecureContext, timeoutMs: number, implicit: boolean): Promise<void> {
    const until = this.#clock.monotonic() + timeoutMs
    await this.#written(until)
    const plain = this.#socket
    this.#detach()
    plain.pause()
    if (implicit) plain.unshift(this.#held)
    else while (plain.read() !== null);
    this.#held = Buffer.alloc(0)
    const socket = new TLSSocket(plain, { isServer: true, secureContext: context })
    this.#socket = socket
    let secured = false
    socket.once('secure', () => {
      secured = true
      // One handshake is enough; renegotiation would let clients use up our time.
      socket.disableRenegotiation()
      this.#wake?.()
    })
    this.#attach()
    while (!secured) {
      // Of no use half-open: the client has broken the handshake off, as one that mistrusts the certificate does.
      if (this.#ended) throw new ChannelClosed('gone')
      await this.#wait(until)
    }
  }

  /** Writes the replies; waits until the client takes them. @throws ChannelClosed */
  async flush(until: number): Promise<void> {
    this.#push()
    while (this.#socket.writableNeedDrain) await this.#wait(until)
  }

  /** The service stops, or another client needs the slot: an idle client's wait ends now, another's at its next command. */
  leave(why: 'stopping' | 'crowded'): void {
    this.#leaving = why
    this.#wake?.()
  }

  /** Sends what is left, and hands the connection over: whoever reads it next gets what was not read here. */
  release(): Socket {
    this.#push()
    this.#detach()
    this.#socket.pause()
    if (this.#held.length > 0) this.#socket.unshift(this.#held)
    return this.#socket
  }

  /** Sends what is left and closes; resolves once the socket is closed. */
  async end(): Promise<void> {
    if (!this.#gone && !this.#socket.destroyed) {
      this.#push()
      this.#socket.end()
      const closed = new Promise<void>((resolve) => this.#socket.once('close', () => resolve()))
      const timer = this.#clock.setTimer(GOODBYE_MS, () => this.#socket.destroy())
      // Read and discard: unread bytes would turn the close into a reset.
      this.#detach()
      this.#socket.on('error', () => {})
      this.#socket.resume()
      if (this.#ended) this.#socket.destroySoon()
      await closed
      timer.cancel()
    }
    this.#socket.destroy()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #push(): void {
    if (this.#replies === '' || this.#gone) return
    const replies = this.#replies
    this.#replies = ''
    this.#socket.write(replies)
  }

  /** Resolves when the system has taken the last byte of the replies. */
  async #written(until: number): Promise<void> {
    this.#push()
    let written = false
    this.#socket.write('', () => {
      written = true
      this.#wake?.()
    })
    while (!written) await this.#wait(until)
  }

  async #more(until: number, idle: boolean): Promise<void> {
    const before = this.#held.length
    await this.flush(until)
    if (this.#held.length < HELD_BYTES_MAX) this.#socket.resume()
    while (this.#held.length === before) {
      if (this.#ended) throw new ChannelClosed('gone')
      if (idle && this.#leaving !== null) throw new ChannelClosed(this.#leaving)
      await this.#wait(until)
    }
  }

  /** Resolves at the next event of any kind. @throws ChannelClosed */
  async #wait(until: number): Promise<void> {
    if (this.#gone) throw new ChannelClosed('gone')
    const leftMs = until - this.#clock.monotonic()
    if (leftMs <= 0) throw new ChannelClosed('timeout')
    let timer: Timer | undefined
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      timer = this.#clock.setTimer(leftMs, resolve)
    })
    timer?.cancel()
    this.#wake = null
    if (this.#gone) throw new ChannelClosed('gone')
  }

  #closed(): void {
    this.#gone = true
    this.#wake?.()
  }

  #attach(): void {
    for (const [event, listener] of Object.entries(this.#listeners)) this.#socket.on(event, listener)
  }

  #detach(): void {
    for (const [event, listener] of Object.entries(this.#listeners)) this.#socket.off(event, listener)
    // The TLS socket reports errors of the socket below as well.
    this.#socket.on('error', () => {})
  }
}
