/** A user, and the answers about its second factor (accounts.md section 7, own-operations.md section 7). */
import {
  flag,
  integer,
  list,
  named,
  nothingNull,
  nullable,
  object,
  oneOf,
  rfc3339,
  text,
} from '../../base/shape.ts'
import { USER_ROLES } from '../../platform/http/rights/rights.ts'

const LOCAL_TIME = { example: '2022-12-20T16:52:01.892000' }
const EMAIL = text('Mail address, which the user signs in with', { example: 'ann@example.com' })
const NAME = text('Shown in lists', { example: 'Ann' })

export const USER = named('User', 'A user of an account', {
  id: text('Identifier', { example: '507f1f77bcf86cd799439011' }),
  activated: flag('Has chosen a password, or signs in with the OpenID Connect provider'),
  name: NAME,
  is_disabled: flag('May not sign in'),
  email: EMAIL,
  email_details: object('The address in its parts', {
    address: EMAIL,
    is_valid: flag('Always true'),
    parts: object('Its parts', {
      domain: text('After the @', { example: 'example.com' }),
      local_part: text('Before the @', { example: 'ann' }),
      display_name: NAME,
    }),
  }),
  role: oneOf('Rights', USER_ROLES),
  account_id: text('The account that the user belongs to'),
  opened_ip: text('Address from which the invitation was accepted; empty before'),
  is_master: flag('The first admin who accepted an invitation, who stays an admin'),
  metadata: object('Always empty', {}),
  tfa_enabled: flag('Signs in with an authenticator app or passkey besides the password'),
  tfa_active: flag('The same as tfa_enabled'),
  tfa_created_at: nullable(text('Since when, UTC; null: no authenticator app', LOCAL_TIME)),
  password_updated_at: nullable(
    text('When it was set, UTC: `2022-12-20T16:52:01.892000`; null: there is none', LOCAL_TIME),
  ),
  preferences: object('How the user reads', {
    time_zone: text('UTC if the user has chosen none'),
    time_format: text('Always 24h'),
    programming_language: text('Always curl'),
  }),
  auth: object('How the user signs in', {
    method: oneOf('With a password, or with the OpenID Connect provider', ['password', 'oidc']),
  }),
  github_user_id: nothingNull('Always null'),
  salesforce_user_id: nothingNull('Always null'),
  migration_status: text('Always done'),
})

export const RECOVERY_CODES = object('Recovery codes, shown once', {
  recovery_codes: list(
    'Each replaces a code of the app once',
    text('Code', { example: 'abcd-efgh-ijkl-mnop' }),
  ),
})

export const TOTP_SECRET = object('A secret for an authenticator app', {
  secret: text('In base32, to be typed'),
  otpauth_url: text('The same, to be read by the app', { only: { format: 'uri' } }),
})

export const PROFILE = named('OwnProfile', 'The own user', {
  id: text('Identifier', { example: '507f1f77bcf86cd799439011' }),
  email: EMAIL,
  name: NAME,
  role: oneOf('Rights', USER_ROLES),
  sign_in: oneOf('With a password, or with the OpenID Connect provider', ['password', 'oidc']),
  password_updated_at: nullable(rfc3339('When it was set; null: there is none')),
  totp_created_at: nullable(rfc3339('Since when; null: no authenticator app')),
  passkeys: integer('How many there are'),
  recovery_codes_left: integer('Those that were not used yet'),
  language: nullable(text('Of dates; null: English', { example: 'en-GB' })),
  time_zone: nullable(text('Of dates; null: as the browser has it', { example: 'Europe/Berlin' })),
})
