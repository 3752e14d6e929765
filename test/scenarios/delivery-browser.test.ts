/** The page of the queue in a real browser: what waits, and actions that count first. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { afterEach, before, type TestContext, test } from 'node:test'
import { chooseOption, type Dashboard, LOOKS, PHONE, press, startDashboard } from '../support/dashboard.ts'
import { startRspamd } from '../support/scanners.ts'
import { eventually } from '../support/service.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

let dashboard: Dashboard
let sink: Sink
before(async (t) => {
  sink = await createSink()
  ;(t as TestContext).after(() => sink.close())
  sink.on('RCPT TO', '451 4.3.0 not now')
  const rspamd = await startRspamd(t as TestContext)
  dashboard = await startDashboard(t as TestContext, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_OUTBOUND_CHECK: rspamd.url,
  })
})
afterEach(() => dashboard.tidy())

interface Waiting {
  domain: string
  queued: number
  deferred: number
  paused: number
}

const destinations = async () =>
  (await dashboard.service.call('GET', '/sendwright/v1/queue/domains')).body.recipient as Waiting[]

const destination = async (domain: string) => (await destinations()).find((each) => each.domain === domain)

/** Sends to these addresses, and waits until each has been refused for now. */
async function deferMail(domain: string, count: number) {
  const to = Array.from({ length: count }, (_, n) => `reader${n}@${domain}`)
  assert.equal((await dashboard.service.send({ to })).status, 200)
  await eventually('deferred', async () => (await destination(domain))?.deferred === count || null)
}

test('what waits by lane, destination and sending domain; nothing is found with another name', async () => {
  await deferMail('shown.example', 2)
  for (const look of LOOKS) {
    const page = await dashboard.open('/delivery', { look })
    await page.getByRole('heading', { level: 1, name: 'Delivery' }).waitFor()
    await page.getByText('from any address').first().waitFor()
    await page.getByText('2 messages deferred before, waiting for the next attempt').waitFor()
    await dashboard.sound(page)
    await page.getByText('Destinations').click()
    await page.getByRole('link', { name: 'shown.example' }).waitFor()
    assert.equal(new URL(page.url()).searchParams.get('view'), 'destinations')
    await dashboard.sound(page)
    await page.getByText('Sending domains').click()
    await page.getByRole('link', { name: dashboard.service.domain }).waitFor()
    await page.getByLabel('Find a queue, provider or domain').fill('nowhere')
    await page.getByText('Nothing here has “nowhere” in its name').waitFor()
    await dashboard.sound(page)
  }
})

test('queues of one provider stand together under its name, each with why it waits', async () => {
  await deferMail('grouped.example', 1)
  const page = await dashboard.open('/delivery', { own: true })
  await page.route('**/sendwright/v1/queue/lanes', async (route) => {
    const [lane] = (await (await route.fetch()).json()).items
    const at = (source: string, site: string, provider: string, queued: number, due: number) => ({
      ...{ ...lane, source, site, provider, queued, due, lane: `${source} ${site}` },
      ...{ deferred: queued - due, backed_off_until: null, blocked: null, connections: 0, paused: 0 },
    })
    const items = [
      at('192.0.2.1', 'google', 'Gmail', 4, 4),
      at('any', 'yahoo', 'Yahoo', 5, 0),
      at('192.0.2.2', 'google', 'Gmail', 3, 0),
    ]
    await route.fulfill({ json: { items } })
  })
  await page.reload()
  await page.getByRole('columnheader', { name: 'Gmail: 2 queues, 7 waiting' }).waitFor()
  const rows = await page.locator('.lanes-table tbody tr').allInnerTexts()
  const order = rows.map((text) => /Gmail: 2|192\.0\.2\.\d|any address/.exec(text)?.[0])
  assert.deepEqual(order, ['Gmail: 2', '192.0.2.1', '192.0.2.2', 'any address'])
  assert.match(rows[1] ?? '', /Due: waits for a connection or its rate/)
  assert.match(rows[2] ?? '', /3 messages deferred before/)
  await dashboard.sound(page)
})

test('by keyboard: pause the mail of a destination, with its number first, and take that back', async () => {
  await deferMail('paused.example', 3)
  const page = await dashboard.open('/delivery?view=destinations&q=paused.example')
  await page.getByRole('link', { name: 'paused.example' }).waitFor()
  await press(page, 'j', 'Enter')
  const dialog = page.getByRole('dialog', { name: 'Act on the queue' })
  await dialog.getByText('Stops 3 messages to paused.example.').waitFor()
  await dashboard.sound(page)
  assert.equal((await destination('paused.example'))?.paused, 0, 'counting changes nothing')
  await dialog.getByRole('button', { name: 'Pause: 3 messages' }).press('Enter')
  await page.getByText('Paused 3 messages').waitFor()
  await eventually('paused', async () => (await destination('paused.example'))?.paused === 3 || null)
  await page.getByRole('button', { name: 'Undo' }).press('Enter')
  await page.getByText('Resumed 3 messages').waitFor()
  await eventually('resumed', async () => (await destination('paused.example'))?.paused === 0 || null)
})

test('by touch on a phone: drop the mail of a destination, once the number is typed', async () => {
  await deferMail('dropped.example', 2)
  const page = await dashboard.open('/delivery?view=destinations&q=dropped.example', { look: PHONE })
  await page.getByRole('link', { name: 'dropped.example' }).tap()
  const dialog = page.getByRole('dialog', { name: 'Act on the queue' })
  await dialog.getByRole('radio', { name: /^Drop/ }).tap()
  await dialog.getByText('Cancels 2 messages to dropped.example. This cannot be undone.').waitFor()
  const button = dialog.getByRole('button', { name: 'Drop: 2 messages' })
  assert.equal(await button.isDisabled(), true)
  await dialog.getByLabel('Type drop 2 to confirm').fill('drop 2')
  await dashboard.sound(page)
  await button.tap()
  await page.getByText('Dropped 2 messages').waitFor()
  await page.getByText('Nothing here has “dropped.example” in its name').waitFor()
  assert.equal(await destination('dropped.example'), undefined)
})

test('retry and move: what is refused says why, and what is retried arrives', async () => {
  await deferMail('later.example', 1)
  const page = await dashboard.open('/delivery?act=move&recipient_domain=later.example')
  const dialog = page.getByRole('dialog', { name: 'Act on the queue' })
  await dialog.getByText('Choose the pool.').waitFor()
  await chooseOption(dialog.getByLabel('To the pool'), 'Shared')
  await dialog.getByText('shared is not a valid IP pool').waitFor()
  sink.clearRules()
  await dialog.getByRole('radio', { name: /^Retry now/ }).check()
  await dialog.getByRole('button', { name: 'Retry now: 1 message' }).click()
  await page.getByText('1 message due now').waitFor()
  const arrived = await sink.waitFor(1)
  assert.ok(arrived.some(({ envelope }) => envelope.to.includes('reader0@later.example')))
  sink.on('RCPT TO', '451 4.3.0 not now')
})

test('what the content check keeps is sent when the operator says so', async () => {
  const to = 'reader@held.example'
  assert.equal((await dashboard.service.send({ to, subject: 'Offer', text: 'BUY NOW' })).status, 200)
  const holds = async () =>
    (await dashboard.service.call('GET', '/sendwright/v1/content-holds')).body.items as unknown[]
  await eventually('held', async () => (await holds()).length === 1)
  const page = await dashboard.open('/delivery')
  await page.getByRole('heading', { name: 'Kept by the content check' }).waitFor()
  await page.getByText('score 15.3').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Send “Offer”' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Send' }).click()
  await page.getByText('1 message on the way').waitFor()
  await page.getByRole('heading', { name: 'Kept by the content check' }).waitFor({ state: 'detached' })
  await eventually('tried', async () => (await destination('held.example'))?.deferred === 1)
})

test('the operator sees the replies that no rule knows, others do not', async () => {
  sink.on('RCPT TO:<first@unknown.example>', '550 5.0.0 Nope, ticket A-77')
  sink.on('RCPT TO:<second@unknown.example>', '550 5.0.0 Nope, ticket B-78')
  const to = ['first@unknown.example', 'second@unknown.example']
  assert.equal((await dashboard.service.send({ to })).status, 200)
  const { items } = await eventually('both are counted', async () => {
    const { body } = await dashboard.service.call('GET', '/sendwright/v1/unknown-replies')
    return body.items.find(({ text }: { text: string }) => text.includes('Nope'))?.count === 2 && body
  })
  assert.ok(items.some(({ text }: { text: string }) => text === '550 5.0.0 Nope, ticket #'))
  for (const look of LOOKS) {
    const page = await dashboard.open('/delivery', { look })
    await page.getByRole('heading', { name: 'Replies that no rule knows' }).waitFor()
    await page.getByText('550 5.0.0 Nope, ticket #').waitFor()
    await dashboard.sound(page)
  }
  const child = await dashboard.service.call('POST', '/v5/accounts/subaccounts?name=unknown-replies')
  const asked = await dashboard.service.call('GET', '/sendwright/v1/unknown-replies', {
    headers: { 'x-service-on-behalf-of': child.body.subaccount.id },
  })
  assert.equal(asked.status, 403)
})

test('a reader sees the queue and no action', async () => {
  await deferMail('read.example', 1)
  const { body } = await dashboard.service.call('POST', '/v1/keys', { form: { role: 'basic' } })
  const page = await dashboard.open('/delivery?view=destinations&act=drop', { key: body.key.secret })
  await page.getByText('read.example').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Act on the queue' }).count(), 0)
  assert.equal(await page.getByRole('dialog').count(), 0)
  assert.equal(await page.getByRole('link', { name: 'read.example' }).count(), 0)
})

const laneNow = async () =>
  (await dashboard.service.call('GET', '/sendwright/v1/queue/lanes')).body.items.find(
    ({ site }: { site: string }) => site === 'relay:default',
  )

test('by keyboard: all mail to a destination is stopped, also what comes later, and resumed', async () => {
  await deferMail('held.example', 1)
  const page = await dashboard.open('/delivery')
  await page.getByRole('button', { name: 'Stop mail to any/relay:default' }).press('Enter')
  const form = page.getByRole('dialog', { name: 'Stop all mail to relay default' })
  await form.getByLabel('Reason, for your colleagues').fill('They asked us to')
  await dashboard.sound(page)
  await press(page, 'Enter')
  await page.getByText('Mail to relay default is stopped').waitFor()
  await page.getByText('They asked us to').waitFor()
  await dashboard.sound(page)
  const { id } = (await dashboard.service.send({ to: 'later@held.example' })).body
  await eventually('kept', async () => {
    const path = `/sendwright/v1/messages/${encodeURIComponent(id)}/deliveries`
    const { items } = (await dashboard.service.call('GET', path)).body
    return items[0]?.reason.code === 'provider-paused'
  })
  await page.getByRole('button', { name: 'Resume mail to any/relay:default' }).press('Enter')
  await page.getByText('Mail to relay default leaves again').waitFor()
  assert.equal((await laneNow()).override, null)
})

test('by touch on a phone: a lane gets another rate, which is seen and reset', async () => {
  await deferMail('fast.example', 1)
  const page = await dashboard.open('/delivery', { look: PHONE })
  await page.getByRole('button', { name: 'Change the limits of any/relay:default' }).tap()
  const form = page.getByRole('dialog', { name: 'Limits of relay default' })
  await form.getByLabel('Messages').fill('6000')
  await dashboard.sound(page)
  await form.getByRole('button', { name: 'Save' }).tap()
  await page.getByText('Limits of relay default changed').waitFor()
  assert.equal((await laneNow()).set_limits.messages_per_second, 100)
  await page.getByRole('button', { name: 'Reset the limits of any/relay:default' }).tap()
  await page.getByText('relay default has the set limits again').waitFor()
  assert.equal((await laneNow()).override, null)
})

test('the providers: limits in force, one is stopped for a while, and a domain that has none', async () => {
  const phone = await dashboard.open('/delivery/providers?q=google', { look: PHONE })
  await phone.getByRole('button', { name: 'Stop mail to Gmail and Google Workspace' }).waitFor()
  await dashboard.sound(phone)
  const page = await dashboard.open('/delivery/providers?q=google')
  await page.getByRole('button', { name: 'Stop mail to Gmail and Google Workspace' }).press('Enter')
  const form = page.getByRole('dialog', { name: 'Stop all mail to Gmail and Google Workspace' })
  await form.getByLabel('Until').selectOption('3600')
  await form.getByRole('button', { name: 'Stop all mail' }).press('Enter')
  await page.getByText('Mail to Gmail and Google Workspace is stopped').waitFor()
  await page.getByText('until', { exact: false }).first().waitFor()
  await page.getByRole('button', { name: 'Change the limits of Gmail and Google Workspace' }).press('Enter')
  const limits = page.getByRole('dialog', { name: 'Limits of Gmail and Google Workspace' })
  await limits
    .getByText(/Empty: as set, /)
    .first()
    .waitFor()
  await limits.getByLabel('Connections at a time').fill('2000')
  await limits.getByRole('button', { name: 'Save' }).press('Enter')
  await limits.getByRole('alert').waitFor()
  await limits.getByLabel('Connections at a time').fill('40')
  await limits.getByRole('button', { name: 'Save' }).press('Enter')
  await page.getByText('Limits of Gmail and Google Workspace changed').waitFor()
  await page.getByText('ordered').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Resume mail to Gmail and Google Workspace' }).press('Enter')
  await page.getByText('Mail to Gmail and Google Workspace leaves again').waitFor()
  await page.getByRole('button', { name: 'Reset the limits of Gmail and Google Workspace' }).press('Enter')
  await page.getByText('Gmail and Google Workspace has the set limits again').waitFor()
  const stop = async (reason: string) => {
    await page.getByRole('button', { name: 'Stop a provider or domain' }).press('Enter')
    await page.getByLabel('Site or domain').fill('Slow.example')
    await page.getByLabel('Reason, for your colleagues').fill(reason)
    await press(page, 'Enter')
    await page.getByText('Mail to slow.example is stopped').last().waitFor()
  }
  const undo = () => page.getByRole('button', { name: 'Undo' }).last().press('Enter')
  await stop('They asked us to')
  await page.getByRole('textbox', { name: 'Find a provider' }).fill('slow')
  await page.getByRole('cell', { name: 'They asked us to' }).waitFor()
  await stop('Another reason')
  await page.getByRole('cell', { name: 'Another reason' }).waitFor()
  await undo()
  await page.getByRole('cell', { name: 'They asked us to' }).waitFor()
  await page.getByRole('button', { name: 'Resume mail to slow.example' }).press('Enter')
  await page.getByText('No provider has “slow” in its name').waitFor()
  await stop('By mistake')
  await page.getByRole('cell', { name: 'By mistake' }).waitFor()
  await undo()
  await page.getByText('No provider has “slow” in its name').waitFor()
  await dashboard.sound(page)
})
