/**
 * Sending a stored message again (M4, messages.md rule 53): the same mail with the same Message-Id to other envelope
 * recipients, stored as a message of its own, which is kept as long as its own deliveries.
 */

import { newId } from '../../base/ids.ts'
import { chunkSize, messageSize, readChunk, readChunks } from '../../protocols/message/mime-message.ts'
import { bareAddress, type Mailbox, parseAddressList } from '../../protocols/mime/address.ts'
import { findLeaves } from '../../protocols/mime/part-map.ts'
import {
  DELIVERED_HEADER_LIMITS,
  type RawHeader,
  splitMessage,
  unfoldedValue,
} from '../../protocols/mime/split.ts'
import { type Domain, sendTime } from '../../sending/domains/domain.ts'
import { type Acceptance, type AcceptParts, type Submission, traceAcceptance } from '../accept/accept.ts'
import { checkSender, dueTime, limitFault, queueFault, sandboxFault } from '../accept/decide.ts'
import { copyStatements, deliveryRows, messageStatement, sourceKeys, storeBody } from '../accept/rows.ts'
import { authorFault } from '../record/authors.ts'
import { DEFAULT_OPTIONS } from '../record/options.ts'
import type { MessageContent, MessageRecord, StoredHeader } from '../record/record.ts'
import { type Stored, type StoredParts, storedCopy } from './stored-message.ts'

/** @throws Forbidden, TooManyRequests as for any other message, BadRequest for one without a readable author */
export function resendMessage(
  parts: AcceptParts & StoredParts,
  stored: Stored,
  recipients: readonly Mailbox[],
  submission: Submission,
): Promise<Acceptance> {
  const { tracing, clock } = parts
  if (tracing === undefined) return resend(parts, stored, recipients, submission)
  return traceAcceptance(tracing, clock, submission, recipients.length, (traceparent) =>
    resend(parts, stored, recipients, submission, traceparent),
  )
}

async function resend(
  parts: AcceptParts & StoredParts,
  stored: Stored,
  recipients: readonly Mailbox[],
  submission: Submission,
  traceparent?: string,
): Promise<Acceptance> {
  const { domain } = submission
  await checkSender(parts, domain)
  const disabledUntil = await parts.queueLimits.disabledUntil(domain.id)
  const limitReached = await parts.limits.refuses(domain.accountId, recipients.length)
  const allowed = domain.type !== 'sandbox' || (await parts.sandbox.mayReceive(domain, recipients))
  const now = parts.clock.now()
  const fault =
    queueFault(domain, disabledUntil, now) ??
    limitFault(domain, limitReached) ??
    sandboxFault(domain, allowed)
  if (fault) throw fault
  const record = await repeatedRecord(parts, stored, recipients, submission, now)
  if (traceparent !== undefined) record.options = { ...record.options, traceparent }
  const copies = recipients.map((recipient) => ({
    recipient,
    variables: null,
    due: dueTime(sendTime(now, record.options, domain), record.options),
    list: null,
  }))
  const acceptance: Acceptance = { id: `<${record.messageId}>`, message: 'Queued. Thank you.' }
  const unit = [
    await messageStatement(parts.blobs, record),
    ...copyStatements(
      record,
      parts,
      copies,
      deliveryRows(record, sourceKeys(parts, record, domain), copies, now),
      now,
    ),
    ...(submission.also?.(acceptance, now) ?? []),
  ]
  const counted = { accountId: domain.accountId, domainName: domain.name, recipients: copies.length }
  await parts.limits.commit(counted, unit, (all) => parts.store.commit(all))
  parts.records.remember(record)
  parts.queueLimits.added(domain.id, copies.length)
  parts.engine.wake()
  return acceptance
}

/** The mail as it was composed, now fixed: no variables, no template, no tracking. */
async function repeatedRecord(
  parts: AcceptParts & StoredParts,
  stored: Stored,
  recipients: readonly Mailbox[],
  submission: Submission,
  now: number,
): Promise<MessageRecord> {
  const { about, message, variables } = await storedCopy(parts, stored)
  const head = Buffer.from(`${message.headers.join('\r\n')}\r\n\r\n`)
  const prefix = parts.headerPrefix.toLowerCase()
  const fields = splitMessage(head, DELIVERED_HEADER_LIMITS).headers
  const source = {
    sizeBytes: message.body.reduce((sum, chunk) => sum + chunkSize(chunk), 0),
    open: () => readChunks(message.body),
  }
  const chunk =
    source.sizeBytes <= IN_MEMORY_MAX_BYTES
      ? await readChunk(source)
      : (await parts.blobs.spool(source.open())).chunk
  const leaves = await findLeaves(fields, chunk)
  const headers = fields
    .filter(
      ({ name }) =>
        !OWN.has(name.toLowerCase().slice(prefix.length)) || !name.toLowerCase().startsWith(prefix),
    )
    .map(({ name, value, raw }): StoredHeader => [name, value, raw])
  await checkAuthor(parts, submission.domain, fields)
  const body = await storeBody(
    { kind: 'mime', source: { headers: [], chunk, bodyStart: 0, bodyEnd: source.sizeBytes, leaves } },
    parts.blobs,
  )
  const { options } = stored.record
  return {
    ...stored.record,
    id: newId(now),
    messageId: about.messageId,
    content: { ...body, headers, template: null, batch: false, resent: true } as MessageContent,
    options: {
      ...DEFAULT_OPTIONS,
      dkim: options.dkim,
      testMode: options.testMode,
      requireTls: options.requireTls,
      skipVerification: options.skipVerification,
      // A person saw who got the message, and not to whom it goes now.
      ...(options.review && { review: true }),
      trackClicks: false,
      trackOpens: false,
    },
    summary: {
      ...about.summary,
      userVariables: variables,
      incoming: undefined,
      routes: null,
      recipients: recipients.map((mailbox) => bareAddress(mailbox)),
      batchId: null,
      sizeBytes: messageSize(message),
      method: submission.method,
      originatingIp: submission.originatingIp,
      keyId: submission.keyId,
      ignored: submission.ignored,
    },
    createdAt: now,
  }
}

/** It may be mail that was received, and its author's domain may have come to another account since it was accepted. */
async function checkAuthor({ domains }: AcceptParts, domain: Domain, fields: readonly RawHeader[]) {
  const [from, second] = fields.filter(({ name }) => name.toLowerCase() === 'from')
  const text = from && !second ? unfoldedValue(from.raw) : ''
  const fault = await authorFault(domains, domain, text, parseAddressList)
  if (fault) throw fault
}

/** Fields that each delivery writes, from tags and variables. */
const OWN = new Set(['tag', 'variables', 'template-name', 'deliver-by'])
const IN_MEMORY_MAX_BYTES = 256 * 1024
