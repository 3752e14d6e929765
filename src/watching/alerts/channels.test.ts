/** Tests of channels, a workspace of Slack, and the signing key over HTTP (alerts.md section 6). */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { createReceiver, type Receiver } from '../../../test/support/http-receiver.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../../../test/support/service.ts'
import { assertSigned, signingKey } from '../../../test/support/signed-posts.ts'
import { createSlackServer, type FakeSlack } from '../../../test/support/slack.ts'
import { activeUser, as } from '../../../test/support/users.ts'
import { EVENT_TYPES } from './shapes.ts'

let service: TestService
let slack: FakeSlack
let receiver: Receiver

test.before(async (t) => {
  const context = t as TestContext
  slack = await createSlackServer(ownAddress())
  receiver = await createReceiver({ host: ownAddress() })
  context.after(() => Promise.all([slack.receiver.close(), receiver.close()]))
  service = await startTestService(context, {
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    SENDWRIGHT_SLACK_API_URL: slack.url,
    SENDWRIGHT_WEBHOOK_SCHEDULE: '1s,1s',
  })
})

const post = (path: string, json: object, key?: string) =>
  service.call('POST', `/v1/alerts/${path}`, { json, ...(key !== undefined && { key }) })

async function refused(answer: ReturnType<typeof post>, message: RegExp): Promise<void> {
  const { status, body } = await answer
  assert.equal(status, 400, JSON.stringify(body))
  assert.match(body.message, message)
}

test('a test webhook is a signed notice of its type, and its answer counts', async () => {
  const key = await signingKey(service)
  const url = `${receiver.url}/hook`
  for (const event_type of EVENT_TYPES) {
    const answer = await post('webhooks/test', { event_type, url })
    assert.deepEqual([answer.status, answer.body], [200, { message: 'Test webhook sent' }])
    const taken = receiver.posts.at(-1)
    assert.ok(taken)
    assertSigned(taken, key)
    assert.equal(taken.headers['x-sign'], createHmac('sha256', key).update(taken.raw).digest('hex'))
    const { event, test } = taken.body['event-data']
    assert.deepEqual([event, test], [event_type, true])
  }
  receiver.answer = 500
  await refused(post('webhooks/test', { event_type: 'ip_listed', url }), /not taken: .*: it answered 500$/)
  receiver.answer = 200
  const given = { event_type: 'ip_listed' }
  await refused(post('webhooks/test', given), /^url is required$/)
  await refused(post('webhooks/test', { url }), /^invalid event_type: $/)
  for (const [private_, message] of [
    ['http://10.0.0.1/', /not allowed/],
    ['http://[::ffff:192.168.0.1]/', /not allowed/],
    ['file:///etc/passwd', /scheme/],
  ] as const)
    await refused(post('webhooks/test', { ...given, url: private_ }), message)
})

test('a test mail goes to each address', async () => {
  const answer = await post('email/test', {
    event_type: 'ip_listed',
    emails: ['a@example.org', 'B@example.org'],
  })
  assert.deepEqual([answer.status, answer.body], [200, { message: 'Test email sent' }])
  const captured = await eventually('both mails', async () => {
    const { items } = (await service.call('GET', '/sendwright/v1/inbox')).body
    const found = items.filter(({ subject }: { subject: string }) => subject === 'Test: ip_listed')
    return found.length === 2 && found
  })
  const recipients = captured.flatMap(({ envelope }: { envelope: { to: string[] } }) => envelope.to)
  assert.deepEqual(recipients.sort(), ['a@example.org', 'b@example.org'])
  await refused(post('email/test', { event_type: 'ip_listed', emails: [] }), /^emails is required$/)
  await refused(post('email/test', { event_type: 'ip_listed', emails: ['x'] }), /^invalid email: x$/)
  const many = Array(11).fill('a@example.org')
  await refused(post('email/test', { event_type: 'ip_listed', emails: many }), /more than 10/)
})

test('without a workspace of Slack there are no channels, and tests go to incoming webhooks', async () => {
  const { body } = await service.call('GET', '/v1/alerts/slack/channels?limit=10')
  assert.deepEqual(body, { items: [], paging: { first: '', last: '', next: '', previous: '' } })
  assert.equal((await service.call('GET', '/v1/alerts/slack/channels/C1')).status, 404)
  await refused(post('slack/test', { event_type: 'ip_listed', channel_ids: ['C1'] }), /no workspace of Slack/)
  await refused(post('slack/test', { event_type: 'ip_listed' }), /^no setting sends ip_listed to Slack$/)
  const url = `${receiver.url}/slack`
  const setting = { event_type: 'ip_listed', channel: 'slack', settings: { url } }
  const made = await post('settings/events', setting)
  assert.equal((await post('slack/test', { event_type: 'ip_listed' })).status, 200)
  assert.match(receiver.posts.at(-1)?.body.text, /^Test: ip_listed\n/)
  await service.call('DELETE', `/v1/alerts/settings/events/${made.body.id}`)
  for (const path of ['settings/slack', 'slack/oauth'])
    assert.equal((await service.call('DELETE', `/v1/alerts/${path}`)).status, 200, 'nothing to forget')
})

test('notices go to channels of a connected workspace, whose token nobody reads', async () => {
  const workspace = { token: slack.token, team_id: 'T1', team_name: 'Team', scope: 'chat:write' }
  const connected = await service.call('PUT', '/v1/alerts/settings/slack', { json: workspace })
  assert.deepEqual([connected.status, connected.body], [200, { message: 'Slack settings updated' }])
  const { text, body } = await service.call('GET', '/v1/alerts/settings')
  assert.deepEqual(body.slack, { ...workspace, token: 'xoxb-****' })
  assert.ok(!text.includes(slack.token))

  const first = (await service.call('GET', '/v1/alerts/slack/channels?limit=2')).body
  assert.deepEqual(first.items, [
    { id: 'C0', name: 'alerts', is_archived: false },
    { id: 'C1', name: 'ops', is_archived: false },
  ])
  const next = (await service.call('GET', first.paging.next.slice(service.url.length))).body
  assert.deepEqual([next.items, next.paging.next], [[{ id: 'C2', name: 'old', is_archived: true }], ''])
  const one = await service.call('GET', '/v1/alerts/slack/channels/C1')
  assert.deepEqual(one.body, { id: 'C1', name: 'ops', is_archived: false })
  assert.equal((await service.call('GET', '/v1/alerts/slack/channels/C9')).status, 404)

  await refused(
    post('slack/test', { event_type: 'ip_listed', channel_ids: ['C9'] }),
    /C9: channel_not_found$/,
  )
  const setting = {
    event_type: 'validation_job',
    channel: 'slack',
    settings: { channel_ids: ['C0', 'C1'] },
  }
  const made = await post('settings/events', setting)
  assert.equal(made.status, 200, made.text)
  // A second setting names a place again, and a third too many of them.
  const repeating = { ...setting, settings: { channel_ids: ['C1'] } }
  const ids = Array.from({ length: 19 }, (_, n) => `D${n}`)
  const others = [(await post('settings/events', repeating)).body.id]
  assert.equal((await post('slack/test', { event_type: 'validation_job' })).status, 200)
  assert.deepEqual(
    slack.messages
      .splice(0)
      .map(([channel]) => channel)
      .sort(),
    ['C0', 'C1'],
  )
  others.push((await post('settings/events', { ...setting, settings: { channel_ids: ids } })).body.id)
  await refused(
    post('slack/test', { event_type: 'validation_job' }),
    /^the settings name 21 places: a test goes to at most 20, name channels$/,
  )
  assert.equal(slack.messages.length, 0)
  for (const id of others) await service.call('DELETE', `/v1/alerts/settings/events/${id}`)

  // Refused with status 200, which loses no notice.
  slack.refusals = 1
  const file = new File(['a@nowhere.example\n'], 'list.csv')
  const job = await service.call('POST', '/v4/address/validate/bulk/list', { form: { file } })
  assert.equal(job.status, 202, job.text)
  await eventually('a notice in both channels', async () => slack.messages.length === 2)
  assert.deepEqual(slack.messages.map(([channel]) => channel).sort(), ['C0', 'C1'])
  assert.match(slack.messages[0]?.[1] ?? '', /^Validation job "list" is complete/)

  const revoked = await service.call('DELETE', '/v1/alerts/slack/oauth')
  assert.deepEqual([revoked.status, revoked.body], [200, { message: 'Slack access token revoked' }])
  assert.equal(slack.calls.at(-1), 'auth.revoke')
  const after = (await service.call('GET', '/v1/alerts/settings')).body
  assert.deepEqual([after.events, after.slack], [[], {}], 'its settings are gone too')
})

test('the signing key is replaced by who may change the account', async () => {
  const developer = await activeUser(service, 'developer@example.org', 'developer')
  const path = '/v1/alerts/settings/webhooks/signing_key'
  assert.equal((await as(service, developer.cookie, 'PUT', path)).status, 403)
  const before = await signingKey(service)
  const { status, body } = await service.call('PUT', path)
  assert.equal(status, 200)
  assert.notEqual(body.signing_key, before)
  assert.equal(body.signing_key, await signingKey(service))
})

test('an account makes ten tests an hour', async (t) => {
  const limited = await startTestService(t, {
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    SENDWRIGHT_RATE_LIMIT: '100',
  })
  const json = { event_type: 'ip_listed', url: receiver.url }
  for (let call = 0; call < 10; call++)
    assert.equal((await limited.call('POST', '/v1/alerts/webhooks/test', { json })).status, 200)
  const eleventh = await limited.call('POST', '/v1/alerts/email/test', { json })
  assert.equal(eleventh.status, 429, eleventh.text)
})
