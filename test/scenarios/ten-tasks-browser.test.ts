/**
 * Ten tasks as somebody does them who has never seen the dashboard: from the overview, by clicks on what is visible and
 * named. Clicks and filled fields are those of the table in docs/dashboard.md; with SENDWRIGHT_RECORD_TASKS=1 its seconds are
 * those of this run.
 */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { type Dashboard, startDashboard, windowHasFocus } from '../support/dashboard.ts'
import { FILLED_ENV, REFUSING, setFaults } from '../support/fill-account.ts'
import { createReceiver, type Receiver } from '../support/http-receiver.ts'
import { eventually } from '../support/service.ts'

const CLICKS_MAX = 6 // more is a page to improve
const DOCUMENT = join(import.meta.dirname, '../../docs/dashboard.md')
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const OWN_DOMAIN = 'mail.shop.example' // made by the first task; forms choose the newest domain
const BOB = `bob@${REFUSING}`

let dashboard: Dashboard
let receiver: Receiver
let page: Page
let documented: Map<string, string>
before(async (t) => {
  receiver = await createReceiver()
  ;(t as TestContext).after(() => receiver.close())
  dashboard = await startDashboard(t as TestContext, FILLED_ENV)
  await setFaults(dashboard.service)
  page = await dashboard.open('/overview')
  documented = await documentedCounts()
})

/** Seconds of each task that has succeeded. */
const taken = new Map<string, string>()
after(async () => {
  if (process.env['SENDWRIGHT_RECORD_TASKS'] !== '1') return
  const rows = (await readFile(DOCUMENT, 'utf8')).split('\n').map((row) => {
    const seconds = taken.get(/^\| ([^|]+) \|/.exec(row)?.[1] ?? '')
    return seconds === undefined ? row : row.replace(/[\d.]+ \|$/, `${seconds} |`)
  })
  await writeFile(DOCUMENT, rows.join('\n'))
})

/** The rows of the table in docs/dashboard.md: "3 clicks, 1 field" of each task. */
async function documentedCounts(): Promise<Map<string, string>> {
  const text = await readFile(DOCUMENT, 'utf8')
  const section = text.split('## Tasks and their clicks')[1]?.split('\n## ')[0] ?? ''
  const rows = [...section.matchAll(/^\| ([^|]+) \| [^|]+ \| (\d+) \| (\d+) \| [^|]+ \| [\d.]+ \|$/gm)]
  return new Map(rows.map(([, task = '', clicks, fields]) => [task, `${clicks} clicks, ${fields} fields`]))
}

type Role = Parameters<Page['getByRole']>[0]
type Name = string | RegExp

/** What somebody does on the page. Each step waits until its element is visible, and cannot be done with a hidden one. */
interface Hand {
  click(role: Role, name: Name): Promise<void>
  fill(label: Name, text: string): Promise<void>
  choose(label: Name, option: string): Promise<void>
  chooseFile(button: Name, name: string, text: string): Promise<void>
  /** Waits until the page shows this, as a reader does. Not counted. */
  see(text: Name): Promise<void>
}

/** A test of one task from the overview. */
function task(name: string, run: (hand: Hand) => Promise<void>, clicksMax = CLICKS_MAX): void {
  test(name, async () => {
    await page.goto(`${dashboard.service.url}/overview`)
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    const beganAt = performance.now()
    let clicks = 0
    let fields = 0
    const exact = (text: Name) => ({ exact: typeof text === 'string' })
    // The last one: that of an open window, which covers the others.
    const field = (label: Name) => page.getByLabel(label, exact(label)).filter({ visible: true }).last()
    const press = async (role: Role, of: Name) => {
      clicks += 1
      const found = page.getByRole(role, { name: of, ...exact(of) })
      await found.filter({ visible: true }).last().click()
    }
    await run({
      click: press,
      async fill(label, text) {
        fields += 1
        await field(label).waitFor()
        await windowHasFocus(page)
        await field(label).fill(text)
      },
      async choose(label, option) {
        fields += 1
        await field(label).selectOption({ label: option })
      },
      async chooseFile(button, fileName, text) {
        const chooser = page.waitForEvent('filechooser')
        await press('button', button)
        fields += 1
        await (await chooser).setFiles({ name: fileName, mimeType: 'text/csv', buffer: Buffer.from(text) })
      },
      async see(text) {
        await page.getByText(text).filter({ visible: true }).first().waitFor()
      },
    })
    assert.equal(documented.get(name), `${clicks} clicks, ${fields} fields`, 'as in docs/dashboard.md')
    assert.ok(clicks <= clicksMax, `${clicks} clicks`)
    taken.set(name, ((performance.now() - beganAt) / 1000).toFixed(1))
  })
}

/** `domain`: default the sandbox. */
const eventsOf = (event: string, recipient: string, domain?: string) =>
  dashboard.service.events(`?event=${event}&recipient=${encodeURIComponent(recipient)}`, domain)

/** Sends, and waits for this event of it. */
async function sent(event: string, to: string, form: Record<string, string> = {}) {
  assert.equal((await dashboard.service.send({ to, ...form })).status, 200)
  return eventually(`${event} of ${to}`, async () => (await eventsOf(event, to))[0])
}

task('Add a domain', async (hand) => {
  await hand.click('link', 'Domains')
  await hand.click('button', 'Add a domain')
  await hand.fill('Domain name', OWN_DOMAIN)
  await hand.click('button', 'Add the domain')
  await page.getByRole('heading', { level: 1, name: OWN_DOMAIN }).waitFor()
  assert.equal((await dashboard.service.call('GET', `/v4/domains/${OWN_DOMAIN}`)).status, 200)
})

task('Find why a mail did not arrive', async (hand) => {
  await sent('failed', BOB, { subject: 'Order 7' })
  await hand.click('link', 'Activity')
  await hand.fill('Search activity', BOB)
  await hand.click('link', BOB)
  await hand.see('It failed for good: 550 "5.1.1 no such user".')
  await hand.see('What it means:')
})

task('Send a mail again', async (hand) => {
  await hand.click('link', 'Activity')
  await hand.fill('Search activity', BOB)
  await hand.click('link', BOB)
  await hand.click('button', 'Send again')
  await hand.fill('To', 'bob@example.org')
  await hand.click('button', 'Send again')
  await hand.see('Sent again to bob@example.org')
  await eventually('delivered', async () => (await eventsOf('delivered', 'bob@example.org'))[0])
})

task('Stop all mail to a provider', async (hand) => {
  await hand.click('link', 'Delivery')
  await hand.click('link', 'Providers')
  await hand.click('button', 'Stop mail to Gmail and Google Workspace')
  await hand.click('button', 'Stop all mail')
  await hand.see('Mail to Gmail and Google Workspace is stopped')
  const { overrides } = (await dashboard.service.call('GET', '/sendwright/v1/shaping')).body
  assert.deepEqual(
    overrides.map(({ site, pause }: { site: string; pause: unknown }) => [site, pause !== null]),
    [['google', true]],
  )
})

task('See who clicked', async (hand) => {
  const { service } = dashboard
  const html = '<p><a href="https://shop.example/offer">Offer</a></p>'
  await sent('delivered', 'carol@example.org', { html, 'o:tracking': 'yes' })
  await sent('delivered', 'dave@example.org', { html, 'o:tracking': 'yes' })
  const [{ id }] = (await service.call('GET', '/sendwright/v1/inbox?to=carol@example.org')).body.items
  const mail = (await service.call('GET', `/sendwright/v1/inbox/${id}`)).body
  const [link = ''] = /\/c\/[^"]+/.exec(mail.html) ?? []
  await fetch(service.url + link, { redirect: 'manual', headers: { 'user-agent': FIREFOX } })
  await eventually('the click', async () => (await eventsOf('clicked', 'carol@example.org'))[0])
  await hand.click('link', 'Activity')
  await hand.choose('Event', 'Clicked')
  await page.getByText('dave@example.org').first().waitFor({ state: 'detached' })
  await hand.see('carol@example.org')
  await hand.see('https://shop.example/offer')
  await fetch(service.url + link, { redirect: 'manual', headers: { 'user-agent': 'curl/8.5.0' } })
  await page.getByText('A machine').first().waitFor()
})

task('Import a suppression list', async (hand) => {
  await hand.click('link', 'Sending')
  await hand.click('link', 'Suppressions')
  await hand.click('button', 'Import')
  const lines = 'address,code,error\nx@example.com,550,gone\ny@example.com,550,gone\n'
  await hand.chooseFile('Choose a file', 'bounces.csv', lines)
  await hand.click('button', 'Import 2 addresses')
  await hand.see('2 addresses imported')
  await hand.see(`Import: Bounces of ${OWN_DOMAIN}`)
  for (const address of ['x@example.com', 'y@example.com'])
    assert.equal((await dashboard.service.call('GET', `/v3/${OWN_DOMAIN}/bounces/${address}`)).status, 200)
})

task('Make a template and send a test', async (hand) => {
  await hand.click('link', 'Sending')
  await hand.click('button', 'New template')
  await hand.fill('Name', 'receipt')
  await hand.click('button', 'Create')
  await hand.fill('Subject', 'Your receipt')
  await hand.click('button', 'Save')
  await hand.click('button', 'Send a test')
  await hand.fill('To', 'me@example.org')
  await hand.click('button', 'Send')
  await hand.see('The message is on its way.')
  const { message } = await eventually(
    'delivered',
    async () => (await eventsOf('delivered', 'me@example.org', OWN_DOMAIN))[0],
  )
  assert.equal((message as { headers: { subject: string } }).headers.subject, 'Your receipt')
})

task('Give a colleague read rights', async (hand) => {
  await hand.click('link', 'Settings')
  await hand.click('link', 'Users')
  await hand.click('button', 'Invite a user')
  await hand.fill('Email address', 'grace@example.org')
  await hand.fill('Name', 'Grace')
  await hand.click('button', 'Send the invitation')
  await hand.see('Invitation sent to grace@example.org')
  const { users } = (await dashboard.service.call('GET', '/v5/users')).body
  assert.deepEqual(
    users.map(({ email, role }: Record<string, string>) => [email, role]),
    [['grace@example.org', 'basic']],
  )
})

task('Replay the webhooks of yesterday', async (hand) => {
  const url = `${receiver.url}/events`
  const form = { url, event_types: 'accepted' }
  assert.equal((await dashboard.service.call('POST', '/v1/webhooks', { form })).status, 200)
  const { timestamp, id } = await sent('accepted', 'erin@example.org')
  const posts = () => receiver.posts.filter(({ body }) => body?.['event-data']?.id === id).length
  await eventually('posted', async () => posts() === 1)
  // For the reader's browser it is the day after.
  const then = new Date(Number(timestamp) * 1000)
  await page.clock.setFixedTime(new Date(then.getFullYear(), then.getMonth(), then.getDate() + 1, 12))
  await hand.click('link', 'Webhooks')
  await hand.click('button', 'Attempts')
  await hand.click('button', 'Replay a period')
  await hand.choose('Period', 'Yesterday')
  await hand.click('button', 'Replay the events')
  await hand.see(/events? found, .* queued/)
  await eventually('posted again', async () => posts() === 2)
  await page.clock.setFixedTime(new Date())
})

task('Change the rate of a queue', async (hand) => {
  const lanes = async () => (await dashboard.service.call('GET', '/sendwright/v1/queue/lanes')).body.items
  const [{ lane }] = await lanes()
  await hand.click('link', 'Delivery')
  await hand.click('button', `Change the limits of ${lane}`)
  await hand.fill('Messages', '6000')
  await hand.click('button', 'Save')
  await hand.see(/^Limits of .* changed$/)
  assert.equal((await lanes())[0].set_limits.messages_per_second, 100)
})

task(
  'Rotate an API key',
  async (hand) => {
    const { service } = dashboard
    const form = { role: 'developer', description: 'shop' }
    const { id } = (await service.call('POST', '/v1/keys', { form })).body.key
    await hand.click('link', 'Settings')
    await hand.click('link', 'API keys')
    await hand.click('button', 'Create a key')
    await hand.fill('What is it for', 'shop, new')
    await hand.click('button', 'Create the key')
    await hand.click('button', 'I have copied it')
    await hand.click('button', 'Delete the key shop')
    await hand.fill(/^Type/, 'shop')
    await hand.click('button', 'Delete')
    await hand.see('Key deleted')
    const { items } = (await service.call('GET', '/v1/keys')).body
    const names = items.map(({ description }: { description: string }) => description)
    assert.ok(
      names.includes('shop, new') && !items.some((key: { id: string }) => key.id === id),
      names.join(),
    )
  },
  7, // the old one is deleted by a click of its own, once nothing uses it any more
)

task("See one person's history", async (hand) => {
  await hand.click('link', 'Activity')
  await hand.fill('Search activity', BOB)
  await hand.see('Order 7')
})

task('Two weeks by tag, as a file', async (hand) => {
  await sent('delivered', 'tagged@example.org', { 'o:tag': 'spring' })
  await eventually('it is counted', async () => {
    const json = { dimensions: ['tag'], metrics: ['delivered_count'], duration: '1d' }
    return (await dashboard.service.call('POST', '/v1/analytics/metrics', { json })).text.includes('spring')
  })
  const day = new Date(Date.now() - 13 * 86_400_000).toISOString().slice(0, 10)
  await hand.click('link', 'Metrics')
  await hand.choose('Period', 'Own dates…')
  await hand.fill('From', day)
  await hand.choose('By', 'Tag')
  await hand.see('spring')
  const download = page.waitForEvent('download')
  await hand.click('button', 'CSV file')
  assert.match((await download).suggestedFilename(), new RegExp(`^metrics-tag-${day}`))
})

test('nothing forbidden has happened on these pages', () => dashboard.sound(page))
