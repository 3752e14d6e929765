/** The pages of settings in a real browser: keys, users, audit log, system. */
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import { type Dashboard, DESK, LOOKS, PHONE, press, startDashboard } from '../support/dashboard.ts'

let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext)
})

interface ListedKey {
  description: string
  role: string
}

const keys = async () => (await dashboard.service.call('GET', '/v1/keys')).body.items as ListedKey[]

test('by keyboard: a key is created, its secret is shown once and works, and it is deleted', async () => {
  const { service } = dashboard
  const page = await dashboard.open('/settings')
  await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor()
  await dashboard.sound(page)
  await press(page, 'j', 'Enter')
  await page.getByRole('heading', { level: 1, name: 'API keys' }).waitFor()
  await page.getByRole('button', { name: 'Create a key' }).press('Enter')
  const form = page.getByRole('dialog', { name: 'Create a key' })
  await form.getByLabel('What is it for').waitFor()
  await page.keyboard.type('Shop')
  await press(page, 'Tab')
  await form.getByLabel('Role').selectOption('basic')
  await dashboard.sound(page)
  await press(page, 'Enter')
  await form.getByRole('button', { name: 'Create the key' }).press('Enter')
  const shown = page.getByRole('dialog', { name: 'The key' })
  const secret = await shown.locator('code').textContent()
  await dashboard.sound(page)
  assert.equal((await service.call('GET', '/v4/domains', { key: secret })).status, 200)
  await shown.getByRole('button', { name: 'I have copied it' }).press('Enter')
  await page.getByText('Shop').waitFor()
  assert.equal((await page.content()).includes(String(secret)), false)
  await page.getByRole('button', { name: 'Delete the key Shop' }).press('Enter')
  await page
    .getByRole('dialog', { name: 'Delete this key?' })
    .getByRole('button', { name: 'Delete' })
    .waitFor()
  await dashboard.sound(page)
  await press(page, 'Enter')
  await page.getByText('Key deleted').waitFor()
  assert.deepEqual(
    (await keys()).filter(({ description }) => description === 'Shop'),
    [],
  )
})

test('by touch on a phone: a sending key for one domain', async () => {
  const page = await dashboard.open('/settings/keys', { look: PHONE })
  await page.getByRole('button', { name: 'Create a key' }).tap()
  const form = page.getByRole('dialog', { name: 'Create a key' })
  await form.getByLabel('What is it for').fill('Printer')
  await form.getByLabel('Role').selectOption('sending')
  await form.getByLabel('Domain').selectOption(dashboard.service.domain)
  await dashboard.sound(page)
  await form.getByRole('button', { name: 'Create the key' }).tap()
  await page.getByRole('button', { name: 'I have copied it' }).tap()
  await page.getByText(`sending, ${dashboard.service.domain}`).waitFor()
  await dashboard.sound(page)
  assert.equal((await keys()).find(({ description }) => description === 'Printer')?.role, 'sending')
})

test('a user is invited, gets another role with a way back, and is removed', async () => {
  const { service } = dashboard
  const user = async () => (await service.call('GET', '/v5/users')).body.users.at(-1)
  for (const look of LOOKS) {
    const page = await dashboard.open('/settings/users?add=yes', { look })
    const form = page.getByRole('dialog', { name: 'Invite a user' })
    await form.getByLabel('Email address').fill('not an address')
    await form.getByLabel('Name').fill('Grace')
    await form.getByLabel('Email address').fill('grace@example.org')
    await dashboard.sound(page)
    await form.getByRole('button', { name: 'Send the invitation' }).press('Enter')
    await page.getByText('Invitation sent to grace@example.org').waitFor()
    assert.equal((await user()).role, 'basic')
    await page.getByLabel('Role of grace@example.org').selectOption('support')
    await page.getByText('grace@example.org is support now').waitFor()
    assert.equal((await user()).role, 'support')
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('grace@example.org is basic now').waitFor()
    assert.equal((await user()).role, 'basic')
    await dashboard.sound(page)
    await page.getByRole('button', { name: 'Remove grace@example.org' }).press('Enter')
    const ask = page.getByRole('dialog', { name: 'Remove this user?' })
    await ask.getByRole('button', { name: 'Remove' }).press('Enter')
    await page.getByText('grace@example.org removed').waitFor()
    await page.getByText('No users').waitFor()
  }
})

test('the audit log filters and pages by its URL', async () => {
  const { service } = dashboard
  for (let n = 0; n < 60; n += 1)
    await service.call('POST', `/v3/${service.domain}/unsubscribes`, {
      form: { address: `a${n}@example.org` },
    })
  await service.call('POST', '/v4/domains', { form: { name: 'audited.example' } })
  for (const look of LOOKS) {
    const page = await dashboard.open('/settings/audit', { look })
    await page.getByText('audited.example').first().waitFor()
    await dashboard.sound(page)
    await page.getByRole('button', { name: 'Next' }).press('Enter')
    await page.waitForURL(/at=/)
    await page.getByText('audited.example').first().waitFor({ state: 'detached' })
    await page.reload()
    await page.getByRole('button', { name: 'Previous' }).press('Enter')
    await page.getByText('audited.example').first().waitFor()
    await page.getByLabel('What was changed, such as a domain').fill('audited.example')
    await page.waitForURL(/subject=audited\.example/)
    await page.getByText('domain.create').waitFor()
    await page.getByLabel('Action, such as key.create').fill('domain.delete')
    await page.getByText('Nothing matches these filters').waitFor()
    await dashboard.sound(page)
  }
})

test('the system: checks with their sentences, and periodic jobs', async () => {
  for (const look of LOOKS) {
    const page = await dashboard.open('/settings/system', { look })
    await page.getByRole('heading', { level: 2, name: 'Checks' }).waitFor()
    const { body } = await dashboard.service.call('GET', '/sendwright/v1/system/checks')
    await page.getByText(body.items[0].name).first().waitFor()
    await page.getByRole('table', { name: 'Periodic jobs' }).getByText('In order').first().waitFor()
    await dashboard.sound(page)
  }
})

test('a developer reads keys and users, and changes none', async () => {
  const { body } = await dashboard.service.call('POST', '/v1/keys', { form: { role: 'developer' } })
  const page = await dashboard.open('/settings/keys?add=yes', { key: body.key.secret })
  await page.getByText('developer').first().waitFor()
  assert.equal(
    await page
      .getByRole('button', { name: /key/i })
      .and(page.getByText(/Create|Delete/))
      .count(),
    0,
  )
  assert.equal(await page.getByRole('dialog').count(), 0)
  await page.goto(`${dashboard.service.url}/settings`)
  await page
    .getByRole('main')
    .getByRole('link', { name: /^Users/ })
    .waitFor()
  assert.equal(
    await page
      .getByRole('main')
      .getByRole('link', { name: /^System/ })
      .count(),
    0,
  )
})

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
  await page.getByRole('button', { name: 'Act for Shop' }).press('Enter')
  const strip = page.getByRole('complementary', { name: 'Account' })
  await strip.getByText('Acting for Shop.').waitFor()
  await dashboard.sound(page)
  await strip.getByRole('button', { name: 'Back to the own account' }).press('Enter')
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
  await page.getByText('Bounces above 2.5 % over 1d, for each domain').waitFor()
  const [alert] = await alerts()
  assert.deepEqual([alert.limit, alert.alert_channels], ['0.025', ['email', 'slack']])
  await dashboard.sound(page)
  await page.getByRole('link', { name: 'Bounces' }).tap()
  await page.getByRole('dialog').getByLabel('Rate').selectOption('complained_rate')
  await page.getByRole('button', { name: 'Save' }).tap()
  await page.getByText('Complaints above 2.5 % over 1d, for each domain').waitFor()
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

test('each of these pages in the other look', async () => {
  const pages = [
    { path: '/settings/subaccounts', look: PHONE },
    { path: '/settings/addresses', look: PHONE },
    { path: '/settings/limits', look: DESK },
    { path: '/settings/alerts?view=alerts&add=yes', look: DESK },
  ]
  for (const { path, look } of pages) {
    const page = await dashboard.open(path, { look })
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.waitForLoadState('networkidle')
    await dashboard.sound(page)
  }
})
