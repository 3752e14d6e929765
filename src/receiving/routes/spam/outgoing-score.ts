/** The spam score of a message that is not sent yet, by the operator's scorer. */

import type { Core } from '../../../core.ts'
import { type MimeMessage, messageBytes, messageSize } from '../../../protocols/message/mime-message.ts'
import type { SpamScore } from '../../../protocols/scanners/spam-score.ts'
import type { Domain } from '../../../sending/domains/domain.ts'
import { createScorerClient, SCORED_BYTES_MAX } from './scoring.ts'

/** Null: it gave no score, because the message is large or it does not answer. Never rejects. */
export type OutgoingScorer = (
  domain: Pick<Domain, 'mailfromHost'>,
  recipient: string,
  message: MimeMessage,
) => Promise<SpamScore | null>

/** Null: no scorer is set. */
export function createOutgoingScorer(core: Pick<Core, 'config' | 'log'>): OutgoingScorer | null {
  const score = createScorerClient(core)
  const helo = core.config.hostname
  if (!score) return null
  // As from a client of the scorer's own host: the message is judged, not the address that it will leave from.
  return async (domain, recipient, message) =>
    messageSize(message) > SCORED_BYTES_MAX
      ? null
      : score({
          raw: await messageBytes(message),
          headers: [],
          received: `Received: from ${helo} (${helo} [127.0.0.1])\r\n by ${helo} with ESMTP`,
          sender: `postmaster@${domain.mailfromHost}`,
          // One is enough for a score.
          recipients: [recipient],
          remoteAddress: '127.0.0.1',
          helo,
        })
}
