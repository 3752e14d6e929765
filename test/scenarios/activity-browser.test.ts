/** Activity in a real browser: why a mail did not arrive, and what is done about it, by keyboard and by touch. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { afterEach, before, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Page, Route } from 'playwright-core'
import { type Dashboard, LOOKS, PHONE, press, startDashboard, typeText } from '../support/dashboard.ts'
import { FILLED_ENV, setFaults } from '../support/fill-account.ts'
import { eventually } from '../support/service.ts'

let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext, FILLED_ENV)
  await setFaults(dashboard.service)
})
afterEach(() => dashboard.tidy())

/** Sends, and waits until all recipients have as many events as named. Returns the message id. */
async function sent(form: Record<string, string>, events: number): Promise<string> {
  const { body } = await dashboard.service.send(form)
  const id = (body.id as string).slice(1, -1)
  await eventually(`the events of ${id}`, async () => {
    const found = await dashboard.service.events(`?message-id=${encodeURIComponent(id)}`)
    return found.length >= events
  })
  return id
}

const card = (page: Page, recipient: string) => page.getByRole('article', { name: recipient })
const pathOf = (page: Page) => decodeURIComponent(new URL(page.url()).pathname)

test('why did bob not get it, by keyboard alone: search, open, reply with its meaning, dialogue, retry', async () => {
  const form = { to: 'bob@slow.example.org, alice@example.org', subject: 'Order 1', 'o:trackng': 'no' }
  const id = await sent(form, 4)
  await sent({ to: 'carol@example.org', subject: 'Other' }, 2)
  const page = await dashboard.open('/activity')
  await page.getByRole('heading', { level: 1, name: 'Activity' }).waitFor()
  await page.getByText('carol@example.org').first().waitFor()
  await dashboard.sound(page)
  await press(page, '/')
  await typeText(page, 'bob@slow.example.org')
  await page.waitForURL('**/activity?q=bob%40slow.example.org')
  await page.getByText('carol@example.org').first().waitFor({ state: 'detached' })
  await page.getByRole('table').getByText('Deferred').waitFor()
  await press(page, 'Tab')
  await page.getByRole('heading', { level: 1 }).click()
  await press(page, 'j', 'Enter')
  await page.getByRole('heading', { level: 1, name: 'Order 1' }).waitFor()
  assert.equal(pathOf(page), `/activity/${id}`)
  await page.getByRole('definition').getByText('o:trackng').waitFor()
  const bob = card(page, 'bob@slow.example.org')
  await bob.getByText(/The last attempt got 451 "4\.3\.0 not now"; the next one follows at/).waitFor()
  await bob.getByText('What it means:').waitFor()
  await bob.getByText('Next attempt').waitFor()
  await bob.getByRole('button', { name: 'SMTP dialogue' }).focus()
  await press(page, 'Enter')
  await bob.getByText('RCPT TO:<bob@slow.example.org>').first().waitFor()
  await bob.getByText('451 4.3.0 not now', { exact: true }).last().waitFor()
  await dashboard.sound(page)

  await page.getByRole('button', { name: 'Retry now' }).focus()
  await press(page, 'Enter')
  await page.getByText('1 delivery is tried again now').waitFor()
  await bob.getByRole('region', { name: 'Attempt 2' }).waitFor()
})

// The pages of the section are loaded together: nothing comes between the click and the message.
test('a click right after typing opens the message', async () => {
  await sent({ to: 'quick@example.org', subject: 'Opened at once' }, 2)
  const page = await dashboard.open('/activity', { own: true })
  await page.getByText('quick@example.org').first().waitFor()
  await page.clock.install()
  await page.getByLabel('Search activity', { exact: true }).fill('quick')
  await page.getByRole('link', { name: 'quick@example.org' }).first().click()
  await page.clock.runFor(1_000)
  await page.getByRole('heading', { level: 1, name: 'Opened at once' }).waitFor()
})

const LATE_MS = 500

test('cancelling asks first, and the page shows the end without a reload', async () => {
  const id = await sent({ to: 'eve@slow.example.org', subject: 'Not any more' }, 2)
  const page = await dashboard.open(`/activity/${id}`)
  const eve = card(page, 'eve@slow.example.org')
  await eve.getByText('Waiting').waitFor()
  // Shown before all of the page is refreshed, and clicked at once.
  const late = (route: Route) => sleep(LATE_MS).then(() => route.fallback())
  await page.route('**/v1/analytics/logs', late)
  await page.getByRole('button', { name: 'Pause' }).click()
  await eve.getByText('It is paused until somebody resumes it.').waitFor()
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByRole('button', { name: 'Retry now' }).waitFor()
  await page.unroute('**/v1/analytics/logs', late)
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('dialog').getByText('This cannot be undone').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).last().click()
  await eve.getByText('Cancelled', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Retry now' }).waitFor({ state: 'detached' })
  const { body } = await dashboard.service.call('GET', `/sendwright/v1/messages/${id}/deliveries`)
  assert.equal(body.items[0].state, 'cancelled')
})

test('on a phone by touch: find the bounce, read the message in all forms, send it again', async () => {
  const html =
    '<h1>Hello</h1><script>document.title = "hacked"</script><img src="http://elsewhere.example/x.png">'
  const id = await sent({ to: 'zoe@refusing.example.org', subject: 'Order 2', html }, 2)
  const page = await dashboard.open('/activity', { look: PHONE })
  await page.getByRole('combobox', { name: 'Event' }).selectOption('bounced')
  await page.waitForURL('**/activity?event=bounced')
  await dashboard.sound(page)
  await page.getByRole('link', { name: 'zoe@refusing.example.org' }).first().tap()
  await card(page, 'zoe@refusing.example.org')
    .getByText('It failed for good: 550 "5.1.1 no such user".')
    .waitFor()
  await page.frameLocator('iframe').getByText('Hello').waitFor()
  await dashboard.sound(page)
  await page.getByRole('tab', { name: 'Text' }).tap()
  await page.getByText('Hi.', { exact: true }).waitFor()
  await page.getByRole('tab', { name: 'Headers' }).tap()
  await page.getByText(`<${id}>`).waitFor()
  await page.getByRole('tab', { name: 'Source' }).tap()
  await page.getByText('Content-Type: multipart/alternative').waitFor()
  await dashboard.sound(page)
  assert.match(page.url(), /tab=source/)
  assert.notEqual(await page.title(), 'hacked')

  await page.getByRole('button', { name: 'Send again' }).tap()
  await page.getByLabel('To', { exact: true }).fill('not an address')
  await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).tap()
  await page.getByText(/to parameter is not a valid address/i).waitFor()
  await page.getByLabel('To', { exact: true }).fill('zoe@example.org')
  await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).tap()
  await page.getByText('Sent again to zoe@example.org').waitFor()
  await card(page, 'zoe@example.org').getByText('Delivered', { exact: true }).first().waitFor()
  await dashboard.sound(page)
})

test('the list follows new mail, its pages are in the URL, and a role without rights gets no buttons', async () => {
  const page = await dashboard.open('/activity?by=tag&q=many')
  await page.getByText('Nothing matches').waitFor()
  for (let n = 0; n < 30; n += 1)
    await dashboard.service.send({ to: `p${n}@example.org`, subject: `Page ${n}`, 'o:tag': 'many' })
  await page.getByText('p29@example.org').first().waitFor()
  await page.getByRole('button', { name: 'Live' }).waitFor()
  await page.getByRole('button', { name: 'Next' }).click()
  await page.waitForURL(/[?&]at=/)
  await page.getByText('p0@example.org').first().waitFor()
  await page.reload()
  await page.getByText('p0@example.org').first().waitFor()
  await page.goBack()
  await page.getByText('p29@example.org').first().waitFor()
  await dashboard.sound(page)

  const id = await sent({ to: 'kim@slow.example.org', subject: 'For readers' }, 2)
  const { body } = await dashboard.service.call('POST', '/v1/keys', { form: { role: 'basic' } })
  const reader = await dashboard.open(`/activity/${id}`, { key: body.key.secret })
  await card(reader, 'kim@slow.example.org').getByText('Waiting').waitFor()
  for (const name of ['Retry now', 'Send again', 'Pause', 'Cancel'])
    assert.equal(await reader.getByRole('button', { name }).count(), 0, name)
  await dashboard.sound(reader)
})

test('long words, and names written from right to left, keep their place', async () => {
  const subject = 'Donaudampfschifffahrtsgesellschaft'.repeat(8)
  const to = `${'long-'.repeat(12)}a@${`${'y'.repeat(60)}.`.repeat(3)}example`
  const { domain } = dashboard.service
  const id = await sent({ from: `"\u05e9\u05dc\u05d5\u05dd" <shop@${domain}>`, to, subject }, 2)
  for (const look of LOOKS) {
    const page = await dashboard.open('/activity', { look })
    await page.getByText(subject).first().waitFor()
    await dashboard.sound(page)
    await page.goto(`${dashboard.service.url}/activity/${encodeURIComponent(id)}`)
    await page
      .locator('bdi', { hasText: `<shop@${domain}>` })
      .first()
      .waitFor()
    await dashboard.sound(page)
  }
})

test('an unknown message says so, and every section opens by its own address', async () => {
  const page = await dashboard.open('/activity/nothing%40example.org')
  await page.getByText('No events of this message').waitFor()
  await dashboard.sound(page)
  const paths = await page
    .getByRole('navigation', { name: 'Sections' })
    .getByRole('link')
    .evaluateAll((links) => links.map((link) => link.getAttribute('href') ?? ''))
  assert.ok(paths.length >= 3)
  for (const path of paths) {
    const answer = await page.goto(dashboard.service.url + path)
    assert.equal(answer?.status(), 200, path)
    await page.getByRole('heading', { level: 1 }).first().waitFor()
  }
})

test('a search by a part is live, its columns are chosen, it is saved by name, and is a file', async () => {
  const { service } = dashboard
  await sent({ to: 'first@example.org', subject: 'Invoice 1' }, 2)
  const page = await dashboard.open('/activity?q=nvoice')
  await page.getByText('first@example.org').first().waitFor()
  await page.locator('.live-dot[data-live]').waitFor()
  await service.send({ to: 'second@example.org', subject: 'Invoice 2', 'o:tag': 'bills' })
  await service.send({ to: 'third@example.org', subject: 'Receipt' })
  await page.getByText('second@example.org').first().waitFor()
  await eventually('delivered as well', async () => {
    const rows = await page.getByRole('table').getByText('second@example.org').count()
    return rows === 2 || null
  })
  assert.equal(await page.getByText('third@example.org').count(), 0)
  await page.getByRole('button', { name: 'Live' }).press('Enter')
  await page.getByRole('button', { name: 'Paused' }).waitFor()

  await page.getByText('Columns', { exact: true }).first().click()
  await page.getByRole('checkbox', { name: 'Tags' }).check()
  await page.getByRole('checkbox', { name: 'Why' }).uncheck()
  await dashboard.sound(page)
  await page.getByRole('columnheader', { name: 'Tags' }).waitFor()
  await page.getByText('Saved filters').click()
  await page.getByRole('textbox', { name: 'Name for this filter' }).fill('Invoices')
  await press(page, 'Enter')
  await page.goto(`${service.url}/activity`)
  await page.getByText('third@example.org').first().waitFor()
  await page.getByText('bills').first().waitFor()
  assert.equal(await page.getByRole('columnheader', { name: 'Why' }).count(), 0)
  await page.getByText('Saved filters').click()
  await page.getByRole('link', { name: 'Invoices' }).click()
  await page.waitForURL('**/activity?q=nvoice')
  await dashboard.sound(page)
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'CSV file' }).click()
  const lines = (await readFile(await (await download).path(), 'utf8')).trim().split('\r\n')
  assert.equal(lines.length, 1 + 4)
  await page.getByRole('button', { name: 'Remove the saved filter Invoices' }).click()
  await page.getByText('No filter is saved yet.').waitFor()
})
