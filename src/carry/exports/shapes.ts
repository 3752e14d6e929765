/** Answers of the operations on exports (exports.md). */
import { integer, list, media, named, object, oneOf, optional, rfc3339, text } from '../../base/shape.ts'

export const STATUSES = ['requested', 'processing', 'complete', 'failed'] as const

export const EXPORT = named('Export', 'A list that is written into a file', {
  id: text('Id'),
  status: oneOf('How far it is; the file can be read when it is complete', STATUSES),
  url: text('The list, as given', { example: '/v3/example.com/bounces' }),
  created_at: rfc3339('When it was asked for'),
  expires_at: rfc3339('When it is removed'),
  size: integer('Size of the file as stored, so far', { unit: 'bytes' }),
  message: optional(text('Why it failed; present then')),
})
export const EXPORTS = object('Exports of the last 24 hours', { items: list('Newest first', EXPORT) })
export const FILE = media('text/csv', 'The list, with a header line')
