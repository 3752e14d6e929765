/** Parameters that an operation does not know: named in the answer and the event, or refused for a strict account. */
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import Mailgun from 'mailgun.js'
import { connectSmtp } from '../../src/protocols/smtp/client.ts'
import { passwordLogin } from '../../src/protocols/smtp/login.ts'
import { addAccount } from '../support/accounts.ts'
import { eachDatabase } from '../support/databases.ts'
import { type Answer, eventually, startTestService, type TestService } from '../support/service.ts'

const FORM = { to: 'alice@example.org', subject: 'Hello', text: 'Hi.' }

let service: TestService
before(async (t) => {
  service = await startTestService(t as TestContext, {
    SENDWRIGHT_SMTP_PORT: '0',
    SENDWRIGHT_HEADER_PREFIX_ALIASES: 'X-Mailgun-',
  })
})

const ignoredBy = (answer: Answer, prefix = 'X-Service-') => answer.headers.get(`${prefix}Ignored`)
const messages = (suffix = '') => `/v3/${service.domain}/messages${suffix}`
const withFrom = (form: object) => ({ from: `shop@${service.domain}`, ...FORM, ...form })
const strict = (enabled: boolean, on = service, key = on.key) =>
  on.call('PUT', '/v5/accounts/features', { key, form: { strict_parameters: JSON.stringify({ enabled }) } })

async function acceptedOf(id: string): Promise<Record<string, unknown>> {
  const query = `?event=accepted&message-id=${encodeURIComponent(id)}`
  return eventually(`the event of ${id}`, async () => (await service.events(query))[0])
}

test('a send in any encoding says in its answer and its accepted event what it did not understand', async () => {
  const names = { 'o:trackng': 'no', 'o:tag': 'a', 'h:X-Any': '1', 'v:any': '1' }
  const body = new URLSearchParams(withFrom(names))
  const mail = `From: shop@${service.domain}\r\nTo: alice@example.org\r\n\r\nHi.`
  const answers = {
    multipart: await service.send(names),
    form: await service.call('POST', messages(), { body }),
    json: await service.call('POST', messages(), { json: withFrom(names) }),
    query: await service.call('POST', `${messages()}?o%3Atrackng=no`, { form: withFrom({}) }),
    mime: await service.call('POST', messages('.mime'), {
      form: { to: FORM.to, 'o:trackng': 'no', message: new File([mail], 'message.eml') },
    }),
  }
  for (const [encoding, answer] of Object.entries(answers)) {
    assert.equal(answer.status, 200, answer.text)
    assert.equal(ignoredBy(answer), 'o:trackng', encoding)
    assert.deepEqual((await acceptedOf(answer.body.id))['ignored'], ['o:trackng'], encoding)
  }
  const known = await service.send({ 'o:tracking': 'no', 'v:any': '1' })
  assert.equal(ignoredBy(known), null)
  assert.equal('ignored' in (await acceptedOf(known.body.id)), false)
})

test('a file in an unknown field, and a call that fails for another reason, name the field too', async () => {
  const file = await service.send({ attachments: new File(['x'], 'x.txt') })
  assert.equal(ignoredBy(file), 'attachments')
  const failed = await service.call('POST', messages(), { form: { ...FORM, form: 'a@example.com' } })
  assert.deepEqual([failed.status, ignoredBy(failed)], [400, 'form'])
})

test('a message sent again shows what its own call had', async () => {
  const first = await service.send({ 'o:trackng': 'no' })
  const path = new URL(((await acceptedOf(first.body.id))['storage'] as { url: string }).url).pathname
  const again = await service.call('POST', path, { form: { to: 'ben@example.org', 'o:testmode': 'yes' } })
  assert.deepEqual([again.status, ignoredBy(again)], [200, 'o:testmode'], again.text)
  const event = await eventually('its event', async () => {
    const found = await service.events(`?event=accepted&message-id=${encodeURIComponent(first.body.id)}`)
    return found.find(({ recipient }) => recipient === 'ben@example.org')
  })
  assert.deepEqual(event['ignored'], ['o:testmode'])
})

test('header fields under the prefix that are no options are in the event, over HTTP and SMTP', async (t) => {
  const sent = await service.send({ 'h:X-Mailgun-Trackng': 'no', 'h:X-Mailgun-Tag': 'a', trackng: 'no' })
  assert.equal(ignoredBy(sent), 'trackng')
  assert.deepEqual((await acceptedOf(sent.body.id))['ignored'], ['trackng', 'X-Mailgun-Trackng'])

  const [user, password] = [`app@${service.domain}`, 'long enough']
  const path = `/v3/domains/${service.domain}/credentials`
  assert.equal((await service.call('POST', path, { form: { login: 'app', password } })).status, 200)
  const connection = await connectSmtp({
    ...{ host: service.config.smtpHost, port: service.service.smtp.port, heloName: 'app.example' },
    ...{ tls: 'required', verify: false, auth: passwordLogin({ user, password, allowUnverified: true }) },
  })
  t.after(() => connection.close())
  const headers = [
    ...[`From: shop@${service.domain}`, 'To: alice@example.org', 'Message-Id: <by-smtp@example.org>'],
    ...['X-Mailgun-Trackng: no', 'X-Service-Trackng: no', 'X-Service-Trackng: no', 'X-Mailgun-Track: no'],
    ...['X-Service-Spf: Pass', 'X-Service-Forwarded: 1', 'X-Other: 1', ''],
  ]
  const text = Buffer.from(`${headers.join('\r\n')}\r\nHi.\r\n`)
  const message = { headers: headers.slice(0, -1), body: [Buffer.from('Hi.\r\n')] }
  const { data } = await connection.send({
    ...{ returnPath: `shop@${service.domain}`, recipients: ['alice@example.org'], message },
    ...{ sizeBytes: text.byteLength, utf8: false },
  })
  assert.equal(data?.code, 250)
  const event = await acceptedOf('by-smtp@example.org')
  assert.deepEqual(event['ignored'], ['X-Mailgun-Trackng', 'X-Service-Trackng'])
})

test('a read and a change of other areas name them; public operations do not', async () => {
  const read = await service.call('GET', '/v4/domains?limit=10&sorted=name')
  assert.deepEqual([read.status, ignoredBy(read)], [200, 'sorted'])
  const made = await service.call('POST', '/v3/routes', {
    form: { expression: 'catch_all()', action: 'stop()', descripton: 'x' },
  })
  assert.deepEqual([made.status, ignoredBy(made)], [200, 'descripton'], made.text)
  assert.equal(ignoredBy(await service.call('GET', '/health?utm_source=x', { key: null })), null)
  const signIn = { json: { key: service.key, extra: '1' }, key: null }
  assert.equal(ignoredBy(await service.call('POST', '/sendwright/v1/session', signIn)), null)
})

test('hostile names: 10,000 of them, line ends, other alphabets, very long ones', async () => {
  const many = Array.from({ length: 9_000 }, (_, at) => `n${at}=1`).join('&')
  const names = [
    'a%0D%0AX-Evil:%201',
    '%00',
    '%FC',
    'gr%C3%B6%C3%9Fe',
    'b'.repeat(100_000),
    '__proto__',
    '%22',
  ]
  const query = new URLSearchParams(withFrom({})).toString()
  const answer = await service.call('POST', messages(), {
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `${names.map((name) => `${name}=1`).join('&')}&${query}&${many}`,
  })
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.headers.get('x-evil'), null)
  const shown = [
    ...['a%0D%0AX-Evil:%201', '%00', '%EF%BF%BD', 'gr%C3%B6%C3%9Fe', 'b'.repeat(64), '__proto__', '%22'],
    ...['n0', 'n1', 'n2', '...'],
  ]
  assert.equal(ignoredBy(answer), shown.join(', '))
  assert.deepEqual((await acceptedOf(answer.body.id))['ignored'], shown)
})

test('the header has the configured prefix', async (t) => {
  const other = await startTestService(t, { SENDWRIGHT_HEADER_PREFIX: 'X-Own-' })
  const answer = await other.call('GET', '/v4/domains?sorted=name')
  assert.deepEqual([ignoredBy(answer, 'X-Own-'), ignoredBy(answer)], ['sorted', null])
})

eachDatabase((database) => {
  test('a strict account has calls with unknown names refused, until it switches back', async (t) => {
    const own = await startTestService(t, {}, { database })
    const isStrict = async () =>
      (await own.call('GET', '/sendwright/v1/session')).body.account.strict_parameters
    const child = (await own.call('POST', '/v5/accounts/subaccounts', { form: { name: 'Child' } })).body
      .subaccount
    assert.equal(await isStrict(), false)
    assert.equal((await strict(true, own)).status, 200)
    assert.equal(await isStrict(), true)

    const refused = await own.send({ 'o:trackng': 'no', colour: 'red' })
    const message = 'Unknown parameters: o:trackng (did you mean o:tracking?), colour'
    assert.deepEqual([refused.status, refused.body, ignoredBy(refused)], [400, { message }, null])
    assert.deepEqual(await own.events(), [], 'nothing was accepted')
    const read = await own.call('GET', '/v4/domains?limt=10')
    assert.deepEqual(read.body, { message: 'Unknown parameter: limt (did you mean limit?)' })
    const key = { 'idempotency-key': 'one' }
    const form = withFrom({ from: `shop@${own.domain}` })
    const path = `/v3/${own.domain}/messages`
    assert.equal((await own.call('POST', path, { form: { ...form, x: '1' }, headers: key })).status, 400)
    assert.equal(
      (await own.call('POST', path, { form, headers: key })).status,
      200,
      'the refusal is not kept',
    )

    const features = `/v5/accounts/subaccounts/${child.id}/features`
    const given = { form: { email_preview: '{"enabled": true}' } }
    const onBehalf = { 'x-service-on-behalf-of': child.id }
    const ofChild = await own.call('GET', '/v4/domains?limt=10', { headers: onBehalf })
    assert.deepEqual([ofChild.status, ignoredBy(ofChild)], [200, 'limt'], 'a subaccount has its own switch')
    const form2 = { strict_parameters: '{"enabled": true}' }
    assert.equal(
      (await own.call('PUT', '/v5/accounts/features', { form: form2, headers: onBehalf })).status,
      200,
    )
    assert.equal((await own.call('PUT', features, given)).status, 200)
    const after = await own.call('GET', `/v5/accounts/subaccounts/${child.id}`)
    assert.equal(after.body.subaccount.features.email_preview.enabled, true)
    assert.equal('strict_parameters' in after.body.subaccount.features, false)
    assert.equal((await own.call('GET', '/v4/domains?limt=10', { headers: onBehalf })).status, 400)

    assert.equal((await strict(false, own)).status, 200)
    const sent = await own.send({ 'o:trackng': 'no' })
    assert.equal(sent.status, 200, sent.text)
    const { items } = (await own.call('GET', '/sendwright/v1/audit?action=account-features.update')).body
    const values = items.map(({ detail }: { detail: { given?: object } }) => JSON.stringify(detail))
    assert.match(values[0], /strict_parameters.*false/)
  })
})

test('only those who may change the account switch it', async () => {
  const roles = { admin: 200, developer: 403, support: 403, basic: 403 }
  for (const [role, status] of Object.entries(roles)) {
    const made = await service.call('POST', '/v1/keys', { form: { role } })
    assert.equal((await strict(false, service, made.body.key.secret)).status, status, role)
  }
  const { key } = addAccount(service)
  assert.equal((await strict(true, service, key)).status, 200)
  assert.equal(
    (await service.call('GET', '/v4/domains?limt=1')).status,
    200,
    'another account is not concerned',
  )
})

test('the public JavaScript client works with a strict account, links of pages included', async (t) => {
  const own = await startTestService(t)
  assert.equal((await strict(true, own)).status, 200)
  const mailgun = new Mailgun(FormData).client({ username: 'api', key: own.key, url: own.url })
  const { domain } = own
  for (const subject of ['One', 'Two']) {
    const message = {
      ...FORM,
      subject,
      from: `shop@${domain}`,
      'o:tag': ['a'],
      'h:Reply-To': 'b@example.org',
    }
    await mailgun.messages.create(domain, { ...message, attachment: { filename: 'a.txt', data: 'x' } })
  }
  const query = { event: 'accepted', limit: 1, ascending: 'yes' as const, begin: '1' }
  const first = await mailgun.events.get(domain, query)
  const next = await mailgun.events.get(domain, { ...query, page: first.pages.next.page })
  assert.equal(next.items.length, 1)
  await mailgun.suppressions.create(domain, 'bounces', { address: 'x@example.org' })
  const bounces = await mailgun.suppressions.list(domain, 'bounces', { limit: 1 })
  await mailgun.suppressions.list(domain, 'bounces', { limit: 1, page: bounces.pages.next.page ?? '' })
  await mailgun.domains.list({ limit: 10, skip: 0 })
  await mailgun.domains.domainTracking.updateTracking(domain, 'open', { active: true })
})
