/**
 * The addresses of returned mail, for reception (src/receiving/sessions):
 *
 *     bounce+<token>@<any host>   the return path of one delivery
 *     fbl@<host of ours>          where feedback loops send complaints
 *
 * An authentic token is enough whatever the host: the return-path host of a domain may have changed since the mail
 * was sent.
 */
import type { Logger } from 'pino'
import { deliveryOfReturnPath, type ReturnPathMac } from '../../mail/deliver/attempt/return-path.ts'
import type { AddressReader, ReceivedMail } from '../sessions/reception.ts'
import { Refusal } from '../sessions/replies.ts'
import type { Reports } from './reports.ts'

/** Local part of the address for feedback loops. Not abuse@, which people read. */
const FEEDBACK_LOCAL = 'fbl'

interface ReportAddressParts {
  reports: Reports
  mac: ReturnPathMac
  /** Whether mail for this host, in lower case, is the service's own. */
  isOwnHost(host: string): Promise<boolean>
  log: Logger
}

export function reportAddresses({ reports, mac, isOwnHost, log }: ReportAddressParts): AddressReader {
  const receive = (deliveryId: string | null) => async (mail: ReceivedMail) => {
    const verdict = await reports.take(await mail.mails(), deliveryId)
    log.info({ deliveryId, verdict, remoteAddress: mail.remoteAddress }, 'mail came back')
    if (verdict === 'too-early') throw new Refusal('451 4.4.5 Try again later')
  }
  return async ({ local, domain }) => {
    const deliveryId = deliveryOfReturnPath(`${local}@${domain}`, mac)
    if (deliveryId !== null) return { subject: `return path ${deliveryId}`, receive: receive(deliveryId) }
    const feedback = local.toLowerCase() === FEEDBACK_LOCAL && (await isOwnHost(domain))
    return feedback ? { subject: null, receive: receive(null) } : null
  }
}
