/** Answers of the operations on retention (retention.md). */
import { integer, list, named, nullable, number, type Of, object, oneOf, text } from '../../base/shape.ts'

export type RetentionView = Of<typeof RETENTION>
export const RETENTION = named('Retention', 'How long data of a kind is kept', {
  kind: text('Kind of data', { example: 'messages' }),
  title: text('The kind in plain words', { example: 'Messages' }),
  personal: nullable(text('Personal data in it; null: none')),
  tables: list('Tables of the database that hold it', text('Table')),
  days: nullable(
    number(
      'Days that it is kept, a fraction where message_ttl is not of whole days; 0: no longer than until it is finished; null: until somebody removes it',
    ),
  ),
  since: text('Since when the days count'),
  source: oneOf('Who says so', ['fixed', 'service', 'account', 'domain', 'message_ttl']),
  setting: nullable(text('Setting of the operator; null: none')),
  own_days: nullable(integer('What this account, or this domain, has set; null: nothing')),
  min_days: nullable(integer('The least that may be set; null: it cannot be set')),
  max_days: nullable(integer('The most that may be set; null: it cannot be set')),
})

export const RETENTIONS = object('All kinds', { items: list('Kinds', RETENTION) })
