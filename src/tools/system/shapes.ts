/** The installation and its checks (own-operations.md section 6). */
import {
  described,
  flag,
  integer,
  list,
  named,
  nullable,
  number,
  object,
  oneOf,
  optional,
  rfc3339,
  text,
} from '../../base/shape.ts'
import { ROLES } from '../../platform/nodes/node.ts'
import { STORED_KINDS } from './sizes/table-kinds.ts'

const GROWTH = nullable(integer('Null until the samples span two hours', { unit: 'bytes per day' }))

export const STORAGE = named('StorageUse', 'What takes the space', {
  measured_at: rfc3339('When it was measured'),
  disk: object('The disk', {
    free_bytes: integer('Free, of the disk and within the database'),
    reserved_bytes: integer('Kept free: `SENDWRIGHT_FREE_SPACE_MIN`'),
    growth_bytes_per_day: GROWTH,
    full_at: nullable(rfc3339('When only the reserved space is left; null: not within ten years')),
  }),
  kinds: list(
    'The largest first',
    object('A kind of data', {
      kind: oneOf('Which', STORED_KINDS),
      bytes: integer('With indexes'),
      rows: integer('Number of rows or files, approximate'),
      growth_bytes_per_day: GROWTH,
      kept_days: nullable(integer('How long it is kept; null: there is no such setting', { unit: 'days' })),
      limit_bytes: nullable(integer('How much is kept; null: there is no such setting')),
    }),
  ),
})

const JOB = named('PeriodicJob', 'A periodic job', {
  name: text('Name'),
  interval_seconds: number('From one run to the next'),
  running: flag('It runs now'),
  last_started_at: nullable(rfc3339('Null: not yet')),
  last_ended_at: nullable(rfc3339('Null: not yet')),
  last_error: nullable(text('Of the last run, if it failed')),
})

const NODE = named('Node', 'A process on the database', {
  id: text('Identifier'),
  answers: flag('It is the one that answers this call'),
  host: text('Host that it runs on'),
  roles: list('What it does', oneOf('Role', ROLES)),
  addresses: list('Addresses that it can send from', text('IP address')),
  version: text('Version of Sendwright'),
  state: oneOf('Whether it is about to end', ['running', 'stopping']),
  started_at: rfc3339('Its start'),
  last_seen_at: rfc3339('Its last sign of life'),
  silent_seconds: number('How long ago that was'),
})

export const SYSTEM = named('System', 'The installation', {
  version: text('Version of Sendwright'),
  mode: oneOf('How mail leaves', ['capture', 'direct', 'relay']),
  inbox_release: flag('Captured mail may be released to real addresses'),
  database: oneOf('Kind of the database', ['sqlite', 'postgres']),
  uptime_seconds: integer('Since the start of the process'),
  queue: object("Deliveries that are not done: the account's own, for the first account all", {
    scheduled: integer('For later'),
    queued: integer('Waiting'),
    sending: integer('In an attempt'),
  }),
  alerts: optional(
    list(
      "What the service's own checks find wrong now; for the first account",
      named('OwnAlert', 'An alert of the service that lasts', {
        name: text('Which check', { example: 'sendwright:disk-space' }),
        dimension: optional(text('What `dimension_value` is; absent: the whole service')),
        dimension_value: optional(text('Which one is at fault; present with `dimension`')),
        latest_value: text('Last value'),
        since: rfc3339('When it began'),
        advice: text('What to do'),
      }),
    ),
  ),
  storage: optional(described('For admins of the first account; null: not measured yet', nullable(STORAGE))),
  jobs: optional(list('Periodic jobs; for admins of the first account', JOB)),
  scanners: optional(
    list(
      'Scanners of mail that this process asks; for admins of the first account',
      named('Scanner', 'A scanner of mail', {
        scanner: oneOf('Which', ['rspamd', 'spamd', 'clamd']),
        directions: list('Mail that it scans', oneOf('Direction', ['outbound', 'inbound'])),
        answered: integer('Answers since the start'),
        failed: integer('Questions without one'),
        last_answered_at: nullable(rfc3339('Null: not yet')),
        last_failed_at: nullable(rfc3339('Null: not yet')),
        last_error: nullable(text('Of the last failure')),
      }),
    ),
  ),
  nodes: optional(list('Processes on the database; for admins of the first account', NODE)),
})

export const CHECK = named('SystemCheck', 'What a check of the machine found', {
  name: text('Which check', { example: 'reverse-names' }),
  state: oneOf('Whether something is wrong; `skipped`: nothing was asked', [
    'ok',
    'warning',
    'failed',
    'skipped',
  ]),
  sentence: text('For a person: what was found and, if something is wrong, what to do'),
  checked_at: rfc3339('When it was made'),
})
