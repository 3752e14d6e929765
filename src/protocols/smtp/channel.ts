/**
 * One socket to an SMTP server: commands out, replies in, one wait at a time, every wait bounded by a timer.
 *
 * The channel counts the replies that it is owed. An unsolicited one breaks it: a server may only send 421 and close
 * (RFC 5321 §3.8); anything else would be taken for the answer to the next command. Replies that arrived before the
 * connection broke are still returned.
 */
import type { Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import type { MaybePromise } from '../../base/flow/cache.ts'
import { connectionFaultOf, shortageOf } from '../../base/process/shortage.ts'
import type { Clock, Timer } from '../../base/time/clock.ts'
import { type Fault, SmtpFailure, type SmtpStage } from './failure.ts'
import { makeReply, ReplyParser, replyText, type SmtpReply } from './reply.ts'

/** A line of the dialogue. Secrets of a login are shown as `[hidden]`; content is one line that names its size. */
export interface TranscriptEntry {
  direction: 'sent' | 'received'
  line: string
  /** Since the connection was started. */
  ms: number
}

export class Channel {
  #socket: Socket
  #parser = new ReplyParser()
  readonly #replies: SmtpReply[] = []
  /** Commands written whose reply has not arrived yet. The greeting counts as the first. */
  #owed = 1
  #fault: Fault | null = null
  #connected = false
  #hidden: readonly string[] = []
  /** Rejects the wait in progress. */
  #interrupt: (() => void) | null = null
  /** Resolves the wait in progress, if it is for a reply. */
  #onReply: (() => void) | null = null
  readonly #clock: Clock
  readonly #startedMs: number
  readonly #transcript: ((entry: TranscriptEntry) => void) | undefined
  readonly #signal: AbortSignal | undefined
  readonly #onAbort = () =>
    this.#break({ reason: 'aborted', message: 'aborted by the caller', cause: this.#signal?.reason })

  /** @param socket connected, or being connected; `connected` awaits that. */
  constructor(
    socket: Socket,
    options: {
      clock: Clock
      transcript?: ((entry: TranscriptEntry) => void) | undefined
      signal?: AbortSignal | undefined
    },
  ) {
    this.#socket = socket
    this.#clock = options.clock
    this.#startedMs = options.clock.monotonic()
    this.#transcript = options.transcript
    this.#signal = options.signal
    this.#attach()
    if (this.#signal?.aborted) this.#onAbort()
    else this.#signal?.addEventListener('abort', this.#onAbort, { once: true })
  }

  /** Nothing has failed so far. */
  get alive(): boolean {
    return this.#fault === null
  }

  /** What has broken the connection. */
  get fault(): Fault | null {
    return this.#fault
  }

  get socket(): Socket {
    return this.#socket
  }

  async connected(timeoutMs: number): Promise<void> {
    if (this.#socket.connecting || this.#fault !== null)
      await this.#wait<void>('connect', timeoutMs, (resolve) => this.#socket.once('connect', resolve))
    this.#connected = true
  }

  /** Starts TLS. Bytes that the server sent in plain text after its answer are an injection, and end it (RFC 3207 §6). */
  async upgrade(options: ConnectionOptions, timeoutMs: number): Promise<TLSSocket> {
    if (this.#parser.partial || this.#fault !== null) {
      this.#break({ reason: 'protocol', message: 'plain text from the server after its answer to STARTTLS' })
      throw this.#failure('starttls')
    }
    const plain = this.release() // the TLS socket reports its errors
    const secure = connectTls({ ...options, socket: plain })
    this.#socket = secure
    this.#attach()
    await this.#wait<void>('tls', timeoutMs, (resolve) => secure.once('secureConnect', resolve))
    return secure
  }

  /** Hands the connection over: what arrives from now on is not read here. */
  release(): Socket {
    for (const event of ['data', 'error', 'end', 'close']) this.#socket.removeAllListeners(event)
    return this.#socket.on('error', () => {})
  }

  /** From now on replies have `[hidden]` in place of these texts. */
  hide(texts: readonly string[]): void {
    this.#hidden = texts
  }

  /** Writes one or several command lines, CRLF included, for each of which a reply is owed. Never waits. */
  write(commands: string, count: number, shown = commands): void {
    this.#owed += count
    if (this.#transcript !== undefined) {
      for (const line of shown.split('\r\n')) if (line !== '') this.#note('sent', line)
    }
    if (this.#fault === null) this.#socket.write(commands)
  }

  /** Writes command lines and the content that follows the last of them at once. Never waits. */
  writeAll(commands: readonly string[], content: readonly Uint8Array[]): void {
    this.#owed += commands.length
    const lines = Buffer.from(`${commands.join('\r\n')}\r\n`)
    const bytes = Buffer.concat([lines, ...content])
    if (this.#transcript !== undefined) {
      for (const line of commands) this.#note('sent', line)
      this.#note('sent', `[${bytes.byteLength - lines.byteLength} bytes of content]`)
    }
    if (this.#fault === null) this.#socket.write(bytes)
  }

  /** Writes content; waits until the socket accepts more. */
  async writeContent(bytes: Uint8Array, stage: SmtpStage, timeoutMs: number): Promise<void> {
    this.check(stage)
    if (this.#socket.write(bytes)) return
    await this.#wait<void>(stage, timeoutMs, (resolve) => this.#socket.once('drain', resolve))
  }

  /** Writes the last of the content, for which a reply is owed. Never waits: the server may answer and close first. */
  writeLastContent(bytes: Uint8Array, shown: readonly string[]): void {
    this.#owed++
    if (this.#transcript !== undefined) for (const line of shown) this.#note('sent', line)
    this.#socket.write(bytes)
  }

  /** @throws SmtpFailure when the connection has broken, or the server has sent an unsolicited reply. */
  check(stage: SmtpStage): void {
    if (this.#fault !== null) throw this.#failure(stage)
  }

  /** The next reply, at once if it is there: those to pipelined commands arrive together. @throws SmtpFailure when none arrives in time. */
  reply(stage: SmtpStage, timeoutMs: number): MaybePromise<SmtpReply> {
    return this.#replies.shift() ?? this.#nextReply(stage, timeoutMs)
  }

  async #nextReply(stage: SmtpStage, timeoutMs: number): Promise<SmtpReply> {
    await this.#wait<void>(stage, timeoutMs, (resolve) => {
      this.#onReply = resolve
    })
    return this.#replies.shift() as SmtpReply
  }

  /** Ends the connection at once; a wait in progress is rejected. */
  destroy(fault: Fault = { reason: 'closed', message: 'connection closed by us' }): void {
    this.#break(fault)
  }

  #attach(): void {
    const socket = this.#socket
    socket.setNoDelay(true)
    socket.on('data', (bytes: Buffer) => this.#receive(bytes))
    socket.on('error', (cause: NodeJS.ErrnoException) => {
      this.#break({ reason: this.#reasonOf(cause), message: cause.message || String(cause.code), cause })
    })
    const closed = () => this.#break({ reason: 'closed', message: 'connection closed by the server' })
    socket.on('end', closed)
    socket.on('close', closed)
  }

  #receive(bytes: Buffer): void {
    if (this.#fault !== null) return
    try {
      this.#parser.push(bytes, (reply) => this.#accept(reply))
    } catch (cause) {
      this.#break({ reason: 'protocol', message: (cause as Error).message, cause })
    }
    if (this.#replies.length > 0) {
      const resolve = this.#onReply
      this.#onReply = null
      resolve?.()
    }
  }

  #accept(received: SmtpReply): void {
    if (this.#fault !== null) return
    const reply = this.#hidden.length === 0 ? received : this.#withoutHidden(received)
    if (this.#transcript !== undefined) {
      reply.lines.forEach((line, index) => {
        this.#note('received', `${reply.code}${index < reply.lines.length - 1 ? '-' : ' '}${line}`)
      })
    }
    if (this.#owed > 0) {
      this.#owed--
      this.#replies.push(reply)
      return
    }
    const message = `unsolicited reply: ${replyText(reply)}`
    this.#break({ reason: reply.code >= 400 ? 'refused' : 'protocol', message, reply })
  }

  #withoutHidden({ code, lines }: SmtpReply): SmtpReply {
    return makeReply(
      code,
      lines.map((line) => without(line, this.#hidden)),
    )
  }

  #note(direction: TranscriptEntry['direction'], line: string): void {
    this.#transcript?.({ direction, line, ms: this.#clock.monotonic() - this.#startedMs })
  }

  #wait<T>(stage: SmtpStage, timeoutMs: number, start: (resolve: (value: T) => void) => void): Promise<T> {
    if (this.#fault !== null) return Promise.reject(this.#failure(stage))
    return new Promise<T>((resolve, reject) => {
      let timer: Timer | null = null
      const done = () => {
        timer?.cancel()
        this.#interrupt = null
      }
      this.#interrupt = () => {
        done()
        reject(this.#failure(stage))
      }
      timer = this.#clock.setTimer(timeoutMs, () => {
        this.#break({ reason: 'timeout', message: `no answer within ${timeoutMs} ms` })
      })
      start((value) => {
        done()
        resolve(value)
      })
    })
  }

  /** The first fault counts; what follows from it is noise. */
  #break(fault: Fault): void {
    if (this.#fault !== null) return
    this.#fault = fault
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#socket.destroy()
    // A reply that arrived at the same moment is returned first.
    if (this.#onReply !== null && this.#replies.length > 0) return
    this.#interrupt?.()
  }

  #reasonOf(error: NodeJS.ErrnoException): Fault['reason'] {
    if (!this.#connected)
      return (shortageOf(error) ?? connectionFaultOf(error)) === null ? 'unreachable' : 'local'
    return /^(?:ERR_SSL|ERR_TLS|EPROTO)/.test(error.code ?? '') ? 'tls' : 'closed'
  }

  #failure(stage: SmtpStage): SmtpFailure {
    return new SmtpFailure(stage, this.#fault as Fault)
  }
}

/** The text with `[hidden]` in place of others. */
export const without = (text: string, hidden: readonly string[]): string =>
  hidden.reduce((shown, each) => shown.replaceAll(each, '[hidden]'), text)
