/** What the operations on API keys and SMTP logins return (accounts.md). */
import {
  anyJson,
  flag,
  integer,
  mailDate,
  map,
  named,
  nothingNull,
  nullable,
  oneOf,
  optional,
  rfc3339,
  text,
} from '../../base/shape.ts'
import { KEY_KINDS, KEY_ROLES } from './api-keys.ts'

const LOCAL_TIME = { example: '2026-01-31T12:00:00' }
const KEY = {
  id: text('Identifier, also the end of the secret', { example: '1a2b3c4d-5e6f7a8b' }),
  description: text('Free text; empty if none was given'),
  kind: oneOf('`domain` sends for one domain, `web` is of a user and short-lived', KEY_KINDS),
  role: oneOf('Rights', KEY_ROLES),
  created_at: text('When it was created, UTC: `2026-01-31T12:00:00`', LOCAL_TIME),
  updated_at: text('Last change, UTC', LOCAL_TIME),
  expires_at: optional(text('When it expires, UTC; absent: never', LOCAL_TIME)),
  is_disabled: flag('Whether it is refused'),
  disabled_reason: optional(text('Why; only if it is disabled', { example: 'expired' })),
  domain_name: nullable(text('The domain that a key of kind `domain` sends for')),
  requestor: nullable(text('Mail address that was given with it')),
  user_name: nullable(text('Free text')),
  pod: optional(text('The pod that has the key; only where there are pods', { example: 'a' })),
}
export const API_KEY = named('ApiKey', 'An API key without its secret', KEY)
export const NEW_API_KEY = named('NewApiKey', 'An API key with its secret', {
  ...KEY,
  secret: text('Shown once', { example: '0123456789abcdef0123456789abcdef-1a2b3c4d-5e6f7a8b' }),
})

export const KEY_REQUEST = named('KeyRequest', 'A call of an API key, without its body and secrets', {
  id: text('Identifier, ordered by time'),
  created_at: rfc3339('When it was answered'),
  method: text('Method', { example: 'POST' }),
  path: text('Path; a part that could be an address is its name in braces', {
    example: '/v3/example.com/bounces/{address}',
  }),
  operation: text('Operation, as in `/openapi.json`', { example: 'sendMessage' }),
  status: integer('HTTP status of the answer'),
  error: nullable(text('The error in words, with names in braces in place of given values; null: none')),
  duration_ms: integer('From the arrival of the request to its answer', { unit: 'milliseconds' }),
  params: map(
    'Declared parameters by name; null: the value is not kept, because it could be an address or a secret',
    anyJson('A number, a switch, a date or a word of a fixed list; a list of them; or null'),
  ),
  remote_address: text('From where it came'),
  request_id: text('The request, as in the log and in the answer'),
  acted_for: nullable(text('The subaccount that the key acted for')),
  curl: text('The call as a command, with `$API_KEY` and names in braces for what is not kept'),
})

const LOGIN = text('Full address', { example: 'bob@example.com' })
export const CREDENTIAL = named('SmtpCredential', 'A login for SMTP', {
  mailbox: LOGIN,
  login: LOGIN,
  created_at: mailDate('When it was made'),
  size_bytes: nothingNull('Always null'),
})
/** Made passwords; absent where all were given. */
export const SHOWN_ONCE = {
  note: optional(text('Present with `credentials`')),
  credentials: optional(map('Passwords that were made, by login; shown once', text('Password'))),
}
