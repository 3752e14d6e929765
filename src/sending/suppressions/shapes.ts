/** Answers of the operations on suppressions (suppressions.md). */
import { integer, list, named, object, oneOf, text, utcDate } from '../../base/shape.ts'

const ADDRESS = text('Mail address in lower case', { example: 'bob@example.com' })
const CREATED_AT = utcDate('When it was added')
const MESSAGE = text('What was done')

export const BOUNCE = named('Bounce', 'An address to which mail could not be delivered', {
  address: ADDRESS,
  code: text('SMTP code', { example: '550' }),
  error: text('Error text of the receiving server'),
  created_at: CREATED_AT,
})

export const COMPLAINT = named('Complaint', 'An address whose owner called mail spam', {
  address: ADDRESS,
  count: integer('Number of complaints; always 1'),
  created_at: CREATED_AT,
})

export const UNSUBSCRIBE = named('Unsubscribe', 'An address that wants no more mail', {
  address: ADDRESS,
  tags: list('Tags of the mail that is not wanted; * is all mail', text('Tag'), { example: ['*'] }),
  created_at: CREATED_AT,
})

const ALLOWED_TYPE = oneOf('What the entry allows', ['address', 'domain'])
const ALLOWED_VALUE = text('Mail address or domain name', { example: 'example.com' })

export const ALLOWED = named(
  'AllowlistEntry',
  'An address or a domain that is never suppressed by a bounce',
  {
    type: ALLOWED_TYPE,
    value: ALLOWED_VALUE,
    reason: text('Why it is there'),
    createdAt: CREATED_AT,
  },
)

/** The answer to adding or removing an address. */
export const ADDRESS_DONE = object('Done', { message: MESSAGE, address: ADDRESS })
export const ALLOWED_ADDED = object('Added', { message: MESSAGE, type: ALLOWED_TYPE, value: ALLOWED_VALUE })
export const ALLOWED_REMOVED = object('Removed', { message: MESSAGE, value: ALLOWED_VALUE })

export const SUPPRESSION_POLICY = named('SuppressionPolicy', 'When bounces of a domain suppress', {
  hard_bounces_to_suppress: integer('Hard bounces within the window that suppress an address; 0: never'),
  soft_bounces_to_suppress: integer('The same for final failures other than hard bounces; 0: never'),
  window_days: integer('Days in which bounces are counted'),
  lifetime_days: integer('Days until an automatically added bounce expires; 0: never'),
})
