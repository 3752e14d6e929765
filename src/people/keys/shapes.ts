/** What the operations on API keys and SMTP logins return (accounts.md). */
import { flag, mailDate, map, named, nothingNull, nullable, oneOf, optional, text } from '../../base/shape.ts'
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
}
export const API_KEY = named('ApiKey', 'An API key without its secret', KEY)
export const NEW_API_KEY = named('NewApiKey', 'An API key with its secret', {
  ...KEY,
  secret: text('Shown once', { example: '0123456789abcdef0123456789abcdef-1a2b3c4d-5e6f7a8b' }),
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
