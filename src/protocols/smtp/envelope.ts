/**
 * What a transaction puts on command lines, checked before a byte is written: an address that could end the line or the
 * path would inject commands.
 */
import { isAscii } from 'node:buffer'
import type { MimeMessage } from '../message/mime-message.ts'
import { SmtpFailure } from './failure.ts'

/** A path is at most 256 octets (RFC 5321 §4.5.3.1.3); with UTF-8 twice that is allowed. */
const ADDRESS_BYTES_MAX = 512

/** Bounds one pipelined write to about 100 KB; servers need to take only 100 (RFC 5321 §4.5.3.1.8). */
const RECIPIENTS_MAX = 1000

/**
 * `local@domain` with the local part bare or quoted. Control characters, C1 included, and angle brackets are rejected
 * even where quoting would allow them; white space is allowed only within quotes.
 */
const ADDRESS_PATTERN =
  /^(?:"(?:[^"\\<>\u0000-\u001f\u007f-\u009f]|\\[^<>\u0000-\u001f\u007f-\u009f])*"|[^\s"<>@\u0000-\u001f\u007f-\u009f]+)@[^\s"<>@\u0000-\u001f\u007f-\u009f]+$/u

/** Whether an address can stand between `<` and `>`. @param utf8 non-ASCII is allowed (SMTPUTF8, RFC 6531 §3.3). */
export function isSendableAddress(address: string, utf8: boolean): boolean {
  if (Buffer.byteLength(address) > ADDRESS_BYTES_MAX || !address.isWellFormed()) return false
  return ADDRESS_PATTERN.test(address) && (utf8 || /^[\x20-\x7e]*$/.test(address))
}

/** A HELO name or address literal: letters, digits and the few characters that `[IPv6:...]` needs. */
export function isSendableHeloName(name: string): boolean {
  return name.length <= 255 && /^[A-Za-z0-9[\]._:-]+$/.test(name)
}

/** @throws SmtpFailure (reason `address` or `message`) for what must not be written to a server. */
export function checkTransaction(transaction: {
  returnPath: string
  recipients: readonly string[]
  message: MimeMessage
  utf8: boolean
}): void {
  const { returnPath, recipients, message, utf8 } = transaction
  if (returnPath !== '' && !isSendableAddress(returnPath, utf8)) {
    throw new SmtpFailure('mail', unsendable('return path', returnPath))
  }
  const bad = recipients.find((address) => !isSendableAddress(address, utf8))
  if (bad !== undefined) throw new SmtpFailure('rcpt', unsendable('recipient', bad))
  if (recipients.length === 0 || recipients.length > RECIPIENTS_MAX) {
    const message = `Cannot send to ${recipients.length} recipients: 1 to ${RECIPIENTS_MAX} go into one transaction`
    throw new SmtpFailure('rcpt', { reason: 'address', message })
  }
  const broken = message.headers.find((field) => !isSendableField(field))
  if (broken !== undefined) {
    const name = JSON.stringify(broken.slice(0, broken.indexOf(':')).slice(0, 80))
    throw new SmtpFailure('data', {
      reason: 'message',
      message: `Cannot send header field ${name}: it has no name, or a line end that is not a fold`,
    })
  }
}

/** RFC 5322 §2.2: a name of printable ASCII, a colon, and a value whose only CR and LF are folds. No NUL. */
function isSendableField(field: string): boolean {
  if (!/^[\x21-\x39\x3b-\x7e]+[ \t]*:/.test(field)) return false
  return !/[\r\n\0]/.test(field) || !/\r(?!\n)|(?<!\r)\n|\r\n(?![ \t])|\0/.test(field)
}

export function unsendable(what: string, address: string) {
  return {
    reason: 'address',
    message: `Cannot send with ${what} ${JSON.stringify(address.slice(0, 80))}`,
  } as const
}

const ASCII = /^[\0-\x7f]*$/

/**
 * Whether the message has bytes above 127. A lazy chunk counts as 8-bit, because it has not been read yet: declaring
 * 8BITMIME for 7-bit content is allowed.
 *
 * When the peer does not offer 8BITMIME, `send` sends the bytes as they are, without the parameter: RFC 6152 §3
 * requires conversion before, which changes what is signed and is therefore up to the caller.
 */
export function needs8bit(message: MimeMessage): boolean {
  if (message.headers.some((field) => !ASCII.test(field))) return true
  if (message.composed) return false
  return message.body.some((chunk) => !(chunk instanceof Uint8Array) || !isAscii(chunk))
}
