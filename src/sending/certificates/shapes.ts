/** Answers of the operations on certificates (tracking.md K5-K7). */
import { message, named, nullable, object, oneOf, optional, text } from '../../base/shape.ts'

export const TRACKING_CERTIFICATE = named('TrackingCertificate', "A tracking host's certificate", {
  status: oneOf('processing: it is being ordered', ['processing', 'active', 'expired', 'error']),
  error: nullable(text('Why the last order failed; null: it did not')),
  certificate: optional(nullable(text('Chain in PEM; absent while the first one is ordered, null: none'))),
})

export const ORDERED = object('The order runs in the background; the location shows its state', {
  ...message('Initiated x509 key pair generation').fields,
  location: text('Path of its state', { example: '/v2/x509/email.example.com/status' }),
})

const described = (description: string, example: string) =>
  object(description, { Description: text('The text', { example }) })

export const UNKNOWN = described('Not a tracking host, or without a certificate', 'x509 cert not found')
export const CONFLICT = described(
  'There is one that is valid, or its order is in progress',
  'x509 key pair generation has already been initiated for email.example.com',
)
export const RUNNING = described(
  'An order is in progress',
  'x509 key pair generation job is already in progress for email.example.com',
)
