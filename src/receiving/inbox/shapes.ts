/** Answers of the operations on captured mail, and the faults that they take (own-operations.md section 1). */
import {
  flag,
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

const PROGRAMS = { unit: 'mail programs' } as const
export const HTML_CHECK = named('HtmlCheck', 'Which mail programs show the HTML of a captured message', {
  score: integer('Share of programs that show what is used, over all features; 100: all show all', {
    unit: '%',
  }),
  features: integer('Features of HTML, CSS and images that are used and known'),
  findings: list(
    'Features that some programs do not show, the worst first',
    object('One of them', {
      feature: text('The feature', { example: 'display:flex' }),
      url: text('What caniemail.com says about it'),
      uses: integer('How often it is used'),
      supported: integer('Show it', PROGRAMS),
      partly: integer('Show it partly', PROGRAMS),
      unsupported: integer('Do not show it', PROGRAMS),
      unknown: integer('Were not tested', PROGRAMS),
      partly_in: list('Those that show it partly', text('Mail program', { example: 'Gmail (iOS)' })),
      unsupported_in: list('Those that do not show it', text('Mail program')),
    }),
  ),
  clients: integer('Programs in the table', PROGRAMS),
  data_of: text('Date of the table', { example: '2026-01-31' }),
  complete: flag('False: the HTML is too long or too deep, and only its beginning was read'),
})

export const LINK_CHECK = named('LinkCheck', 'The links and images of a captured message, called', {
  items: list(
    'Up to 50 of them',
    object('One of them', {
      url: text('Address in the message'),
      kind: oneOf('Where it stands', ['link', 'image']),
      state: oneOf('`not called`: it is not allowed to, or the time was over', [
        'ok',
        'failed',
        'not called',
      ]),
      status: nullable(integer('HTTP status of the last answer; null: there was none')),
      reason: nullable(text('Why it is not ok; null: it is')),
      redirects: list('Where it led, in order', text('Address')),
    }),
  ),
  left_out: integer('Further ones, which were not called'),
})

export const TAGS_MAX = 20
export const TAG_CHARS_MAX = 128
export const GIVEN_TAGS = object('Tags', {
  tags: list(
    'All tags that the message is to have',
    text('Tag', { only: { minLength: 1, maxLength: TAG_CHARS_MAX } }),
    {
      only: { maxItems: TAGS_MAX },
    },
  ),
})

const RELEASE_TO_MAX = 10
export const GIVEN_RELEASE = object('Where it is released to', {
  to: list('Addresses', text('Address', { only: { minLength: 1, maxLength: 512 } }), {
    only: { minItems: 1, maxItems: RELEASE_TO_MAX },
  }),
})
const RELEASE = {
  accepted: integer('Recipients that the server took it for'),
  recipients: list(
    'What the server said for each',
    object('One of them', {
      address: text('Address'),
      accepted: flag('The server took it'),
      reply: text('Its words', { example: '250 2.0.0 OK' }),
    }),
  ),
}
export const RELEASED = named('ReleasedMail', 'A captured message that was released', RELEASE)
export const NOT_RELEASED = named('RefusedRelease', 'A release that did not reach all recipients', {
  message: text('Which it did not reach, in the words of the server'),
  ...RELEASE,
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
