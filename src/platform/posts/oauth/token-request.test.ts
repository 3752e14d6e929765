/** Asking a token server: requests and responses as the providers document them, and what is neither. */
import assert from 'node:assert/strict'
import { generateKeyPairSync, verify } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { createReceiver, type Receiver } from '../../../../test/support/http-receiver.ts'
import { parseCidr } from '../../../base/net/ip.ts'
import { systemClock } from '../../../base/time/clock.ts'
import { createHttpClient } from '../http-client.ts'
import { NoAccessToken, requestTokens, type TokenGrant } from './token-request.ts'

const NOW = Date.UTC(2026, 5, 1, 12)
const clock = { ...systemClock, now: () => NOW }
const LOOPBACK = [parseCidr('127.0.0.0/8')].flatMap((cidr) => cidr ?? [])
const SECRET = 'hush-9f2c+/=&%'
const REFRESH = '1//refresh-77'

const GRANT: Omit<TokenGrant, 'tokenUrl'> = {
  clientId: 'the client:id',
  clientSecret: SECRET,
  clientAuth: 'body',
  scope: 'https://outlook.office365.com/.default',
  grant: 'client_credentials',
  refreshToken: REFRESH,
  username: 'user@example.com',
}

async function start(t: TestContext) {
  const server = await createReceiver()
  const client = createHttpClient({ resolve: async () => [server.host], allow: LOOPBACK, clock: systemClock })
  t.after(() => {
    client.close()
    return server.close()
  })
  return {
    server,
    ask: (grant: Partial<TokenGrant> = {}) =>
      requestTokens(client, clock, { ...GRANT, tokenUrl: `${server.url}/token`, ...grant }),
  }
}

const answer = (status: number, body: unknown, headers: Record<string, string> = {}): Receiver['answer'] => {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return (response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
}

/** Of "OAuth 2.0 client credentials flow" at learn.microsoft.com and "Using OAuth 2.0" at developers.google.com. */
const ANSWERS: [what: string, body: unknown, expected: Awaited<ReturnType<typeof requestTokens>>][] = [
  [
    'Microsoft, client credentials',
    {
      token_type: 'Bearer',
      expires_in: 3599,
      access_token: 'eyJ0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiIsIng1dCI6Ik1uQ19W',
    },
    {
      accessToken: 'eyJ0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiIsIng1dCI6Ik1uQ19W',
      lifetimeMs: 3_599_000,
      refreshToken: null,
    },
  ],
  [
    'Microsoft, refresh: a new refresh token with each answer',
    {
      access_token: 'eyJ0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiIsIng1dCI6Ik5HVEZ2ZEstZnl0aEV1Q',
      token_type: 'Bearer',
      expires_in: 3599,
      scope: 'https://outlook.office.com/SMTP.Send',
      refresh_token: 'AwABAAAAvPM1KaPlrEqdFSBzjqfTGAMxZGUTdM0t4B4',
      id_token: 'eyJ0eXAiOiJKV1QiLCJhbGciOiJub25lIn0.eyJhdWQiOiIyZDRkMTFhMi1mODE0LTQ2YTctOD',
    },
    {
      accessToken: 'eyJ0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiIsIng1dCI6Ik5HVEZ2ZEstZnl0aEV1Q',
      lifetimeMs: 3_599_000,
      refreshToken: 'AwABAAAAvPM1KaPlrEqdFSBzjqfTGAMxZGUTdM0t4B4',
    },
  ],
  [
    'Google, refresh: the refresh token stays',
    {
      access_token: '1/fFAGRNJru1FTz70BzhT3Zg',
      expires_in: 3920,
      scope: 'https://mail.google.com/',
      token_type: 'Bearer',
    },
    { accessToken: '1/fFAGRNJru1FTz70BzhT3Zg', lifetimeMs: 3_920_000, refreshToken: null },
  ],
  [
    'RFC 6749 §5.1',
    {
      access_token: '2YotnFZFEjr1zCsicMWpAA',
      token_type: 'example',
      expires_in: 3600,
      refresh_token: 'tGzv3JOkF0XG5Qx2TlKWIA',
    },
    { accessToken: '', lifetimeMs: 0, refreshToken: null },
  ],
  [
    'a life in a text, as Entra ID v1 writes it',
    { access_token: 'a', token_type: 'bearer', expires_in: '3599' },
    { accessToken: 'a', lifetimeMs: 3_599_000, refreshToken: null },
  ],
  [
    'no life',
    { access_token: 'a', token_type: 'Bearer' },
    { accessToken: 'a', lifetimeMs: 300_000, refreshToken: null },
  ],
]
test('answers as documented', async (t) => {
  const { server, ask } = await start(t)
  for (const [what, body, expected] of ANSWERS) {
    server.answer = answer(200, body)
    if (expected.accessToken !== '') assert.deepEqual(await ask(), expected, what)
    else await assert.rejects(ask(), /the token is no bearer token/, what)
  }
})

const FAILURES: [what: string, answer: Receiver['answer'], message: string | RegExp, retrySeconds: number][] =
  [
    [
      'Microsoft, a wrong secret',
      answer(401, {
        error: 'invalid_client',
        error_description:
          "AADSTS7000215: Invalid client secret provided. Ensure the secret being sent in the request is the client secret value, not the client secret ID, for a secret added to app 'a'.\r\nTrace ID: 0a\r\nTimestamp: 2026-06-01 12:00:00Z",
        error_codes: [7000215],
      }),
      /^invalid_client: AADSTS7000215: Invalid client secret provided\. .* to app 'a'\.$/,
      300,
    ],
    [
      'Microsoft, an expired refresh token',
      answer(400, {
        error: 'invalid_grant',
        error_description: 'AADSTS700082: The refresh token has expired due to inactivity.',
      }),
      'invalid_grant: AADSTS700082: The refresh token has expired due to inactivity.',
      300,
    ],
    [
      'Google, a revoked refresh token',
      answer(400, { error: 'invalid_grant', error_description: 'Token has been expired or revoked.' }),
      'invalid_grant: Token has been expired or revoked.',
      300,
    ],
    [
      'no words, and not JSON',
      answer(403, '<html>no</html>', { 'content-type': 'text/html' }),
      'status 403',
      300,
    ],
    ['busy, with a time', answer(429, '', { 'retry-after': '120' }), 'status 429', 120],
    [
      'away, with a date',
      answer(503, '', { 'retry-after': new Date(NOW + 90_000).toUTCString() }),
      'status 503',
      90,
    ],
    [
      'away for longer than we wait',
      answer(503, { error: 'temporarily_unavailable' }, { 'retry-after': '999999' }),
      'temporarily_unavailable',
      3_600,
    ],
    ['away without a time', answer(502, 'Bad gateway'), 'status 502', 30],
    ['garbage', answer(200, '\0\xff{{'), 'response without an access token', 30],
    ['a list', answer(200, '[1]'), 'response without an access token', 30],
    ['nested too deeply', answer(200, '['.repeat(5_000)), 'response without an access token', 30],
    [
      'a token that would be a line of its own',
      answer(200, { access_token: 'a\r\nb', token_type: 'Bearer' }),
      'response without an access token',
      30,
    ],
    [
      'too large',
      answer(200, { access_token: 'a', token_type: 'Bearer', more: 'x'.repeat(200_000) }),
      'response of more than 65536 bytes',
      30,
    ],
    ['gone', (response) => response.destroy(), 'connection broken', 30],
    ['a redirect is not followed', answer(307, '', { location: 'http://127.0.0.1:1/' }), 'status 307', 300],
    [
      'what it repeats of our secrets is hidden',
      answer(400, { error: 'invalid_request', error_description: `${SECRET} and ${REFRESH}\u001b[2J` }),
      'invalid_request: [hidden] and [hidden]\\u001b[2J',
      300,
    ],
  ]
test('failures have the words of the server, a time to ask again, and no secret', async (t) => {
  const { server, ask } = await start(t)
  for (const [what, wrong, message, retrySeconds] of FAILURES) {
    server.answer = wrong
    const failure = await ask().then(
      () => null,
      (error: unknown) => error,
    )
    assert.ok(failure instanceof NoAccessToken, `${what}: ${failure}`)
    const words = failure.message.replace(`127.0.0.1:${server.port}: `, '')
    if (typeof message === 'string') assert.equal(words, message, what)
    else assert.match(words, message, what)
    assert.equal(failure.retryMs, retrySeconds * 1_000, what)
  }
})

test('a server that says nothing, or never ends, is left after 10 seconds', async (t) => {
  const server = await createReceiver()
  /** The last second passes at once. */
  const hasty = {
    ...systemClock,
    setTimer: (ms: number, run: () => void) => systemClock.setTimer(ms === 10_000 ? 20 : ms, run),
  }
  const client = createHttpClient({ resolve: async () => [], allow: LOOPBACK, clock: hasty })
  t.after(() => {
    client.close()
    return server.close()
  })
  const answers: Receiver['answer'][] = [
    () => {},
    (response) => void response.writeHead(200).write('{"access_token":'),
  ]
  for (const silent of answers) {
    server.answer = silent
    const asked = requestTokens(client, clock, { ...GRANT, tokenUrl: `${server.url}/token` })
    await assert.rejects(asked, /no answer within 10 s/)
  }
})

test('each grant asks as its RFC says, with the client in the body or in the header', async (t) => {
  const { server, ask } = await start(t)
  server.answer = answer(200, { access_token: 'a', token_type: 'Bearer' })
  const { clientId: client_id, scope } = GRANT
  const cases: [grant: Partial<TokenGrant>, fields: Record<string, string | null>, authorization?: string][] =
    [
      [{}, { grant_type: 'client_credentials', scope, client_id, client_secret: SECRET }],
      [
        { grant: 'refresh_token', scope: null },
        { grant_type: 'refresh_token', refresh_token: REFRESH, client_id, client_secret: SECRET },
      ],
      [
        { grant: 'refresh_token', clientSecret: null },
        { grant_type: 'refresh_token', refresh_token: REFRESH, client_id, scope },
      ],
      [
        { clientAuth: 'basic' },
        { grant_type: 'client_credentials', scope },
        // RFC 6749 §2.3.1: both are form-encoded before.
        `Basic ${Buffer.from('the+client%3Aid:hush-9f2c%2B%2F%3D%26%25').toString('base64')}`,
      ],
    ]
  for (const [grant, fields, authorization] of cases) {
    await ask(grant)
    const { raw, headers } = server.posts.at(-1) as Receiver['posts'][number]
    assert.deepEqual(Object.fromEntries(new URLSearchParams(raw.toString())), fields)
    assert.equal(headers.authorization, authorization)
    assert.equal(headers['content-type'], 'application/x-www-form-urlencoded')
  }
})

test("a service account's assertion is signed and names the user, the scope and the token server", async (t) => {
  const { server, ask } = await start(t)
  server.answer = answer(200, { access_token: 'a', token_type: 'Bearer' })
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const clientSecret = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  await ask({ grant: 'jwt_bearer', clientSecret, clientId: 'robot@project.iam.gserviceaccount.com' })
  const fields = new URLSearchParams(server.posts[0]?.raw.toString())
  assert.deepEqual([...fields.keys()], ['grant_type', 'assertion'])
  assert.equal(fields.get('grant_type'), 'urn:ietf:params:oauth:grant-type:jwt-bearer')
  const [header = '', claims = '', signature = ''] = (fields.get('assertion') ?? '').split('.')
  assert.ok(
    verify('sha256', Buffer.from(`${header}.${claims}`), publicKey, Buffer.from(signature, 'base64url')),
  )
  assert.deepEqual(JSON.parse(Buffer.from(claims, 'base64url').toString()), {
    iss: 'robot@project.iam.gserviceaccount.com',
    sub: GRANT.username,
    aud: `${server.url}/token`,
    iat: NOW / 1_000,
    exp: NOW / 1_000 + 3_600,
    scope: GRANT.scope,
  })
  await ask({ grant: 'jwt_bearer', clientSecret, username: null })
  const [, own = ''] = (new URLSearchParams(server.posts[1]?.raw.toString()).get('assertion') ?? '').split(
    '.',
  )
  assert.equal(
    'sub' in JSON.parse(Buffer.from(own, 'base64url').toString()),
    false,
    'about the client itself',
  )
  await assert.rejects(ask({ grant: 'jwt_bearer' }), /the client secret is not a private key/)
})

test('a secret goes over https or to this machine only', async (t) => {
  const { server, ask } = await start(t)
  await assert.rejects(
    ask({ tokenUrl: `http://token.example:${server.port}/` }),
    /the token URL is not https/,
  )
  assert.equal(server.posts.length, 0)
})
