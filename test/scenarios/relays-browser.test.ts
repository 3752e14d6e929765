/** The page of relays in a real browser: adding one from a preset, its secrets, and the ordered list of rules. */
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import { type Dashboard, LOOKS, PHONE, press, startDashboard } from '../support/dashboard.ts'
import { eventually } from '../support/service.ts'

let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext, { SENDWRIGHT_DELIVERY: 'smtp://127.0.0.1:9' })
})

const relay = async (name: string) =>
  (await dashboard.service.call('GET', `/sendwright/v1/relays/${name}`)).body

const json = (body: object) => ({
  body: JSON.stringify(body),
  headers: { 'content-type': 'application/json' },
})

async function addRelay(name: string): Promise<void> {
  const document = { name, host: 'smtp.example.com', login: { username: 'shop', password: 'secret-1' } }
  const added = await dashboard.service.call('POST', '/sendwright/v1/relays', json(document))
  assert.equal(added.status, 200, added.text)
}

const rules = async () =>
  (await dashboard.service.call('GET', '/sendwright/v1/relay-rules')).body.items as {
    match: object
    levels: { relay: string; weight: number }[][]
  }[]

test('the relay of the setting is shown and cannot be edited; there are no rules yet', async () => {
  for (const look of LOOKS) {
    const page = await dashboard.open('/delivery/relays', { look })
    await page.getByRole('heading', { level: 1, name: 'Relays' }).waitFor()
    await page.getByText('from SENDWRIGHT_DELIVERY').waitFor()
    await page.getByText('No rules').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Edit default' }).count(), 0)
    await dashboard.sound(page)
  }
})

test('by keyboard: a relay from a preset, whose secrets are stored and never shown', async () => {
  const page = await dashboard.open('/delivery/relays')
  await page.getByRole('button', { name: 'Add a relay' }).first().press('Enter')
  const form = page.getByRole('dialog', { name: 'Add a relay' })
  await form.getByLabel('Provider').selectOption('Microsoft 365')
  await form.getByText(/Register an application/).waitFor()
  assert.equal(await form.getByLabel('Host').inputValue(), 'smtp.office365.com')
  await form.getByLabel('User', { exact: true }).fill('shop@own.example')
  await form.getByLabel('Client id').fill('client-1')
  await form.getByLabel('Client secret', { exact: true }).fill('very-secret')
  await form.getByText('Limits', { exact: true }).click()
  await form.getByLabel('Messages per second').fill('0')
  await dashboard.sound(page)
  await form.getByRole('button', { name: 'Add', exact: true }).press('Enter')
  await form.getByRole('alert').waitFor()
  await form.getByLabel('Messages per second').fill('0.5')
  await form.getByRole('button', { name: 'Add', exact: true }).press('Enter')
  await page.getByText(/Relay microsoft added/).waitFor()
  await page.getByText('access token, none yet').waitFor()
  await page.getByText('0.5/s').waitFor()
  await dashboard.sound(page)
  const stored = await relay('microsoft')
  assert.deepEqual(
    [stored.login.mechanism, stored.login.oauth.scope, stored.login.oauth.has_client_secret],
    ['xoauth2', 'https://outlook.office365.com/.default', true],
  )
  assert.deepEqual(stored.alters, { return_path: true, message_id: false })
})

test('by touch on a phone: a change keeps the stored password, and shows that there is one', async () => {
  await addRelay('kept')
  const page = await dashboard.open('/delivery/relays', { look: PHONE })
  await page.getByRole('button', { name: 'Edit kept' }).tap()
  const form = page.getByRole('dialog', { name: 'Relay kept' })
  assert.equal(await form.getByLabel('Password', { exact: true }).inputValue(), '')
  await form.getByText('Stored. Empty: it stays.').waitFor()
  await form.getByLabel('Port').fill('2525')
  assert.equal(await form.getByLabel('It replaces the return path').isChecked(), false)
  await form.getByLabel('Envelope sender').fill('shop@own.example')
  assert.ok(await form.getByLabel('It replaces the return path').isChecked())
  await form.getByLabel('Messages may ask for it with o:relay').selectOption('Those of all accounts')
  await dashboard.sound(page)
  await form.getByRole('button', { name: 'Save' }).tap()
  await page.getByText('Relay kept saved').waitFor()
  const stored = await relay('kept')
  assert.deepEqual([stored.port, stored.login.has_password, stored.offered_to], [2525, true, 'all'])
  assert.deepEqual([stored.return_path, stored.alters.return_path], ['shop@own.example', true])
  await page.getByRole('button', { name: 'Edit kept' }).tap()
  assert.equal(await form.getByLabel('Envelope sender').inputValue(), 'shop@own.example')
  await form.getByLabel('Port').fill('2526')
  await form.getByRole('button', { name: 'Save' }).tap()
  await eventually('saved', async () => (await relay('kept')).port === 2526)
  assert.equal((await relay('kept')).return_path, 'shop@own.example')
})

test('rules: added, ordered, changed, taken back; a relay that one names cannot be removed', async () => {
  await addRelay('one')
  await addRelay('two')
  const page = await dashboard.open('/delivery/relays')
  const add = async (domain: string, chosen: string) => {
    await page.getByRole('button', { name: 'Add a rule' }).press('Enter')
    const form = page.getByRole('dialog', { name: 'Add a rule' })
    await form.getByLabel("Recipient's domain").fill(domain)
    await form.getByLabel('Relay 1', { exact: true }).selectOption(chosen)
    return form
  }
  const first = await add('*.edu', 'one')
  await first.getByRole('button', { name: 'One more relay' }).press('Enter')
  await first.getByLabel('Relay 2', { exact: true }).selectOption('two')
  await first.getByLabel('Weight 2').fill('3')
  await first.getByRole('button', { name: 'One more relay' }).press('Enter')
  await first.getByLabel('Relay 3', { exact: true }).selectOption('direct')
  await first.getByLabel('Turn 3').selectOption('2')
  await dashboard.sound(page)
  await first.getByRole('button', { name: 'Add', exact: true }).press('Enter')
  await page.getByText('one (1) + two (3), else direct').waitFor()
  const second = await add('gmail.com', 'two')
  await press(page, 'Enter')
  await second.waitFor({ state: 'detached' })
  await page.getByText("Recipient's domain gmail.com").waitFor()
  await dashboard.sound(page)
  const domains = async () => (await rules()).map(({ match }) => Object.values(match).join())
  assert.deepEqual(await domains(), ['*.edu', 'gmail.com'])
  assert.deepEqual((await rules())[0]?.levels, [
    [
      { relay: 'one', weight: 1 },
      { relay: 'two', weight: 3 },
    ],
    [{ relay: 'direct', weight: 1 }],
  ])
  await page.getByRole('button', { name: 'Move rule 2 up' }).press('Enter')
  await eventually('moved', async () => (await domains())[0] === 'gmail.com')
  await page.getByRole('button', { name: 'Undo' }).last().press('Enter')
  await page.getByText('Relay rules restored').waitFor()
  assert.deepEqual(await domains(), ['*.edu', 'gmail.com'])
  await page.getByRole('button', { name: 'Remove two' }).press('Enter')
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).press('Enter')
  await page
    .getByText(/relay rule/i)
    .last()
    .waitFor()
  assert.equal((await relay('two')).name, 'two')
  await page.getByRole('button', { name: 'Cancel' }).press('Enter')
  await page.getByRole('button', { name: 'Remove rule 1' }).press('Enter')
  await eventually('removed', async () => (await rules()).length === 1)
  const phone = await dashboard.open('/delivery/relays', { look: PHONE })
  await phone.getByRole('button', { name: 'Edit rule 1' }).tap()
  await phone.getByRole('dialog', { name: 'Rule 1' }).waitFor()
  await dashboard.sound(phone)
})

test('a reader sees the relays and no button', async () => {
  const { body } = await dashboard.service.call('POST', '/v1/keys', { form: { role: 'support' } })
  const page = await dashboard.open('/delivery/relays?add=yes', { key: body.key.secret })
  await page.getByRole('heading', { level: 1 }).waitFor()
  assert.equal(await page.getByRole('button', { name: 'Add a relay' }).count(), 0)
  assert.equal(await page.getByRole('dialog').count(), 0)
})
