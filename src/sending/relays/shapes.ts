/** Relays and relay rules as the API shows and takes them (relays.md sections 1 and 2). */
import {
  constant,
  either,
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
  rfc3339,
  text,
} from '../../base/shape.ts'

export const TLS_WORDS = ['starttls', 'implicit', 'none'] as const
export const MECHANISMS = ['auto', 'plain', 'login', 'cram-md5', 'xoauth2', 'oauthbearer'] as const
export const GRANTS = ['client_credentials', 'refresh_token', 'jwt_bearer'] as const
export const CLIENT_AUTHS = ['body', 'basic'] as const
/** In place of a relay: the recipients' own servers. */
export const DIRECT = 'direct'

/** Answers without the secrets, requests with them. */
const NAME = text('Name, part of the names of its lanes', {
  example: 'ses',
  only: { pattern: '^[a-z0-9][a-z0-9._-]{0,31}$' },
})
const HOST = text('Host name or address', {
  example: 'smtp.example.com',
  only: { minLength: 1, maxLength: 253 },
})
const TLS = oneOf('STARTTLS, TLS from the first byte, or none', TLS_WORDS)
const USERNAME = text('User', { only: { minLength: 1, maxLength: 512 } })
const MECHANISM = oneOf('How to log in; auto: the best of CRAM-MD5, PLAIN and LOGIN', MECHANISMS)
const OAUTH = {
  token_url: text('Where access tokens come from, https', { only: { maxLength: 2048, format: 'uri' } }),
  client_id: text('Client id', { only: { minLength: 1, maxLength: 512 } }),
  scope: nullable(text('Scope; null: none is asked for', { only: { maxLength: 2048 } })),
  grant: oneOf(
    'Grant: client credentials (RFC 6749 §4.4), refresh token (§6), or signed assertions (RFC 7523), as of a Google service account',
    GRANTS,
  ),
}
const CLIENT_AUTH = 'Where the client secret is sent: in the body or by HTTP Basic (RFC 6749 §2.3.1)'
const COUNTS = {
  connections: nullable(
    integer('Connections at a time from one address; null: SENDWRIGHT_RELAY_CONNECTIONS', {
      only: { minimum: 1, maximum: 1_000 },
    }),
  ),
  messages_per_connection: nullable(
    integer('Messages on one connection; null: 100', { only: { minimum: 1, maximum: 10_000 } }),
  ),
  messages_per_second: nullable(
    number('Messages per second from one address; null: no limit', {
      only: { minimum: 0.01, maximum: 10_000 },
    }),
  ),
  messages_per_day: nullable(
    integer('Messages on a day (UTC); null: no limit', { only: { minimum: 1, maximum: 1_000_000_000 } }),
  ),
  max_message_size: nullable(
    integer('A larger message skips the relay; null: no limit', {
      unit: 'bytes',
      only: { minimum: 1_024, maximum: 1_000_000_000 },
    }),
  ),
}
const ALTERS = {
  return_path: flag('It replaces the return path, so that bounces do not come back to it'),
  message_id: flag('It replaces the Message-Id'),
}
const RETURN_PATH = nullable(
  text('Envelope sender of all its mail; null: a return path for each delivery', {
    example: 'bounces@example.com',
    only: { minLength: 3, maxLength: 320 },
  }),
)
const OFFERED = either(
  'Accounts whose messages may ask for it with o:relay; the first account always may',
  constant('All', 'all'),
  list('Ids of accounts', text('Id', { only: { maxLength: 64 } }), { only: { maxItems: 1_000 } }),
)

export type RelayView = Of<typeof RELAY>
export const RELAY = named('Relay', 'A server that takes mail for others', {
  name: NAME,
  from_setting: flag('It comes from SENDWRIGHT_DELIVERY, and is changed there'),
  host: HOST,
  port: integer('Port', { example: 587 }),
  tls: TLS,
  allow_unverified: flag('Its certificate need not verify'),
  login: nullable(
    object('Login; null: none', {
      mechanism: MECHANISM,
      username: USERNAME,
      has_password: flag('A password is stored'),
      oauth: nullable(
        object('Access tokens; null: the login has a password', {
          ...OAUTH,
          client_auth: oneOf(CLIENT_AUTH, CLIENT_AUTHS),
          has_client_secret: flag('A client secret is stored'),
          has_refresh_token: flag('A refresh token is stored'),
          expires_at: nullable(rfc3339('When the access token ends; null: there is none')),
          error: nullable(
            text("Why there was none last time, in the token server's words; null: there was one"),
          ),
          error_at: nullable(rfc3339('When that was')),
        }),
      ),
    }),
  ),
  limits: object('Limits', COUNTS),
  alters: object('What it changes in messages', ALTERS),
  return_path: RETURN_PATH,
  offered_to: OFFERED,
  state: object('Whether it is used', {
    word: oneOf('closed: not before `until`; probing: single messages try it again', [
      'open',
      'closed',
      'probing',
    ]),
    why: nullable(text('The failure that closed it; null: it is open')),
    since: nullable(rfc3339('When it was closed; null: it is open')),
    until: nullable(rfc3339('When it is tried again; null: it is open')),
    times: integer('How often in a row it was closed'),
  }),
  pause: nullable(
    object('It gets no mail; null: it is not paused', {
      reason: text('For the others'),
      since: rfc3339('When it began'),
      until: nullable(rfc3339('When it ends by itself; null: somebody ends it')),
    }),
  ),
  used_today: nullable(integer('Messages of this day (UTC); null: they are not limited')),
  since_start: object('Of this process', {
    accepted: integer('Messages that it has accepted'),
    failed: integer('Attempts that failed by its fault'),
  }),
  created_at: nullable(rfc3339('When it was made; null: it comes from the setting')),
  updated_at: nullable(rfc3339('When it was changed last; null: it comes from the setting')),
})
export const RELAYS = object('Relays', { items: list('By name', RELAY) })

const GIVEN_FIELDS = {
  host: HOST,
  port: optional(
    integer('Port; absent: 587, 465 with implicit TLS, 25 without TLS', {
      only: { minimum: 1, maximum: 65_535 },
    }),
  ),
  tls: optional(oneOf('STARTTLS, TLS from the first byte, or none', TLS_WORDS, { default: 'starttls' })),
  allow_unverified: optional(
    flag('Its certificate need not verify; needed for a relay without TLS that is not on this machine', {
      default: false,
    }),
  ),
  login: optional(
    nullable(
      object('Login; absent or null: none', {
        mechanism: optional(oneOf('How to log in', MECHANISMS, { default: 'auto' })),
        username: USERNAME,
        password: optional(
          text('Password; absent: that which is stored, if host and user stay', {
            only: { maxLength: 4_096 },
          }),
        ),
        oauth: optional(
          nullable(
            object('Access tokens, for xoauth2 and oauthbearer', {
              ...OAUTH,
              scope: optional(OAUTH.scope),
              client_auth: optional(oneOf(CLIENT_AUTH, CLIENT_AUTHS, { default: 'body' })),
              client_secret: optional(
                text(
                  'Client secret, for jwt_bearer a private key; absent: that which is stored, if host, token URL and client stay',
                  {
                    only: { maxLength: 4_096 },
                  },
                ),
              ),
              refresh_token: optional(
                text('Refresh token; absent: as for the client secret', { only: { maxLength: 8_192 } }),
              ),
            }),
          ),
        ),
      }),
    ),
  ),
  limits: optional(
    object('Limits; an absent one is null', {
      connections: optional(COUNTS.connections),
      messages_per_connection: optional(COUNTS.messages_per_connection),
      messages_per_second: optional(COUNTS.messages_per_second),
      messages_per_day: optional(COUNTS.messages_per_day),
      max_message_size: optional(COUNTS.max_message_size),
    }),
  ),
  alters: optional(
    object('What it changes in messages; an absent one is false', {
      return_path: optional(ALTERS.return_path),
      message_id: optional(ALTERS.message_id),
    }),
  ),
  return_path: optional(RETURN_PATH),
  offered_to: optional(OFFERED),
}

export type GivenRelay = Of<typeof RELAY_BODY>
export const RELAY_BODY = object('A relay; absent members have their defaults', GIVEN_FIELDS)
export const NEW_RELAY = object('A new relay', { name: NAME, ...GIVEN_FIELDS })

const MATCH = {
  domain: optional(
    text('Sending domain; `*.example.com`: those below it', { only: { minLength: 1, maxLength: 255 } }),
  ),
  pool: optional(
    text('Id of the IP pool that the message asked for, else of its domain', {
      only: { minLength: 1, maxLength: 64 },
    }),
  ),
  account_id: optional(text('Id of the account or subaccount', { only: { minLength: 1, maxLength: 64 } })),
  provider: optional(
    text("Display name of the recipient's provider", {
      example: 'Gmail',
      only: { minLength: 1, maxLength: 100 },
    }),
  ),
  recipient_domain: optional(
    text('Domain of the recipient; `*` stands for any characters', {
      example: '*.edu',
      only: { minLength: 1, maxLength: 255 },
    }),
  ),
}

export type RelayRule = Of<typeof RULE>
const RULE = named('RelayRule', 'Which relays take which mail', {
  match: object('All that is given must hold; empty: any mail', MATCH),
  levels: list(
    'In order: the next level is used while no relay of this one is',
    list(
      'Relays that share the mail',
      object('Choice', {
        relay: text(`Name of a relay, or ${DIRECT}`, { only: { maxLength: 32 } }),
        weight: optional(integer('Share of it', { default: 1, only: { minimum: 1, maximum: 1_000 } })),
      }),
      { only: { minItems: 1, maxItems: 10 } },
    ),
    { only: { minItems: 1, maxItems: 10 } },
  ),
})
export const RULES = object('Rules; the first that matches decides', {
  items: list('Rules', RULE, { only: { maxItems: 100 } }),
})

export const TEST_BODY = object('What to send', {
  from: text('Sender, in the envelope and in From', { only: { maxLength: 512 } }),
  to: text('Recipient', { only: { maxLength: 512 } }),
})
export type TestResult = Of<typeof TEST_RESULT>
export const TEST_RESULT = named('RelayTest', 'What a relay has answered to one message', {
  accepted: flag('It has accepted the message'),
  result: text('Its last reply, or why there is none'),
  tls: flag('The connection had TLS'),
  verified: flag('Its certificate was valid'),
  lines: list(
    'The dialogue, without secrets',
    object('A line', {
      ms: integer('Time since the start', { unit: 'milliseconds' }),
      direction: oneOf('Whether this service sent or received it', ['sent', 'received']),
      line: text('The line'),
    }),
  ),
})
