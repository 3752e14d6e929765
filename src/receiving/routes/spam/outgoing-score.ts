/** The spam score of a message that is not sent yet, by the operator's scorer. */

import { type MimeMessage, messageBytes, messageSize } from '../../../protocols/message/mime-message.ts'
import type { SpamScore } from '../../../protocols/scanners/spam-score.ts'
import { outgoingMail } from '../../../sending/content-check/outgoing-mail.ts'
import { SCORED_BYTES_MAX, type Scanners } from '../../../sending/content-check/scanners.ts'
import type { Domain } from '../../../sending/domains/domain.ts'

/** Null: it gave no score, because the message is large or it does not answer. Never rejects. */
export type OutgoingScorer = (
  domain: Pick<Domain, 'mailfromHost'>,
  recipient: string,
  message: MimeMessage,
) => Promise<SpamScore | null>

/** Null: no scorer is set. `helo`: the name of this host. */
export function createOutgoingScorer(
  { outboundScore, inboundScore }: Pick<Scanners, 'outboundScore' | 'inboundScore'>,
  helo: string,
): OutgoingScorer | null {
  const score = outboundScore ?? inboundScore
  if (!score) return null
  return async (domain, recipient, message) =>
    messageSize(message) > SCORED_BYTES_MAX
      ? null
      : score(
          // One recipient is enough for a score.
          outgoingMail({ helo, sender: `postmaster@${domain.mailfromHost}`, recipient }),
          await messageBytes(message),
        )
}
