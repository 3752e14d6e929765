/** Answers of the operations on messages (messages.md). */
import {
  constant,
  flag,
  integer,
  list,
  map,
  named,
  type Of,
  object,
  rfc3339,
  text,
  tuple,
} from '../../base/shape.ts'

export const ACCEPTANCE = named('AcceptedMessage', 'Stored and queued', {
  id: text('Message-Id in angle brackets', { example: '<20260601120000.5d2c81e09af3b764@example.com>' }),
  message: constant('What was done', 'Queued. Thank you.'),
})

const STORED_FILE = named('StoredFile', 'A file of a stored message', {
  name: text('File name'),
  'content-type': text('Media type', { example: 'application/pdf' }),
  size: integer('Size', { unit: 'bytes' }),
  url: text('Address of its bytes, for calls with a key', { only: { format: 'uri' } }),
})

const NONE = 'empty where the message has none'

export const STORED_MESSAGE = named('StoredMessage', 'A stored message; what it lacks is an empty text', {
  'Content-Transfer-Encoding': text(`Header field; ${NONE}`),
  'Content-Type': text(`Header field; ${NONE}`),
  From: text('Header field'),
  'Message-Id': text('With its angle brackets'),
  'Mime-Version': text(`Header field; ${NONE}`),
  Subject: text('Header field'),
  To: text('Header field'),
  'X-Service-Tag': text('Tags, separated by commas'),
  'X-Service-Template-Name': text('Name of the template'),
  'X-Service-Template-Variables': text('Variables of the template, as JSON'),
  sender: text('Bare address of the envelope'),
  from: text('Header field'),
  subject: text('Header field'),
  recipients: text('Bare addresses, separated by commas'),
  'body-html': text('HTML part'),
  'body-plain': text('Text part; made from the HTML where there is none'),
  'stripped-html': text('HTML without what it quotes'),
  'stripped-text': text('Text without what it quotes, and without the signature'),
  'stripped-signature': text('Signature of the text'),
  'message-headers': list('Header fields in their order', tuple('Name and value', text(''), text(''))),
  attachments: list('Attached files', STORED_FILE),
  'content-id-map': map('Inline files by Content-ID, in angle brackets', STORED_FILE),
})

export const STORED_MIME = named('StoredMime', 'A stored message as MIME, for `Accept: message/rfc2822`', {
  recipients: text('Bare addresses, separated by commas'),
  recipient: text('The first of them'),
  sender: text('Bare address of the envelope'),
  from: text('Header field'),
  subject: text('Header field'),
  'body-mime': text('The whole message'),
})

const QUEUE = named('SendingQueue', 'One of the queues of a domain', {
  is_disabled: flag('It takes no mail now'),
  disabled: object('Empty texts where it is not disabled', {
    until: text('When it takes mail again, RFC 1123 in GMT'),
    reason: text('Why it takes none'),
  }),
})
export const QUEUES = named('SendingQueues', 'The queues of a domain', {
  regular: QUEUE,
  scheduled: QUEUE,
})
export type Queues = Of<typeof QUEUES>

const SCHEDULED_ITEM = named('ScheduledMessage', 'Mail that is not due yet', {
  message_id: text('Message-Id without angle brackets'),
  storage_key: text('Its key, to read it'),
  domain: text('Sending domain'),
  deliverytime: rfc3339('When the first copy is due'),
  accepted_at: rfc3339('When it was accepted'),
  from: text('Header field'),
  to: text('Header field'),
  subject: text('Header field'),
  tags: list('Tags', text('')),
  recipients: integer('Copies that still wait'),
})
export type ScheduledItem = Of<typeof SCHEDULED_ITEM>

export const SCHEDULED_PAGE = named('ScheduledPage', 'Mail that is not due yet, by due time', {
  items: list('The items of this page', SCHEDULED_ITEM),
  paging: object('Links', {
    first: text('The first page', { only: { format: 'uri' } }),
    next: text('The next page', { only: { format: 'uri' } }),
  }),
})
