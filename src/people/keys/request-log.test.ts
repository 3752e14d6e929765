/** The last calls of each API key: what is noted, for whom, how many, and that nothing secret is. */
// Both databases: rows beyond the last thousand go by a subquery.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addAccount } from '../../../test/support/accounts.ts'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { type Answer, startTestService, type TestService } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { curlOf } from './request-curl.ts'
import { createRequestLog } from './request-log.ts'

interface Call {
  id: string
  method: string
  path: string
  operation: string
  status: number
  error: string | null
  params: Record<string, unknown>
  acted_for: string | null
  curl: string
}

const requests = (service: TestService, id: string, query = '', key = service.key): Promise<Answer> =>
  service.call('GET', `/sendwright/v1/keys/${id}/requests${query}`, { key })
const callsOf = async (service: TestService, id: string, query = ''): Promise<Call[]> =>
  (await requests(service, id, query)).body.items

async function newKey(service: TestService, form: Record<string, string>) {
  const { body } = await service.call('POST', '/v1/keys', { form })
  return body.key as { id: string; secret: string }
}

eachDatabase((database) => {
  test('the calls of a key are listed, with errors in words and without secrets', async (t) => {
    const service = await startTestService(t, {}, { database })
    const { id, secret } = await newKey(service, { role: 'developer' })
    const call = (method: string, path: string, form?: Record<string, string>) =>
      service.call(method, path, { key: secret, ...(form && { form }) })
    await call('GET', '/v4/domains?limit=5&search=planted')
    await call('POST', `/v3/${service.domain}/messages`, {
      from: `planted@${service.domain}`,
      to: 'planted@example.org',
      subject: 'planted',
      text: 'planted',
      'o:testmode': 'yes',
    })
    await call('POST', `/v3/${service.domain}/messages`, { from: 'planted', to: 'planted@', text: 'planted' })
    await call('GET', `/v3/${service.domain}/bounces/planted@example.org`)
    await call('GET', `/v3/${service.domain}/events?limit=planted`)
    await call('POST', `/v3/${service.domain}/messages`, {
      from: `a@${service.domain}`,
      to: 'fine@example.org, planted@example..org, ',
      subject: 'Hello',
      text: 'Hello',
    })
    await service.call('PUT', `/sendwright/v1/domains/${service.domain}/suppression-policy`, {
      ...{ key: secret, json: { lifetime_days: 'planted' } },
    })
    await call('DELETE', '/v1/keys/absent')
    await service.call('GET', '/v4/domains', { key: 'planted-unknown-key' })

    const answer = await requests(service, id)
    assert.doesNotMatch(answer.text, /planted|Basic |authorization/i)
    const [keys, policy, list, events, bounce, refused, sent, domains] = answer.body.items as Call[]
    assert.equal(answer.body.items.length, 8)
    assert.deepEqual([policy?.status, list?.status], [400, 400])
    assert.match(list?.error ?? '', /valid address/)
    assert.doesNotMatch(list?.error ?? '', /example/)
    assert.deepEqual(
      [domains?.method, domains?.path, domains?.status, domains?.error, domains?.params],
      ['GET', '/v4/domains', 200, null, { limit: '5', search: null }],
    )
    assert.deepEqual(
      [sent?.operation, sent?.status, sent?.path],
      ['sendMessage', 200, `/v3/${service.domain}/messages`],
    )
    assert.deepEqual(sent?.params, { from: null, to: null, subject: null, text: null, 'o:testmode': 'yes' })
    assert.equal(refused?.status, 400)
    assert.match(refused?.error ?? '', /./)
    assert.deepEqual([bounce?.path, bounce?.status], [`/v3/${service.domain}/bounces/{address}`, 404])
    assert.deepEqual([events?.status, /limit/.test(events?.error ?? '')], [400, true])
    assert.equal(keys?.status, 403)
    assert.match(keys?.error ?? '', /the role developer has no right to write here/)
    assert.match(
      sent?.curl ?? '',
      /^curl -s --user "api:\$API_KEY" -X POST 'https?:.*\/messages' --form-string 'from=\{from\}'/,
    )

    const failed = await callsOf(service, id, '?failed=yes&limit=2')
    assert.deepEqual(
      failed.map(({ status }) => status),
      [403, 400],
    )
    const next = await callsOf(service, id, `?failed=yes&page=next&id=${failed[1]?.id}`)
    assert.deepEqual(
      next.map(({ operation }) => operation),
      ['sendMessage', 'listEvents', 'readBounces', 'sendMessage'],
    )
  })

  test('calls for a subaccount are in the log of their key, and of nobody else', async (t) => {
    const service = await startTestService(t, {}, { database })
    const { body } = await service.call('POST', '/v5/accounts/subaccounts', { form: { name: 'child' } })
    const child = body.subaccount.id as string
    const { id, secret } = await newKey(service, { role: 'admin' })
    await service.call('GET', '/v4/domains', { key: secret, headers: { 'x-service-on-behalf-of': child } })
    const [call] = await callsOf(service, id)
    assert.equal(call?.acted_for, child)
    assert.match(call?.curl ?? '', new RegExp(`-H 'X-Service-On-Behalf-Of: ${child}'`))
    const asChild = { 'x-service-on-behalf-of': child }
    const seen = await service.call('GET', `/sendwright/v1/keys/${id}/requests`, { headers: asChild })
    assert.deepEqual([seen.status, seen.body.message], [404, 'no key matching id'])
    assert.equal((await requests(service, 'absent')).status, 404)
    const unused = await newKey(service, { role: 'basic' })
    assert.deepEqual(await callsOf(service, unused.id), [])
  })
})

test('a stranger does not see them, a deleted key keeps them, and a stop writes them', async (t) => {
  const service = await startTestService(t)
  const { id, secret } = await newKey(service, { role: 'basic' })
  await service.call('GET', '/v4/domains', { key: secret })
  await service.restart()
  const stranger = addAccount(service)
  assert.equal((await requests(service, id, '', stranger.key)).status, 404)
  await service.call('DELETE', `/v1/keys/${id}`)
  assert.equal((await callsOf(service, id)).length, 1)
})

test('with the setting 0 nothing is noted', async (t) => {
  const service = await startTestService(t, { SENDWRIGHT_REQUEST_LOG_DAYS: '0' })
  const { id, secret } = await newKey(service, { role: 'basic' })
  await service.call('GET', '/v4/domains', { key: secret })
  assert.deepEqual(await callsOf(service, id), [])
})

const noted = (keyId: string, status: number, accountId = 'account') => ({
  ...{ holder: { accountId, keyId, kind: 'user' }, method: 'GET', path: '/', operation: 'readIt' },
  ...{ form: 'query' as const, given: {}, status, message: null, durationMs: 1 },
  ...{ remoteAddress: '192.0.2.1', requestId: 'request', actedFor: null },
})

eachStore('the calls of a key are bounded between writes, in number and in age', async (store) => {
  const clock = createTestClock()
  const log = createRequestLog(store, clock, 7)
  const fill = (keyId: string, status: number, calls: number) => {
    const call = noted(keyId, status)
    for (let i = 0; i < calls; i++) if (log.wants(call.holder, status >= 400)) log.note(call)
  }
  const key = { id: 'key', accountId: 'account' }
  const all = { failed: false, limit: 10_000 }
  fill('key', 200, 50)
  fill('key', 400, 50)
  assert.equal((await log.list(key, all, { kind: 'first' })).length, 30)
  for (let i = 0; i < 100; i++) fill(`key-${i}`, 200, 10)
  assert.equal(log.wants({ accountId: 'account', keyId: 'another', kind: 'user' }, true), false)
  assert.equal(log.wants({ accountId: 'other', keyId: 'another', kind: 'user' }, true), true)
  assert.equal(log.wants({ accountId: 'other', keyId: 'session', kind: 'session' }, true), false)

  for (let i = 0; i < 5; i++) {
    await log.list(key, all, { kind: 'first' })
    fill('key', 400, 50)
  }
  assert.equal((await log.list(key, all, { kind: 'first' })).length, 30, 'reading begins no new time')

  for (let i = 0; i < 60; i++) {
    await log.write()
    fill('key', 200, 50)
    fill('key', 400, 50)
    clock.leap(10_000)
  }
  const kept = await log.list(key, all, { kind: 'first' })
  assert.ok(kept.length >= 1_000 && kept.length < 1_200, `${kept.length} calls`)
  clock.leap(8 * 86_400_000)
  await log.removeOld()
  assert.deepEqual(await log.list(key, all, { kind: 'first' }), [])
})

eachStore(
  'accounts that call all the time do not hide the calls of another, nor does a failed write',
  async (store) => {
    let faults = 0
    const commit: typeof store.commit = (unit) =>
      faults-- > 0 ? Promise.reject(new Error('the database is away')) : store.commit(unit)
    const log = createRequestLog({ ...store, commit }, createTestClock(), 7)
    const fill = (accountId: string, keyId: string, calls: number) => {
      const call = noted(keyId, 400, accountId)
      for (let i = 0; i < calls; i++) if (log.wants(call.holder, true)) log.note(call)
    }
    const count = async (accountId: string, id: string) =>
      (await log.list({ id, accountId }, { failed: false, limit: 100 }, { kind: 'first' })).length
    for (let key = 0; key < 10; key++) for (let n = 0; n < 5; n++) fill(`greedy-${n}`, `key-${n}-${key}`, 20)
    for (let n = 0; n < 15; n++) fill(`quiet-${n}`, `quiet-${n}`, 5)
    faults = 2
    await assert.rejects(log.write(), /is away/)
    assert.equal(await count('quiet-14', 'quiet-14'), 0)
    for (let n = 0; n < 15; n++) assert.equal(await count(`quiet-${n}`, `quiet-${n}`), 5)
    for (let n = 0; n < 5; n++) assert.equal(await count(`greedy-${n}`, `key-${n}-0`), 20)
    const [row] = await store.read({ sql: 'SELECT count(*) AS calls FROM key_requests', values: [] })
    assert.equal(Number(row?.['calls']), 1_000)
  },
)

test('a call as a command keeps its quotes and its names', () => {
  const row = { method: 'DELETE', path: '/v3/{address}', form: 'query' as const, acted_for: null }
  assert.equal(
    curlOf(
      { ...row, given_json: '{"a":"it\'s","b":null,"c":["1","2"]}' },
      { baseUrl: 'https://mail.example', headerPrefix: 'X-Service-' },
    ),
    `curl -s --user "api:$API_KEY" -X DELETE -g 'https://mail.example/v3/{address}' -G --data-urlencode 'a=it'\\''s' ` +
      "--data-urlencode 'b={b}' --data-urlencode 'c=1' --data-urlencode 'c=2'",
  )
})
