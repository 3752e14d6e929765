import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createTestClock, type TestClock } from '../../../test/support/clock.ts'
import { startClamd, startRspamd, VIRUS } from '../../../test/support/scanners.ts'
import { eventually, ownAddress } from '../../../test/support/service.ts'
import { createSink } from '../../../test/support/smtp-sink.ts'
import { callAs, createSubaccount, startOpened } from '../../../test/support/subaccounts.ts'
import type { Clock } from '../../base/time/clock.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import { createCheckCounts } from './counts.ts'
import { copyDigest } from './digest.ts'
import { type Verdict, verdictOf } from './verdict.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reaches into bodies freely and asserts on what it finds
type Json = any

/** The points that a mail asks for itself: `POINTS=20`. */
function pointsOf(mail: string) {
  const score = Number(/POINTS=3?D?(\d+)/.exec(mail)?.[1] ?? 0)
  return { score, action: 'no action' }
}

async function start(t: TestContext, env: Record<string, string>, overrides: { clock?: Clock } = {}) {
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const opened = await startOpened(
    t,
    {
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
      SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
      ...env,
    },
    overrides,
  )
  return { sink, opened, service: opened.service }
}

type Rig = Awaited<ReturnType<typeof start>>

async function send({ service }: Rig, form: Record<string, string | File | string[]>): Promise<string> {
  const { status, body, text } = await service.send(form)
  assert.equal(status, 200, text)
  return body.id.replace(/[<>]/g, '')
}

const eventOf = ({ service }: Rig, event: string, id: string): Promise<Json> =>
  eventually(`${event} of ${id}`, async () => {
    const found = await service.events(`?event=${event}&message-id=${id}`)
    return found[0]
  })

const deliveries = async ({ service }: Rig, id: string): Promise<Json[]> =>
  (await service.call('GET', `/sendwright/v1/messages/${encodeURIComponent(id)}/deliveries`)).body.items

const heldDelivery = (rig: Rig, id: string): Promise<Json> =>
  eventually(`held: ${id}`, async () => {
    const [one] = await deliveries(rig, id)
    return one?.reason.code === 'content-held' && one
  })

const holds = async ({ service }: Rig): Promise<Json[]> =>
  (await service.call('GET', '/sendwright/v1/content-holds')).body.items

/** What is put back into the queue comes again after a while. */
const passing = (clock: TestClock, what: string, isDone: () => boolean) =>
  eventually(what, async () => {
    if (isDone()) return true
    await clock.advance(50)
    return false
  })

test('mail is tagged, held until the operator decides, or refused; one content is checked once', async (t) => {
  const rspamd = await startRspamd(t, pointsOf)
  const clamd = await startClamd(t)
  const rig = await start(t, {
    SENDWRIGHT_OUTBOUND_CHECK: rspamd.url,
    SENDWRIGHT_OUTBOUND_REFUSE_SCORE: '50',
    SENDWRIGHT_CLAMAV: clamd.url,
  })
  const { service, sink } = rig

  // Three calls and a batch of three: two contents.
  for (const to of ['a@example.org', 'b@example.org', 'c@example.org']) await send(rig, { to, text: 'Same.' })
  await send(rig, {
    to: ['a@example.org', 'b@example.org', 'c@example.org'],
    text: 'Hello %recipient.name%.',
    'recipient-variables': JSON.stringify({
      'a@example.org': { name: 'Ann' },
      'b@example.org': { name: 'Ben' },
      'c@example.org': { name: 'Cleo' },
    }),
  })
  const clean = await sink.waitFor(6)
  assert.equal(rspamd.asked.length, 2)
  assert.equal(clamd.scanned.length, 0)
  assert.ok(clean.every(({ raw }) => !/^x-service-s(?:flag|score)/im.test(raw.toString())))
  assert.equal(rspamd.asked[0]?.headers['user'], rig.opened.core.firstAccountId)

  const tagged = await send(rig, { subject: 'tag', text: 'POINTS=7' })
  const delivered = await eventOf(rig, 'delivered', tagged)
  assert.deepEqual(delivered['content-check'], { action: 'tag', reason: 'score 7', score: 7 })
  const [taggedMail] = (await sink.waitFor(7)).slice(-1)
  assert.match(taggedMail?.raw.toString() ?? '', /^X-Service-Sflag: Yes\r\nX-Service-Sscore: 7\r\n/m)

  const refused = await send(rig, { to: 'refused@example.org', text: 'POINTS=60' })
  const failed = await eventOf(rig, 'failed', refused)
  assert.deepEqual([failed.severity, failed.reason], ['permanent', 'content-refused'])
  const { code, message, description, 'enhanced-code': enhanced } = failed['delivery-status']
  assert.deepEqual(
    [code, message, description, enhanced],
    [608, 'Refused by the content check', 'score 60', '5.7.1'],
  )
  assert.equal((await service.call('GET', `/v3/${service.domain}/bounces/refused@example.org`)).status, 404)
  assert.equal((await deliveries(rig, refused))[0].state, 'rejected')

  const infected = await send(rig, { attachment: new File([VIRUS], 'bill.pdf') })
  assert.equal((await eventOf(rig, 'failed', infected))['delivery-status'].description, 'virus Test-Virus')
  const harmless = await send(rig, { attachment: new File(['harmless'], 'bill.pdf') })
  await eventOf(rig, 'delivered', harmless)
  assert.equal(clamd.scanned.length, 2)

  // Two calls with one content are one decision, which holds for later ones too.
  const held = [
    await send(rig, { text: 'POINTS=20' }),
    await send(rig, { to: 'b@example.org', text: 'POINTS=20' }),
  ]
  for (const id of held) {
    const { next_attempt_at, expires_at } = await heldDelivery(rig, id)
    assert.equal(next_attempt_at, expires_at)
    assert.ok(Date.parse(expires_at) > Date.now() + 6 * 86_400_000)
  }
  const [first, ...others] = await holds(rig)
  assert.deepEqual(others, [])
  const { id: content, held_at, message_id, ...about } = first
  assert.ok(held.includes(message_id))
  assert.deepEqual(about, {
    account_id: rig.opened.core.firstAccountId,
    domain: service.domain,
    from: `Sender <sender@${service.domain}>`,
    subject: 'Hello',
    messages: 2,
    reason: 'score 20',
  })
  const pause = { action: 'pause', filter: { domain: service.domain } }
  assert.equal((await service.call('POST', '/sendwright/v1/queue/actions', { json: pause })).body.matched, 0)
  const released = await service.call('POST', `/sendwright/v1/content-holds/${content}/release`)
  assert.deepEqual(released.body, { messages: 2 })
  for (const id of held)
    assert.equal((await eventOf(rig, 'delivered', id))['content-check'].action, 'released')
  assert.deepEqual(await holds(rig), [])
  await eventOf(rig, 'delivered', await send(rig, { to: 'c@example.org', text: 'POINTS=20' }))

  const dropped = await send(rig, { text: 'POINTS=21' })
  await heldDelivery(rig, dropped)
  const [other] = await holds(rig)
  assert.deepEqual((await service.call('DELETE', `/sendwright/v1/content-holds/${other.id}`)).body, {
    messages: 1,
  })
  await eventually('dropped', async () => (await deliveries(rig, dropped))[0].state === 'cancelled')
  assert.equal((await service.call('DELETE', `/sendwright/v1/content-holds/${other.id}`)).status, 404)
  const again = await send(rig, { text: 'POINTS=21' })
  assert.equal((await eventOf(rig, 'failed', again)).reason, 'content-refused')

  // A subaccount sees its own, and does not decide.
  const account = await createSubaccount(service, 'tenant')
  const asTenant = callAs(service, account)
  assert.deepEqual((await asTenant('GET', '/sendwright/v1/content-holds')).body, { items: [] })
  assert.equal((await asTenant('POST', `/sendwright/v1/content-holds/${other.id}/release`)).status, 403)

  const metrics = (await service.call('GET', '/metrics')).text
  assert.match(metrics, /^sendwright_content_checks_total\{result="hold"\} 5$/m)
  assert.match(
    metrics,
    /^sendwright_scanner_answers_total\{scanner="clamd",directions="outbound inbound",result="answered"\} 2$/m,
  )
  const { body: system } = await service.call('GET', '/sendwright/v1/system')
  assert.deepEqual(
    system.scanners.map(({ scanner, directions, failed: failures }: Json) => [scanner, directions, failures]),
    [
      ['rspamd', ['outbound'], 0],
      ['clamd', ['outbound', 'inbound'], 0],
    ],
  )
  const { body: checks } = await service.call('GET', '/sendwright/v1/system/checks')
  const scanners = checks.items.find(({ name }: Json) => name === 'scanners')
  assert.equal(scanners.state, 'ok', scanners.sentence)

  await service.restart()
  const { clock, firstAccountId: accountId } = rig.opened.core
  const figures = await createCheckCounts(rig.opened.core).figures([accountId], clock.now())
  assert.deepEqual(figures, [{ accountId, domain: service.domain, checked: 13, bad: 8 }])
})

const SLOW = /^SLOW \d+\r?$/m

test('a scanner that is slow delays the mail of nobody else', async (t) => {
  let isBusy = true
  const rspamd = await startRspamd(t, (mail) => (isBusy && SLOW.test(mail) ? null : pointsOf(mail)))
  const rig = await start(t, {
    SENDWRIGHT_OUTBOUND_CHECK: rspamd.url,
    SENDWRIGHT_OUTBOUND_CHECK_TIMEOUT: '5m',
  })
  const { service, sink } = rig
  const name = 'tenant.example'
  const asTenant = callAs(service, await createSubaccount(service, 'tenant'))
  assert.equal((await asTenant('POST', '/v4/domains', { form: { name } })).status, 200)
  const { store } = rig.opened.core
  await store.db.updateTable('domains').set({ state: 'active' }).where('name', '=', name).execute()
  // More contents than an account has turns.
  const slow = await Promise.all(
    Array.from({ length: 24 }, (_, index) => send(rig, { text: `SLOW ${index}` })),
  )
  const waiting = await eventually('waiting', async () => {
    const [one] = await deliveries(rig, slow.at(-1) as string)
    return one?.reason.code === 'content-check' && one
  })
  assert.equal(waiting.attempts, 0)
  const sent = await asTenant('POST', `/v3/${name}/messages`, {
    form: { from: `a@${name}`, to: 'x@example.org', subject: 'tenant', text: 'Quick.' },
  })
  assert.equal(sent.status, 200, sent.text)
  const [first] = await sink.waitFor(1)
  assert.ok(first?.raw.includes('Quick.'))
  await eventually(
    'sixteen turns',
    async () => rspamd.asked.filter(({ mail }) => SLOW.test(mail)).length === 16,
  )
  // Those that were asked never get an answer: a stop gives them up, and the next start asks again.
  isBusy = false
  await service.restart()
  await sink.waitFor(1 + slow.length)
})

test('a scanner that is silent or talks nonsense stops no mail', async (t) => {
  const clock = createTestClock()
  const rspamd = await startRspamd(t, (mail) => {
    if (mail.includes('SILENT')) return null
    if (mail.includes('GARBAGE')) return '{"score": "much", "action": "reject"}'
    if (mail.includes('ENDLESS')) return ' '.repeat(2_000_000)
    if (mail.includes('INFINITE')) return '{"score": 1e999, "action": "reject"}'
    return pointsOf(mail)
  })
  const rig = await start(
    t,
    { SENDWRIGHT_OUTBOUND_CHECK: rspamd.url, SENDWRIGHT_OUTBOUND_CHECK_TIMEOUT: '1m' },
    { clock },
  )
  const { service, sink } = rig
  for (const [index, text] of ['GARBAGE', 'ENDLESS', 'INFINITE', 'SILENT'].entries()) {
    const id = await send(rig, { text })
    await eventually(`asked about ${text}`, async () => rspamd.asked.some(({ mail }) => mail.includes(text)))
    if (text === 'SILENT') await clock.advance(MINUTE_MS)
    await passing(clock, `${text} is sent`, () => sink.messages.length > index)
    assert.equal((await eventOf(rig, 'delivered', id))['content-check'], undefined)
  }
  const { text } = await service.call('GET', '/metrics')
  assert.match(text, /^sendwright_content_checks_total\{result="unchecked"\} 4$/m)
  const { body: system } = await service.call('GET', '/sendwright/v1/system')
  assert.deepEqual(
    system.scanners.map(({ failed, last_error }: Json) => [failed, last_error]),
    [[4, 'no answer within 60 seconds']],
  )
  const { body } = await service.call('GET', '/sendwright/v1/alerts')
  assert.ok(body.items.some(({ name }: Json) => name === 'sendwright:content-check'))
})

test('however many contents an account sends, each waits until it was checked', async (t) => {
  const clock = createTestClock()
  const waiting: (() => void)[] = []
  const rspamd = await startRspamd(
    t,
    (mail) => new Promise((resolve) => waiting.push(() => resolve(pointsOf(mail)))),
  )
  const rig = await start(
    t,
    { SENDWRIGHT_OUTBOUND_CHECK: rspamd.url, SENDWRIGHT_OUTBOUND_CHECK_TIMEOUT: '1m' },
    { clock },
  )
  const contents = 100
  await Promise.all(
    Array.from({ length: contents }, (_, number) =>
      send(rig, { to: `${number}@example.org`, text: `Content ${number}.` }),
    ),
  )
  // An account has sixteen turns: all of them take longer than the time limit of one.
  for (let left = contents; left > 0; left -= 16) {
    const turns = Math.min(16, left)
    await passing(clock, `${turns} asked`, () => waiting.length === turns)
    await clock.advance(MINUTE_MS / 6)
    for (const answer of waiting.splice(0)) answer()
  }
  await passing(clock, 'all sent', () => rig.sink.messages.length === contents)
  assert.equal(rspamd.asked.length, contents)
  assert.match((await rig.service.call('GET', '/metrics')).text, /checks_total\{result="unchecked"\} 0$/m)
})

test('copies whose variables say more than a name are checked as contents of their own', async (t) => {
  const rspamd = await startRspamd(t, pointsOf)
  const rig = await start(t, { SENDWRIGHT_OUTBOUND_CHECK: rspamd.url })
  const { service, sink } = rig
  const names = ['Ann', 'Ben', 'Cleo', 'Dora']
  const variables = names.map((name) => ({
    name,
    link: `https://shop.example/${name}`,
    text: name === 'Dora' ? `POINTS=20 ${'Buy this. '.repeat(20)}` : name,
  }))
  const addresses = names.map((name) => `${name}@example.org`)
  const id = await send(rig, {
    to: addresses,
    text: '%recipient.name%: %recipient.text% %recipient.link%',
    'recipient-variables': JSON.stringify(
      Object.fromEntries(addresses.map((address, at) => [address, variables[at]])),
    ),
  })
  await sink.waitFor(3)
  const codes = () => deliveries(rig, id).then((items) => items.map(({ reason }) => reason.code).sort())
  await eventually('one held', async () => (await codes()).includes('content-held'))
  assert.deepEqual(sink.messages.flatMap(({ envelope }) => envelope.to).sort(), addresses.slice(0, 3))
  assert.equal(rspamd.asked.length, 2)
  const [held] = await holds(rig)
  assert.deepEqual([held.messages, held.reason], [1, 'score 20'])
  assert.equal((await service.call('POST', `/sendwright/v1/content-holds/${held.id}/release`)).status, 200)
  await sink.waitFor(4)
})

test('a message that was being held when its content was decided on follows the decision', async (t) => {
  const rspamd = await startRspamd(t, pointsOf)
  const rig = await start(t, { SENDWRIGHT_OUTBOUND_CHECK: rspamd.url })
  const { service, sink } = rig
  const { store, clock } = rig.opened.core
  const sent = { released: 'POINTS=20', dropped: 'POINTS=21', other: 'POINTS=22' }
  const ids: string[] = []
  for (const text of Object.values(sent)) ids.push(await send(rig, { text }))
  for (const id of ids) await heldDelivery(rig, id)
  // As another node leaves it whose decision was written before the hold.
  const [released, dropped, other] = (await holds(rig)).sort((one, two) => (one.reason < two.reason ? -1 : 1))
  for (const [{ id, account_id }, decision] of [
    [released, 'released'],
    [dropped, 'dropped'],
  ] as const)
    await store.db
      .insertInto('content_decisions')
      .values({ digest: id, account_id, decision, decided_at: Math.floor(clock.now()) })
      .execute()
  await service.call('POST', `/sendwright/v1/content-holds/${other.id}/release`)
  await sink.waitFor(2)
  await eventually('dropped', async () => (await deliveries(rig, ids[1] ?? ''))[0].state === 'cancelled')
  await eventually('carried out', async () => {
    const [row] = await store.read({ sql: 'SELECT count(*) AS n FROM content_holds', values: [] })
    return Number(row?.['n']) === 0
  })
})

test('contents of copies: names and tokens of links do not count, long texts and hosts do', () => {
  const digest = (variables: Record<string, unknown> | null) =>
    copyDigest('0123', { recipient: 'a@example.org', variables })
  const same = [
    null,
    {},
    { name: 'Ann', price: '12.50', email: 'a@example.org', count: 3 },
    { name: 'Zoë Ødegård-Müller', city: 'Llanfairpwllgwyngyll', date: '2026-01-05' },
  ]
  for (const variables of same) assert.equal(digest(variables), '0123', JSON.stringify(variables))
  const link = digest({ link: `https://shop.example/u/${'a'.repeat(300)}` })
  assert.equal(link, digest({ url: 'https://shop.example/u/b' }))
  const others = [
    { link: 'https://other.example/u/b' },
    { host: 'evil.example' },
    { host: 'böse.example' },
    { host: '192.0.2.1' },
    { text: 'x'.repeat(101) },
    Object.fromEntries(Array.from({ length: 10 }, (_, at) => [at, 'y'.repeat(60)])),
    { nested: { deep: ['z'.repeat(101)] } },
  ].map(digest)
  assert.equal(new Set([...others, link, '0123']).size, others.length + 2)
})

/** More contents than an account has turns, whose scanner never answers. */
async function sendToSilence(t: TestContext, failure: string) {
  let isDown = true
  const rspamd = await startRspamd(t, (mail) => (isDown ? null : pointsOf(mail)))
  const rig = await start(t, {
    SENDWRIGHT_OUTBOUND_CHECK: rspamd.url,
    SENDWRIGHT_OUTBOUND_CHECK_TIMEOUT: '1s',
    SENDWRIGHT_OUTBOUND_CHECK_FAILURE: failure,
  })
  const ids: string[] = []
  for (let number = 0; number < 40; number++) ids.push(await send(rig, { text: `Content ${number}.` }))
  const answer = () => {
    isDown = false
  }
  return { rspamd, rig, ids, answer }
}

test('mail waits for a scanner that is down where the operator wants that', async (t) => {
  const { rig, ids, answer } = await sendToSilence(t, 'wait')
  const { service, sink } = rig
  await eventually('all asked or found to be down', async () => {
    const { body } = await service.call('GET', '/sendwright/v1/system')
    return body.scanners[0].failed >= ids.length
  })
  assert.equal(sink.messages.length, 0)
  for (const id of ids) {
    const [{ state, attempts }] = await deliveries(rig, id)
    assert.deepEqual([['queued', 'sending'].includes(state), attempts], [true, 0], state)
  }
  const { body } = await service.call('GET', '/sendwright/v1/alerts')
  const alert = body.items.find(({ name }: Json) => name === 'sendwright:content-check')
  assert.ok(alert, JSON.stringify(body))
  answer()
  await service.restart()
  await sink.waitFor(ids.length)
})

test('nothing waits for a scanner that answers nothing at all', async (t) => {
  const { rspamd, rig, ids } = await sendToSilence(t, 'send')
  await rig.sink.waitFor(ids.length)
  // Sixteen, a text of the service itself, and what came before that had its time.
  assert.ok(rspamd.asked.length < ids.length, `${rspamd.asked.length}`)
})

test('what is done, by points and by what a scorer says itself', () => {
  const thresholds = {
    ...{ outboundTagScore: 6, outboundHoldScore: 15, outboundRefuseScore: 30 },
    virusAction: 'refuse' as const,
  }
  const score = (points: number, isSpam = false, rejects = false) => ({
    score: { score: points, isSpam, rejects },
    virus: undefined,
  })
  const cases: [Parameters<typeof verdictOf>[0], Partial<typeof thresholds> | object, Partial<Verdict>][] = [
    [score(5.9), {}, { level: 'pass', isChecked: true, reason: 'score 5.9' }],
    [score(6), {}, { level: 'tag' }],
    [score(15), {}, { level: 'hold' }],
    [score(30), {}, { level: 'refuse' }],
    [score(30), { outboundRefuseScore: null }, { level: 'hold' }],
    [score(99), { outboundRefuseScore: null, outboundHoldScore: null }, { level: 'tag' }],
    [score(2, true), {}, { level: 'tag' }],
    [score(0, true, true), {}, { level: 'hold' }],
    [score(0, true, true), { outboundHoldScore: null }, { level: 'tag' }],
    [score(2, true), { outboundTagScore: null }, { level: 'pass' }],
    [{ score: null, virus: undefined }, {}, { level: 'pass', isChecked: false, reason: '' }],
    [{ score: undefined, virus: null }, {}, { level: 'pass', isChecked: false }],
    [{ score: undefined, virus: { name: null } }, {}, { level: 'pass', isChecked: true }],
    [{ score: null, virus: { name: 'X' } }, {}, { level: 'refuse', reason: 'virus X', isChecked: true }],
    [{ ...score(40), virus: { name: 'X' } }, { virusAction: 'hold' }, { level: 'hold', score: 40 }],
  ]
  for (const [found, change, expected] of cases) {
    const verdict = verdictOf(found, { ...thresholds, ...change })
    assert.deepEqual({ ...verdict, ...expected }, verdict, JSON.stringify([found, change]))
  }
})
