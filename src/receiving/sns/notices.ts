/**
 * What follows from a message of a topic:
 *
 * 1. It is of the topic whose endpoint it came to, of this hour, and signed by SNS.
 * 2. A confirmation is confirmed at the topic's own region, because the operator has named the topic. Repetitions are not.
 * 3. A notification of SES becomes the event of its delivery, as returned mail does (receiving/bounces/reports.ts), which
 *    also counts each report once.
 *
 * So a message that is repeated within the hour changes nothing, and an older one is refused: ids need not be kept.
 */
import { ForeignJsonError, parseForeignJson } from '../../base/foreign-json.ts'
import { BadRequest, Forbidden, Unavailable } from '../../base/process/errors.ts'
import { HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { HttpClient } from '../../platform/posts/http-client.ts'
import type { SnsTopicRow } from '../../platform/store/schema.ts'
import type { Reports } from '../bounces/reports.ts'
import type { SigningCertificates } from './certificates.ts'
import { isAtOrigin, isCertificateOf, isSigned, originOfTopic, type SnsMessage } from './message.ts'
import { readSesNotification } from './ses-notification.ts'
import type { Topics } from './topics.ts'

/** SNS repeats a message to an HTTP endpoint for an hour at most, under the time of the first try. */
const AGE_MAX_MS = HOUR_MS
/** Clocks differ. */
const AHEAD_MAX_MS = 15 * MINUTE_MS
const RETRY_SECONDS = 20

interface NoticesParts extends Pick<Core, 'clock' | 'log'> {
  topics: Topics
  certificates: SigningCertificates
  reports: Pick<Reports, 'take'>
  httpClient: Pick<HttpClient, 'send'>
}

/**
 * Takes one message that came to the endpoint of a topic.
 * @throws BadRequest, Forbidden: SNS does not send it again; Unavailable, StoreFull, StoreUnavailable: it does
 */
export type TakeNotice = (topic: SnsTopicRow, message: SnsMessage) => Promise<void>

export function createNotices(parts: NoticesParts): TakeNotice {
  const { topics, certificates, reports, httpClient, clock, log } = parts

  /** @returns the time of the message and the origin of its topic */
  async function prove(topic: SnsTopicRow, message: SnsMessage) {
    const origin = originOfTopic(topic.arn)
    if (origin === null || message.TopicArn !== topic.arn)
      throw new Forbidden('The message is of another topic')
    const signedAt = Date.parse(message.Timestamp)
    const age = clock.now() - signedAt
    if (!(age <= AGE_MAX_MS && age >= -AHEAD_MAX_MS)) throw new Forbidden('The message is not of this hour')
    if (!isCertificateOf(message.SigningCertURL, origin))
      throw new Forbidden(`The certificate must be at ${origin}`)
    if (!isSigned(message, await certificates.keyAt(message.SigningCertURL)))
      throw new Forbidden('The signature is not valid')
    return { signedAt, origin }
  }

  async function confirm(topic: SnsTopicRow, message: SnsMessage, signedAt: number, origin: string) {
    if (signedAt <= topic.subscription_at) return
    const url = message.SubscribeURL ?? ''
    if (!isAtOrigin(url, origin)) throw new Forbidden(`A subscription is confirmed at ${origin} only`)
    const outcome = await httpClient.send({ url, method: 'GET' })
    if (outcome.kind !== 'answered' || outcome.status !== 200) {
      log.warn({ topic: topic.arn, outcome: outcome.kind }, 'a subscription to SNS could not be confirmed')
      throw new Unavailable(RETRY_SECONDS)
    }
    await topics.setConfirmed(topic.arn, true, signedAt)
    log.info({ topic: topic.arn }, 'a subscription to SNS is confirmed')
  }

  async function report(topic: SnsTopicRow, message: SnsMessage): Promise<void> {
    const returned = readSesNotification(jsonOf(message.Message))
    const verdict = returned === null ? 'no-report' : await reports.take(returned, null)
    log.info({ topic: topic.arn, messageId: message.MessageId, verdict }, 'a notification of SNS came')
    if (verdict === 'too-early') throw new Unavailable(RETRY_SECONDS)
  }

  return async (topic, message) => {
    const { signedAt, origin } = await prove(topic, message)
    switch (message.Type) {
      case 'SubscriptionConfirmation':
        return confirm(topic, message, signedAt, origin)
      case 'UnsubscribeConfirmation':
        return topics.setConfirmed(topic.arn, false, signedAt)
      case 'Notification':
        return report(topic, message)
    }
  }
}

/** SES announces itself by a sentence when a topic is set. @throws BadRequest for JSON that is too much to read */
function jsonOf(text: string): unknown {
  try {
    return text.startsWith('{') ? parseForeignJson(text) : null
  } catch (error) {
    if (error instanceof ForeignJsonError) throw new BadRequest('The message is no JSON', { cause: error })
    throw error
  }
}
