/** What the API says about passkeys (own-operations.md section 7). The options are those of WebAuthn Level 3, texts in base64url. */
import {
  constant,
  integer,
  list,
  named,
  nullable,
  object,
  oneOf,
  rfc3339,
  text,
} from '../../../base/shape.ts'
import { formatRfc3339 } from '../../../base/time/dates.ts'
import { parsedParam } from '../../../platform/http/request/inputs.ts'
import type { PasskeyRow } from '../../../platform/store/schema.ts'

export const PASSKEY = named('Passkey', 'A passkey of a user', {
  id: text('Identifier', { example: '507f1f77bcf86cd799439011' }),
  name: text('As its owner calls it', { example: 'Phone' }),
  created_at: rfc3339('When it was added'),
  last_used_at: nullable(rfc3339('When it was last used; null: never')),
})

const CHALLENGE = text('To be signed, valid once within five minutes')
const CREDENTIAL = object('A passkey', {
  type: constant('Always public-key', 'public-key'),
  id: text('As its authenticator names it'),
  transports: list('How it is reached', text('Such as internal')),
})
const TIMEOUT = integer('For how long the browser may ask')

export const REQUEST_OPTIONS = named('PasskeyRequest', 'What the browser asks a passkey for', {
  challenge: CHALLENGE,
  rpId: text('Host that the passkey belongs to', { example: 'mail.example.com' }),
  timeout: TIMEOUT,
  userVerification: oneOf('Whether a PIN, finger or face is needed', ['required', 'preferred']),
  allowCredentials: list('Those that may sign; empty: any of the host', CREDENTIAL),
})

export const CREATION_OPTIONS = named('PasskeyCreation', 'What the browser makes a passkey with', {
  rp: object('Whom it is for', { id: text('Host'), name: text('Shown by the browser') }),
  user: object('Whose it is', {
    id: text('Identifier of the user'),
    name: text('Mail address'),
    displayName: text('Name'),
  }),
  challenge: CHALLENGE,
  pubKeyCredParams: list(
    'Kinds of keys',
    object('Kind', { type: constant('Always public-key', 'public-key'), alg: integer('COSE algorithm') }),
  ),
  timeout: TIMEOUT,
  attestation: constant('Nobody asks for the make', 'none'),
  excludeCredentials: list('Those that the user has', CREDENTIAL),
  authenticatorSelection: object('What it should be able to do', {
    residentKey: constant('To sign in without a name', 'preferred'),
    userVerification: constant('To sign in without a password', 'preferred'),
  }),
})

/** From the body alone, like all proofs. */
export const passkeyResponse = (description: string) =>
  parsedParam(description, (params, name) => params.bodyText(name), { in: 'form', type: 'json' })

export const passkeyView = ({ id, name, created_at, last_used_at }: PasskeyRow) => ({
  id,
  name,
  created_at: formatRfc3339(new Date(created_at)),
  last_used_at: last_used_at === null ? null : formatRfc3339(new Date(last_used_at)),
})
