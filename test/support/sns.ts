/** Amazon SNS and its hosts for tests: it signs messages, and answers in place of `https://sns.<region>.amazonaws.com`. */
import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { certifiedKey, signingKeyOf } from '../../src/base/net/certificate.ts'
import type { Core } from '../../src/core.ts'
import type { HttpOutcome, HttpRequest } from '../../src/platform/posts/http-client.ts'
import { type SnsMessage, signedText } from '../../src/receiving/sns/message.ts'
import { createAuthority } from './certificates.ts'

export const TOPIC_ARN = 'arn:aws:sns:eu-west-1:123456789012:ses-feedback'
const ORIGIN = 'https://sns.eu-west-1.amazonaws.com'
export const CERTIFICATE_URL = `${ORIGIN}/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem`

const DAY_MS = 86_400_000

interface Signer {
  key: KeyObject
  /** PEM. */
  certificate: string
}

const authority = createAuthority()

/** A key with a certificate, by default as SNS has. */
export function signerOf(
  name = 'sns.amazonaws.com',
  fromMs = Date.now() - DAY_MS,
  toMs = Date.now() + DAY_MS,
): Signer {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const issuer = {
    ...{ commonName: 'Test authority', key: signingKeyOf(authority) },
    publicKey: createPublicKey(authority.key),
  }
  const validity = { from: new Date(fromMs), to: new Date(toMs) }
  return { key: privateKey, certificate: certifiedKey([name], publicKey, issuer, validity) }
}

export interface Sns {
  signer: Signer
  /** URLs that the service has fetched, in order. */
  fetched: string[]
  /** The answer to a GET; default: certificates at CERTIFICATE_URL, 200 for anything else. */
  answer(url: string): number | string
  /** A signed message; `given` replaces members before it is signed. */
  message(given?: Partial<SnsMessage>): SnsMessage
  /** An area that puts this in place of Amazon's hosts. */
  area(core: Core): object
}

let sent = 0

export function createSns(): Sns {
  const sns: Sns = {
    signer: signerOf(),
    fetched: [],
    answer: (url) => (url === CERTIFICATE_URL ? sns.signer.certificate : 200),
    message(given = {}) {
      const unsigned: SnsMessage = {
        Type: 'Notification',
        MessageId: `22b80b92-fdea-4c2c-8f9d-${String(++sent).padStart(12, '0')}`,
        TopicArn: TOPIC_ARN,
        Message: '{}',
        Timestamp: new Date().toISOString(),
        SignatureVersion: '2',
        Signature: '',
        SigningCertURL: CERTIFICATE_URL,
        ...given,
      }
      const digest = unsigned.SignatureVersion === '1' ? 'sha1' : 'sha256'
      const signature = sign(digest, Buffer.from(signedText(unsigned)), sns.signer.key).toString('base64')
      // Members of real messages that are neither signed nor read.
      const others = { UnsubscribeURL: `${ORIGIN}/?Action=Unsubscribe`, MessageAttributes: {} }
      return Object.assign(others, unsigned, { Signature: signature })
    },
    area(core) {
      const { send } = core.httpClient
      core.httpClient.send = async (request: HttpRequest): Promise<HttpOutcome> => {
        if (!request.url.startsWith('https://')) return send(request)
        sns.fetched.push(request.url)
        const answer = sns.answer(request.url)
        const status = typeof answer === 'number' ? answer : 200
        if (status === 0) return { kind: 'failed', why: 'no answer within 10 s', durationMs: 10_000 }
        const body = Buffer.from(typeof answer === 'string' ? answer : '<ConfirmSubscriptionResponse/>')
        return { kind: 'answered', status, reason: '', retryAfter: '', contentType: '', body, durationMs: 1 }
      }
      return {}
    },
  }
  return sns
}

/** A message about a subscription. */
export const subscription = (sns: Sns, given: Partial<SnsMessage> = {}): SnsMessage =>
  sns.message({
    Type: 'SubscriptionConfirmation',
    Message: `You have chosen to subscribe to the topic ${TOPIC_ARN}.\nTo confirm the subscription, visit the URL.`,
    Token: '2336412f37fb687f5d51e6e241d09c805a5a57b30d712f79',
    SubscribeURL: `${ORIGIN}/?Action=ConfirmSubscription&TopicArn=${TOPIC_ARN}&Token=2336412f37fb687f5d51e6e241d09c805a5a57b30d712f79`,
    ...given,
  })
