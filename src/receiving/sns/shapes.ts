/** Topics of SNS as the API shows them (relays.md section 3). */
import { list, message, named, nullable, type Of, object, rfc3339, text } from '../../base/shape.ts'

export type TopicView = Of<typeof TOPIC>
export const TOPIC = named('SnsTopic', 'A topic of Amazon SNS whose notifications are taken', {
  arn: text('Its Amazon Resource Name', { example: 'arn:aws:sns:eu-west-1:123456789012:ses-feedback' }),
  endpoint: text('URL to subscribe to it; keep it to yourself', {
    example: 'https://mail.example.com/sendwright/v1/sns/notifications/mzxw6ytboi',
    only: { format: 'uri' },
  }),
  confirmed_at: nullable(rfc3339('When the subscription was confirmed; null: there is none')),
  created_at: rfc3339('When it was named'),
})
export const TOPICS = object('Topics', { items: list('By name', TOPIC) })

const TAKEN_TEXT = 'Notification received'
export const TAKEN = { message: TAKEN_TEXT } as const
export const TAKEN_ANSWER = message(TAKEN_TEXT, 'Taken, or of no effect')
const REMOVED_TEXT = 'Topic removed'
export const REMOVED = { message: REMOVED_TEXT } as const
export const REMOVED_ANSWER = message(REMOVED_TEXT, 'Its notifications are refused from now on')
