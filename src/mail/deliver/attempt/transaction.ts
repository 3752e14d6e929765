/**
 * One message on an open connection: one transaction with one recipient, whose replies become the result. Copies differ
 * between recipients (return path, tracking), so several recipients in one transaction would gain nothing.
 */

import { failPoint } from '../../../base/flow/fail-point.ts'
import { shortageOf } from '../../../base/process/shortage.ts'
import type { Clock } from '../../../base/time/clock.ts'
import type { SmtpConnection } from '../../../protocols/smtp/client.ts'
import { needs8bit } from '../../../protocols/smtp/envelope.ts'
import { SmtpFailure } from '../../../protocols/smtp/failure.ts'
import type { ConnectionPool, HeldConnection } from '../connect/connection-pool.ts'
import type { Opener } from '../connect/opening.ts'
import type { Job } from '../connect/routes.ts'
import type { AttemptResult, NotTried } from '../contract.ts'
import { connectionFailure, type Outcome, outcomeOfFailure, outcomeOfReply } from './outcome.ts'

export interface Transacted {
  result: AttemptResult | NotTried
  /** The server left before it judged anything: nothing was tried. */
  left: boolean
}

type Content = Pick<Job['prepared'], 'message' | 'sizeBytes'>

export class Transactions {
  readonly #clock: Clock
  readonly #pool: ConnectionPool
  readonly #opener: Opener

  constructor(clock: Clock, pool: ConnectionPool, opener: Opener) {
    this.#clock = clock
    this.#pool = pool
    this.#opener = opener
  }

  /** Sends, and puts the connection into the pool under `key` or closes it. */
  async transact(job: Job, held: HeldConnection, key: string): Promise<Transacted> {
    const { connection } = held
    const { prepared } = job
    const startedAt = this.#clock.now()
    try {
      const content = await contentFor(prepared, connection)
      if (content === null) {
        const result = resultOf(job, held, startedAt, NOT_CONVERTIBLE)
        this.#keep(job, held, key)
        return { result, left: false }
      }
      const { message, sizeBytes } = withSource(content, prepared.sourceHeader, connection.localAddress)
      const sent = await connection.send({
        returnPath: prepared.returnPath,
        recipients: [job.recipient],
        message,
        sizeBytes,
        utf8: prepared.utf8,
        beforeFinalDot: async () => {
          await job.beforeFinalDot()
          failPoint('dot-before')
        },
      })
      const reply = sent.data ?? sent.recipients[0]?.reply
      const outcome = reply
        ? outcomeOfReply(reply, reply === sent.data)
        : connectionFailure('no answer to the recipient')
      const result = resultOf(job, held, startedAt, outcome)
      this.#keep(job, held, key)
      return { result, left: false }
    } catch (error) {
      return this.#failed(job, held, key, startedAt, error)
    }
  }

  #failed(job: Job, held: HeldConnection, key: string, startedAt: number, error: unknown): Transacted {
    const { connection } = held
    if (!(error instanceof SmtpFailure)) {
      connection.close()
      throw error
    }
    const shortage = error.stage === 'body' ? shortageOf(error.cause) : null
    const result =
      shortage === null ? resultOf(job, held, startedAt, outcomeOfFailure(error)) : { localFault: shortage }
    if (error.stage === 'dot' && error.reason === 'unsupported')
      this.#opener.avoidChunks(connection.peer.host)
    if (connection.reusable) this.#keep(job, held, key)
    else connection.close()
    return { result, left: hasLeft(error, held) }
  }

  #keep({ lane }: Job, held: HeldConnection, key: string): void {
    this.#pool.give(lane.name, key, { ...held, used: held.used + 1 }, lane.limits.messagesPerConnection)
  }
}

function resultOf(
  job: Job,
  { connection, name, transcript }: HeldConnection,
  startedAt: number,
  outcome: Outcome,
): AttemptResult {
  return {
    outcome,
    attempted: true,
    mxHost: name,
    sendingIp: connection.localAddress,
    provider: job.provider,
    tls: connection.tls !== null,
    verified: connection.tls?.verified ?? false,
    utf8: connection.extensions.has('SMTPUTF8'),
    sessionMs: 0,
    transcript: { startedAt, lines: transcript.take() },
  }
}

/**
 * The server left before it judged anything. An idle connection ends with a 421, or is just closed; a new one that is
 * closed in place of an answer to MAIL is no more use. What may have been sent is never sent to another host.
 */
function hasLeft({ stage, reason, reply, afterFinalDot }: SmtpFailure, { used }: HeldConnection): boolean {
  if (used === 0) return stage === 'mail' && reason === 'closed' && !afterFinalDot
  if (stage !== 'mail' && stage !== 'rset') return false
  return reason === 'closed' || reply?.code === 421
}

/** Without 8BITMIME a client must not send bytes above 127 (RFC 6152 §3). Null: this message must not be converted. */
async function contentFor(
  prepared: Job['prepared'],
  { extensions }: SmtpConnection,
): Promise<Content | null> {
  const { message, utf8, toSevenBit } = prepared
  const asIs = extensions.has('8BITMIME') || utf8 || toSevenBit === undefined || !needs8bit(message)
  return asIs ? prepared : toSevenBit()
}

/** RFC 3463 §3.7: conversion required but not supported. */
const NOT_CONVERTIBLE: Outcome = {
  kind: 'bounced',
  failure: {
    code: 554,
    enhanced: '5.6.3',
    message: 'the server takes no 8-bit mail, and the signature in this message forbids converting it',
    description: '',
  },
}

/** The message with the field that names the address it is sent from. */
function withSource(
  { message, sizeBytes }: Content,
  sourceHeader: string | null | undefined,
  ip: string | null,
): Content {
  if (!sourceHeader || ip === null) return { message, sizeBytes }
  const field = `${sourceHeader}: ${ip}`
  return {
    message: { ...message, headers: [...message.headers, field] },
    sizeBytes: sizeBytes + field.length + 2,
  }
}
