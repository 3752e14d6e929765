/** Answers of the operations on one person's data (people.md). */
import {
  flag,
  integer,
  list,
  map,
  media,
  named,
  nullable,
  object,
  oneOf,
  optional,
  rfc3339,
  text,
} from '../../base/shape.ts'

export const KINDS = ['export', 'erase'] as const
export const STATES = ['queued', 'running', 'done', 'failed'] as const

const COUNT = named('PersonCount', 'Entries of a store', {
  found: integer('That name the person'),
  exported: optional(integer('Of those, in the archive')),
  erased: optional(integer('Of those, removed')),
  pseudonymised: optional(integer('Of those, changed: a pseudonym stands for the address')),
  kept: optional(integer('Of those, unchanged; the report says why')),
})
const COUNTS = map('By store; stores without an entry are left out', COUNT)

export const TASK = named('PersonTask', 'An export or an erasure of what is stored about a person', {
  id: text('Id'),
  kind: oneOf('What is done', KINDS),
  dry_run: flag('It only counts'),
  address_hash: text('Stands for the address: the same for the same address'),
  state: oneOf('How far it is', STATES),
  counts: COUNTS,
  created_at: rfc3339('When it was asked for'),
  finished_at: nullable(rfc3339('When it ended')),
  download_until: optional(rfc3339('When the archive is removed; present while there is one')),
  error: optional(text('Why it failed; present then')),
})
export const STARTED = object('It has been queued', { task: TASK })
export const TASKS = object('Tasks of the account', { items: list('Newest first', TASK) })
export const ARCHIVE = media('application/gzip', 'The folder as .tar.gz')

const WHY = object('A store that still has the person', {
  store: text('Its name'),
  why: text('Why it is kept'),
})
export const REPORT = named('PersonReport', 'What became of the data of a person, signed', {
  report: object('What is signed', {
    id: text('Of the task'),
    kind: oneOf('What was done', KINDS),
    dry_run: flag('It only counted'),
    address_hash: text('Stands for the address'),
    scope: oneOf('Whose data: of the account and its subaccounts, or of all', [
      'account',
      'service',
    ] as const),
    created_at: rfc3339('When it was asked for'),
    finished_at: rfc3339('When it was done'),
    counts: COUNTS,
    kept: list('What still has the person', WHY),
    backups: list(
      'Copies that still hold what they held when they were made',
      object('A backup', {
        kind: oneOf('What it is', ['backup', 'copy before an upgrade'] as const),
        made_at: rfc3339('When it was made'),
      }),
    ),
    left: list('What the database could not clean, or has no means to', text('A sentence')),
  }),
  signature: object('Of the report', {
    algorithm: oneOf('HMAC-SHA-256 (RFC 2104), in hex', ['hmac-sha256'] as const),
    key: oneOf('The key that webhooks of the account are signed with', ['http_signing_key'] as const),
    value: text('Of the JSON of `report` without blanks, its members in this order'),
  }),
})
