/** Answers of the operations on health scores (health-score.md). */
import { integer, list, named, object, optional, text } from '../../base/shape.ts'

const points = (description: string) => integer(`Points lost by ${description}`, { unit: 'points' })

const SCORE = {
  score: integer('100: nothing is wrong; 0: everything is', { unit: 'points' }),
  rates: object('What takes points off; with the score they add up to 100', {
    bounce_rate: points('mail that could not be delivered'),
    complaint_rate: points('recipients who call it spam'),
    trap_rate: points('mail to spam traps'),
    full_mailbox_rate: points('mail to full mailboxes'),
    bad_failure_rate: points('mail to addresses that do not exist'),
  }),
  counters: object('Counts of the time', { delivered: integer('Deliveries') }),
}

export const TOTAL = named('HealthScore', 'Score of the last 30 days', SCORE)
export const GROUPED = object('A page of groups', {
  items: list(
    'Groups with deliveries',
    named('HealthScoreGroup', 'Score of a group', {
      group_key: text('The domain, address, account or day', { example: 'example.com' }),
      account_id: optional(text('The account; absent for days and addresses')),
      ...SCORE,
    }),
  ),
  total: integer('Number of all groups'),
})
