/**
 * Mail transactions on an open connection (RFC 5321 §3.3):
 *
 * 1. everything that can be known in advance is checked, and nothing is written if it fails;
 * 2. MAIL, one RCPT per recipient and DATA: in one write where the server pipelines (RFC 2920), else one by one;
 *    replies are matched one to one in either case;
 * 3. no recipient accepted, but DATA answered 354: a lone dot (RFC 2920 §3.1); its answer means nothing;
 * 4. content, dot-stuffed as it is written (wire.ts); the hook; the final dot; the answer.
 *
 * A small message to one recipient is sent in one piece to a server that pipelines and takes chunks (RFC 3030): the hook,
 * then envelope, BDAT and content in one write, so that a transaction takes one round trip instead of two. If MAIL or
 * RCPT is refused, the content was sent in vain; that is why it must be small.
 *
 * A transaction that ended before its dot was answered leaves the server with half an envelope: the next one starts
 * with RSET. After 421, or a missing or invalid reply, the connection is closed and no longer reusable.
 */

import assert from 'node:assert/strict'
import { isPending } from '../../base/flow/cache.ts'
import type { Clock } from '../../base/time/clock.ts'
import { type Chunk, type MimeMessage, messageSize, readChunks } from '../message/mime-message.ts'
import type { Channel } from './channel.ts'
import { CODE } from './codes.ts'
import { checkTransaction, isSendableAddress, needs8bit, unsendable } from './envelope.ts'
import { refusedBy, SmtpFailure, type SmtpStage } from './failure.ts'
import { replyText, type SmtpReply } from './reply.ts'
import type { SmtpTimeouts } from './timeouts.ts'
import { ContentLines } from './wire.ts'

export interface TlsState {
  /** "TLSv1.3" */
  protocol: string
  cipher: string
  verified: boolean
  /** Why not, when not verified. */
  verifyError?: string
}

export interface PeerState {
  readonly peer: { host: string; port: number; address: string }
  /** The address of our end; null if the socket has none. */
  readonly localAddress: string | null
  /** EHLO keywords in upper case with their parameters; empty after HELO. */
  readonly extensions: ReadonlyMap<string, string>
  /** null: plain text. */
  readonly tls: TlsState | null
}

export interface Transaction {
  /** MAIL FROM; '' is the null return path. */
  returnPath: string
  /** 1 to 1,000. */
  recipients: readonly string[]
  message: MimeMessage
  /** Size for SIZE, see `messageSize`. */
  sizeBytes: number
  /** Addresses or header fields are UTF-8: SMTPUTF8 is needed (RFC 6531). */
  utf8: boolean
  /** The server must keep REQUIRETLS (RFC 8689); default: no. The caller sees to it that TLS is verified. */
  requireTls?: boolean
  /**
   * Awaited before anything is written after which the server may have the message: the final dot or BDAT. Callers can
   * record here that the outcome becomes uncertain.
   */
  beforeFinalDot?: (() => Promise<void>) | undefined
}

export interface TransactionResult {
  /** One per recipient, in the order given. */
  recipients: { address: string; reply: SmtpReply }[]
  /**
   * The answer that decides for all accepted recipients: to the final dot, or to DATA where that was refused;
   * 2xx = the server has taken the message. null: no recipient was accepted, so nothing was sent.
   */
  data: SmtpReply | null
}

/**
 * Content is handed to the socket in blocks of about this size: one system call for most messages. A transaction over
 * an open connection then costs two writes, 46 us of CPU in all for 10 KB, more than half of it in the kernel.
 */
const BLOCK_BYTES = 64 * 1024

/** A message up to this size is sent before the server has accepted its envelope. */
const CHUNK_BYTES_MAX = 32 * 1024

/** What a server says that offers CHUNKING and does not know BDAT (RFC 5321 §4.2.4). */
const UNKNOWN_COMMAND = new Set<number>([
  CODE.syntax,
  CODE.badArgument,
  CODE.notImplemented,
  CODE.badParameter,
])

/** Closed by `quit`, `close` or a fault. Never two calls at a time. */
export class SmtpConnection implements PeerState {
  readonly peer: PeerState['peer']
  readonly localAddress: string | null
  readonly extensions: PeerState['extensions']
  readonly tls: PeerState['tls']
  readonly #channel: Channel
  readonly #timeouts: SmtpTimeouts
  readonly #clock: Clock
  readonly #pipelining: boolean
  readonly #chunking: boolean
  #busy = false
  #needsReset = false

  constructor(channel: Channel, state: PeerState, timeouts: SmtpTimeouts, clock: Clock) {
    this.peer = state.peer
    this.localAddress = state.localAddress
    this.extensions = state.extensions
    this.tls = state.tls
    this.#channel = channel
    this.#timeouts = timeouts
    this.#clock = clock
    this.#pipelining = state.extensions.has('PIPELINING')
    this.#chunking = this.#pipelining && state.extensions.has('CHUNKING')
  }

  /** `send` may be called (again). Can become false at any time: a server may close an idle connection. */
  get reusable(): boolean {
    return this.#channel.alive && !this.#busy
  }

  /**
   * One transaction.
   * @throws SmtpFailure when MAIL is refused (stage `mail` with `reply`; the connection stays reusable) or the
   * dialogue broke. On a connection used before, stage `mail` or `rset` with reason `closed`, or with a 421, means
   * only that the server had left meanwhile: try a new one at once. The error of the hook passes through, and closes the connection.
   */
  async send(transaction: Transaction): Promise<TransactionResult> {
    assert(!this.#busy, 'a transaction is in progress')
    checkTransaction(transaction)
    const mail = this.#mailCommand(transaction)
    // What broke an idle connection says nothing about this message.
    const { fault } = this.#channel
    if (fault !== null)
      throw new SmtpFailure('mail', { reason: 'closed', message: `connection is closed: ${fault.message}` })
    this.#busy = true
    try {
      return await this.#transact(transaction, mail)
    } catch (error) {
      // MAIL refused leaves the dialogue in order; after anything else its state is unknown.
      const inOrder =
        error instanceof SmtpFailure &&
        error.stage === 'mail' &&
        error.reason === 'refused' &&
        error.reply?.code !== CODE.leaving
      if (!inOrder) this.#channel.destroy()
      throw error
    } finally {
      this.#busy = false
    }
  }

  /**
   * What the server says to each recipient after an empty return path; nothing is sent. Ends before all recipients where one
   * is refused.
   * @throws SmtpFailure as `send`
   */
  async tryRecipients(addresses: readonly string[]): Promise<SmtpReply[]> {
    assert(!this.#busy, 'a transaction is in progress')
    const bad = addresses.find((address) => !isSendableAddress(address, false))
    if (bad !== undefined) throw new SmtpFailure('rcpt', unsendable('recipient', bad))
    this.#busy = true
    try {
      if (this.#needsReset) await this.#single('rset', 'RSET')
      this.#needsReset = true
      const mail = await this.#single('mail', 'MAIL FROM:<>')
      if (!isPositive(mail)) throw new SmtpFailure('mail', refusedBy(mail))
      const replies: SmtpReply[] = []
      for (const address of addresses) {
        const reply = await this.#single('rcpt', `RCPT TO:<${address}>`)
        replies.push(reply)
        if (!isPositive(reply)) break
      }
      return replies
    } finally {
      this.#busy = false
    }
  }

  /** One command that is not pipelined. */
  async #single(stage: 'rset' | 'mail' | 'rcpt', line: string): Promise<SmtpReply> {
    this.#channel.check(stage)
    this.#channel.write(`${line}\r\n`, 1)
    return this.#channel.reply(stage, this.#timeouts[stage === 'rset' ? 'mail' : stage])
  }

  /** Sends QUIT and closes; never rejects. */
  async quit(): Promise<void> {
    if (this.reusable) {
      this.#busy = true
      this.#channel.write('QUIT\r\n', 1)
      try {
        await this.#channel.reply('quit', this.#timeouts.quit)
      } catch {
        // It has left already.
      }
    }
    this.close()
  }

  /** Closes at once; a `send` in progress is rejected. */
  close(): void {
    this.#channel.destroy()
  }

  async #transact(transaction: Transaction, mailCommand: string): Promise<TransactionResult> {
    const rcptCommands = transaction.recipients.map((address) => `RCPT TO:<${address}>`)
    const chunk = this.#chunkOf(transaction)
    if (chunk) return this.#transactInOne(transaction, [mailCommand, ...rcptCommands], chunk)
    if (this.#pipelining) {
      this.#write([...(this.#needsReset ? ['RSET'] : []), mailCommand, ...rcptCommands, 'DATA'])
    }
    if (this.#needsReset) await this.#reset()
    this.#needsReset = true

    const mail = await this.#ask('mail', mailCommand)
    if (!isPositive(mail)) {
      if (this.#pipelining && mail.code !== CODE.leaving) await this.#abandon(rcptCommands.length)
      throw new SmtpFailure('mail', refusedBy(mail))
    }
    const recipients: TransactionResult['recipients'] = []
    for (const [index, address] of transaction.recipients.entries()) {
      const reply = await this.#ask('rcpt', rcptCommands[index] as string)
      // The server is about to close (RFC 5321 §3.8): no recipient gets anything in this transaction.
      if (reply.code === CODE.leaving) throw new SmtpFailure('rcpt', refusedBy(reply))
      recipients.push({ address, reply })
    }
    if (!recipients.some(({ reply }) => isPositive(reply))) {
      if (this.#pipelining) await this.#abandon(0)
      return { recipients, data: null }
    }
    return { recipients, data: await this.#data(transaction) }
  }

  /** The content to send after BDAT; null: the transaction goes step by step. */
  #chunkOf({ recipients, message, sizeBytes }: Transaction): Uint8Array[] | null {
    const { body } = message
    if (!this.#chunking || recipients.length !== 1 || sizeBytes > CHUNK_BYTES_MAX) return null
    if (!atHand(body)) return null
    const pieces: Uint8Array[] = []
    const gather = (piece: Uint8Array) => void pieces.push(piece)
    const lines = new ContentLines('size')
    lines.push(headerBytes(message), gather)
    // Looking at each byte of a body of 10 KB would take 7 us.
    if (message.composed) return [...pieces, ...body]
    for (const chunk of body) lines.push(chunk, gather)
    lines.end(gather)
    return pieces
  }

  async #transactInOne(
    { recipients, beforeFinalDot }: Transaction,
    envelope: readonly string[],
    chunk: readonly Uint8Array[],
  ): Promise<TransactionResult> {
    await beforeFinalDot?.()
    this.#channel.check('mail')
    const size = chunk.reduce((sum, piece) => sum + piece.byteLength, 0)
    const reset = this.#needsReset
    this.#needsReset = true
    this.#channel.writeAll([...(reset ? ['RSET'] : []), ...envelope, `BDAT ${size} LAST`], chunk)
    try {
      const cleared = reset ? await this.#ask('rset', '') : null
      if (cleared && !isPositive(cleared)) return await this.#withoutReset(cleared, recipients[0] as string)
      const mail = await this.#ask('mail', '')
      if (!isPositive(mail)) {
        if (mail.code !== CODE.leaving) await this.#skipReplies(2)
        throw new SmtpFailure('mail', refusedBy(mail))
      }
      const rcpt = await this.#ask('rcpt', '')
      if (rcpt.code === CODE.leaving) throw new SmtpFailure('rcpt', refusedBy(rcpt))
      const replies = [{ address: recipients[0] as string, reply: rcpt }]
      if (!isPositive(rcpt)) {
        await this.#skipReplies(1)
        return { recipients: replies, data: null }
      }
      const data = await this.#channel.reply('dot', this.#timeouts.dot)
      if (data.code >= 300 && data.code < 400) throw invalidReply('dot', data)
      // A reply that calls the sequence of commands wrong is right after a refused envelope only (RFC 3030 §2): here it is
      // not about the message either.
      if (UNKNOWN_COMMAND.has(data.code) || data.code === CODE.badSequence) throw withoutChunks(data)
      this.#needsReset = !isPositive(data)
      if (data.code === CODE.leaving) this.close()
      return { recipients: replies, data }
    } catch (error) {
      const answered = error instanceof SmtpFailure && error.reply !== null
      throw error instanceof SmtpFailure && !answered ? error.withFateUnknown() : error
    }
  }

  /** RSET was refused, but what was sent after it may have been taken all the same. */
  async #withoutReset(refusal: SmtpReply, address: string): Promise<TransactionResult> {
    const failure = new SmtpFailure('rset', refusedBy(refusal))
    if (refusal.code === CODE.leaving) throw failure
    const mail = await this.#ask('mail', '')
    const reply = await this.#ask('rcpt', '')
    const data = await this.#channel.reply('dot', this.#timeouts.dot)
    if (![mail, reply, data].every(isPositive)) throw failure
    this.close()
    return { recipients: [{ address, reply }], data }
  }

  /**
   * The outcome is known already, so a server that closes here costs only the connection. So does one that does not
   * know BDAT, whose reply is the last: it reads the content as commands, and is slow to answer each.
   */
  async #skipReplies(count: number): Promise<void> {
    try {
      for (let left = count; left > 0; left--) {
        const { code } = await this.#channel.reply('dot', this.#timeouts.dot)
        if (left === 1 && UNKNOWN_COMMAND.has(code)) this.close()
      }
    } catch {
      this.close()
    }
  }

  async #reset(): Promise<void> {
    const reply = await this.#ask('rset', 'RSET')
    if (!isPositive(reply)) throw new SmtpFailure('rset', refusedBy(reply))
  }

  /**
   * The envelope and DATA were sent together, and no recipient is to get anything: reads the remaining answers. The
   * outcome is known already, so a server that closes here costs only the connection.
   */
  async #abandon(rcptsUnread: number): Promise<void> {
    try {
      for (let left = rcptsUnread; left > 0; left--) await this.#channel.reply('rcpt', this.#timeouts.rcpt)
      const data = await this.#channel.reply('data', this.#timeouts.data)
      if (data.code === CODE.startContent) {
        this.#channel.write('.\r\n', 1)
        await this.#channel.reply('dot', this.#timeouts.dot)
      } else if (data.code === CODE.leaving) this.close()
    } catch {
      this.close()
    }
  }

  /** DATA and the content; the answer that decides. */
  async #data(transaction: Transaction): Promise<SmtpReply> {
    const go = await this.#ask('data', 'DATA')
    if (go.code === CODE.leaving) this.close()
    if (go.code >= 400) return go
    if (go.code !== CODE.startContent) throw invalidReply('data', go)
    await this.#content(transaction)
    const reply = await this.#answerToDot()
    this.#needsReset = false
    if (reply.code === CODE.leaving) this.close()
    return reply
  }

  /** Writes the content and its end. Before the last call nothing can have been accepted. */
  async #content({ message, beforeFinalDot }: Transaction): Promise<void> {
    const writer = new ContentWriter(this.#channel, this.#timeouts, this.#clock)
    await writer.write(headerBytes(message))
    if (atHand(message.body)) {
      for (const chunk of message.body) await writer.write(chunk)
    } else {
      for await (const bytes of exactBody(message)) await writer.write(bytes)
    }
    await beforeFinalDot?.()
    this.#channel.check('body')
    writer.end()
  }

  async #answerToDot(): Promise<SmtpReply> {
    try {
      const reply = await this.#channel.reply('dot', this.#timeouts.dot)
      if (reply.code >= 300 && reply.code < 400) throw invalidReply('dot', reply)
      return reply
    } catch (error) {
      throw error instanceof SmtpFailure ? error.withFateUnknown() : error
    }
  }

  #mailCommand({ returnPath, message, sizeBytes, utf8, requireTls }: Transaction): string {
    const size = this.extensions.get('SIZE')
    const limit = size !== undefined && /^[0-9]+$/.test(size) ? Number(size) : 0
    if (limit > 0 && sizeBytes > limit) {
      throw new SmtpFailure('mail', {
        reason: 'too-large',
        message: `Cannot send ${sizeBytes} bytes: the server takes ${limit}`,
      })
    }
    if (utf8 && !this.extensions.has('SMTPUTF8')) {
      throw new SmtpFailure('mail', { reason: 'unsupported', message: 'the server does not offer SMTPUTF8' })
    }
    if (requireTls && !(this.tls?.verified && this.extensions.has('REQUIRETLS'))) {
      throw new SmtpFailure('mail', {
        reason: 'unsupported',
        message: 'the server does not offer REQUIRETLS',
      })
    }
    let command = `MAIL FROM:<${returnPath}>`
    if (size !== undefined) command += ` SIZE=${sizeBytes}`
    if (this.extensions.has('8BITMIME') && (utf8 || needs8bit(message))) command += ' BODY=8BITMIME'
    // A notification must not carry the message on less protected ways (RFC 8689 §5).
    if (requireTls) command += ` REQUIRETLS${this.extensions.has('DSN') ? ' RET=HDRS' : ''}`
    return utf8 ? `${command} SMTPUTF8` : command
  }

  /** The reply to a command, which is written first unless it went out with the whole envelope. */
  async #ask(stage: 'rset' | 'mail' | 'rcpt' | 'data', command: string): Promise<SmtpReply> {
    if (!this.#pipelining) this.#write([command])
    const coming = this.#channel.reply(stage, this.#timeouts[stage === 'rset' ? 'mail' : stage])
    const reply = isPending(coming) ? await coming : coming
    if (stage !== 'data' && reply.code >= 300 && reply.code < 400) throw invalidReply(stage, reply)
    return reply
  }

  #write(commands: readonly string[]): void {
    this.#channel.write(`${commands.join('\r\n')}\r\n`, commands.length)
  }
}

const headerBytes = ({ headers }: MimeMessage) =>
  Buffer.from(`${headers.join('\r\n')}${headers.length > 0 ? '\r\n' : ''}\r\n`)

const atHand = (body: readonly Chunk[]): body is Uint8Array[] =>
  body.every((chunk) => chunk instanceof Uint8Array)

/** The reply is not about the message and not passed on as such; the connection is closed. */
function withoutChunks(reply: SmtpReply): SmtpFailure {
  const message = `the server offers CHUNKING, but answers BDAT with: ${replyText(reply)}`
  return new SmtpFailure('dot', { reason: 'unsupported', message })
}

/** Gathers content into blocks, so that a message of usual size is one write, its final dot included. */
class ContentWriter {
  readonly #channel: Channel
  readonly #timeouts: SmtpTimeouts
  readonly #clock: Clock
  readonly #startedMs: number
  readonly #stuffer = new ContentLines('dot')
  #pieces: Uint8Array[] = []
  #gathered = 0
  #written = 0
  readonly #gather = (piece: Uint8Array) => {
    this.#pieces.push(piece)
    this.#gathered += piece.byteLength
  }

  constructor(channel: Channel, timeouts: SmtpTimeouts, clock: Clock) {
    this.#channel = channel
    this.#timeouts = timeouts
    this.#clock = clock
    this.#startedMs = clock.monotonic()
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let from = 0; from < bytes.byteLength; from += BLOCK_BYTES) {
      this.#stuffer.push(bytes.subarray(from, from + BLOCK_BYTES), this.#gather)
      if (this.#gathered >= BLOCK_BYTES) await this.#flush()
    }
  }

  /** The final dot, with the rest: from here on the server may have the message, whatever fails. */
  end(): void {
    this.#stuffer.end(this.#gather)
    const block = this.#takeBlock()
    this.#channel.writeLastContent(block, [`[${this.#written} bytes of content]`])
  }

  async #flush(): Promise<void> {
    const spentMs = this.#clock.monotonic() - this.#startedMs
    const timeoutMs = Math.max(1, Math.min(this.#timeouts.block, this.#timeouts.content - spentMs))
    await this.#channel.writeContent(this.#takeBlock(), 'body', timeoutMs)
  }

  #takeBlock(): Uint8Array {
    const block = this.#pieces.length === 1 ? (this.#pieces[0] as Uint8Array) : Buffer.concat(this.#pieces)
    this.#written += block.byteLength
    this.#pieces = []
    this.#gathered = 0
    return block
  }
}

/** The body; a lazy chunk that fails, or yields another number of bytes than it says, ends the message unsent. */
async function* exactBody(message: MimeMessage): AsyncGenerator<Uint8Array> {
  const expected = messageSize({ headers: [], body: message.body })
  let read = messageSize({ headers: [], body: [] })
  try {
    for await (const bytes of readChunks(message.body)) {
      read += bytes.byteLength
      yield bytes
    }
  } catch (cause) {
    throw new SmtpFailure('body', { reason: 'message', message: 'Cannot read the body', cause })
  }
  if (read !== expected) {
    const difference = `Cannot send the body: it has ${read} bytes, ${expected} were announced`
    throw new SmtpFailure('body', { reason: 'message', message: difference })
  }
}

/** A reply that is positive, or asks for more, where that is invalid. */
function invalidReply(stage: SmtpStage, reply: SmtpReply): SmtpFailure {
  return new SmtpFailure(stage, {
    reason: 'protocol',
    message: `invalid reply: ${replyText(reply)}`,
    reply,
  })
}

function isPositive(reply: SmtpReply): boolean {
  return reply.code >= 200 && reply.code < 300
}
