/** Answers of the operations on captured mail, and the faults that they take (own-operations.md section 1). */
import {
  integer,
  list,
  media,
  named,
  nullable,
  number,
  object,
  oneOf,
  optional,
  rfc3339,
  text,
  tuple,
} from '../../base/shape.ts'
import { pageOf } from '../../platform/http/request/paging.ts'

export const CAPTURED = named('CapturedMail', 'A captured message', {
  id: text('Id of the captured message'),
  received_at: rfc3339('When it was captured'),
  envelope: object('Envelope', {
    from: text('Return path'),
    to: list('Recipients', text('Address')),
  }),
  from: text('From as people read it'),
  to: text('To as people read it'),
  subject: text('Subject'),
  size: integer('Size', { unit: 'bytes' }),
  tags: list('Tags of the message', text('Tag')),
  delivery_id: nullable(text('Id of the delivery; null: it is not known')),
})

export const AUTHENTICATION = object('How the signatures of the service verify', {
  dkim: list(
    'DKIM signatures',
    object('One of them', {
      result: text('Result as in RFC 8601', { example: 'pass' }),
      domain: text('Signing domain'),
      selector: text('Selector'),
      reason: optional(text('Why there is no better result; if known')),
    }),
  ),
})

const body = (which: string) => nullable(text(`${which} part; null: there is none, or too many parts`))
export const CAPTURED_WHOLE = named('CapturedMessage', 'A captured message, parsed', {
  ...CAPTURED.fields,
  domain: text('Sending domain'),
  message_id: text('Message-Id without angle brackets'),
  storage_key: nullable(text('Key of the stored message that was sent; null: it is not known')),
  headers: list('Header fields in their order', tuple('Name and value', text('Name'), text('Value'))),
  text: body('Text'),
  html: body('HTML'),
  amp: body('AMP'),
  attachments: list(
    'Attachments',
    object('One of them', {
      n: integer('Its number in the path, from 0'),
      name: text('Name of the file'),
      'content-type': text('Content type'),
      size: integer('Size', { unit: 'bytes' }),
      'content-id': nullable(text('Content-ID without angle brackets; null: it has none')),
    }),
  ),
  authentication: AUTHENTICATION,
})

export const CAPTURED_PAGE = pageOf('CapturedMailPage', 'A page of captured mail, newest first', CAPTURED)
export const CAPTURED_STREAM = media(
  'text/event-stream',
  'One `arrival` event per message; its data is a CapturedMail',
)
export const CAPTURED_RAW = media('message/rfc822', 'The bytes as they were received')
export const CAPTURED_FILE = media('*/*', 'The bytes, of the type that the message says')

export const STAGES = ['connect', 'mail', 'rcpt', 'data', 'dot'] as const
export const DELAY_MS_MAX = 60_000 // longer than any timeout worth testing by hand
const PROBABILITY = { default: 1, only: { minimum: 0, maximum: 1 } }
const DELAY = { unit: 'milliseconds', default: 0, only: { minimum: 0, maximum: DELAY_MS_MAX } }

export const FAULT = named('InboxFault', 'A reply on demand of the built-in inbox', {
  recipient: text('Address, * stands for anything; at connect only *', { default: '*' }),
  stage: oneOf('When it is sent', STAGES),
  reply: text('Reply line; empty: only the delay', { example: '450 4.2.2 mailbox full', default: '' }),
  probability: number('Share of the cases in which it is sent', PROBABILITY),
  delay_ms: integer('Wait before it', DELAY),
})
const { recipient, stage, reply, probability, delay_ms } = FAULT.fields
export const FAULTS = list('The list', FAULT)
export const GIVEN_FAULTS = list(
  'The list; the first fault that fits counts',
  object('A fault', {
    recipient: optional(recipient),
    stage,
    reply: optional(reply),
    probability: optional(probability),
    delay_ms: optional(delay_ms),
  }),
)
