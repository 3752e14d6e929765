/** Relays and relay rules over HTTP (relays.md sections 1 and 2). */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { startTestService } from '../../../test/support/service.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { givenRelay, openSecret, rowOfRelay } from './relay.ts'

const RELAYS = '/sendwright/v1/relays'
const RULES = '/sendwright/v1/relay-rules'
const SES = {
  ...{ name: 'ses', host: 'email-smtp.example.com' },
  login: { username: 'AKIA', password: 'very-secret' },
  limits: { connections: 5, messages_per_day: 200 },
}

eachDatabase((database) => {
  test('a relay is made, read, replaced and removed', async (t) => {
    const service = await startTestService(t, { SENDWRIGHT_DELIVERY: 'direct' }, { database })
    const ok = async (method: string, path: string, json?: unknown) => {
      const { status, body, text } = await service.call(method, path, { json })
      assert.equal(status, 200, text)
      assert.ok(!/very-secret|other-secret/.test(text), text)
      return body
    }
    const made = await ok('POST', RELAYS, SES)
    assert.deepEqual([made.port, made.tls, made.offered_to], [587, 'starttls', []])
    assert.deepEqual(made.login, { mechanism: 'auto', username: 'AKIA', has_password: true, oauth: null })
    // Without a password: the stored one stays.
    const { name: _, login: __, ...rest } = SES
    const changed = await ok('PUT', `${RELAYS}/ses`, {
      ...rest,
      tls: 'implicit',
      login: { username: 'AKIA' },
    })
    assert.deepEqual([changed.port, changed.login.has_password], [465, true])
    // To another server it does not go.
    const moved = { ...rest, host: 'elsewhere.example', login: { username: 'AKIA' } }
    const { status, body } = await service.call('PUT', `${RELAYS}/ses`, { json: moved })
    assert.deepEqual([status, body.message], [400, 'Missing mandatory parameter: password'])

    const {
      login,
      return_path: returnPath,
      alters,
    } = await ok('POST', RELAYS, {
      name: 'm365',
      host: 'smtp.office365.example',
      login: M365,
      return_path: 'app@example.com',
    })
    assert.deepEqual([returnPath, alters], ['app@example.com', { return_path: true, message_id: false }])
    const { token_url, client_id, scope, grant } = M365.oauth
    assert.deepEqual(login.oauth, {
      ...{ token_url, client_id, scope, grant, client_auth: 'body' },
      ...{ has_client_secret: true, has_refresh_token: false, expires_at: null, error: null, error_at: null },
    })
    // Whoever may change a relay cannot have its access tokens, or what gets them, sent elsewhere.
    const { client_secret: ___, ...oauth } = M365.oauth
    for (const [host, more] of [
      ['elsewhere.example', {}],
      ['smtp.office365.example', { grant: 'jwt_bearer' }],
      ['smtp.office365.example', { token_url: 'https://elsewhere.example/token' }],
    ] as const) {
      const json = { host, login: { ...M365, oauth: { ...oauth, ...more } } }
      const { status, body } = await service.call('PUT', `${RELAYS}/m365`, { json })
      assert.deepEqual([status, body.message], [400, 'Missing mandatory parameter: client_secret'])
    }
    const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    const client_secret = key.export({ type: 'pkcs8', format: 'pem' }).toString()
    const robot = { ...M365, oauth: { ...M365.oauth, grant: 'jwt_bearer', client_secret } }
    const { text: shown } = await service.call('PUT', `${RELAYS}/m365`, {
      json: { host: 'h.example', login: robot },
    })
    assert.match(shown, /"has_client_secret":true/)
    assert.ok(!shown.includes('PRIVATE KEY'))
    const { items } = await ok('GET', RELAYS)
    assert.deepEqual(
      items.map((relay: { name: string }) => relay.name),
      ['m365', 'ses'],
    )
    const rules = {
      items: [
        { match: { provider: 'Gmail' }, levels: [[{ relay: 'ses', weight: 2 }], [{ relay: 'direct' }]] },
      ],
    }
    assert.deepEqual(await ok('PUT', RULES, rules), rules)
    assert.equal((await service.call('DELETE', `${RELAYS}/ses`)).status, 409)
    await service.restart()
    assert.deepEqual(await ok('GET', RULES), rules)
    await ok('PUT', RULES, { items: [] })
    await ok('DELETE', `${RELAYS}/ses`)
    assert.equal((await service.call('GET', `${RELAYS}/ses`)).status, 404)
    const { text } = await service.call('GET', '/sendwright/v1/audit?limit=100')
    assert.match(text, /relay\.create/)
    assert.ok(!/very-secret|other-secret/.test(text))
  })
})

const M365 = {
  mechanism: 'xoauth2',
  username: 'app@example.com',
  oauth: {
    token_url: 'https://login.example/token',
    client_id: 'id',
    client_secret: 'other-secret',
    scope: 'https://outlook.example/.default',
    grant: 'client_credentials',
  },
}

test('what a relay must not be', async (t) => {
  const service = await startTestService(t)
  const refused = async (json: unknown, message: RegExp, method = 'POST', path = RELAYS) => {
    const { status, body, text } = await service.call(method, path, { json })
    assert.equal(status, 400, text)
    assert.match(body.message, message)
  }
  const host = 'smtp.example.com'
  await refused({ name: 'direct', host }, /always there/)
  await refused({ name: 'default', host }, /always there/)
  await refused({ name: 'A b', host }, /Invalid parameter: name/)
  await refused({ name: 'x', host: 'not a host' }, /Invalid parameter: host/)
  await refused({ name: 'x', host, tls: 'none' }, /allow_unverified/)
  await refused({ name: 'x', host, login: { username: 'u' } }, /parameter: password/)
  await refused({ name: 'x', host, login: { username: 'u', mechanism: 'xoauth2' } }, /login\.oauth/)
  const plain = { ...M365, oauth: { ...M365.oauth, token_url: 'http://login.example/token' } }
  await refused({ name: 'x', host, login: plain }, /token_url/)
  const robot = { ...M365, oauth: { ...M365.oauth, grant: 'jwt_bearer' } }
  await refused({ name: 'x', host, login: robot }, /client_secret is not an RSA private key/)
  const lines = { ...M365, oauth: { ...M365.oauth, client_secret: 'a\r\nb' } }
  await refused({ name: 'x', host, login: lines }, /client_secret/)
  await refused({ name: 'x', host, limits: { connections: 0 } }, /limits\.connections/)
  for (const address of ['nobody', 'a@b.example, c@d.example', 'ü@b.example', '<>', 'a@b.example\r\nX: y'])
    await refused({ name: 'x', host, return_path: address }, /return_path/)
  await refused(
    { items: [{ match: {}, levels: [[{ relay: 'nobody' }]] }] },
    /no relay "nobody"/,
    'PUT',
    RULES,
  )
})

test('secrets are sealed for their relay', () => {
  const sealer = createSealer('0123456789abcdef')
  const relay = givenRelay('ses', SES, null, sealer)
  assert.ok(!Buffer.from(rowOfRelay(relay, 0).password_sealed as Uint8Array).includes('very-secret'))
  assert.equal(openSecret(sealer, relay, 'password'), 'very-secret')
  assert.throws(() => openSecret(sealer, { ...relay, name: 'other' }, 'password'))
})
