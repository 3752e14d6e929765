/** The monthly limit as the API shows it (accounts.md section 5). */
import { integer, named, type Of, oneOf } from '../../base/shape.ts'

export type MessageLimit = Of<typeof MESSAGE_LIMIT>
export const MESSAGE_LIMIT = named('MessageLimit', 'The monthly limit and its use', {
  limit: integer('Recipients per calendar month in UTC', { example: 10_000 }),
  current: integer(
    'Recipients accepted in this month (accounts.md section 5), those of subaccounts included',
  ),
  period: oneOf('A calendar month', ['1m']),
})
