// Both databases: events are found by their index, and are in partitions.
/** How long data is kept, as an account or a domain has set it: the operations, and the jobs that remove. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../support/clock.ts'
import { eachDatabase } from '../support/databases.ts'
import { runJobAfter } from '../support/jobs.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reaches into bodies freely and asserts on what it finds
type Json = any

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
const ACCOUNT = '/sendwright/v1/retention'
const ofDomain = (name: string) => `/sendwright/v1/domains/${name}/retention`
const kindOf = (body: Json, kind: string) => body.items.find((item: Json) => item.kind === kind)

const OTHER = 'other.example'

async function addDomain(service: TestService): Promise<void> {
  const made = await service.call('POST', '/v4/domains', { form: { name: OTHER } })
  assert.equal(made.status, 200, made.text)
}

test('an account keeps less than the service allows, and a domain decides for itself', async (t) => {
  const service = await startTestService(t)
  const { call } = service
  const own = ofDomain(service.domain)

  const { body } = await call('GET', ACCOUNT)
  assert.deepEqual(kindOf(body, 'events'), {
    kind: 'events',
    title: 'Events',
    personal: 'recipient, sender and subject; for opens and clicks the IP address and the browser',
    tables: ['events', 'event_index', 'event_tags', 'event_segments'],
    days: 30,
    since: 'they happened',
    source: 'service',
    setting: 'SENDWRIGHT_EVENT_RETENTION_DAYS',
    own_days: null,
    min_days: 3,
    max_days: 30,
  })
  const set = await call('PUT', ACCOUNT, { json: { messages: 0, events: '10' } })
  assert.equal(set.status, 200, set.text)
  assert.deepEqual([kindOf(set.body, 'messages').days, kindOf(set.body, 'events').days], [0, 10])
  const inherited = kindOf((await call('GET', own)).body, 'messages')
  assert.deepEqual([inherited.days, inherited.source, inherited.own_days], [0, 'account', null])
  const longer = await call('PUT', own, { form: { messages: '7', dialogues: '2' } })
  assert.deepEqual([longer.status, kindOf(longer.body, 'messages').source], [200, 'domain'])
  assert.equal(kindOf((await call('GET', ACCOUNT)).body, 'messages').days, 0, 'of the domain alone')
  const back = await call('PUT', own, { json: { messages: 'default' } })
  assert.deepEqual([kindOf(back.body, 'messages').days, kindOf(back.body, 'dialogues').days], [0, 2])

  for (const json of [
    { messages: 8 },
    { events: 2 },
    { events: 31 },
    { dialogues: 0 },
    { messages: -1 },
    { events: '5.5' },
  ]) {
    const refused = await call('PUT', ACCOUNT, { json })
    assert.equal(refused.status, 400, JSON.stringify(json))
    assert.match(refused.body.message, /from \d+ to \d+ days, or default$/)
  }
  const unknown = await call('PUT', ofDomain('nobody.example'), { json: { events: 5 } })
  assert.deepEqual([unknown.status, unknown.body], [404, { message: 'Domain not found' }])

  const policy = await call('GET', `${own}/policy`)
  assert.match(policy.headers.get('content-type') ?? '', /^text\/plain/)
  assert.match(policy.text, new RegExp(`we send from ${service.domain}`))
  assert.match(policy.text, /Events: .*for 10 days/)
  assert.match((await call('GET', `${ACCOUNT}/policy`)).text, /^What we store/)
  const { items } = (await call('GET', '/sendwright/v1/audit?action=retention.set')).body as Json
  assert.deepEqual(items.at(-1).detail, { messages: 0, events: 10 })
})

eachDatabase((database) =>
  test('mail that is not kept goes when its last recipient is finished, events when they are too old', async (t) => {
    const clock = createTestClock()
    const ticking = setInterval(() => void clock.advance(10), 5)
    t.after(() => clearInterval(ticking))
    const service = await startTestService(
      t,
      {},
      { clock, database, restingJobs: ['sizes', 'event-retention'] },
    )
    const { call } = service
    await addDomain(service)
    assert.equal(
      (await call('PUT', ofDomain(service.domain), { json: { messages: 0, events: 3 } })).status,
      200,
    )
    // An hour and an account that keeps mail for a day do not matter to it.
    assert.equal((await call('PUT', ACCOUNT, { json: { messages: 1 } })).status, 200)
    const fault = { stage: 'rcpt', recipient: 'slow@example.org', reply: '450 4.2.2 mailbox full' }
    assert.equal((await call('PUT', '/sendwright/v1/inbox/faults', { json: [fault] })).status, 200)

    const send = async (domain: string, form: Record<string, string | string[]>) => {
      const from = `sender@${domain}`
      const mail = { from, subject: 'Hello', text: 'Hi.', ...form }
      const answer = await call('POST', `/v3/${domain}/messages`, { form: mail })
      assert.equal(answer.status, 200, answer.text)
      const id = answer.body.id.slice(1, -1) as string
      const [event] = await eventually('accepted', async () => {
        const found = (await service.events(`?event=accepted&message-id=${id}`, domain)) as Json[]
        return found.length > 0 && found
      })
      return { id, path: new URL(event.storage.url).pathname }
    }
    const isStored = async ({ path }: { path: string }) => (await call('GET', path)).status === 200
    const delivered = ({ id }: { id: string }, domain: string, count = 1) =>
      eventually(`delivered ${id}`, async () => {
        const found = await service.events(`?event=delivered&message-id=${id}`, domain)
        return found.length === count
      })
    const plain = await send(service.domain, { to: 'alice@example.org' })
    const open = await send(service.domain, { to: ['alice@example.org', 'slow@example.org'] })
    const batch = await send(service.domain, {
      to: ['alice@example.org', 'bob@example.org'],
      'recipient-variables': '{"alice@example.org": {"n": 1}, "bob@example.org": {"n": 2}}',
    })
    const elsewhere = await send(OTHER, { to: 'alice@example.org' })
    await delivered(plain, service.domain)
    await delivered(open, service.domain)
    await delivered(batch, service.domain, 2)
    await delivered(elsewhere, OTHER)
    const mails = [plain, open, batch, elsewhere]
    await runJobAfter(service, clock, 'finished-messages', 2 * MINUTE_MS)
    assert.deepEqual(
      await Promise.all(mails.map(isStored)),
      [false, true, false, true],
      'one recipient still waits',
    )
    assert.equal((await service.events('?event=delivered')).length, 4, 'their events stay')

    await call('PUT', '/sendwright/v1/inbox/faults', { json: [] })
    clock.leap(60 * MINUTE_MS)
    await delivered(open, service.domain, 2)
    await runJobAfter(service, clock, 'finished-messages', 2 * MINUTE_MS)
    assert.deepEqual(await Promise.all(mails.map(isStored)), [false, false, false, true])
    await runJobAfter(service, clock, 'message-retention', DAY_MS + 20 * MINUTE_MS)
    assert.equal(await isStored(elsewhere), false, 'a day, as the account says')
  }),
)
