/**
 * Postal: its table `suppressions` (type, address, reason, timestamp, keep_until) as CSV or JSON, as a MySQL client writes
 * it. Postal adds an address after several hard failures, for a limited time.
 */
import { Unreadable } from '../entry.ts'
import { addressIn, columnsOf, itemsOf, type Shape, secondsOf, suppression, textIn } from './shape.ts'

export const POSTAL: Shape = {
  contents: [''],
  lists: ['suppressions'],
  items: (record, context) =>
    itemsOf(record, 'bounce', (record.value as Record<string, unknown> | null)?.['address'], () => {
      const columns = columnsOf(record.value)
      const address = addressIn(columns, 'address')
      const type = textIn(columns, 'type')
      if (type !== 'recipient') throw new Unreadable(`has the type "${type}", not recipient`)
      const until = secondsOf(columns.get('keepuntil'))
      if (until !== undefined && until * 1_000 < Date.now()) throw new Unreadable('has expired')
      const error = textIn(columns, 'reason')
      return [suppression('bounce', context, { address, error }, columns.get('timestamp'))]
    }),
}
