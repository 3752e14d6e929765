/** Accepting mail from SMTP submission. */

import { Forbidden } from '../../base/process/errors.ts'
import type { Chunk } from '../../protocols/message/mime-message.ts'
import type { Mailbox } from '../../protocols/mime/address.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { readSubmittedMime } from '../request/send-request.ts'
import { type AcceptParts, acceptMessage } from './accept.ts'
import { checkSender, scheduleMaxMs } from './decide.ts'

export interface Submitted {
  raw: Chunk
  recipients: readonly Mailbox[]
  login: { domainId: string }
  remoteAddress: string
  /** Empty: the null sender. */
  envelopeSender: string
}

/** The domain of a login, able to send now. @throws Forbidden */
export async function submittingDomain(parts: AcceptParts, login: { domainId: string }): Promise<Domain> {
  const domain = await parts.domains.byId(login.domainId)
  if (!domain) throw new Forbidden('The domain of this login was deleted')
  await checkSender(parts, domain)
  return domain
}

/**
 * Stores and queues the message for the domain of its login, whatever its From is.
 * @throws BadRequest, Forbidden, TooManyRequests with the texts of messages.md; then nothing was stored
 */
export async function acceptSubmitted(
  parts: AcceptParts,
  { raw, recipients, login, remoteAddress, envelopeSender }: Submitted,
): Promise<{ messageId: string }> {
  const domain = await submittingDomain(parts, login)
  const draft = await readSubmittedMime(raw, recipients, {
    prefixes: parts.headerPrefixes,
    now: parts.clock.now(),
    scheduleMaxMs: scheduleMaxMs(domain),
    contentType: 'message/rfc822',
  })
  const { id } = await acceptMessage(parts, draft, {
    domain,
    method: 'smtp',
    envelopeSender,
    originatingIp: remoteAddress,
    keyId: null,
  })
  return { messageId: id }
}
