/** Monthly message limits over HTTP and SMTP, on both databases (accounts.md section 5). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'
import { Dialogue } from '../../../test/support/smtp-dialogue.ts'
import { activeUser } from '../../../test/support/users.ts'
import type { Core } from '../../core.ts'
import { insert } from '../../platform/store/store.ts'
import { createKeys } from '../keys/api-keys.ts'

const LIMIT = '/v5/accounts/limit/custom/monthly'
const ENABLE = '/v5/accounts/limit/custom/enable'
const REACHED = 'The custom message limit for this month has been reached.'
const CHILD = 'c'.repeat(24)
const CHILD_LIMIT = `/v5/accounts/subaccounts/${CHILD}/limit/custom/monthly`
const SECOND_MS = 1_000

interface Rig {
  service: TestService
  core: Core
  clock: ReturnType<typeof createTestClock>
  /** Sends to so many addresses in one message; the status. */
  send(recipients: number, from?: { domain: string; key?: string }): Promise<number>
  current(): Promise<number>
}

async function start(t: TestContext, database: 'sqlite' | 'postgres'): Promise<Rig> {
  let core: Core | undefined
  const clock = createTestClock(Date.UTC(2026, 5, 10, 12))
  const service = await startTestService(
    t,
    {},
    {
      database,
      clock,
      areas: [
        (given) => {
          core = given
          return {}
        },
      ],
    },
  )
  const send: Rig['send'] = async (
    recipients,
    { domain, key = service.key } = { domain: service.domain },
  ) => {
    const to = Array.from({ length: recipients }, (_, at) => `user${at}@example.org`)
    const answer = await service.call('POST', `/v3/${domain}/messages`, {
      form: { from: `a@${domain}`, to, subject: 'Hi', text: 'Hi.', 'o:testmode': 'yes' },
      key,
    })
    if (answer.status === 403) assert.equal(answer.body.message, refusal(domain))
    return answer.status
  }
  return {
    service,
    core: core as Core,
    clock,
    send,
    current: async () => (await service.call('GET', LIMIT)).body.current,
  }
}

const refusal = (domain: string) => `Domain ${domain} is not allowed to send: ${REACHED}`

async function put(service: TestService, path: string, limit?: number | string): Promise<[number, string]> {
  const answer = await service.call('PUT', path, {
    form: limit === undefined ? {} : { limit: String(limit) },
  })
  return [answer.status, answer.body.message ?? answer.body.success]
}

/** A subaccount with a domain, and an admin key of it. */
async function addChild({ service, core }: Rig): Promise<{ domain: string; key: string }> {
  const { store, sealer, clock, accounts, firstAccountId } = core
  const row = await store.db
    .selectFrom('accounts')
    .selectAll()
    .where('id', '=', firstAccountId)
    .executeTakeFirstOrThrow()
  await store.commit([insert('accounts', { ...row, id: CHILD, parent_id: firstAccountId, name: 'Child' })])
  accounts.changed(CHILD)
  const { secret: key } = await createKeys(store, sealer, clock).create({
    ...{ accountId: CHILD, kind: 'user', role: 'admin', description: '', domainName: null },
    ...{ requestor: null, userName: null, userId: null, expiresAt: null },
  })
  const domain = 'child.example'
  const answer = await service.call('POST', '/v4/domains', { form: { name: domain }, key })
  assert.equal(answer.status, 200, answer.text)
  return { domain, key }
}

eachDatabase((database) => {
  test('a limit is set, counts what was sent before, stops, and is lifted', async (t) => {
    const rig = await start(t, database)
    const { service, send } = rig
    const none = await service.call('GET', LIMIT)
    assert.deepEqual([none.status, none.body.message], [404, 'No threshold for account'])
    const noDelete = await service.call('DELETE', LIMIT)
    assert.deepEqual(
      [noDelete.status, noDelete.body.message],
      [400, 'Could not delete threshold for account'],
    )
    for (const bad of [999, 0, -1, 'many', '1000.5', '1e3'])
      assert.deepEqual(await put(service, LIMIT, bad), [400, 'The limit parameter minumum is 1000'])
    assert.deepEqual(await put(service, LIMIT), [400, 'Missing mandatory parameter: limit'])

    assert.equal(await send(300), 200)
    assert.deepEqual(await put(service, LIMIT, 1000), [200, true])
    assert.deepEqual((await service.call('GET', LIMIT)).body, { limit: 1000, current: 300, period: '1m' })
    assert.equal(await send(600), 200)
    assert.equal(await send(101), 403, 'it would pass the limit, so it is refused whole')
    assert.equal(await rig.current(), 900)
    assert.equal(await send(100), 200)
    assert.equal(await send(1), 403)
    assert.equal(await rig.current(), 1000)
    assert.deepEqual(await put(service, ENABLE), [
      400,
      'Unable to re-enable account with current account disablement',
    ])

    assert.deepEqual(await put(service, LIMIT, 1500), [200, true])
    assert.equal(await send(1), 403, 'raising it does not lift the stop')
    assert.deepEqual(await put(service, ENABLE), [200, true])
    assert.equal(await send(1), 200)
    assert.equal(await rig.current(), 1001)
    assert.deepEqual(await put(service, ENABLE), [200, true], 'nothing to lift')
    assert.deepEqual((await service.call('DELETE', LIMIT)).body, { success: true })
    assert.equal(await send(1000), 200)
  })

  test('a new month lifts the stop, and a deleted limit leaves it until then', async (t) => {
    const { service, send, clock, current } = await start(t, database)
    await put(service, LIMIT, 1000)
    assert.equal(await send(1000), 200)
    assert.deepEqual((await service.call('DELETE', LIMIT)).body, { success: true })
    assert.equal((await service.call('GET', LIMIT)).status, 404)
    assert.equal(await send(1), 403)
    assert.deepEqual(await put(service, LIMIT, 2000), [200, true])
    assert.equal(await current(), 1000, 'counted again')
    assert.equal(await send(1), 403)
    clock.leap(Date.UTC(2026, 6, 1) - clock.now() - 1)
    assert.equal(await send(1), 403)
    clock.leap(1)
    assert.equal(await current(), 0)
    assert.equal(await send(1), 200)
    assert.equal(await current(), 1)
  })

  test("a parent's limit counts its subaccounts, which have limits of their own", async (t) => {
    const rig = await start(t, database)
    const { service, send } = rig
    const child = await addChild(rig)
    const sendAsChild = (recipients: number) => send(recipients, child)
    const ofChild = async () => (await service.call('GET', CHILD_LIMIT)).body.current
    assert.equal(await sendAsChild(5), 200)
    assert.deepEqual(await put(service, CHILD_LIMIT, 0), [400, 'The limit parameter minumum is 1'])
    assert.deepEqual(await put(service, CHILD_LIMIT, 10), [200, true])
    assert.deepEqual(await put(service, LIMIT, 1000), [200, true])
    assert.deepEqual([await rig.current(), await ofChild()], [5, 5])
    assert.equal(await sendAsChild(6), 403)
    assert.equal(await sendAsChild(5), 200)
    assert.equal(await sendAsChild(1), 403)
    assert.deepEqual([await rig.current(), await ofChild()], [10, 10])

    assert.equal(await send(990), 200)
    assert.deepEqual((await service.call('DELETE', CHILD_LIMIT)).body, { success: true })
    assert.deepEqual(await put(service, CHILD_LIMIT, 100), [200, true])
    assert.equal(await sendAsChild(1), 403, "the parent's is reached")
    assert.equal(await ofChild(), 10)
    assert.deepEqual((await service.call('DELETE', CHILD_LIMIT)).body, { success: true })

    const is = async (method: string, path: string, status: number, message: string) => {
      const answer = await service.call(method, path, { form: { limit: '5' } })
      assert.deepEqual([answer.status, answer.body.message], [status, message], `${method} ${path}`)
    }
    const of = (id: string) => `/v5/accounts/subaccounts/${id}/limit/custom/monthly`
    const own = rig.core.firstAccountId
    const forbidden = 'Forbidden - user does not have permission to view this resource'
    const read = async (path: string) => {
      const { status, body } = await service.call('GET', path)
      return [status, body.message]
    }
    assert.deepEqual(await read(of(own)), [400, 'Not a subaccount'])
    assert.deepEqual(await read(of('0'.repeat(24))), [403, forbidden])
    assert.deepEqual(await read(of('nonsense')), [400, 'Invalid subaccount ID'])
    for (const id of ['nonsense', own, '0'.repeat(24)]) await is('PUT', of(id), 400, 'Invalid subaccount ID')
    const nested = await service.call('GET', of(own), { key: child.key })
    assert.deepEqual([nested.status, nested.body.message], [403, forbidden])
  })

  test('a subaccount cannot change the limit that its parent has set', async (t) => {
    const rig = await start(t, database)
    const { key } = await addChild(rig)
    await put(rig.service, CHILD_LIMIT, 10)
    assert.equal((await rig.service.call('GET', LIMIT, { key })).body.limit, 10)
    for (const [method, path] of [
      ['PUT', LIMIT],
      ['DELETE', LIMIT],
      ['PUT', ENABLE],
    ] as const) {
      const answer = await rig.service.call(method, path, { key, form: { limit: '5000' } })
      assert.equal(answer.status, 403, `${method} ${path}`)
    }
  })

  test('SMTP, resends and copies of lists count, and are refused over the limit', async (t) => {
    const rig = await start(t, database)
    const { service, send, current } = rig
    await put(service, LIMIT, 1000)
    const login = `smtp@${service.domain}`
    await service.call('POST', `/v3/domains/${service.domain}/credentials`, {
      form: { login, password: 'smtp-password' },
    })
    const submit = (recipients: string[]) => submitBySmtp(service, login, recipients)
    assert.match(await submit(['a@example.org', 'b@example.org']), /^250 /)
    assert.equal(await current(), 2)

    const list = `crew@${service.domain}`
    await service.call('POST', '/v3/lists', { form: { address: list } })
    for (const name of ['x', 'y', 'z']) {
      const form = { address: `${name}@example.org`, subscribed: name === 'z' ? 'no' : 'yes' }
      await service.call('POST', `/v3/lists/${list}/members`, { form })
    }
    const toList = async () => (await service.send({ to: list, 'o:testmode': 'yes' })).status
    assert.equal(await toList(), 200)
    await eventually('the copies are counted', async () => (await current()) === 5)

    await service.send({ to: 'stored@example.org', text: 'Stored.' })
    const key = await eventually('the stored message', async () => {
      const [event] = await service.events('?event=accepted&recipient=stored@example.org')
      return (event?.['storage'] as { key?: string } | undefined)?.key
    })
    const resend = async (to: string[]) => {
      const path = `/v3/domains/${service.domain}/messages/${key}`
      return (await service.call('POST', path, { form: { to } })).status
    }
    assert.equal(await resend(['r@example.org', 's@example.org']), 200)
    assert.equal(await current(), 8)

    assert.equal(await send(990), 200)
    assert.equal(await toList(), 403, 'its two subscribed members would pass it')
    assert.equal(await resend(['r@example.org', 's@example.org', 't@example.org']), 403)
    assert.match(
      await submit(['a@example.org', 'b@example.org', 'c@example.org']),
      new RegExp(`^5\\d\\d .*${REACHED}`),
    )
    assert.match(await submit(['a@example.org', 'b@example.org']), /^250 /)
    assert.equal(await current(), 1000)
  })

  test('copies of a list wait for room that another post has taken, and go out later', async (t) => {
    const rig = await start(t, database)
    const { service, core, current, clock } = rig
    await put(service, LIMIT, 1000)
    const list = `crew@${service.domain}`
    await service.call('POST', '/v3/lists', { form: { address: list } })
    const members = ['x', 'y', 'z'].map((name) => ({ address: `${name}@example.org` }))
    await service.call('POST', `/v3/lists/${list}/members.json`, {
      form: { members: JSON.stringify(members) },
    })
    // What another process accepts between this one's look at the members and their copies.
    const used = (count: number) =>
      core.store.commit([{ sql: 'UPDATE message_limits SET used = ?, is_stopped = 0', values: [count] }])
    await used(995)
    const answers = await Promise.all([1, 2].map(() => service.send({ to: list, 'o:testmode': 'yes' })))
    const accepted = answers.filter(({ status }) => status === 200).length
    await eventually('the copies of one post', async () => (await current()) === 995 + accepted + 3)
    assert.ok(accepted >= 1)
    if (accepted === 1) return
    await used(500)
    // Not by the count, which is counted again a while after the limit was set.
    await later(clock, 'the copies of the other', async () => {
      const events = await service.events('?event=accepted&recipient=x@example.org')
      return events.length === 2
    })
  })

  test('the admins get one mail each at 80, 90 and 100 percent', async (t) => {
    const { service, send, clock } = await start(t, database)
    await activeUser(service, 'boss@example.org', 'admin')
    await activeUser(service, 'second@example.org', 'admin')
    await activeUser(service, 'reader@example.org', 'basic')
    await put(service, LIMIT, 1000)
    const percents = async (to: string) => {
      const query = new URLSearchParams({ to, subject: 'monthly message limit', limit: '100' })
      const { body } = await service.call('GET', `/sendwright/v1/inbox?${query}`)
      return (body.items as { subject: string }[]).map(({ subject }) => Number(subject.split(' ')[0]))
    }
    const until = (count: number) =>
      later(clock, `${count} mails`, async () => (await percents('boss@example.org')).length === count)
    assert.equal(await send(799), 200)
    assert.equal(await send(1), 200)
    await until(2)
    assert.equal(await send(50), 200)
    assert.equal(await send(100), 200)
    await until(4)
    assert.equal(await send(50), 200)
    await until(6)
    await put(service, LIMIT, 1001)
    await put(service, ENABLE)
    assert.equal(await send(1), 200)
    await clock.advance(130 * SECOND_MS)
    // One copy for each of the two admins, whose addresses are both in To.
    for (const to of ['boss@example.org', 'second@example.org'])
      assert.deepEqual((await percents(to)).toSorted(), [100, 100, 80, 80, 90, 90])
    assert.deepEqual(await percents('reader@example.org'), [])
  })

  test('the count is repaired if mail was accepted before the limit was known', async (t) => {
    const { service, core, send, current, clock } = await start(t, database)
    assert.equal(await send(7), 200)
    await put(service, LIMIT, 1000)
    // As if another process had accepted these seven without knowing of the limit.
    await core.store.commit([{ sql: 'UPDATE message_limits SET used = 0', values: [] }])
    assert.equal(await send(2), 200)
    await later(clock, 'the recount', async () => (await current()) === 9)
    const [row] = await core.store.read({ sql: 'SELECT recount_at FROM message_limits', values: [] })
    assert.equal(row?.['recount_at'], null)
  })

  test('mail of a deleted domain counts when a limit is set later', async (t) => {
    const { service, send, current, clock, core } = await start(t, database)
    const name = 'short.example'
    await service.call('POST', '/v4/domains', { form: { name } })
    assert.equal(await send(3, { domain: name }), 200)
    const counted = async () => {
      const sql = `SELECT 1 AS one FROM figure_scopes CROSS JOIN figures
          WHERE domain_name = ? AND scope = no AND split = 0 AND unit = 0 AND accepted_outgoing = 3`
      return (await core.store.read({ sql, values: [name] })).length > 0
    }
    await later(clock, 'the counters', counted)
    assert.equal((await service.call('DELETE', `/v3/domains/${name}`)).status, 200)
    await later(clock, 'the end of the domain', async () => !(await counted()))
    await put(service, LIMIT, 1000)
    assert.equal(await current(), 3)
  })
})

/** As `eventually`, while a second of the service's time passes before each look. */
const later = (clock: Rig['clock'], what: string, look: () => Promise<boolean>) =>
  eventually(what, async () => {
    await clock.advance(SECOND_MS)
    return look()
  })

/** The reply to the message. */
async function submitBySmtp(service: TestService, login: string, recipients: string[]): Promise<string> {
  const client = await Dialogue.open({ host: service.config.smtpHost, port: service.service.smtp.port })
  await client.reply()
  const plain = Buffer.from(`\0${login}\0smtp-password`).toString('base64')
  await client.say('EHLO client.example')
  assert.match((await client.say(`AUTH PLAIN ${plain}`)) ?? '', /^235 /)
  await client.say(`MAIL FROM:<${login}>`)
  for (const to of recipients) assert.match((await client.say(`RCPT TO:<${to}>`)) ?? '', /^250 /)
  await client.say('DATA')
  const reply = await client.say(`From: ${login}\r\nTo: a@example.org\r\nSubject: x\r\n\r\nHi.\r\n.`)
  await client.say('QUIT')
  return reply ?? ''
}
