import type { ScoredMail } from '../../protocols/scanners/spam-score.ts'

/** As from a client on the scorer's own host: the message is judged, not the address that it will leave from. */
export const outgoingMail = ({
  helo,
  sender,
  recipient,
  user,
}: {
  helo: string
  sender: string
  recipient: string
  user?: string
}): ScoredMail => ({
  received: `Received: from ${helo} (${helo} [127.0.0.1])\r\n by ${helo} with ESMTP`,
  sender,
  recipients: [recipient],
  remoteAddress: '127.0.0.1',
  helo,
  ...(user !== undefined && { user }),
})
