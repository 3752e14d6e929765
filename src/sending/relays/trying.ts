/**
 * Sends one small message through a relay at once, past queue, rules and pause, and returns the dialogue. A relay that accepts it
 * is open again.
 */

import { newId } from '../../base/ids.ts'
import { BadRequest } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { formatRfc2822 } from '../../base/time/dates.ts'
import { SECOND_MS } from '../../base/time/durations.ts'
import { TranscriptRecorder } from '../../mail/deliver/connect/connection-pool.ts'
import { connectToRelay, type RelayHop } from '../../mail/deliver/connect/relay.ts'
import { type MimeMessage, messageSize } from '../../protocols/message/mime-message.ts'
import {
  bareAddress,
  type Mailbox,
  needsSmtpUtf8,
  parseMailbox,
  readOrNull,
} from '../../protocols/mime/address.ts'
import type { SmtpConnection, TransactionResult } from '../../protocols/smtp/connection.ts'
import { SmtpFailure } from '../../protocols/smtp/failure.ts'
import { replyText } from '../../protocols/smtp/reply.ts'
import type { TestResult } from './shapes.ts'

/** Somebody waits for the answer. */
const STEP_MS = 15 * SECOND_MS

interface TrialParts {
  clock: Clock
  heloName: string
  signal: AbortSignal
}

/** @throws BadRequest for an address that is none */
export async function tryRelay(
  hop: RelayHop,
  given: { from: string; to: string },
  { clock, heloName, signal }: TrialParts,
): Promise<TestResult> {
  const from = addressOf('from', given.from)
  const to = addressOf('to', given.to)
  const transcript = new TranscriptRecorder()
  let connection: SmtpConnection | null = null
  const resultOf = (accepted: boolean, result: string): TestResult => ({
    ...{ accepted, result },
    tls: connection?.tls !== null && connection !== null,
    verified: connection?.tls?.verified === true,
    lines: transcript.take().map(({ ms, direction, line }) => ({ ms: Math.round(ms), direction, line })),
  })
  try {
    connection = await connectToRelay(hop, STEP_MS, { heloName, clock, signal, transcript: transcript.add })
    const message = testMessage(hop.name, from, to, heloName, clock.now())
    const sent = await connection.send({
      ...{ returnPath: bareAddress(from), recipients: [bareAddress(to)], message },
      ...{ sizeBytes: messageSize(message), utf8: needsSmtpUtf8(from) || needsSmtpUtf8(to) },
    })
    const reply = lastReply(sent)
    return resultOf(reply.code < 300, replyText(reply))
  } catch (error) {
    if (error instanceof SmtpFailure)
      return resultOf(false, error.reply === null ? error.message : replyText(error.reply))
    throw error
  } finally {
    await connection?.quit()
  }
}

function addressOf(name: string, text: string): Mailbox {
  const mailbox = readOrNull(() => parseMailbox(text))
  if (mailbox === null) throw new BadRequest(`Invalid parameter: ${name}`)
  return mailbox
}

const lastReply = ({ data, recipients }: TransactionResult) =>
  data ?? (recipients[0] as TransactionResult['recipients'][number]).reply

function testMessage(name: string, from: Mailbox, to: Mailbox, host: string, now: number): MimeMessage {
  return {
    headers: [
      `From: <${bareAddress(from)}>`,
      `To: <${bareAddress(to)}>`,
      `Subject: Test of the relay ${name}`,
      `Date: ${formatRfc2822(new Date(now))}`,
      `Message-Id: <${newId()}@${host}>`,
      'MIME-Version: 1.0',
      'Content-Type: text/plain; charset=utf-8',
    ],
    body: [Buffer.from(`This message was sent to test the relay ${name}.\r\n`)],
  }
}
