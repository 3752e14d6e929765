/** From a receiving server's reply to the event, its webhook with valid signatures, and the stored message. */
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { eachDatabase } from '../support/databases.ts'
import { createReceiver, type ReceivedPost, type Receiver } from '../support/http-receiver.ts'
import { eventually, ownAddress, startTestService } from '../support/service.ts'
import { assertSigned, signingKey } from '../support/signed-posts.ts'
import { createSink } from '../support/smtp-sink.ts'

const ALLOW = { SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8' }

const posted = (receiver: Receiver, path: string, count = 1) =>
  eventually(`${count} webhook(s) at ${path}`, async () => {
    const posts = receiver.posts.filter((post) => post.path === path)
    return posts.length >= count && posts
  })

eachDatabase((database) => {
  test('each reply of a receiving server becomes its webhook, signed, with the stored message', async (t) => {
    const sink = await createSink({ host: ownAddress() })
    const receiver = await createReceiver()
    t.after(() => Promise.all([sink.close(), receiver.close()]))
    const env = { ...ALLOW, SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` }
    const service = await startTestService(t, env, { database })
    sink.on('RCPT TO:<gone@example.net>', '550 5.1.1 no such user')
    sink.on('RCPT TO:<later@example.net>', '450 4.2.2 mailbox full')
    const base = `/v3/domains/${service.domain}/webhooks`
    for (const id of ['accepted', 'delivered', 'permanent_fail', 'temporary_fail']) {
      const made = await service.call('POST', base, { form: { id, url: `${receiver.url}/${id}` } })
      assert.equal(made.status, 200, made.text)
    }
    const recipients = ['alice@example.net', 'gone@example.net', 'later@example.net']
    const sent = await service.send({ to: recipients, 'o:tag': 'welcome', 'v:order': '17' })
    const key = await signingKey(service)

    const cases = [
      ['accepted', 3],
      ['delivered', 1],
      ['permanent_fail', 1],
      ['temporary_fail', 1],
    ] as const
    for (const [type, count] of cases) {
      for (const post of await posted(receiver, `/${type}`, count)) {
        assertSigned(post, key)
        const { account, domain, ...data } = post.body['event-data']
        assert.match(account.id, /^[0-9a-f]{24}$/)
        assert.deepEqual(domain, { name: service.domain })
        // The event that the API shows, field by field.
        const events = await service.events()
        assert.deepEqual(
          { ...data },
          events.find(({ id }) => id === data.id),
        )
        assert.deepEqual(data.tags, ['welcome'])
        assert.deepEqual(data['user-variables'], { order: '17' })
        const stored = await service.call('GET', new URL(data.storage.url).pathname)
        assert.equal(stored.body['Message-Id'], sent.body.id)
      }
    }
    const data = (type: string) => receiver.posts.find(({ path }) => path === `/${type}`)?.body['event-data']
    assert.equal(data('delivered').recipient, 'alice@example.net')
    assert.equal(data('delivered')['delivery-status'].code, 250)
    assert.equal(data('permanent_fail').severity, 'permanent')
    assert.equal(data('permanent_fail')['delivery-status'].code, 550)
    assert.equal(data('permanent_fail')['delivery-status']['bounce-type'], 'hard')
    assert.equal(data('temporary_fail').recipient, 'later@example.net')
    assert.equal(data('temporary_fail').severity, 'temporary')
    assert.equal(data('temporary_fail')['delivery-status']['retry-seconds'] > 0, true)
  })
})

test('webhooks: retries, replay and deletion, in one service', async (t) => {
  const receiver = await createReceiver()
  t.after(receiver.close)
  const service = await startTestService(t, { ...ALLOW, SENDWRIGHT_WEBHOOK_SCHEDULE: '1s,1s' })
  const base = `/v3/domains/${service.domain}/webhooks`
  const attempts = async (query = '') =>
    (await service.call('GET', `/sendwright/v1/webhooks/attempts${query}`)).body.items
  const send = async () => {
    const sent = await service.send({ 'o:testmode': 'yes' })
    assert.equal(sent.status, 200, sent.text)
  }

  await t.test('a URL of domain and account is called once for an event', async () => {
    const both = `${receiver.url}/both`
    const types = { url: both, event_types: ['accepted', 'opened'] }
    assert.equal((await service.call('POST', '/v1/webhooks', { form: types })).status, 200)
    await service.call('POST', base, { form: { id: 'accepted', url: [both, `${receiver.url}/domain`] } })
    await send()
    await posted(receiver, '/both')
    await posted(receiver, '/domain')
    await send()
    await posted(receiver, '/domain', 2)
    const ids = (await posted(receiver, '/both', 2)).map((post) => post.body['event-data'].id)
    assert.equal(ids.length, 2)
    assert.equal(new Set(ids).size, 2)
    await service.call('DELETE', '/v1/webhooks?all=true')
  })

  await t.test('a retry has the same event id, a new token and the current key', async () => {
    const url = `${receiver.url}/retry`
    await service.call('PUT', `${base}/accepted`, { form: { url } })
    receiver.answer = (response) => response.writeHead(503, 'Busy').end('try\0later')
    await send()
    await posted(receiver, '/retry')
    const { body } = await service.call('POST', '/v5/accounts/http_signing_key')
    assert.match(body.http_signing_key, /^key-[0-9a-f]{32}$/)
    assert.equal(body.message, 'regenerated HTTP signing key for account')
    receiver.answer = 202
    const [first, second] = await posted(receiver, '/retry', 2)
    assert.equal(first?.body['event-data'].id, second?.body['event-data'].id)
    assert.notEqual(first?.body.signature.token, second?.body.signature.token)
    assertSigned(second as ReceivedPost, body.http_signing_key)
    assert.equal(await signingKey(service), body.http_signing_key)
  })

  await t.test('the log lists every attempt, with filters and pages', async () => {
    const url = `${receiver.url}/retry`
    const [ok, failing] = await eventually('two attempts', async () => {
      const items = await attempts(`?url=${encodeURIComponent(url)}`)
      return items.length === 2 && items
    })
    assert.equal(failing.status, 'failing')
    assert.equal(failing.status_code, 503)
    assert.equal(failing.attempt, 1)
    assert.equal(failing.response, 'try\uFFFDlater')
    assert.equal(failing.event, 'accepted')
    assert.equal(failing.domain, service.domain)
    assert.equal(failing.url, url)
    assert.match(failing.next_attempt_at, /^\d{4}-\d\d-\d\dT/)
    assert.equal(ok.status, 'ok')
    assert.equal(ok.attempt, 2)
    assert.equal('next_attempt_at' in ok, false)
    assert.equal(ok.event_id, failing.event_id)
    assert.deepEqual(
      (await attempts('?status=failing')).map((item: { id: string }) => item.id),
      [failing.id],
    )
    assert.deepEqual(await attempts('?event=opened'), [])
    const page = await service.call('GET', '/sendwright/v1/webhooks/attempts?limit=1')
    const next = await service.call('GET', page.body.paging.next.replace(/^https?:\/\/[^/]+/, ''))
    assert.equal(page.body.items[0].id > next.body.items[0].id, true)
    assert.equal((await service.call('GET', '/sendwright/v1/webhooks/attempts?status=bad')).status, 400)
  })

  await t.test('406 stops at once; the end of the schedule gives up', async () => {
    await service.call('PUT', `${base}/accepted`, {
      form: { url: [`${receiver.url}/stop`, `${receiver.url}/never`] },
    })
    receiver.answer = (response, { path }) => response.writeHead(path === '/stop' ? 406 : 500).end()
    await send()
    const given = await eventually('both given up', async () => {
      const items = await attempts('?status=given-up')
      return items.length === 2 && items
    })
    const shape = given.map((item: Record<string, unknown>) => [
      item['url'],
      item['attempt'],
      item['status_code'],
    ])
    assert.deepEqual(shape.sort(), [
      [`${receiver.url}/never`, 3, 500],
      [`${receiver.url}/stop`, 1, 406],
    ])
  })

  await t.test('a delivered webhook is retried as every other one', async () => {
    await service.call('POST', base, { form: { id: 'delivered', url: `${receiver.url}/delivered` } })
    await send()
    const items = await eventually('a second attempt', async () => {
      const found = await attempts('?event=delivered')
      return found.length > 1 && found
    })
    assert.equal(items.at(-1).status, 'failing')
    assert.equal(items.at(-1).event_id, items.at(-2).event_id)
    await service.call('DELETE', `${base}/delivered`)
  })

  await t.test('replay of an attempt and of a span: new attempts with the same event ids', async () => {
    receiver.answer = 200
    const [stopped] = await attempts(`?status=given-up&url=${encodeURIComponent(`${receiver.url}/stop`)}`)
    const { body: one } = await service.call('GET', `/sendwright/v1/webhooks/attempts/${stopped.id}`)
    const sent = receiver.posts.find(({ body }) => body['event-data'].id === stopped.event_id)
    assert.deepEqual(one, { ...stopped, 'event-data': sent?.body['event-data'] })
    assert.equal((await service.call('GET', '/sendwright/v1/webhooks/attempts/none')).status, 404)
    const replayed = await service.call('POST', `/sendwright/v1/webhooks/attempts/${stopped.id}/replay`)
    assert.equal(replayed.status, 200, replayed.text)
    const again = (await posted(receiver, '/stop', 2)).at(-1)
    assert.equal(again?.body['event-data'].id, stopped.event_id)

    await service.call('PUT', `${base}/accepted`, { form: { url: `${receiver.url}/span` } })
    const span = { domain: service.domain, from: '2026-01-01T00:00:00Z', events: ['accepted'] }
    const all = await service.call('POST', '/sendwright/v1/webhooks/replay', { json: span })
    const accepted = (await service.events()).filter(({ event }) => event === 'accepted')
    assert.deepEqual(all.body, { events: accepted.length, queued: accepted.length })
    const posts = await posted(receiver, '/span', accepted.length)
    assert.deepEqual(
      posts.map((post) => post.body['event-data'].id).sort(),
      accepted.map(({ id }) => id).sort(),
    )
    const elsewhere = { ...span, url: 'http://127.0.0.1/other' }
    const none = await service.call('POST', '/sendwright/v1/webhooks/replay', { json: elsewhere })
    assert.deepEqual(none.body, { events: accepted.length, queued: 0 })

    const gone = await service.call('POST', `/sendwright/v1/webhooks/attempts/${stopped.id}/replay`)
    assert.deepEqual([gone.status, gone.body], [404, { message: 'Webhook not found' }])
    const unknown = await service.call('POST', '/sendwright/v1/webhooks/attempts/none/replay')
    assert.deepEqual([unknown.status, unknown.body], [404, { message: 'Attempt not found' }])
    for (const [json, text] of [
      [{}, 'Missing mandatory parameter: from'],
      [{ from: 'yesterday' }, 'Invalid format for parameter from: yesterday'],
      [{ from: '0', domain: 'nobody.example' }, 'Domain not found'],
    ] as const) {
      const answer = await service.call('POST', '/sendwright/v1/webhooks/replay', { json })
      assert.equal(answer.body.message, text)
    }
  })

  await t.test('retries of a deleted webhook are dropped', async () => {
    receiver.answer = 500
    await service.call('PUT', `${base}/accepted`, { form: { url: `${receiver.url}/deleted` } })
    await send()
    await posted(receiver, '/deleted')
    await service.call('DELETE', `${base}/accepted`)
    await service.call('PUT', `${base}/accepted`, { form: { url: `${receiver.url}/after` } })
    await send()
    await posted(receiver, '/after', 3)
    const items = await eventually('as many attempts as posts', async () => {
      const items = await attempts(`?url=${encodeURIComponent(`${receiver.url}/deleted`)}`)
      return receiver.posts.filter(({ path }) => path === '/deleted').length === items.length && items
    })
    assert.equal(items.length < 3, true)
  })
})

eachDatabase((database) => {
  test('user info of a webhook URL is sent as Basic authentication and kept secret', async (t) => {
    const receiver = await createReceiver()
    t.after(() => receiver.close())
    const service = await startTestService(t, ALLOW, { database })
    const at = (path: string, password: string) =>
      `http://anymail:${password}@${receiver.host}:${receiver.port}${path}`
    const masked = (path: string) => at(path, '****')
    const basic = (password: string) => `Basic ${Buffer.from(`anymail:${password}`).toString('base64')}`
    const base = `/v3/domains/${service.domain}/webhooks`

    const url = at('/domain', 'planted%2Fone')
    const made = await service.call('POST', base, { form: { id: 'accepted', url } })
    assert.deepEqual(made.body, { message: 'Webhook has been created', webhook: { urls: [url] } })
    assert.deepEqual((await service.call('GET', base)).body, { webhooks: { accepted: { urls: [url] } } })
    const ofAccount = at('/account', 'planted-two')
    const form = { url: ofAccount, event_types: 'accepted' }
    const { webhook_id: id } = (await service.call('POST', '/v1/webhooks', { form })).body
    assert.equal((await service.call('GET', `/v1/webhooks/${id}`)).body.url, ofAccount)

    await service.send({})
    const [post] = await posted(receiver, '/domain')
    assert.equal(post?.headers.authorization, basic('planted/one'))
    const [other] = await posted(receiver, '/account')
    assert.equal(other?.headers.authorization, basic('planted-two'))

    const attempts = await eventually('both attempts', async () => {
      const { items } = (await service.call('GET', '/sendwright/v1/webhooks/attempts')).body
      return items.length === 2 && (items as { id: string; url: string }[])
    })
    assert.deepEqual(attempts.map((attempt) => attempt.url).sort(), [masked('/account'), masked('/domain')])
    for (const filter of [url, masked('/domain')]) {
      const path = `/sendwright/v1/webhooks/attempts?url=${encodeURIComponent(filter)}`
      assert.equal((await service.call('GET', path)).body.items.length, 1)
    }
    const tested = await service.call('PUT', `${base}/accepted/test`, { form: { url: at('/test', 'three') } })
    assert.equal(tested.body.code, 200)
    assert.equal((await posted(receiver, '/test'))[0]?.headers.authorization, basic('three'))

    // A new password replaces the old one; the URL without it, or masked, names the same webhook.
    const v4 = `/v4/domains/${service.domain}/webhooks`
    const renewed = at('/domain', 'four')
    const put = await service.call('PUT', v4, { form: { url: renewed, event_types: 'accepted' } })
    assert.deepEqual(put.body, { webhooks: { accepted: { urls: [renewed] } } })
    const again = await service.call('POST', v4, { form: { url, event_types: 'accepted' } })
    assert.equal(again.status, 400)
    assert.ok(!again.text.includes('planted'), again.text)
    const replayed = await service.call(
      'POST',
      `/sendwright/v1/webhooks/attempts/${attempts.find((attempt) => attempt.url === masked('/domain'))?.id}/replay`,
    )
    assert.equal(replayed.status, 200, replayed.text)
    assert.equal((await posted(receiver, '/domain', 2))[1]?.headers.authorization, basic('four'))
    const gone = await service.call('DELETE', `${v4}?url=${encodeURIComponent(masked('/domain'))}`)
    assert.deepEqual(gone.body, { webhooks: {} })

    if (database === 'sqlite') {
      for (const name of await readdir(service.config.dataFolder)) {
        if (!name.includes('.db')) continue
        const bytes = await readFile(join(service.config.dataFolder, name))
        assert.ok(!bytes.includes('planted'), `a password stands in ${name}`)
      }
    }
  })
})
