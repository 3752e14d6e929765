// Both databases: an account is locked against changes of its limits.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { createReceiver } from '../../../test/support/http-receiver.ts'
import { eventually, type TestService } from '../../../test/support/service.ts'
import { openDialogue, plainLogin } from '../../../test/support/smtp-dialogue.ts'
import { createSink } from '../../../test/support/smtp-sink.ts'
import {
  activeDomain,
  callAs,
  closeSubaccount,
  createSubaccount,
  type Opened,
  onBehalf,
  SUBACCOUNTS,
  sendFrom,
  startOpened,
} from '../../../test/support/subaccounts.ts'
import { activeUser, as } from '../../../test/support/users.ts'

const UNKNOWN = 'f'.repeat(24)
const MAIL = 'child.example.com'
const REFUSED = `Domain ${MAIL} is not allowed to send: The subaccount is disabled.`

const keyOf = async (call: ReturnType<typeof callAs>, form: Record<string, string>): Promise<string> => {
  const made = await call('POST', '/v1/keys', { form })
  assert.equal(made.status, 200, made.text)
  return made.body.key.secret
}

eachDatabase((database) => {
  test('subaccounts are created, listed and changed', async (t) => {
    const { service } = await startOpened(t, {}, { database })
    const call = (method: string, path: string, form?: Record<string, string>) =>
      service.call(method, `${SUBACCOUNTS}${path}`, form && { form })
    const made = await call('POST', '', { name: 'Beta' })
    const { id, ...beta } = made.body.subaccount
    assert.match(id, /^[0-9a-f]{24}$/)
    const DATE = /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/
    assert.match(beta.created_at, DATE)
    assert.match(beta.updated_at, DATE)
    const off = { enabled: false }
    const on = { enabled: true }
    assert.deepEqual(beta, {
      name: 'Beta',
      status: 'open',
      created_at: beta.created_at,
      updated_at: beta.updated_at,
      features: {
        email_preview: off,
        inbox_placement: off,
        sending: on,
        validations: on,
        validations_bulk: on,
      },
    })
    const alpha = await createSubaccount(service, 'Alpha 100%')
    const gamma = await createSubaccount(service, 'gamma_1')
    const names = async (query: string) => {
      const { status, body, text } = await call('GET', query)
      assert.equal(status, 200, text)
      return [body.subaccounts.map(({ name }: { name: string }) => name), body.total]
    }
    assert.deepEqual(await names(''), [['Alpha 100%', 'Beta', 'gamma_1'], 3])
    assert.deepEqual(await names('?sort=desc&limit=2'), [['gamma_1', 'Beta'], 3])
    assert.deepEqual(await names('?sort[]=asc&limit=1&skip=1'), [['Beta'], 3])
    assert.deepEqual(await names('?filter=bETA'), [['Beta'], 1])
    assert.deepEqual(await names('?filter=%25'), [['Alpha 100%'], 1])
    assert.deepEqual(await names('?filter=a_1'), [['gamma_1'], 1])

    const disabled = await call('POST', `/${alpha}/disable`, { reason: 'abuse', note: 'ticket 7' })
    assert.deepEqual(
      [disabled.body.subaccount.status, disabled.body.subaccount.disabled],
      ['disabled', { reason: 'abuse', note: 'ticket 7' }],
    )
    assert.equal(
      (await closeSubaccount(service, gamma)).text,
      '{"message":"Subaccount successfully deleted"}',
    )
    assert.deepEqual(await names(''), [['Alpha 100%', 'Beta'], 2])
    assert.deepEqual(await names('?enabled=true'), [['Beta'], 1])
    assert.deepEqual(await names('?enabled=false'), [['Alpha 100%'], 1])
    assert.deepEqual(await names('?closed=true'), [['Alpha 100%', 'Beta', 'gamma_1'], 3])
    assert.deepEqual(await names('?closed=true&enabled=true'), [['Beta', 'gamma_1'], 2])
    assert.equal((await call('GET', `/${gamma}`)).body.subaccount.status, 'closed')
    assert.notEqual(await createSubaccount(service, 'gamma_1'), gamma)

    const features = await call('PUT', `/${id}/features`, {
      sending: '{"enabled": false}',
      email_preview: '{"enabled":true}',
      validations: 'nonsense',
      unknown: '{"enabled": true}',
    })
    assert.deepEqual(features.body, { features: { sending: off, email_preview: on } })
    const after = (await call('GET', `/${id}`)).body.subaccount.features
    assert.deepEqual(after, { ...beta.features, sending: off, email_preview: on })

    const errors: [string, string, Record<string, string> | undefined, number, string][] = [
      ['POST', '', {}, 400, 'Bad request'],
      ['POST', '', { name: 'Beta' }, 400, 'Bad request'],
      ['POST', '', { name: 'x'.repeat(256) }, 400, 'Bad request'],
      ['POST', '', { name: 'a\u0000b' }, 400, 'Bad request'],
      ['DELETE', '', undefined, 400, 'Bad request'],
      ['GET', `/${UNKNOWN}`, undefined, 404, 'Not Found'],
      ['GET', '/x', undefined, 404, 'Not Found'],
      ['POST', `/${alpha}/disable`, {}, 400, 'subaccount is already disabled'],
      ['POST', `/${id}/enable`, {}, 400, 'subaccount is already enabled'],
      ['POST', `/${gamma}/enable`, {}, 404, 'Not Found'],
      ['POST', `/${UNKNOWN}/disable`, {}, 404, 'Not Found'],
      ['PUT', `/${id}/features`, {}, 400, 'No valid updates provided'],
      ['PUT', `/${id}/features`, { sending: 'yes' }, 400, 'No valid updates provided'],
      ['PUT', `/${UNKNOWN}/features`, { sending: '{"enabled": true}' }, 404, 'Not Found'],
      ['GET', '?limit=1001', undefined, 400, "The 'limit' parameter can't be larger than 1000"],
      ['GET', '?sort=up', undefined, 400, "'up' is not a valid value for sort"],
    ]
    for (const [method, path, form, status, message] of errors) {
      const answer = await call(method, path, form)
      assert.deepEqual([answer.status, answer.body?.message], [status, message], `${method} ${path}`)
    }
    assert.equal((await closeSubaccount(service, service.service.first.accountId)).status, 400)
    assert.equal((await closeSubaccount(service, UNKNOWN)).status, 404)
    assert.equal((await closeSubaccount(service, gamma)).status, 404)
    // A subaccount has none of its own, and takes no name of another by renaming itself.
    const child = callAs(service, id)
    const key = await keyOf(child, { role: 'admin' })
    assert.equal((await service.call('GET', SUBACCOUNTS, { key })).status, 403)
    assert.equal((await service.call('POST', SUBACCOUNTS, { key, form: { name: 'N' } })).status, 403)
    assert.equal((await child('GET', SUBACCOUNTS)).status, 403)
    assert.equal((await child('PUT', '/v5/accounts', { form: { name: 'Alpha 100%' } })).status, 400)
    assert.equal((await child('PUT', '/v5/accounts', { form: { name: 'Beta 2' } })).status, 200)
    assert.equal((await call('GET', `/${id}`)).body.subaccount.name, 'Beta 2')
  })

  test('a parent acts on behalf of its subaccounts only, with every kind of key', async (t) => {
    const { service } = await startOpened(t, {}, { database })
    const id = await createSubaccount(service, 'Child')
    const child = callAs(service, id)
    const made = await child('POST', '/v4/domains', { form: { name: MAIL } })
    assert.equal(made.body.domain.subaccount_id, id)
    const own = await keyOf(child, { role: 'admin' })
    const email = 'web@example.org'
    const user = await activeUser(service, email)
    const keys = {
      admin: service.key,
      basic: await keyOf(service.call, { role: 'basic' }),
      web: await keyOf(service.call, { role: 'developer', kind: 'web', email, user_id: user.id }),
    }
    const read = (key: string | null, headers: Record<string, string>) =>
      service.call('GET', `/v4/domains/${MAIL}`, { key, headers })
    for (const [kind, key] of Object.entries(keys)) {
      assert.equal((await read(key, {})).status, 404, kind)
      assert.equal((await read(key, onBehalf(id))).status, 200, kind)
      assert.equal((await read(key, { 'x-mailgun-on-behalf-of': id })).status, 200, kind)
      assert.equal((await read(key, onBehalf(UNKNOWN))).status, 403, kind)
      assert.equal((await read(key, onBehalf('x'.repeat(300)))).status, 403, kind)
    }
    // Rights are those of the key.
    const headers = onBehalf(id)
    const form = { form: { name: 'more.example.com' }, headers }
    assert.equal((await service.call('POST', '/v4/domains', { key: keys.basic, ...form })).status, 403)
    const sending = await keyOf(service.call, {
      role: 'sending',
      kind: 'domain',
      domain_name: service.domain,
    })
    const sent = (key: string) => service.call('POST', `/v3/${service.domain}/messages`, { key, headers })
    assert.equal((await sent(sending)).status, 403)
    // Sessions.
    const { cookie } = await activeUser(service, 'ann@example.org', 'admin')
    assert.equal((await read(null, { cookie, ...headers })).status, 200)
    assert.equal((await as(service, cookie, 'GET', `/v4/domains/${MAIL}`)).status, 404)
    assert.equal((await child('POST', '/sendwright/v1/login-links')).status, 403)
    // A subaccount's own key may name itself and nobody else.
    assert.equal((await read(own, headers)).status, 200)
    assert.equal((await read(own, onBehalf(service.service.first.accountId))).status, 403)
    const sibling = await createSubaccount(service, 'Sibling')
    assert.equal((await read(own, onBehalf(sibling))).status, 403)
    assert.equal((await callAs(service, sibling)('GET', `/v4/domains/${MAIL}`)).status, 404)
    // The parent's lists have it on request only.
    const listed = async (query: string) =>
      (await service.call('GET', `/v4/domains?search=child${query}`)).body.items
    assert.deepEqual(await listed(''), [])
    const [item] = await listed('&include_subaccounts=true')
    assert.deepEqual([item.name, item.subaccount_id], [MAIL, id])
    // Both find the row of what was done on behalf.
    const rows = async (key: string, query: string) =>
      (await service.call('GET', `/sendwright/v1/audit?action=domain.create${query}`, { key })).body.items
    const [row] = await rows(own, '')
    assert.deepEqual([row.subject, row.parent_account_id], [MAIL, service.service.first.accountId])
    assert.deepEqual(await rows(service.key, `&subaccount=${id}`), [row])
    assert.deepEqual(await rows(service.key, ''), [])
    const foreign = await service.call('GET', `/sendwright/v1/audit?subaccount=${id}`, {
      key: await keyOf(callAs(service, sibling), { role: 'admin' }),
    })
    assert.equal(foreign.status, 404)
  })

  test("a disabled subaccount's mail is refused and held, and goes on when it is enabled", async (t) => {
    const { service, core, sink, child, id } = await startSending(t, database)
    // One message waits for its next attempt, one for its time, and one is due while the account is disabled.
    sink.on('RCPT TO:<deferred@example.org>', '451 4.3.0 not now', { times: 1 })
    const hold = sink.hold('RCPT TO:<busy@example.org>')
    const busy = await sendFrom(child, MAIL, { to: 'busy@example.org' })
    await hold.reached
    const later = new Date(Date.now() + 3_600_000).toUTCString()
    const scheduled = await sendFrom(child, MAIL, { to: 'later@example.org', 'o:deliverytime': later })
    const deferred = await sendFrom(child, MAIL, { to: 'deferred@example.org' })
    const reasonOf = async ({ body }: typeof busy) => {
      const path = `/sendwright/v1/messages/${encodeURIComponent(body.id)}/deliveries`
      const { items } = (await child('GET', path)).body
      return items[0].state === 'delivered' ? 'delivered' : items[0].reason.code
    }
    await eventually('a deferral', async () => (await reasonOf(deferred)) === 'deferred')

    const change = (verb: string) => service.call('POST', `${SUBACCOUNTS}/${id}/${verb}`)
    assert.equal((await change('disable')).status, 200)
    const refused = await sendFrom(child, MAIL)
    assert.deepEqual([refused.status, refused.body.message], [403, REFUSED])
    hold.release()
    // What has begun ends.
    await eventually('the end of the attempt', async () => (await reasonOf(busy)) === 'delivered')
    await core.store.db
      .updateTable('deliveries')
      .set({ due_at: Date.now() })
      .where('recipient', '=', 'deferred@example.org')
      .execute()
    await service.restart()
    await eventually('held', async () => (await reasonOf(deferred)) === 'account-held')
    assert.equal(await reasonOf(scheduled), 'scheduled')
    assert.equal((await child('GET', `/v4/domains/${MAIL}`)).status, 200, 'reads go on')

    assert.equal((await change('enable')).status, 200)
    await eventually('released', async () => (await reasonOf(deferred)) === 'delivered')
    assert.equal((await sendFrom(child, MAIL)).status, 200)
    await eventually('the next message', async () => sink.messages.length === 3)
    assert.equal(await reasonOf(scheduled), 'scheduled')
    const events = (await child('GET', `/v3/${MAIL}/events?event=delivered`)).body.items
    assert.deepEqual(events[0].account, { id, 'parent-id': service.service.first.accountId })
  })

  test('without the right to send: refused over HTTP and SMTP, incoming mail only while disabled', async (t) => {
    const { service, child, id } = await startSending(t, database)
    const login = `app@${MAIL}`
    const password = 'long enough'
    await child('POST', `/v3/domains/${MAIL}/credentials`, { form: { login: 'app', password } })
    const peer = { host: service.config.smtpHost, port: service.service.smtp.port }
    const dialogue = async () => {
      const client = await openDialogue(t, peer)
      await client.reply()
      await client.say('EHLO client.example')
      return client
    }
    const opened = await dialogue()
    assert.match(String(await opened.say(`AUTH PLAIN ${plainLogin(login, password)}`)), /^235/)
    const sending = (enabled: boolean) =>
      service.call('PUT', `${SUBACCOUNTS}/${id}/features`, { form: { sending: `{"enabled": ${enabled}}` } })
    const bounce = async () => {
      const client = await dialogue()
      await client.say('MAIL FROM:<>')
      return String(await client.say(`RCPT TO:<somebody@${MAIL}>`))
    }
    await sending(false)
    assert.equal((await sendFrom(child, MAIL)).body.message, REFUSED)
    assert.equal(await opened.say(`MAIL FROM:<${login}>`), `550 5.7.1 ${REFUSED}`)
    const again = await dialogue()
    assert.equal(
      await again.say(`AUTH PLAIN ${plainLogin(login, password)}`),
      '535 5.7.8 The subaccount is disabled',
    )
    assert.match(await bounce(), /^550/)
    await sending(true)
    assert.match(String(await again.say(`AUTH PLAIN ${plainLogin(login, password)}`)), /^235/)
    await service.call('POST', `${SUBACCOUNTS}/${id}/disable`)
    assert.match(await bounce(), /^450 4\.7\.1 /)
    await service.call('POST', `${SUBACCOUNTS}/${id}/enable`)
    assert.match(await bounce(), /^550/)
    assert.equal((await sendFrom(child, MAIL)).status, 200)
  })

  test('held mail whose window ends fails as old', async (t) => {
    const { service, core, sink, child, id } = await startSending(t, database)
    sink.on('RCPT TO', '451 4.3.0 not now')
    await sendFrom(child, MAIL)
    const row = await eventually('a deferral', () =>
      core.store.db.selectFrom('deliveries').selectAll().where('attempts', '=', 1).executeTakeFirst(),
    )
    await service.call('POST', `${SUBACCOUNTS}/${id}/disable`)
    const past = { due_at: 1, expires_at: 1 }
    await core.store.db.updateTable('deliveries').set(past).where('id', '=', row.id).execute()
    await service.restart()
    const failed = await eventually('the end', async () => {
      const { items } = (await child('GET', `/v3/${MAIL}/events?event=failed`)).body
      return items.find(({ severity }: { severity: string }) => severity === 'permanent')
    })
    assert.equal(failed.reason, 'old')
    assert.equal(sink.commands.filter(([, line]) => line.startsWith('RCPT')).length, 1)
  })
})

eachDatabase((database) => {
  test('the webhooks of the parent get the first event of a new subaccount', async (t) => {
    const receiver = await createReceiver()
    t.after(receiver.close)
    const { service } = await startOpened(
      t,
      { SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8', SENDWRIGHT_DNS: '127.0.0.1:9' },
      { database },
    )
    const form = { url: `${receiver.url}/parent`, event_types: 'accepted' }
    assert.equal((await service.call('POST', '/v1/webhooks', { form })).status, 200)
    const id = await createSubaccount(service, 'Child')
    const child = callAs(service, id)
    await child('POST', '/v4/domains', { form: { name: MAIL } })
    assert.equal((await sendFrom(child, MAIL)).status, 200)
    await eventually('the webhook', async () => receiver.posts.length > 0)
    const { account } = receiver.posts[0]?.body['event-data'] ?? {}
    assert.deepEqual(account, { id, 'parent-id': service.service.first.accountId })
  })
})

test('a removal that fails goes on after a restart, and each area is asked again', async (t) => {
  let mayEnd = false
  const asked: string[] = []
  const area = () => ({
    async accountDeleted(accountId: string) {
      asked.push(accountId)
      if (!mayEnd) throw new Error('not now')
    },
  })
  const opened = await startOpened(t, {}, { areas: [area] })
  const { service } = opened
  const id = await createSubaccount(service, 'Child')
  const key = await keyOf(callAs(service, id), { role: 'admin' })
  assert.equal((await closeSubaccount(service, id)).status, 200)
  const note = () => opened.core.store.db.selectFrom('account_changes').selectAll().executeTakeFirst()
  await eventually('a failure', async () => (await note())?.attempts === 1)
  const keys = () =>
    opened.core.store.db.selectFrom('api_keys').selectAll().where('account_id', '=', id).execute()
  assert.equal((await keys()).length, 1, 'areas below are not asked before those above have ended')
  mayEnd = true
  await opened.core.store.db.updateTable('account_changes').set({ due_at: 1 }).execute()
  await opened.core.store.db.updateTable('jobs').set({ next_run_at: 1 }).execute()
  await service.restart()
  await eventually('the removal', async () => (await keys()).length === 0)
  assert.deepEqual(asked, [id, id])
  assert.equal((await service.call('GET', '/v4/domains', { key })).status, 401)
})

test('what a closed subaccount had stops at once', async (t) => {
  const { service } = await startOpened(t)
  const id = await createSubaccount(service, 'Child')
  const child = callAs(service, id)
  const key = await keyOf(child, { role: 'admin' })
  const { url } = (await service.call('POST', '/sendwright/v1/login-links', { key })).body
  const opened = await service.call('POST', '/sendwright/v1/session', { json: { key }, key: null })
  const cookie = (opened.headers.get('set-cookie') ?? '').split(';', 1)[0] as string
  assert.equal((await as(service, cookie, 'GET', '/v4/domains')).status, 200)
  const { body } = await child('POST', '/v5/accounts/http_signing_key')
  assert.match(body.http_signing_key ?? 'key-', /^key-/)
  assert.equal((await closeSubaccount(service, id)).status, 200)
  assert.equal((await service.call('GET', '/v4/domains', { key })).status, 401)
  assert.equal((await as(service, cookie, 'GET', '/v4/domains')).status, 401)
  assert.equal(
    (await service.call('POST', '/sendwright/v1/session', { json: { key }, key: null })).status,
    401,
  )
  const path = new URL(url).pathname
  assert.equal((await service.call('GET', path, { key: null })).status, 404)
  assert.equal((await child('GET', '/v4/domains')).status, 403)
})

async function startSending(
  t: TestContext,
  database: 'sqlite' | 'postgres',
): Promise<Opened & { service: TestService } & Record<'id', string> & Sending> {
  const sink = await createSink()
  t.after(() => sink.close())
  const env = {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_SMTP_PORT: '0',
    SENDWRIGHT_SMTP_AUTH_WITHOUT_TLS: 'yes',
  }
  const opened = await startOpened(t, env, { database })
  const { service } = opened
  const id = await createSubaccount(service, 'Child')
  const child = callAs(service, id)
  await activeDomain(opened.core, child, MAIL)
  return {
    service,
    get core() {
      return opened.core
    },
    sink,
    child,
    id,
  }
}

interface Sending {
  sink: Awaited<ReturnType<typeof createSink>>
  child: ReturnType<typeof callAs>
}
