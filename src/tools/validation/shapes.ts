/** Answers of the operations that validate addresses (validation.md sections 1 to 3). */
import {
  flag,
  integer,
  list,
  named,
  nullable,
  number,
  type Of,
  object,
  oneOf,
  optional,
  type Shape,
  text,
  unixSeconds,
} from '../../base/shape.ts'
import { PAGING } from '../../platform/http/request/paging.ts'

export const RESULTS = ['catch_all', 'deliverable', 'do_not_send', 'undeliverable', 'unknown'] as const
export type ResultName = (typeof RESULTS)[number]
export const RISKS = ['high', 'low', 'medium', 'unknown'] as const
export type Risk = (typeof RISKS)[number]

export type Engagement = Of<typeof ENGAGEMENT>
const ENGAGEMENT = object(
  'From openings and clicks of the mail of the account; absent without any, and for a public key',
  {
    engaging: flag('The recipient opened or clicked'),
    is_bot: flag('All of that looks like machines'),
  },
)

export type ValidationResult = Of<typeof RESULT>
export const RESULT = named('ValidationResult', 'What is known of an address', {
  address: text('As given', { example: 'bob@example.com' }),
  did_you_mean: optional(text('The address that was probably meant; absent: none is known')),
  is_disposable_address: flag('The domain gives out addresses for a short time'),
  is_role_address: flag('The address belongs to a role, such as postmaster'),
  reason: list('What led to the result; may be empty', text('Reason', { example: 'no_mx' })),
  result: oneOf('Whether mail would arrive', RESULTS),
  risk: oneOf('Risk of sending to it', RISKS),
  root_address: optional(text('The mailbox behind an alias; absent: it is the address')),
  last_seen: optional(
    unixSeconds('Last delivery of the account, whole seconds; absent if unknown, and for a public key'),
  ),
  engagement: optional(ENGAGEMENT),
})

export type Counts = Of<typeof COUNTS>
const countsOf = (name: string, description: string, shape: Shape<number>) =>
  named(name, description, {
    result: object('By result', {
      catch_all: shape,
      deliverable: shape,
      do_not_send: shape,
      undeliverable: shape,
      unknown: shape,
    }),
    risk: object('By risk', { high: shape, low: shape, medium: shape, unknown: shape }),
  })
const COUNTS = countsOf(
  'ValidationCounts',
  'How many addresses have which result and risk',
  integer('Number of addresses'),
)
const SHARES = countsOf(
  'ValidationShares',
  'Which share of the addresses has which result and risk',
  number('One decimal', { unit: 'percent' }),
)

const ID = text('Name of the list; the address, if it is a mailing list', { example: 'customers' })
const CREATED_AT = unixSeconds('When it was created, whole seconds')
const QUANTITY = integer('Number of rows')

export type ValidationJob = Of<typeof JOB>
export const JOB = named('ValidationJob', 'The validation of a list of addresses', {
  id: ID,
  created_at: CREATED_AT,
  quantity: QUANTITY,
  records_processed: nullable(integer('Distinct addresses that are done; null while the file is read')),
  status: oneOf('How far it is', ['created', 'processing', 'uploaded', 'failed', 'canceled']),
  download_url: optional(
    object('Links to the results, for 24 hours, without a key; only once the status is uploaded', {
      csv: text('As CSV', { only: { format: 'uri' } }),
      json: text('As JSON', { only: { format: 'uri' } }),
    }),
  ),
  summary: optional(COUNTS),
})
export const JOB_PAGE = named('ValidationJobPage', 'A page of jobs, newest first', {
  jobs: list('The jobs of this page', JOB),
  total: integer('Number of jobs on all pages'),
  paging: object('Links to the pages around this one', {
    ...PAGING.fields,
    prev: text('The same as previous', { only: { format: 'uri' } }),
  }),
})

export const PREVIEW = named('ValidationPreview', 'The validation of a sample of a list', {
  id: ID,
  valid: flag('The file could be read and the preview is complete'),
  status: oneOf('How far it is', ['preview_processing', 'preview_complete']),
  quantity: QUANTITY,
  created_at: CREATED_AT,
  summary: SHARES,
})

export const SUBMITTED = object('It waits for its turn', { id: ID, message: text('What was done') })
