/** A database that is full, or cannot be reached. */
import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { test } from 'node:test'
import { post } from '../../../test/support/crash-rig.ts'
import { startPostgres } from '../../../test/support/postgres.ts'
import { type CallOptions, eventually, ownAddress, startTestService } from '../../../test/support/service.ts'
import { startProcess } from '../../../test/support/service-process.ts'
import { openDialogue, plainLogin } from '../../../test/support/smtp-dialogue.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { openSqlite } from './sqlite/sqlite.ts'
import { insert, StoreFull } from './store.ts'

test('a full database refuses what does not fit, and works again once there is space', async (t) => {
  const store = await openSqlite(await temporaryFolder(t))
  const row = (domain: string, bytes: number) =>
    insert('mta_sts_policies', { domain, policy_id: '1', policy_text: 'x'.repeat(bytes), expires_at: 0 })
  const [pages] = await store.commit([{ sql: 'PRAGMA page_count', values: [] }])
  const now = Number(pages?.rows[0]?.['page_count'])
  await store.commit([{ sql: `PRAGMA max_page_count = ${now + 20}`, values: [] }])
  const results = await Promise.allSettled([
    store.commit([row('large.example', 500_000)]),
    store.commit([row('larger.example', 600_000)]),
  ])
  for (const result of results) {
    assert.equal(result.status, 'rejected')
    assert.ok(result.reason instanceof StoreFull, String(result.reason))
  }
  assert.equal(await store.ping(), true)
  await store.commit([row('small.example', 10)])
  await store.commit([{ sql: 'PRAGMA max_page_count = 1000000', values: [] }])
  await store.commit([row('large.example', 500_000)])
  const kept = await store.db.selectFrom('mta_sts_policies').select('domain').orderBy('domain').execute()
  assert.deepEqual(
    kept.map(({ domain }) => domain),
    ['large.example', 'small.example'],
  )
  await store.close()
})

test('below the floor of free space mail is refused with 507 and everything else works', async (t) => {
  const service = await startTestService(t, { SENDWRIGHT_FREE_SPACE_MIN: '900000g' })
  const answer = await service.send({})
  assert.equal(answer.status, 507)
  assert.deepEqual(answer.body, { message: 'Insufficient Storage' })
  assert.equal(answer.headers.get('retry-after'), '30')
  assert.equal((await service.call('GET', '/v4/domains')).status, 200)
})

test('below the floor of free space mail by SMTP is refused with 452, and nothing of it is kept', async (t) => {
  const service = await startTestService(t, {
    SENDWRIGHT_FREE_SPACE_MIN: '900000g',
    SENDWRIGHT_SMTP_PORT: '0',
    SENDWRIGHT_SMTP_AUTH_WITHOUT_TLS: 'yes',
  })
  const path = `/v3/domains/${service.domain}/credentials`
  await service.call('POST', path, { form: { login: 'app', password: 'long-enough-secret' } })
  const peer = { host: service.config.smtpHost, port: service.service.smtp.port }
  const client = await openDialogue(t, peer)
  await client.reply()
  await client.say('EHLO app.example')
  const login = plainLogin(`app@${service.domain}`, 'long-enough-secret')
  await client.say(`AUTH PLAIN ${login}`)
  await client.say(`MAIL FROM:<app@${service.domain}>`)
  await client.say('RCPT TO:<alice@example.org>')
  assert.match(String(await client.say('DATA')), /^354/)
  const answer = await client.say(`From: app@${service.domain}\r\nSubject: Hello\r\n\r\nHi.\r\n.`)
  assert.equal(answer, '452 4.3.1 Insufficient Storage')
  assert.deepEqual(await service.events(), [])
})

test('while PostgreSQL is down reads and writes get 503, and work again when it is back', async (t) => {
  const cluster = await startPostgres()
  t.after(() => cluster.stop())
  const service = await startTestService(t, { SENDWRIGHT_DATABASE_URL: cluster.url })
  const calls: [method: string, path: string, options?: CallOptions][] = [
    ['GET', '/v4/domains'],
    ['GET', `/v3/${service.domain}/events`],
    ['GET', `/v3/${service.domain}/bounces`],
    ['GET', '/v3/lists/pages'],
    ['POST', '/v3/lists', { form: { address: `news@${service.domain}` } }],
    ['POST', `/v3/${service.domain}/bounces`, { form: { address: 'gone@example.org' } }],
  ]
  const statuses = async () => {
    const answers = await Promise.all(calls.map((call) => service.call(...call)))
    return answers.map(({ status, body }) => (status === 200 ? 200 : `${status} ${body.message}`))
  }
  assert.deepEqual(new Set(await statuses()), new Set([200]))
  await cluster.halt()
  // The connections that were open, and new ones.
  for (const attempt of [1, 2])
    assert.deepEqual(new Set(await statuses()), new Set(['503 Service Unavailable']), `call ${attempt}`)
  const sent = await service.send({})
  assert.equal(sent.status, 503)
  assert.equal(sent.headers.get('retry-after'), '5')
  await cluster.resume()
  await eventually(
    'the database is back',
    async () => (await service.call('GET', '/v4/domains')).status === 200,
  )
  assert.equal((await service.call('GET', `/v3/${service.domain}/bounces/gone@example.org`)).status, 200)
  assert.equal((await service.send({})).status, 200)
})

test('a service whose data folder was removed accepts nothing more, and stops like any other', async (t) => {
  const folder = await temporaryFolder(t)
  const service = await startProcess(ownAddress(), { SENDWRIGHT_DATA: folder })
  t.after(() => service.end('SIGKILL'))
  const fields = { to: 'alice@example.org', subject: 'Hello', text: 'Hi.' }
  assert.ok('id' in (await post(service, fields)))
  await rm(folder, { recursive: true })
  assert.deepEqual(await post(service, fields), { status: 503 })
  assert.equal((await fetch(`${service.url}/health/ready`)).status, 503)
  // The line may arrive after the answer.
  await eventually('the reason in the log', async () =>
    /sendwright\.db\\?" was removed/.test(service.output()),
  )
  assert.equal(await service.end('SIGTERM'), 0)
})
