/** Accepting mail from SMTP submission. */

import { BadRequest, Forbidden } from '../../base/process/errors.ts'
import type { Chunk } from '../../protocols/message/mime-message.ts'
import type { Mailbox } from '../../protocols/mime/address.ts'
import type { MailParameters } from '../../protocols/smtp/server-dialogue.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { MessageOptions } from '../record/options.ts'
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
  /** The envelope's wishes. */
  parameters: Omit<MailParameters, 'utf8'>
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
  { raw, recipients, login, remoteAddress, envelopeSender, parameters }: Submitted,
): Promise<{ messageId: string }> {
  const domain = await submittingDomain(parts, login)
  const draft = await readSubmittedMime(raw, recipients, {
    prefixes: parts.headerPrefixes,
    now: parts.clock.now(),
    scheduleMaxMs: scheduleMaxMs(domain),
    contentType: 'message/rfc822',
  })
  const options = withParameters(draft.options, parameters)
  const { id } = await acceptMessage(
    parts,
    { ...draft, options },
    {
      domain,
      method: 'smtp',
      envelopeSender,
      originatingIp: remoteAddress,
      keyId: null,
    },
  )
  return { messageId: id }
}

/** @throws BadRequest for two delivery times */
function withParameters(
  options: MessageOptions,
  { requireTls, holdUntil }: Submitted['parameters'],
): MessageOptions {
  if (holdUntil !== undefined && options.deliveryTime !== null)
    throw new BadRequest('the message has a delivery time, and so has its envelope (HOLDFOR or HOLDUNTIL)')
  return {
    ...options,
    ...(requireTls && { requireTls: 'requiretls' }),
    ...(holdUntil !== undefined && { deliveryTime: holdUntil }),
  }
}
