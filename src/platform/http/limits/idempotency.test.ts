// Both databases: two nodes may write the same key at the same time.
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { createTestClock } from '../../../../test/support/clock.ts'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { eventually, startTestService } from '../../../../test/support/service.ts'
import { eachStore, temporaryFolder } from '../../../../test/support/stores.ts'
import { activeUser } from '../../../../test/support/users.ts'
import { BadRequest, Conflict, TooManyRequests } from '../../../base/process/errors.ts'
import { readMigrations, VERSION_TABLE } from '../../store/migrate.ts'
import { createSealer } from '../../store/secrets/sealing.ts'
import { openSqlite } from '../../store/sqlite/sqlite.ts'
import { insert } from '../../store/store.ts'
import { Reply } from '../answer/reply.ts'
import { createIdempotency, type IdempotentCall } from './idempotency.ts'

const sealer = createSealer('a secret of at least 32 characters')
const call: IdempotentCall = { accountId: 'a', owner: null, key: 'k', digest: 'd', joins: true }
const bodyOf = (result: object) =>
  result instanceof Reply && result.content.kind === 'json' ? result.content.body : result

eachStore('100 calls at once under one key act once and get one answer', async (store) => {
  const idempotency = createIdempotency({ store, sealer, clock: createTestClock() })
  let acted = 0
  const answers = await Promise.all(
    Array.from({ length: 100 }, () =>
      idempotency.run(call, async (record) => {
        acted += 1
        const body = { id: acted }
        await store.commit(record.statements(body, 0))
        return body
      }),
    ),
  )
  assert.equal(acted, 1)
  assert.deepEqual(new Set(answers.map((answer) => JSON.stringify(bodyOf(answer)))), new Set(['{"id":1}']))
})

eachStore('of two processes under one key one commits, the other repeats its answer', async (store) => {
  const clock = createTestClock()
  const processes = [createIdempotency({ store, sealer, clock }), createIdempotency({ store, sealer, clock })]
  const both = Promise.withResolvers<void>()
  let begun = 0
  const answers = await Promise.all(
    processes.map((process, n) =>
      process.run(call, async (record) => {
        begun += 1
        if (begun === 2) both.resolve()
        await both.promise
        const link = { digest: `made by ${n}`, account_id: 'a', expires_at: 0 }
        const body = { by: n }
        await store.commit([
          insert('idempotency_keys', {
            account_id: 'x',
            key: `made by ${n}`,
            digest: link.digest,
            status: 1,
            body_sealed: null,
            expires_at: 9e15,
          }),
          ...record.statements(body, 0),
        ])
        return body
      }),
    ),
  )
  assert.deepEqual(bodyOf(answers[0] as object), bodyOf(answers[1] as object))
  const made = await store.db
    .selectFrom('idempotency_keys')
    .select('key')
    .where('account_id', '=', 'x')
    .execute()
  assert.equal(made.length, 1)
})

eachStore('an operation that does not join is marked as running first', async (store) => {
  const clock = createTestClock()
  const idempotency = createIdempotency({ store, sealer, clock })
  const plain = { ...call, joins: false }
  const other = createIdempotency({ store, sealer, clock })
  const held = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  const first = idempotency.run(plain, async () => {
    reached.resolve()
    await held.promise
    return { done: true }
  })
  await reached.promise
  await assert.rejects(
    other.run(plain, async () => ({})),
    (error: Conflict) => error.retrySeconds === 1,
  )
  held.resolve()
  await first
  assert.deepEqual(bodyOf(await other.run(plain, async () => ({ never: true }))), { done: true })
})

eachStore(
  'other requests conflict, 4xx are kept, 429 and 5xx are not, and a day later all is forgotten',
  async (store) => {
    const clock = createTestClock()
    const idempotency = createIdempotency({ store, sealer, clock })
    const refuse = (error: Error) => async () => {
      throw error
    }
    const named = (key: string, digest = 'd') => ({ ...call, key, digest })
    await assert.rejects(idempotency.run(named('bad'), refuse(new BadRequest('no'))), BadRequest)
    const kept = (await idempotency.run(named('bad'), async () => ({ never: true }))) as Reply
    assert.deepEqual(
      [kept.status, bodyOf(kept), kept.headers],
      [400, { message: 'no' }, { 'idempotency-replayed': 'true' }],
    )
    await assert.rejects(
      idempotency.run(named('bad', 'other'), async () => ({})),
      Conflict,
    )
    for (const error of [new TooManyRequests(1), new Error('ours')]) {
      await assert.rejects(idempotency.run(named(error.message), refuse(error)))
      assert.deepEqual(await idempotency.run(named(error.message), async () => ({ now: true })), {
        now: true,
      })
    }
    await clock.advance(86_400_001)
    assert.deepEqual(await idempotency.run(named('bad', 'other'), async () => ({ anew: true })), {
      anew: true,
    })
    await clock.advance(86_400_001)
    await idempotency.sweep()
    assert.equal((await store.db.selectFrom('idempotency_keys').selectAll().execute()).length, 0)
  },
)

eachStore('a stored answer is sealed, and opens for its own account and key only', async (store) => {
  const idempotency = createIdempotency({ store, sealer, clock: createTestClock() })
  const named = (key: string) => ({ ...call, key, joins: false })
  await idempotency.run(named('one'), async () => ({ secret: 'key-of-one' }))
  await idempotency.run(named('two'), async () => ({ secret: 'key-of-two' }))
  const rows = await store.db.selectFrom('idempotency_keys').selectAll().orderBy('key').execute()
  assert.equal(rows.length, 2)
  for (const row of rows) {
    assert.ok(!Buffer.from(row.body_sealed ?? []).includes('key-of'))
    assert.notEqual(row.digest, call.digest)
  }
  // Whoever can write the database still cannot have another row's answer repeated to him.
  const [one, two] = rows
  await store.db
    .updateTable('idempotency_keys')
    .set({ body_sealed: two?.body_sealed ?? null })
    .where('key', '=', String(one?.key))
    .execute()
  await assert.rejects(idempotency.run(named('one'), async () => ({})))
  const again = await idempotency.run(named('two'), async () => ({}))
  assert.deepEqual(bodyOf(again), { secret: 'key-of-two' })
})

test('the upgrade removes answers in plain text from the file', async (t) => {
  const folder = await temporaryFolder(t)
  const file = join(folder, 'sendwright.db')
  const SEALED_SINCE = 24
  const older = new DatabaseSync(file)
  older.exec(VERSION_TABLE)
  for (const { version, name, sql } of readMigrations('sqlite')) {
    if (version >= SEALED_SINCE) continue
    older.exec(sql)
    older.prepare('INSERT INTO schema_versions VALUES (?, ?, ?)').run(version, name, '')
  }
  const add = older.prepare('INSERT INTO idempotency_keys VALUES (?, ?, ?, ?, ?, ?)')
  for (let n = 0; n < 100; n++) add.run('a', `k${n}`, 'd', 200, `{"secret":"planted-${n}"}`, 9e15)
  older.close()
  assert.ok((await readFile(file)).includes('planted-'))
  const store = await openSqlite(folder)
  await store.close()
  for (const name of await readdir(folder))
    assert.ok(!(await readFile(join(folder, name))).includes('planted-'), name)
})

eachDatabase((database) => {
  test('100 parallel posts with one Idempotency-Key are one message', async (t) => {
    const service = await startTestService(t, {}, { database })
    const form = { from: `a@${service.domain}`, to: 'one@example.org', subject: 's', text: 't' }
    const headers = { 'idempotency-key': 'order 17' }
    const post = (more = {}) =>
      service.call('POST', `/v3/${service.domain}/messages`, { form: { ...form, ...more }, headers })
    const answers = await Promise.all(Array.from({ length: 100 }, () => post()))
    assert.deepEqual(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size, 1)
    assert.equal(answers[0]?.status, 200)
    assert.equal(answers.filter(({ headers }) => headers.get('idempotency-replayed') === 'true').length, 99)
    const accepted = (await service.events()).filter((event) => event['event'] === 'accepted')
    assert.equal(accepted.length, 1)
    const other = await post({ subject: 'another' })
    assert.deepEqual(
      [other.status, other.body],
      [409, { message: 'Idempotency-Key was used with another request' }],
    )
    const bad = await service.call('POST', `/v3/${service.domain}/messages`, {
      form,
      headers: { 'idempotency-key': 'x'.repeat(257) },
    })
    assert.equal(bad.status, 400)
  })
})

eachDatabase((database) => {
  test('a client that is cut off before the reply and repeats has sent one message', async (t) => {
    const service = await startTestService(t, {}, { database })
    const body = new URLSearchParams({
      from: `a@${service.domain}`,
      to: 'cut@example.org',
      subject: 's',
      text: 't',
    }).toString()
    const authorization = `Basic ${Buffer.from(`api:${service.key}`).toString('base64')}`
    const { hostname, port } = new URL(service.url)
    const socket = connect(Number(port), hostname)
    socket.write(
      `POST /v3/${service.domain}/messages HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: ${authorization}\r\n` +
        `Idempotency-Key: cut\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    const accepted = async () => (await service.events()).filter((event) => event['event'] === 'accepted')
    // The client reads nothing and is gone before it could.
    socket.pause()
    await eventually('accepted', async () => (await accepted()).length === 1)
    socket.destroy()
    const headers = { 'idempotency-key': 'cut', 'content-type': 'application/x-www-form-urlencoded' }
    const again = await service.call('POST', `/v3/${service.domain}/messages`, { body, headers })
    assert.deepEqual([again.status, again.headers.get('idempotency-replayed')], [200, 'true'])
    assert.equal((await accepted()).length, 1)
  })
})

test('what one key or user was answered is repeated to no other', async (t) => {
  const service = await startTestService(t)
  const newKey = async (form: Record<string, string>) => {
    const { status, body, text } = await service.call('POST', '/v1/keys', {
      form: { role: 'admin', ...form },
    })
    assert.equal(status, 200, text)
    return String(body.key.secret)
  }
  const [user, otherUser] = [
    await activeUser(service, 'one@example.org', 'admin'),
    await activeUser(service, 'two@example.org', 'admin'),
  ]
  const callers = [
    { key: service.key },
    { key: await newKey({ kind: 'user' }) },
    // Two keys of one user
    { key: await newKey({ kind: 'user', user_id: user.id }) },
    { key: await newKey({ kind: 'user', user_id: user.id }) },
    { key: null, headers: { cookie: user.cookie } },
    { key: null, headers: { cookie: otherUser.cookie } },
  ]
  const secrets = new Set<string>()
  for (const { key, headers } of callers) {
    const post = () =>
      service.call('POST', '/v1/keys', {
        ...{ key, form: { role: 'basic', kind: 'user' } },
        headers: { ...headers, 'idempotency-key': 'the same' },
      })
    const [first, again] = [await post(), await post()]
    assert.deepEqual([first.status, again.text], [200, first.text])
    assert.equal(again.headers.get('idempotency-replayed'), 'true')
    secrets.add(first.body.key.secret)
  }
  assert.equal(secrets.size, callers.length)
})

test('a send is repeated to every key of the account, and sends once', async (t) => {
  const service = await startTestService(t)
  const made = await service.call('POST', '/v1/keys', {
    form: { role: 'sending', kind: 'domain', domain_name: service.domain },
  })
  assert.equal(made.status, 200, made.text)
  const form = { from: `a@${service.domain}`, to: 'one@example.org', subject: 's', text: 't' }
  const post = (key: string) =>
    service.call('POST', `/v3/${service.domain}/messages`, { key, form, headers: { 'idempotency-key': 'k' } })
  const [first, again] = [await post(service.key), await post(made.body.key.secret)]
  assert.equal(again.text, first.text)
  assert.equal((await service.events()).filter((event) => event['event'] === 'accepted').length, 1)
})
