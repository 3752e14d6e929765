/** People with a phone and without JavaScript join a list, confirm, and choose topics. */
import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { launchBrowser } from '../support/browser.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { LINK_SECRET, linksOf } from '../support/links.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

const PHONE = { width: 360, height: 640 }
const LIST_NAME = 'Our weekly letter'

let browser: Browser
let service: TestService
let sink: Sink
let formUrl: string
let list: string

before(async (t) => {
  sink = await createSink({ host: ownAddress() })
  service = await startTestService(t as TestContext, {
    SENDWRIGHT_SECRET: LINK_SECRET,
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
  })
  after(() => sink.close())
  browser = await launchBrowser()
  list = `weekly@${service.domain}`
  await service.call('POST', '/v3/lists', { form: { address: list } })
  const { body } = await service.call('PUT', `/sendwright/v1/lists/${list}/consent`, {
    form: { title: LIST_NAME, form: 'yes' },
  })
  formUrl = body.form_url
})
after(() => browser.close())

const mailTo = (address: string) =>
  eventually(`a mail to ${address}`, async () =>
    sink.messages.find(({ envelope }) => envelope.to.includes(address)),
  )

async function onPhone(
  look: { colorScheme?: 'light' | 'dark'; locale?: string },
  run: (page: Page) => Promise<void>,
): Promise<void> {
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: PHONE, ...look })
  context.setDefaultTimeout(20_000)
  const page = await context.newPage()
  const faults: string[] = []
  page.on('console', (message) => {
    // Answers of 400 and 404 are reported as failed loads.
    if (!message.text().includes('status of 40')) faults.push(message.text())
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(service.url)) faults.push(request.url())
  })
  await run(page)
  assert.deepEqual(await context.cookies(), [])
  assert.deepEqual(faults, [])
  await context.close()
}

/** Within the screen, and high enough for a thumb. */
async function assertReachable(page: Page, name: string): Promise<void> {
  const box = await page.getByRole('button', { name }).boundingBox()
  assert.ok(box && box.x >= 0 && box.x + box.width <= PHONE.width && box.height >= 44, name)
}

for (const colorScheme of ['light', 'dark'] as const) {
  test(`join by the form and confirm (${colorScheme})`, async () => {
    const reader = `${colorScheme}@example.org`
    await onPhone({ colorScheme }, async (page) => {
      await page.goto(formUrl)
      await page.getByRole('heading', { name: `Subscribe to ${LIST_NAME}` }).waitFor()
      await assertReachable(page, 'Subscribe')
      await page.getByLabel('Email address').fill(reader)
      await page.getByRole('button', { name: 'Subscribe' }).click()
      await page.getByRole('heading', { name: 'Look into your mailbox' }).waitFor()
      const raw = (await mailTo(reader)).raw.toString().replaceAll('=\r\n', '')
      const link = /http:\/\/\S+\/confirm\/[\w-]+/.exec(raw)?.[0] ?? ''
      await page.goto(link)
      await page.getByText(`Send ${LIST_NAME} to`).waitFor()
      await assertReachable(page, 'Yes, subscribe me')
      await assertReachable(page, 'No, this was not me')
      const state = async () => (await service.call('GET', `/v3/lists/${list}/members/${reader}`)).body.member
      assert.equal((await state()).subscribed, false)
      await page.getByRole('button', { name: 'Yes, subscribe me' }).click()
      await page.getByRole('heading', { name: 'You are subscribed' }).waitFor()
      assert.equal((await state()).subscribed, true)
      await page.goto(link)
      await page.getByRole('heading', { name: 'This link is not valid' }).waitFor()
    })
  })
}

test('a mistyped address is announced beside its field, in the language of the reader', async () => {
  await onPhone({ locale: 'de-DE' }, async (page) => {
    await page.goto(formUrl)
    assert.equal(await page.locator('html').getAttribute('lang'), 'de')
    const field = page.getByLabel('E-Mail-Adresse')
    // The browser takes this for an address, the service does not.
    await field.fill('nobody@-')
    await page.locator('form').evaluate((form) => form.setAttribute('novalidate', ''))
    await page.getByRole('button', { name: 'Abonnieren' }).click()
    await page.getByRole('alert').getByText('Das ist keine gültige E-Mail-Adresse.').waitFor()
    assert.equal(await field.getAttribute('aria-invalid'), 'true')
    assert.equal(await field.getAttribute('aria-describedby'), 'fault')
  })
})

test('topics are switched off and on behind the unsubscribe link', async () => {
  const topics = JSON.stringify([
    { tag: 'offers', title: 'Special offers' },
    { tag: 'tips', title: `${'Very long tips '.repeat(6)}.` },
  ])
  await service.call('PUT', `/sendwright/v1/domains/${service.domain}/topics`, {
    form: { active: 'yes', topics },
  })
  const reader = 'reader@example.org'
  await service.call('POST', `/v3/lists/${list}/members`, { form: { address: reader } })
  await service.send({ to: reader, 'o:tag': 'offers' })
  const links = await linksOf(service, await mailTo(reader))
  await onPhone({}, async (page) => {
    await page.goto(links.unsubscribe())
    await page.getByRole('heading', { name: 'Your mail' }).waitFor()
    const group = page.getByRole('group', { name: 'Topics' })
    const [offers, letter] = ['Special offers', LIST_NAME].map((name) =>
      group.getByRole('checkbox', { name }),
    )
    assert.ok(offers && letter)
    assert.deepEqual([await offers.isChecked(), await letter.isChecked()], [true, true])
    await assertReachable(page, 'Save')
    await assertReachable(page, 'Unsubscribe from everything')
    assert.ok((await page.locator('html').evaluate((html) => html.scrollWidth)) <= PHONE.width)
    await letter.uncheck()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('status').getByText('Your choice is saved.').waitFor()
    assert.deepEqual([await offers.isChecked(), await letter.isChecked()], [true, false])
    await letter.check()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('status').waitFor()
    assert.equal(await letter.isChecked(), true)
    await page.getByRole('button', { name: 'Unsubscribe from everything' }).click()
    await page.getByText('gets no mail from').waitFor()
    await page.getByRole('button', { name: 'Undo: subscribe again' }).click()
    await page.getByRole('group', { name: 'Topics' }).waitFor()
  })
  const { body } = await service.call('GET', `/sendwright/v1/people/${reader}/consent`)
  assert.equal(body.items.length, 5)
})

/** What an account's page must not be able to do, around the form that it must show. */
const hostile = (elsewhere: string) => `<!doctype html><html><head>
<base href="${elsewhere}/">
<meta http-equiv="refresh" content="0;url=${elsewhere}/refresh">
<title>Ours</title><style>h1 { color: rgb(1, 2, 3) } @import "${elsewhere}/style";</style>
<link rel="stylesheet" href="${elsewhere}/sheet"><script>document.title = 'run'</script>
<script src="${elsewhere}/script"></script></head>
<body onload="document.title = 'run'"><h1>Ours: {{page}}</h1>
<img src="nowhere" onerror="document.title = 'run'"><svg onload="document.title = 'run'"></svg>
<iframe src="${elsewhere}/frame"></iframe><object data="${elsewhere}/object"></object>
<form action="${elsewhere}/form" method="post"><button>Elsewhere</button></form>
<a href="javascript:document.title='run'">A link</a>
{{{content}}}</body></html>`

test("an account's own page runs nothing and leads nowhere else, and its form works", async (t) => {
  const elsewhere = await createReceiver({ host: ownAddress() })
  t.after(() => elsewhere.close())
  const template = { name: 'hostile', template: hostile(elsewhere.url) }
  await service.call('POST', `/v3/${service.domain}/templates`, { form: template })
  const own = `own@${service.domain}`
  await service.call('POST', '/v3/lists', { form: { address: own } })
  const { body, text } = await service.call('PUT', `/sendwright/v1/lists/${own}/consent`, {
    form: { title: 'Ours', form: 'yes', page_template: 'hostile' },
  })
  assert.equal(body.page_template, 'hostile', text)
  const context = await browser.newContext({ viewport: PHONE })
  context.setDefaultTimeout(20_000)
  const lured = await context.newPage()
  await lured.goto(body.form_url)
  const color = await lured.evaluate('getComputedStyle(document.querySelector("h1")).color')
  assert.equal(color, 'rgb(1, 2, 3)')
  // Not a click, which would wait for the navigation that is refused.
  await lured.getByRole('link', { name: 'A link' }).dispatchEvent('click')
  const refused = lured.waitForEvent('console', (message) => message.text().includes('form-action'))
  await lured.getByRole('button', { name: 'Elsewhere' }).dispatchEvent('click')
  await refused
  const titleOf = (page: Page) => page.evaluate('document.title')
  assert.deepEqual([await titleOf(lured), lured.url()], ['Ours', body.form_url])
  const page = await context.newPage()
  await page.goto(body.form_url)
  await page.getByLabel('Email address').fill('own-reader@example.org')
  await page.getByRole('button', { name: 'Subscribe' }).click()
  await page.getByRole('heading', { name: 'Ours: sent' }).waitFor()
  const raw = (await mailTo('own-reader@example.org')).raw.toString().replaceAll('=\r\n', '')
  await page.goto(/http:\/\/\S+\/confirm\/[\w-]+/.exec(raw)?.[0] ?? '')
  await page.getByRole('button', { name: 'Yes, subscribe me' }).click()
  await page.getByRole('heading', { name: 'Ours: confirmed' }).waitFor()
  assert.equal(await titleOf(page), 'Ours')
  assert.deepEqual(elsewhere.posts, [])
  await context.close()
})
