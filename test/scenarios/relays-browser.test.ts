/** The page of relays in a real browser: adding one, its secrets, state, pause and test, and the ordered list of rules. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { afterEach, before, type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { createNoonClock } from '../support/clock.ts'
import { type Dashboard, LOOKS, PHONE, press, pressToCopy, startDashboard } from '../support/dashboard.ts'
import { eventually } from '../support/service.ts'
import { createSink, type Sink, type SinkOptions } from '../support/smtp-sink.ts'

/** Limits are of a day. */
const clock = createNoonClock()
let dashboard: Dashboard
before(async (t) => {
  const env = { SENDWRIGHT_DELIVERY: 'smtp://127.0.0.1:9', SENDWRIGHT_SANDBOX_RECIPIENTS: '*' }
  dashboard = await startDashboard(t as TestContext, env, { clock })
})
afterEach(() => dashboard.tidy())

const relay = async (name: string) =>
  (await dashboard.service.call('GET', `/sendwright/v1/relays/${name}`)).body

const json = (body: object) => ({
  body: JSON.stringify(body),
  headers: { 'content-type': 'application/json' },
})

const ACCOUNT = { user: 'shop', password: 'secret-1' }

async function addRelay(name: string, more: object = {}): Promise<void> {
  const login = { username: ACCOUNT.user, password: ACCOUNT.password }
  const document = { name, host: 'smtp.example.com', login, ...more }
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

/** A relay of this machine. */
async function addSink(t: TestContext, name: string, options: SinkOptions, more = {}): Promise<Sink> {
  const sink = await createSink(options)
  t.after(() => sink.close())
  await addRelay(name, { host: sink.host, port: sink.port, tls: 'none', ...more })
  return sink
}

test('pause and resume, with reason and end, and each taken back', async () => {
  for (const look of LOOKS) {
    const page = await dashboard.open('/delivery/relays', { look })
    const undo = (from: Page) => from.getByRole('button', { name: 'Undo' }).press('Enter')
    const isPaused = (expected: boolean) =>
      eventually(`paused ${expected}`, async () => ((await relay('default')).pause !== null) === expected)
    await page.getByRole('button', { name: 'Pause default' }).press('Enter')
    const form = page.getByRole('dialog', { name: 'Pause the relay default' })
    await form.getByLabel('Reason').fill('their maintenance')
    await form.getByLabel('Until').selectOption('in an hour')
    await dashboard.sound(page)
    await form.getByRole('button', { name: 'Pause' }).press('Enter')
    await page.getByText('Relay default is paused').waitFor()
    const row = page.getByRole('row').filter({ hasText: 'from SENDWRIGHT_DELIVERY' })
    await row.getByText('their maintenance').waitFor()
    await row.getByText('Paused').waitFor()
    const { pause } = await relay('default')
    assert.equal(pause.reason, 'their maintenance')
    assert.ok(Date.parse(pause.until) > clock.now() + 3_000_000)
    await dashboard.sound(page)
    await undo(page)
    await isPaused(false)
    await row.getByText('Open').waitFor()
    await dashboard.service.call('PUT', '/sendwright/v1/relays/default/pause', { form: { reason: 'again' } })
    // A page of its own: with a single notice there is a single button that takes back.
    const resuming = await dashboard.open('/delivery/relays', { look })
    await resuming.getByRole('button', { name: 'Resume default' }).press('Enter')
    await isPaused(false)
    await undo(resuming)
    await isPaused(true)
    assert.equal((await relay('default')).pause.reason, 'again')
    await dashboard.service.call('DELETE', '/sendwright/v1/relays/default/pause')
  }
})

test('a test shows the dialogue without the password, and what the relay said', async (t) => {
  const sink = await addSink(t, 'tested', { auth: ACCOUNT }, { limits: { messages_per_day: 5 } })
  for (const look of LOOKS) {
    sink.on('RCPT TO', '250 2.1.5 ok')
    const page = await dashboard.open('/delivery/relays', { look })
    await page.getByText('0 used today').waitFor()
    await page.getByRole('button', { name: 'Test tested' }).press('Enter')
    const form = page.getByRole('dialog', { name: 'Test the relay tested' })
    await form.getByLabel('From').fill('shop@own.example')
    await form.getByLabel('To', { exact: true }).fill('me@example.net')
    await form.getByRole('button', { name: 'Send' }).press('Enter')
    await form.getByRole('status').getByText('Accepted', { exact: true }).waitFor()
    const dialogue = form.getByRole('region', { name: 'SMTP dialogue' })
    await dialogue.getByText(/^AUTH [A-Z0-9-]+/).waitFor()
    await dialogue.getByText('RCPT TO:<me@example.net>').waitFor()
    const shown = await form.innerText()
    for (const secret of ['secret-1', Buffer.from('\0shop\0secret-1').toString('base64')])
      assert.ok(!shown.includes(secret))
    await dashboard.sound(page)
    sink.on('RCPT TO', '550 5.1.1 nobody here')
    await form.getByRole('button', { name: 'Send' }).press('Enter')
    await form.getByRole('status').getByText('Not accepted').waitFor()
    await form
      .getByRole('status')
      .getByText(/nobody here/)
      .waitFor()
    await form.getByLabel('To', { exact: true }).fill('no address')
    await form.getByRole('button', { name: 'Send' }).press('Enter')
    await form.getByRole('alert').waitFor()
    await dashboard.sound(page)
  }
  assert.equal(sink.messages.length, LOOKS.length)
})

test('a relay that refuses the login is closed, with its words; a test that it accepts opens it', async (t) => {
  const sink = await addSink(t, 'closing', { auth: ACCOUNT }, { limits: { messages_per_day: 5 } })
  sink.on('AUTH', '535 5.7.8 the login is locked')
  await dashboard.service.send({ to: 'a@example.net', 'o:relay': 'closing' })
  await eventually('closed', async () => (await relay('closing')).state.word === 'closed')
  for (const look of LOOKS) {
    const page = await dashboard.open('/delivery/relays', { look })
    const row = page.getByRole('row').filter({ hasText: 'the login is locked' })
    await row.getByText('Closed', { exact: true }).waitFor()
    await row.getByText(/^until/).waitFor()
    await row.getByText('Since the start: 0 accepted, 1 failed').waitFor()
    await dashboard.sound(page)
    await row.getByRole('button', { name: 'Edit closing' }).press('Enter')
    await page
      .getByRole('dialog', { name: 'Relay closing' })
      .getByText(/the login is locked/)
      .waitFor()
    await dashboard.sound(page)
  }
  sink.on('AUTH', '235 2.7.0 ok')
  const page = await dashboard.open('/delivery/relays?test=closing')
  const form = page.getByRole('dialog', { name: 'Test the relay closing' })
  await form.getByLabel('From').fill('shop@own.example')
  await form.getByLabel('To', { exact: true }).fill('me@example.net')
  await form.getByRole('button', { name: 'Send' }).press('Enter')
  await form.getByRole('status').getByText('Accepted', { exact: true }).waitFor()
  await form.getByRole('button', { name: 'Cancel' }).press('Enter')
  await page.getByText('the login is locked').waitFor({ state: 'detached' })
  await dashboard.service.send({ to: 'b@example.net', 'o:relay': 'closing' })
  await page.getByText(/^[12] used today/).waitFor()
})

test('topics of SNS: added by ARN, with an endpoint to copy, and removed', async () => {
  const arn = 'arn:aws:sns:eu-west-1:123456789012:ses-feedback'
  const topics = async () =>
    (await dashboard.service.call('GET', '/sendwright/v1/sns/topics')).body.items as {
      arn: string
      endpoint: string
    }[]
  for (const look of LOOKS) {
    const page = await dashboard.open('/delivery/relays', { look })
    await page.getByText('No topics').waitFor()
    await page.getByRole('button', { name: 'Add a topic' }).press('Enter')
    const form = page.getByRole('dialog', { name: 'Add a topic' })
    await form.getByLabel('ARN').fill('arn:aws:sqs:eu-west-1:123456789012:queue')
    await form.getByRole('button', { name: 'Add', exact: true }).press('Enter')
    await form.getByRole('alert').waitFor()
    await form.getByLabel('ARN').fill(arn)
    await dashboard.sound(page)
    await form.getByRole('button', { name: 'Add', exact: true }).press('Enter')
    const [topic] = await eventually('added', async () => {
      const found = await topics()
      return found.length > 0 && found
    })
    assert.equal(topic?.arn, arn)
    await page.getByText('not yet').waitFor()
    const copy = page.getByRole('button', { name: `Copy the endpoint of ${arn}` })
    await pressToCopy(copy, (button) => button.press('Enter'))
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), topic?.endpoint)
    await dashboard.sound(page)
    await page.getByRole('button', { name: `Remove ${arn}` }).press('Enter')
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).press('Enter')
    await page.getByText('No topics').waitFor()
    assert.deepEqual(await topics(), [])
  }
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
  const { body } = await dashboard.service.call('POST', '/v1/keys', { form: { role: 'developer' } })
  const page = await dashboard.open('/delivery/relays?add=yes', { key: body.key.secret })
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.getByText('from SENDWRIGHT_DELIVERY').waitFor()
  for (const name of ['Add a relay', 'Test default', 'Pause default', 'Add a topic'])
    assert.equal(await page.getByRole('button', { name }).count(), 0, name)
  assert.equal(await page.getByRole('dialog').count(), 0)
})
