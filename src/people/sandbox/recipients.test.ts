/** Sandbox recipients over HTTP, on both databases: mail, link, and who may be sent to (accounts.md section 2). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'
import { activeUser, invite } from '../../../test/support/users.ts'
import type { Core } from '../../core.ts'
import { insert } from '../../platform/store/store.ts'
import { haveAgreed } from './recipients.ts'

const PATH = '/v5/sandbox/auth_recipients'
const DAY_MS = 86_400_000

async function start(t: TestContext, database: 'sqlite' | 'postgres', env: Record<string, string> = {}) {
  let core: Core | undefined
  const clock = createTestClock(Date.now())
  const areas = [
    (given: Core) => {
      core = given
      return {}
    },
  ]
  const service = await startTestService(t, env, { database, clock, areas })
  return { service, clock, core: core as Core }
}

async function add(service: TestService, email: string): Promise<[number, unknown]> {
  const { status, body } = await service.call('POST', PATH, { form: { email } })
  return [status, body.recipient ?? body.message]
}

/** Paths of the links in the mails to an address. */
async function links(service: TestService, email: string, count: number): Promise<string[]> {
  const query = new URLSearchParams({ to: email, subject: 'Confirm that you want' })
  const items = await eventually(`${count} mails to ${email}`, async () => {
    const { body } = await service.call('GET', `/sendwright/v1/inbox?${query}`)
    return (body.items as { id: string }[]).length === count && (body.items as { id: string }[])
  })
  const found: string[] = []
  for (const { id } of items) {
    const { body } = await service.call('GET', `/sendwright/v1/inbox/${id}`)
    const link = /^https?:\S+$/m.exec(body.text as string)?.[0] ?? ''
    found.push(new URL(link).pathname)
  }
  return found
}

const open = (service: TestService, method: string, path: string) =>
  service.call(method, path, { key: null, headers: { origin: 'null', 'sec-fetch-site': 'cross-site' } })

const ADDED = (email: string, activated = false) => [200, { email, activated }]

eachDatabase((database) => {
  test("an address is added, confirmed by the button of its mail's page, and removed", async (t) => {
    const { service, core } = await start(t, database)
    const account = core.firstAccountId
    const may = (...addresses: string[]) => haveAgreed(core.store, account, addresses)
    assert.deepEqual((await service.call('GET', PATH)).body, { recipients: [] })
    assert.deepEqual(await add(service, 'Ann@Example.org'), ADDED('ann@example.org'))
    assert.equal(await may('ann@example.org'), false)
    const [path = ''] = await links(service, 'ann@example.org', 1)

    const page = await open(service, 'GET', path)
    assert.equal(page.status, 200)
    assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
    assert.match(page.text, /<strong>ann@example\.org<\/strong>.*<form method="post">/s)
    assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'/)
    assert.equal(await may('ann@example.org'), false, 'a scanner that opens the link confirms nothing')
    const confirmed = await open(service, 'POST', path)
    assert.equal(confirmed.status, 200, confirmed.text)
    assert.equal(await may('ann@example.org', 'ann@example.org'), true)
    assert.equal(await may('ann@example.org', 'bob@example.org'), false)
    assert.equal(await haveAgreed(core.store, 'other', ['ann@example.org']), false)
    assert.equal((await open(service, 'POST', path)).status, 404)
    assert.equal((await open(service, 'GET', path)).status, 404)

    assert.deepEqual(await add(service, 'ann@example.org'), ADDED('ann@example.org', true))
    assert.deepEqual((await service.call('GET', PATH)).body, {
      recipients: [{ email: 'ann@example.org', activated: true }],
    })
    const audit = (await service.call('GET', '/sendwright/v1/audit?action=sandbox-recipient.confirm')).body
    assert.deepEqual(
      audit.items.map(({ subject }: { subject: string }) => subject),
      ['ann@example.org'],
    )
    const removed = await service.call('DELETE', `${PATH}/ANN%40example.org`)
    assert.deepEqual([removed.status, removed.body.message], [200, 'Sandbox recipient deleted.'])
    const again = await service.call('DELETE', `${PATH}/ann@example.org`)
    assert.deepEqual([again.status, again.body.message], [400, 'Invalid email address.'])
    assert.equal(await may('ann@example.org'), false)
  })

  test('a newer mail voids the older link, and links end after seven days', async (t) => {
    const { service, clock } = await start(t, database)
    await add(service, 'ann@example.org')
    const [older = ''] = await links(service, 'ann@example.org', 1)
    await add(service, 'ann@example.org')
    const both = await links(service, 'ann@example.org', 2)
    const newer = both.find((path) => path !== older) ?? ''
    assert.equal((await open(service, 'GET', older)).status, 404)
    assert.equal((await open(service, 'GET', newer)).status, 200)
    clock.leap(7 * DAY_MS - 60_000)
    assert.equal((await open(service, 'GET', newer)).status, 200)
    clock.leap(60_000)
    assert.equal((await open(service, 'GET', newer)).status, 404)
    assert.equal((await open(service, 'POST', newer)).status, 404)
    assert.equal((await open(service, 'POST', '/sandbox-recipients/nonsense')).status, 404)
  })

  test('at most five addresses, at once too, and no flood of mails to strangers', async (t) => {
    const { service, clock } = await start(t, database)
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, at) => add(service, `user${at}@example.org`)),
    )
    assert.equal(answers.filter(([status]) => status === 200).length, 5)
    for (const answer of answers.filter(([status]) => status !== 200))
      assert.deepEqual(answer, [400, 'Only 5 sandbox recipients are allowed'])
    const { recipients } = (await service.call('GET', PATH)).body as { recipients: { email: string }[] }
    const email = recipients[0]?.email ?? ''
    const mails = async () => (await add(service, email))[0]
    assert.deepEqual([await mails(), await mails(), await mails()], [200, 200, 429])
    await service.call('DELETE', `${PATH}/${email}`)
    assert.equal(await mails(), 429, 'removing it does not start again')
    // 7 mails so far, 20 a day.
    for (let at = 0; at < 13; at++) {
      assert.deepEqual(await add(service, `next${at}@example.org`), ADDED(`next${at}@example.org`))
      await service.call('DELETE', `${PATH}/next${at}@example.org`)
    }
    assert.equal((await add(service, 'last@example.org'))[0], 429)
    clock.leap(DAY_MS + 1_000)
    assert.equal((await add(service, 'last@example.org'))[0], 200)
  })

  test('active users of the account may be sent to, invited ones not yet', async (t) => {
    const { service, core } = await start(t, database)
    await activeUser(service, 'user@example.org', 'basic')
    await invite(service, 'invited@example.org')
    const may = (...addresses: string[]) => haveAgreed(core.store, core.firstAccountId, addresses)
    assert.equal(await may('user@example.org'), true)
    assert.equal(await may('user@example.org', 'invited@example.org'), false)
    assert.equal(await haveAgreed(core.store, 'other', ['user@example.org']), false)
    assert.equal(await may(...Array.from({ length: 1_000 }, (_, at) => `user${at}@example.org`)), false)
  })
})

test('a sandbox domain sends to recipients who have agreed, and to nobody else', async (t) => {
  const { service, core } = await start(t, 'sqlite', { SENDWRIGHT_DELIVERY: 'direct' })
  const row = { account_id: core.firstAccountId, token_digest: null, token_expires_at: 0, created_at: 0 }
  await core.store.commit([
    insert('sandbox_recipients', { ...row, address: 'yes@example.org', is_activated: 1 }),
    insert('sandbox_recipients', { ...row, address: 'asked@example.org', is_activated: 0 }),
  ])
  const send = (to: string) => service.send({ to, 'o:testmode': 'yes' })
  assert.equal((await send('Yes <YES@example.org>')).status, 200)
  for (const to of ['asked@example.org', 'yes@example.org, no@example.org']) {
    const refused = await send(to)
    assert.equal(refused.status, 403)
    assert.match(
      refused.body.message,
      /Sandbox subdomains are for test purposes only\. .* Account Settings\.$/,
    )
  }
})

test('bad addresses are refused', async (t) => {
  const { service } = await start(t, 'sqlite')
  for (const bad of ['no address', 'Ann <ann@example.org>', 'a@example.org,b@example.org', 'a@b\r\nBcc: c@d'])
    assert.deepEqual(await add(service, bad), [400, 'Invalid email address.'])
  assert.deepEqual(await add(service, ''), [400, 'Missing mandatory parameter: email'])
})
