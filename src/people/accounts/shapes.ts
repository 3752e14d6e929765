/** Answers of the operations on an account: sessions, addresses of callers, audit log (accounts.md). */
import {
  anyJson,
  flag,
  integer,
  list,
  map,
  named,
  nullable,
  object,
  oneOf,
  rfc3339,
  text,
} from '../../base/shape.ts'
import { RIGHTS, ROLES } from '../../platform/http/rights/rights.ts'

export const SUCCESS = object('Done', { success: flag('Always true') })

export const SESSION = named('BrowserSession', 'A session of a browser', {
  id: text('Identifier; not its secret', { example: 'session-0123456789abcdef01234567' }),
  key_id: nullable(text('The API key that opened it')),
  user_id: nullable(text('The user that it belongs to; null as is `key_id`: the operator')),
  remote_address: text('From where it was opened', { example: '192.0.2.1' }),
  user_agent: text('Browser that opened it'),
  created_at: rfc3339('When it was opened'),
  last_used_at: rfc3339('Last use, to within five minutes'),
  expires_at: rfc3339('When it ends at the latest'),
  current: flag('The one that makes this call'),
})

export const SESSIONS = object('Sessions', {
  total_count: integer('Number of items'),
  items: list('Newest first', SESSION),
})

const RIGHT = oneOf('Reading (R), changing (W), both or neither (-)', ['RW', 'R', 'W', '-'])
type RightFields = { [A in keyof typeof RIGHTS]: typeof RIGHT }
const RIGHT_FIELDS = Object.fromEntries(Object.keys(RIGHTS).map((area) => [area, RIGHT])) as RightFields
export const CALLER = named('CallerIdentity', 'Who calls', {
  kind: oneOf('Kind of the key, or a session', ['user', 'domain', 'web', 'public', 'session']),
  role: oneOf('Role that decides about the rights', ROLES),
  rights: object('By area of the rights table', RIGHT_FIELDS),
  user_id: nullable(text('The user that the session or key belongs to')),
  user: nullable(
    object('The same; null: there is none', {
      name: text('Name; empty if it has none', { example: 'Ann' }),
      email: text('Mail address', { example: 'ann@example.com' }),
      language: nullable(text('Of dates; null: English', { example: 'en-GB' })),
      time_zone: nullable(text('Of dates; null: as the browser has it', { example: 'Europe/Berlin' })),
    }),
  ),
  account: object('The account that the call is for', {
    id: text('Identifier', { example: '507f1f77bcf86cd799439011' }),
    name: text('Name; empty if it has none'),
    parent_id: nullable(text('Of a subaccount: its parent')),
    is_first: flag("The operator's own account"),
    strict_parameters: flag('Calls with parameters that are not known are refused'),
  }),
  acting_account_id: text('The account itself, or the parent that acts on behalf of it'),
})

export const AUDIT_ENTRY = named('AuditEntry', 'A change or a sign-in', {
  id: text('Identifier, ordered by time'),
  key_id: text('Key or session that made the change; empty without one'),
  user_id: nullable(text('User of that key or session')),
  parent_account_id: nullable(text('The parent that acted on behalf of the account')),
  remote_address: text('From where it was made'),
  request_id: nullable(text('The request, as in the log')),
  action: text('Noun and verb', { example: 'key.create' }),
  subject: text('What was changed, such as a domain'),
  status: nullable(integer('HTTP status; null: the process ended before the call finished')),
  detail: map('Parameters and results that are no secrets, by names of the action', anyJson('Value')),
  created_at: rfc3339('When it was made'),
})

export const AUDIT_ACTIONS = object('Actions that there are', {
  items: list('By name', text('Noun and verb', { example: 'key.create' })),
})

export const CALLER_ADDRESSES = object('Addresses that may call, oldest first; empty: every address may', {
  addresses: list(
    'Addresses and networks',
    named('CallerAddress', 'An address or network that may call', {
      ip_address: text('IP address or CIDR network in canonical form', { example: '192.0.2.0/24' }),
      description: text('Free text; empty if none was given'),
    }),
  ),
})

export const SANDBOX_RECIPIENT = named('SandboxRecipient', 'An address that sandbox domains may send to', {
  email: text('Mail address', { example: 'bob@example.com' }),
  activated: flag('Its owner has agreed'),
})
