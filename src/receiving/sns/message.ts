/**
 * Messages that Amazon SNS posts to an HTTP endpoint, and their signatures
 * (https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html):
 *
 * 1. The topic's name says the only host that its certificate and the URL of its confirmation may have.
 * 2. The signature is RSA with SHA-1 (version 1) or SHA-256 (version 2) over names and values in a fixed order.
 * 3. Certificates are the business of certificates.ts.
 *
 * Left out: what a notification says.
 */
import { type KeyObject, verify } from 'node:crypto'
import { named, type Of, oneOf, optional, text } from '../../base/shape.ts'

/** Names are bounded where they are compared or signed; the limit of the body bounds the rest. */
const NAME_MAX = 256
export const URL_MAX = 2_048

export type SnsMessage = Of<typeof SNS_MESSAGE>
export const SNS_MESSAGE = named('SnsMessage', 'A message of Amazon SNS', {
  Type: oneOf('What it is', ['Notification', 'SubscriptionConfirmation', 'UnsubscribeConfirmation']),
  MessageId: text('Its id', { only: { maxLength: NAME_MAX } }),
  TopicArn: text('The topic', { only: { maxLength: NAME_MAX } }),
  Message: text('What was published; in other types a sentence'),
  Timestamp: text('When it was published', { example: '2026-01-31T12:00:00.000Z', only: { maxLength: 40 } }),
  SignatureVersion: oneOf('SHA-1 or SHA-256', ['1', '2']),
  Signature: text('RSA, in base 64', { only: { maxLength: 1_024 } }),
  SigningCertURL: text('The certificate', { only: { maxLength: URL_MAX } }),
  Subject: optional(text('Subject of a notification')),
  Token: optional(text('Of a confirmation', { only: { maxLength: 1_024 } })),
  SubscribeURL: optional(text('Confirms the subscription', { only: { maxLength: URL_MAX } })),
})

/** Names whose values are signed, in their order; a subject only if there is one. */
const SIGNED = {
  Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
  SubscriptionConfirmation: [
    'Message',
    'MessageId',
    'SubscribeURL',
    'Timestamp',
    'Token',
    'TopicArn',
    'Type',
  ],
  UnsubscribeConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
} as const

const DIGESTS = { 1: 'sha1', 2: 'sha256' } as const

/** The text that the signature is over; exported for tests. */
export function signedText(message: SnsMessage): string {
  return SIGNED[message.Type]
    .flatMap((name) => (message[name] === undefined ? [] : [`${name}\n${message[name]}\n`]))
    .join('')
}

/** Whether the holder of the key has signed the message. */
export function isSigned(message: SnsMessage, key: KeyObject): boolean {
  const digest = DIGESTS[message.SignatureVersion]
  return verify(digest, Buffer.from(signedText(message)), key, Buffer.from(message.Signature, 'base64'))
}

const ARN =
  /^arn:aws(?<partition>|-cn|-us-gov):sns:(?<region>[a-z]{2}(?:-[a-z]{1,12}){1,3}-\d):\d{12}:[\w-]{1,256}$/

/** `https://sns.<region>.amazonaws.com` of a topic, in China with `.cn`; null: the text names no standard topic. */
export function originOfTopic(arn: string): string | null {
  const { partition, region } = ARN.exec(arn)?.groups ?? {}
  if (region === undefined) return null
  return `https://sns.${region}.amazonaws.com${partition === '-cn' ? '.cn' : ''}`
}

const CERTIFICATE_PATH = /^\/[\w-]{1,200}\.pem$/

/** Whether the certificate is one of the topic's region: https, the usual port, a path that ends with `.pem`. */
export function isCertificateOf(url: string, origin: string): boolean {
  const parsed = URL.canParse(url) ? new URL(url) : null
  return (
    parsed !== null && parsed.href === `${origin}${parsed.pathname}` && CERTIFICATE_PATH.test(parsed.pathname)
  )
}

/** Whether the URL of a confirmation is at the topic's region. */
export const isAtOrigin = (url: string, origin: string): boolean =>
  url.startsWith(`${origin}/`) && URL.canParse(url) && new URL(url).origin === origin
