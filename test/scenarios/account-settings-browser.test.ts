/** The pages of settings in a real browser: subaccounts, limits, allowed addresses, alerts, event sinks. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { afterEach, before, type TestContext, test } from 'node:test'
import { type Dashboard, DESK, PHONE, press, startDashboard, windowHasFocus } from '../support/dashboard.ts'
import { eventually } from '../support/service.ts'

let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext)
})
afterEach(() => dashboard.tidy())

test('subaccounts: one is created, acted for, limited, disabled, enabled and deleted by its name', async () => {
  const { service } = dashboard
  const page = await dashboard.open('/settings/subaccounts', { look: DESK })
  await page.getByText('No subaccounts').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Create a subaccount' }).first().press('Enter')
  const form = page.getByRole('dialog', { name: 'Create a subaccount' })
  await form.getByLabel('Name').fill('Shop')
  await press(page, 'Enter')
  await page.getByRole('heading', { level: 1, name: 'Shop' }).waitFor()
  const id = page.url().split('/').at(-1) ?? ''
  await page.getByText('No limit is set.').waitFor()
  await dashboard.sound(page)

  await page.getByRole('button', { name: 'Set a limit' }).press('Enter')
  await page.getByLabel('Messages in a month').fill('500')
  await press(page, 'Enter')
  await page.getByText('At most 500 messages a month').waitFor()
  await page.getByText('0 of 500 messages').waitFor()
  await page.getByLabel('Previews').press('Space')
  await page.getByText('Previews is on').waitFor()
  await page.getByRole('button', { name: 'Change the limit of Mailing lists' }).press('Enter')
  await page.getByLabel('Allowed in').fill('7')
  await press(page, 'Enter')
  await page.getByText('Limit saved').waitFor()
  const rates = await service.call('GET', `/sendwright/v1/accounts/${id}/rate-limits`)
  assert.equal(rates.body.items.find(({ name }: { name: string }) => name === 'lists').count, 7)
  await page.getByRole('button', { name: 'Disable' }).press('Enter')
  await page.getByLabel('Reason').fill('Not paid')
  await dashboard.sound(page)
  await press(page, 'Enter')
  await page.getByText('Shop is disabled').waitFor()
  await page.getByText('Not paid').waitFor()
  const read = async () => (await service.call('GET', `/v5/accounts/subaccounts/${id}`)).body.subaccount
  assert.equal((await read()).status, 'disabled')
  assert.equal((await read()).features.email_preview.enabled, true)
  await page.getByRole('button', { name: 'Enable' }).press('Enter')
  await page.getByText('Shop may send again').waitFor()

  await page.goto(`${service.url}/settings/subaccounts?q=sho`)
  await page.getByRole('button', { name: 'Act for it: Shop' }).press('Enter')
  const strip = page.getByRole('complementary', { name: 'Account' })
  await strip.getByText('Acting for Shop.').waitFor()
  await dashboard.sound(page)
  await strip.getByRole('button', { name: 'Stop acting for it' }).press('Enter')
  await strip.waitFor({ state: 'detached' })

  await page.goto(`${service.url}/settings/subaccounts/${id}`)
  await page.getByRole('button', { name: 'Delete' }).press('Enter')
  const ask = page.getByRole('dialog', { name: 'Delete this subaccount for good?' })
  assert.equal(await ask.getByRole('button', { name: 'Delete' }).isDisabled(), true)
  await ask.getByLabel('Type Shop to confirm').fill('Shop')
  await press(page, 'Enter')
  await page.getByText('Shop deleted').waitFor()
  await page.getByText('No subaccounts').waitFor()
  assert.equal((await read()).status, 'closed')
})

test('limits of the account: set, changed, removed, with a way back', async () => {
  const page = await dashboard.open('/settings/limits', { look: PHONE })
  await page.getByRole('button', { name: 'Set a limit' }).tap()
  await page.getByLabel('Messages in a month').fill('999')
  await press(page, 'Enter')
  await page.getByText('The limit parameter minumum is 1000').waitFor()
  await page.getByLabel('Messages in a month').fill('20000')
  await press(page, 'Enter')
  await page.getByText('of 20,000 messages').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Remove the limit' }).tap()
  await page.getByText('No limit is set.').waitFor()
  await page.getByRole('button', { name: 'Undo' }).tap()
  await page.getByText('of 20,000 messages').waitFor()
  await page.getByRole('button', { name: 'Remove the limit' }).tap()
  await page.getByText('No limit is set.').waitFor()
})

test('unknown parameters: refused, and let pass again', async () => {
  const { service } = dashboard
  const status = async () => (await service.call('GET', '/v4/domains?limt=1')).status
  const page = await dashboard.open('/settings/limits', { look: DESK })
  const choice = page.getByLabel('Refuse calls with unknown parameters')
  await choice.press('Space')
  await page.getByText('Calls with unknown parameters are refused').waitFor()
  assert.equal(await status(), 400)
  await page.reload()
  assert.equal(await choice.isChecked(), true)
  await dashboard.sound(page)
  await choice.press('Space')
  await page.getByText('Unknown parameters are ignored').waitFor()
  assert.equal(await status(), 200)
})

test('allowed addresses: one that shuts the reader out needs consent, one that does not is added at once', async () => {
  const { service } = dashboard
  const listed = async () =>
    ((await service.call('GET', '/v2/ip_whitelist')).body.addresses as { ip_address: string }[]).map(
      ({ ip_address }) => ip_address,
    )
  const page = await dashboard.open('/settings/addresses', { look: DESK })
  await page.getByText('Every address may call').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Allow an address' }).first().press('Enter')
  const form = page.getByRole('dialog', { name: 'Allow an address' })
  await form.getByLabel('Address or network').fill('192.0.2.0/24')
  await form.getByText(/Your own address 127\.\S+ would not be in the list/).waitFor()
  assert.equal(await form.getByRole('button', { name: 'Allow it' }).isDisabled(), true)
  await dashboard.sound(page)
  await form.getByLabel('Address or network').fill('127.0.0.0/8')
  await form.getByText('This is the first entry').waitFor()
  await form.getByLabel('I know that, do it').press('Space')
  await form.getByRole('button', { name: 'Allow it' }).press('Enter')
  await page.getByText('You are here').waitFor()
  await page.getByRole('button', { name: 'Allow an address' }).press('Enter')
  await form.getByLabel('Address or network').fill('192.0.2.0/24')
  await form.getByLabel('What is there').fill('Office')
  await form.getByRole('button', { name: 'Allow it' }).press('Enter')
  await page.getByText('Office').waitFor()
  assert.deepEqual(await listed(), ['127.0.0.0/8', '192.0.2.0/24'])
  await page.getByRole('button', { name: 'Change 192.0.2.0/24' }).press('Enter')
  await page.getByLabel('What is there').fill('Old office')
  await press(page, 'Enter')
  await page.getByText('Old office').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Remove 127.0.0.0/8' }).press('Enter')
  const ask = page.getByRole('dialog', { name: 'Remove this address?' })
  await ask.getByText(/Your own address/).waitFor()
  await ask.getByRole('button', { name: 'Cancel' }).press('Enter')
  for (const address of ['192.0.2.0/24', '127.0.0.0/8']) {
    await page.getByRole('button', { name: `Remove ${address}` }).press('Enter')
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).press('Enter')
    await page.getByText(`${address} removed`).waitFor()
  }
  assert.deepEqual(await listed(), [])
})

test('alerts: one is created, changed and deleted, and a channel is added; a wrong one says why', async () => {
  const { service } = dashboard
  const alerts = async () => (await service.call('GET', '/v1/thresholds/alerts/send')).body.items
  const page = await dashboard.open('/settings/alerts', { look: PHONE })
  await page.getByRole('table', { name: 'Alerts' }).or(page.getByText('Nothing is wrong')).waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Create an alert' }).tap()
  const form = page.getByRole('dialog', { name: 'Create an alert' })
  await form.getByLabel('Name').fill('Bounces')
  await form.getByLabel('Limit in percent').fill('400')
  await form.getByRole('checkbox', { name: 'Slack' }).tap()
  await dashboard.sound(page)
  await form.getByRole('button', { name: 'Create' }).tap()
  await form.getByRole('alert').waitFor()
  await form.getByLabel('Limit in percent').fill('2.5')
  await form.getByRole('button', { name: 'Create' }).tap()
  await page.getByText('Bounces above 2.5% over a day, for each domain').waitFor()
  const [alert] = await alerts()
  assert.deepEqual([alert.limit, alert.alert_channels], ['0.025', ['email', 'slack']])
  await dashboard.sound(page)
  await page.getByRole('link', { name: 'Bounces' }).tap()
  await page.getByRole('dialog').getByLabel('Rate').selectOption('complained_rate')
  await page.getByRole('button', { name: 'Save' }).tap()
  await page.getByText('Complaints above 2.5% over a day, for each domain').waitFor()
  await page.getByRole('button', { name: 'Delete Bounces' }).tap()
  await page.getByText('No alerts', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Undo' }).tap()
  await page.getByText('The alert is back').waitFor()
  assert.equal((await alerts())[0].metric, 'complained_rate')
  await page.getByRole('button', { name: 'Delete Bounces' }).tap()
  await page.getByText('No alerts', { exact: true }).waitFor()

  await page.getByText('Channels', { exact: true }).click()
  await page.getByRole('button', { name: 'Add a channel' }).first().tap()
  const channel = page.getByRole('dialog', { name: 'Add a channel' })
  await channel.getByLabel('Email addresses').fill('ops@example.org')
  await dashboard.sound(page)
  await channel.getByRole('button', { name: 'Save' }).tap()
  await page.getByText('ops@example.org').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Remove the channel of Alerts and checks' }).tap()
  await page.getByText('No channels', { exact: true }).waitFor()
})

test('an event sink is added by keyboard, says in words why it fails, is paused, resumed and removed', async (t) => {
  const { service } = dashboard
  const page = await dashboard.open('/settings/event-sinks')
  await page.getByText('No event sinks').waitFor()
  await page.getByRole('button', { name: 'Add an event sink' }).first().press('Enter')
  const form = page.getByRole('dialog', { name: 'Add an event sink' })
  await windowHasFocus(page)
  await form.getByLabel('Name', { exact: true }).fill('collector')
  await form.getByLabel('Kind').selectOption('syslog')
  assert.equal(await form.getByRole('button', { name: 'Add it' }).isDisabled(), true)
  await form.getByLabel('Server').fill('127.0.0.1:9')
  await form.getByLabel('Only these events').fill('accepted, delivered')
  await dashboard.sound(page)
  await press(page, 'Enter')
  await page.getByText('collector gets events from now on').waitFor()
  await service.send({ to: 'alice@example.org' })
  const row = page.getByRole('row').filter({ hasText: 'collector' })
  await row.getByText('Nothing listens there.').waitFor()
  await row.getByText('Takes nothing').waitFor()

  await page.getByRole('button', { name: 'Pause collector' }).press('Enter')
  await row.getByText('Paused').waitFor()
  const lines: string[] = []
  const receiver = createServer((socket) => void socket.on('data', (data) => lines.push(String(data))))
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  t.after(() => receiver.close())
  await row.getByRole('link', { name: 'collector' }).press('Enter')
  const change = page.getByRole('dialog', { name: 'collector' })
  await change.getByLabel('Server').fill(`127.0.0.1:${(receiver.address() as { port: number }).port}`)
  await press(page, 'Enter')
  await page.getByText('Event sink saved').waitFor()
  const read = async () => (await service.call('GET', '/sendwright/v1/event-sinks/collector')).body
  assert.deepEqual([(await read()).paused, (await read()).events], [true, ['accepted', 'delivered']])
  await page.getByRole('button', { name: 'Resume collector' }).press('Enter')
  await row.getByText('Takes events').waitFor()
  await row.getByText('last').waitFor()
  await eventually('it has both', async () => /accepted.*delivered/s.test(lines.join('')))

  await page.getByRole('button', { name: 'Remove collector' }).press('Enter')
  await page
    .getByRole('dialog', { name: 'Remove this event sink?' })
    .getByRole('button', { name: 'Remove' })
    .press('Enter')
  await page.getByText('No event sinks').waitFor()
})

test('each of these pages in the other look', async () => {
  const pages = [
    { path: '/settings/subaccounts', look: PHONE },
    { path: '/settings/addresses', look: PHONE },
    { path: '/settings/limits', look: DESK },
    { path: '/settings/event-sinks?add=yes', look: PHONE },
    { path: '/settings/alerts?view=alerts&add=yes', look: DESK },
  ]
  for (const { path, look } of pages) {
    const page = await dashboard.open(path, { look })
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.waitForLoadState('networkidle')
    await dashboard.sound(page)
  }
})
