/** The public JavaScript client against this service, with only its `url` changed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Mailgun from 'mailgun.js'
import type { Core } from '../../src/core.ts'
import { insert } from '../../src/platform/store/store.ts'
import { eventually, startTestService } from '../support/service.ts'

test('the public JavaScript client sends, reads the events and the stored message', async (t) => {
  const service = await startTestService(t)
  const mailgun = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })

  const sent = await mailgun.messages.create(service.domain, {
    from: `Shop <shop@${service.domain}>`,
    to: ['alice@example.org', 'Bob Brown <bob@example.net>'],
    subject: 'Order 17',
    text: 'Thank you.',
    html: '<p>Thank you.</p>',
    'o:tag': ['order', 'receipt'],
    'v:order': '17',
    attachment: { filename: 'order.txt', data: 'one book' },
  })
  assert.equal(sent.status, 200)
  assert.match(sent.id ?? '', /^<\d{14}\.[0-9a-f]{16}@.+>$/)
  assert.equal(sent.message, 'Queued. Thank you.')

  const events = await eventually('two delivered events', async () => {
    const page = await mailgun.events.get(service.domain, { event: 'delivered', limit: 10 })
    return page.items.length === 2 && page.items
  })
  assert.deepEqual(events.map((event) => event.recipient).sort(), ['alice@example.org', 'bob@example.net'])
  const [event] = events
  assert.deepEqual(event?.tags, ['order', 'receipt'])
  assert.deepEqual(event?.['user-variables'], { order: '17' })

  const stored = await mailgun.request.get(new URL(String(event?.storage?.url)).pathname)
  assert.equal(stored.body.Subject, 'Order 17')
  assert.equal(stored.body['body-html'], '<p>Thank you.</p>')
  assert.equal(stored.body.attachments[0].name, 'order.txt')

  const domains = await mailgun.domains.list()
  assert.deepEqual(
    domains.map((domain) => domain.name),
    [service.domain],
  )
  const domain = await mailgun.domains.get(service.domain)
  assert.equal(domain.state, 'active')
})

test('the public JavaScript client manages routes', async (t) => {
  const service = await startTestService(t)
  const { routes } = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })
  // The types say number, but the client's forms take texts only.
  const text = (priority: string) => priority as unknown as number
  const given = { priority: text('1'), description: 'Orders', expression: 'match_recipient("orders@")' }
  const made = await routes.create({ ...given, action: ['store()', 'stop()'] })
  assert.deepEqual([made.priority, made.actions], [1, ['store()', 'stop()']])
  assert.deepEqual(await routes.list({ limit: 10 }), [made])
  assert.deepEqual(await routes.get(made.id), made)
  const changed = await routes.update(made.id, { ...given, priority: text('2'), action: ['store()'] })
  assert.deepEqual([changed.id, changed.priority, changed.actions], [made.id, 2, ['store()']])
  const gone = await routes.destroy(made.id)
  assert.deepEqual([gone.id, gone.message], [made.id, 'Route has been deleted'])
})

test('the public JavaScript client sets, reads and deletes message limits, those of a subaccount too', async (t) => {
  let core: Core | undefined
  const areas = [
    (given: Core) => {
      core = given
      return {}
    },
  ]
  const service = await startTestService(t, {}, { areas })
  const { store, firstAccountId, accounts } = core as unknown as Core
  const mailgun = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })
  const limit = mailgun.customMessageLimit
  await assert.rejects(limit.get(), { status: 404, details: 'No threshold for account' })
  await assert.rejects(limit.set(999), { status: 400, details: 'The limit parameter minumum is 1000' })
  assert.equal((await limit.set(1000)).success, true)
  await mailgun.messages.create(service.domain, {
    from: `shop@${service.domain}`,
    to: ['a@example.org', 'b@example.org'],
    subject: 'Order',
    text: 'Thank you.',
  })
  const { limit: count, current, period } = await limit.get()
  assert.deepEqual([count, current, period], [1000, 2, '1m'])
  assert.equal((await limit.enable()).success, true)
  assert.equal((await limit.destroy()).success, true)
  await assert.rejects(limit.destroy(), { status: 400, details: 'Could not delete threshold for account' })

  const id = 'c'.repeat(24)
  const row = await store.db
    .selectFrom('accounts')
    .selectAll()
    .where('id', '=', firstAccountId)
    .executeTakeFirstOrThrow()
  await store.commit([insert('accounts', { ...row, id, parent_id: firstAccountId, name: 'Child' })])
  accounts.changed(id)
  assert.deepEqual(await mailgun.subaccounts.setMonthlySendingLimit(id, 5), { success: true })
  assert.deepEqual(await mailgun.subaccounts.getMonthlySendingLimit(id), {
    limit: 5,
    current: 0,
    period: '1m',
  })
})
