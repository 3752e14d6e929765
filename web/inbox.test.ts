/** The inbox in a real browser: the built dashboard over a stand-in for the service. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { launchBrowser } from '../test/support/browser.ts'
import { builtDashboard } from '../test/support/built-dashboard.ts'
import { HANG_MS } from '../test/support/hang.ts'
import { API_KEY, type FakeApi, startFakeApi } from './test/fake-api.ts'
import { everydayMail, hostileMail, mail } from './test/sample-mail.ts'

/**
 * A locator's patience: far above what a step takes, and above the five seconds from one poll to the next, as what
 * one poll misses on a busy machine the next one shows.
 */
const BLANK = 'about:blank'
const DESKTOP = { viewport: { width: 1280, height: 800 } }
const PHONE = { viewport: { width: 375, height: 700 } }

let browser: Browser
let elsewhere: Awaited<ReturnType<typeof startElsewhere>>
let api: FakeApi
/** Opened again by the next test that wants one of its size: a new page takes as much as a test does. */
const pages = new Map<BrowserContextOptions, Page>()

before(async () => {
  ;[browser, elsewhere, api] = await Promise.all([
    launchBrowser(),
    startElsewhere(),
    startFakeApi(builtDashboard()),
  ])
})
after(async () => {
  await browser.close()
  await api.close()
  await elsewhere.close()
})
beforeEach(() => {
  Object.assign(api, { mails: [], requests: [], signedIn: true, streaming: true } satisfies Partial<FakeApi>)
  elsewhere.hits.clear()
})
afterEach(async () => {
  for (const page of pages.values()) {
    for (const name of ['console', 'dialog', 'pageerror'] as const) page.removeAllListeners(name)
    if (page.url() !== BLANK) await page.evaluate(() => window.localStorage.clear())
    await page.goto(BLANK)
  }
})

/** Another host, which notes the path of each request that reaches it. */
async function startElsewhere() {
  const hits = new Set<string>()
  const server = createServer((request, response) => {
    hits.add(request.url ?? '')
    response.end()
    server.emit('hit')
  })
  server.listen(0, '127.0.0.2')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.2:${(server.address() as AddressInfo).port}`,
    hits,
    async hit(path: string) {
      const patience = AbortSignal.timeout(HANG_MS)
      while (!hits.has(path)) await once(server, 'hit', { signal: patience })
    },
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

async function openPage(path: string, options: BrowserContextOptions = DESKTOP): Promise<Page> {
  const page = pages.get(options) ?? (await browser.newPage({ ...options, reducedMotion: 'reduce' }))
  pages.set(options, page)
  page.setDefaultTimeout(HANG_MS)
  page.on('pageerror', (error) => assert.fail(error))
  await page.goto(api.origin + path)
  return page
}

const rows = (page: Page) => page.locator('a.inbox-row')
const subjects = (page: Page) => page.locator('.inbox-row-subject').allTextContents()
const openedSubject = (page: Page, subject: string) =>
  page.getByRole('heading', { level: 2, name: subject }).waitFor()
/** A search for the invoice has its answer: what does not match is gone, and rows are there again. */
async function narrowed(page: Page) {
  await rows(page).filter({ hasText: 'Confirm' }).waitFor({ state: 'detached' })
  await rows(page).first().waitFor()
}
const preview = (page: Page) => page.frameLocator('iframe.preview-frame')

function fill(...more: ReturnType<typeof everydayMail>) {
  for (const sample of [...everydayMail(elsewhere.origin), ...more]) api.mails.unshift(sample)
}

test('an empty inbox shows how to send a first message from this address', async () => {
  const page = await openPage('/')
  await page.getByText('No mail yet').waitFor()
  await page.getByText(`${api.origin}/v3/mg.example.com/messages`).waitFor()
  await page.getByText('printed at its first start').waitFor()
})

test('the list is newest first and new mail shows without a reload', async () => {
  fill()
  const page = await openPage('/')
  await page.getByText('Live', { exact: true }).waitFor()
  assert.equal((await subjects(page))[0], 'Confirm your address')
  await page.evaluate(() => document.body.setAttribute('data-loaded', 'once'))
  api.deliver(mail({ subject: 'Just arrived' }))
  await page.getByText('Just arrived').waitFor()
  assert.equal((await subjects(page))[0], 'Just arrived')
  assert.equal(await page.getAttribute('body', 'data-loaded'), 'once')
})

test('mail that came while the stream was broken shows once it is back', async () => {
  fill()
  const page = await openPage('/')
  await page.getByText('Live', { exact: true }).waitFor()
  api.streaming = false
  api.mails.unshift(mail({ subject: 'Came in the dark' }))
  api.cutStreams()
  await page.getByText('Every 5 s').waitFor()
  await page.getByText('Came in the dark').waitFor()
})

test('a browser that believes itself offline still reads from the service on its own machine', async () => {
  fill()
  const page = await openPage('/')
  await rows(page).first().waitFor()
  await page.evaluate(() => window.dispatchEvent(new Event('offline')))
  await page.getByLabel('Search', { exact: true }).fill('invoice')
  await narrowed(page)
  assert.deepEqual(await subjects(page), ['Invoice 2026-1187 for November'])
})

test('older messages load as one scrolls, through links on another host name', async () => {
  for (let n = 1; n <= 120; n += 1) api.mails.unshift(mail({ subject: `Message ${n}` }))
  const page = await openPage('/')
  await rows(page).nth(49).waitFor()
  await rows(page).nth(49).scrollIntoViewIfNeeded()
  await rows(page).nth(99).waitFor()
  await rows(page).nth(99).scrollIntoViewIfNeeded()
  await page.getByText('Message 1', { exact: true }).waitFor()
  assert.equal(new Set(await subjects(page)).size, 120)
})

test('search and filters narrow the list, stay in the address and let arrivals in only if they match', async () => {
  fill()
  const page = await openPage('/')
  await page.getByLabel('Search', { exact: true }).fill('invoice')
  await page.waitForURL('**/?q=invoice')
  await narrowed(page)
  assert.deepEqual(await subjects(page), ['Invoice 2026-1187 for November'])
  api.deliver(mail({ subject: 'Something else' }))
  api.deliver(mail({ subject: 'Second invoice' }))
  await page.getByText('Second invoice').waitFor()
  assert.deepEqual(await subjects(page), ['Second invoice', 'Invoice 2026-1187 for November'])
  await page.goto(`${api.origin}/?to=noa&tab=text`)
  await page.getByText('order 42').waitFor()
  assert.equal(await page.getByLabel('To', { exact: true }).inputValue(), 'noa')
})

test('arrow keys walk through the list, Enter opens, and what was opened no longer looks unread', async () => {
  fill()
  const page = await openPage('/')
  await rows(page).first().waitFor()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await openedSubject(page, 'Your order has shipped 📦')
  assert.equal(await rows(page).nth(0).getAttribute('data-unread'), 'true')
  assert.equal(await rows(page).nth(1).getAttribute('data-unread'), null)
})

test('the tabs show text, links, headers, source, attachments and events', async () => {
  fill()
  const page = await openPage('/')
  await page.getByText('Your order has shipped').click()
  await openedSubject(page, 'Your order has shipped 📦')
  await page.getByText('DKIM valid').waitFor()
  await preview(page).getByText('Good news, Alice!').waitFor()
  const tab = (name: RegExp) => page.getByRole('tab', { name }).click()
  await tab(/^Text/)
  await page.getByText('Track it: http').waitFor()
  await tab(/^Links/)
  assert.equal(await page.locator('.part-url').first().getAttribute('href'), `${elsewhere.origin}/track/1187`)
  await tab(/^Headers/)
  await page.getByRole('rowheader', { name: 'List-Unsubscribe' }).waitFor()
  await tab(/^Source/)
  await page.getByText('MIME-Version: 1.0').waitFor()
  await tab(/^Attachments/)
  const download = page.waitForEvent('download')
  await page.getByLabel('Download logo.png').click()
  assert.equal((await download).suggestedFilename(), 'logo.png')
  await tab(/^Events/)
  await page.getByText('450 4.2.0 greylisted, try later').waitFor()
  const titles = await page.locator('.mantine-Timeline-itemTitle').allTextContents()
  assert.deepEqual(titles, ['Accepted', 'Deferred, will be tried again', 'Delivered'])
})

test('inline images reach the frame as data, remote ones only when asked for', async () => {
  fill()
  const page = await openPage('/')
  await page.getByText('Your order has shipped').click()
  const logo = preview(page).locator('img').first()
  await logo.waitFor()
  assert.match((await logo.getAttribute('src')) ?? '', /^data:image\/png;base64,/)
  await page.getByText('2 remote images blocked').waitFor()
  assert.deepEqual([...elsewhere.hits], [])
  await page.getByRole('button', { name: 'Load', exact: true }).click()
  await elsewhere.hit('/banner.png')
  await elsewhere.hit('/pixel.gif')
})

test('a hostile message runs no script, reaches no other host and leaves the page where it is', async () => {
  const [attack, names] = hostileMail(elsewhere.origin)
  assert.ok(attack && names)
  fill(attack, names)
  const page = await openPage(`/inbox/${attack.message.id}`)
  let dialogs = 0
  page.on('dialog', (dialog) => {
    dialogs += 1
    void dialog.dismiss()
  })
  const frame = page.locator('iframe.preview-frame')
  assert.equal(await frame.getAttribute('sandbox'), '')
  await preview(page).getByText('Shown all the same').waitFor()
  for (const id of ['leave', 'inside', 'script', 'submit']) await preview(page).locator(`#${id}`).click()
  await preview(page).getByText('Shown all the same').waitFor()
  assert.deepEqual([...elsewhere.hits], [])

  // The same message with its images allowed: now those are asked for, which shows that a request is
  // seen when there is one, and still nothing but images is.
  await page.getByRole('button', { name: 'Load', exact: true }).click()
  for (const image of ['/img.png', '/svg.png', '/style.png']) await elsewhere.hit(image)
  const kinds = [...elsewhere.hits].filter((path) => !path.endsWith('.png'))
  assert.deepEqual(kinds, [])

  // Names, tags, headers, file names and replies are text everywhere.
  await page.goto(`${api.origin}/inbox/${names.message.id}`)
  for (const tab of ['Text', 'Headers', 'Source', 'Attachments', 'Events'])
    await page.getByRole('tab', { name: new RegExp(`^${tab}`) }).click()
  await page.getByText('2.0.0 captured <img').waitFor()
  assert.equal(await page.evaluate(() => 'pwned' in window), false)
  assert.equal(dialogs, 0)
  assert.equal(new URL(page.url()).origin, api.origin)
})

test('deleting asks first, then opens the next message; deleting all empties the inbox', async () => {
  fill()
  const page = await openPage('/')
  await page.getByText('Confirm your address').click()
  await page.getByLabel('Delete this message').click()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  assert.equal(await rows(page).count(), 6)
  await page.getByLabel('Delete this message').click()
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await openedSubject(page, 'Your order has shipped 📦')
  assert.equal(await rows(page).count(), 5)
  assert.equal(api.mails.length, 5)
  await page.getByLabel('Delete all messages').click()
  await page.getByRole('button', { name: 'Delete all', exact: true }).click()
  await page.getByText('No mail yet').waitFor()
  assert.equal(api.mails.length, 0)
})

test('without a session the login screen shows; a key starts one, signing out ends it', async () => {
  fill()
  api.signedIn = false
  const page = await openPage('/')
  await page.getByText('sendwright login-link').waitFor()
  const key = page.getByLabel('Or sign in with an API key')
  await key.fill('wrong')
  await key.press('Enter')
  await page.getByText('This key is not accepted.').waitFor()
  await key.fill(API_KEY)
  await key.press('Enter')
  await page.getByText('Confirm your address').waitFor()
  await page.getByRole('button', { name: /^Your account/ }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByText('sendwright login-link').waitFor()
})

test('a session that ends while the page is open leads to the login screen', async () => {
  fill()
  const page = await openPage('/')
  await page.getByText('Live', { exact: true }).waitFor()
  api.signedIn = false
  api.cutStreams()
  await page.getByText('sendwright login-link').waitFor()
})

test('at phone width list and message take turns and nothing scrolls sideways', async () => {
  const hostile = hostileMail(elsewhere.origin)
  fill(...hostile)
  const page = await openPage('/', PHONE)
  const sideways = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
  await rows(page).first().waitFor()
  assert.ok((await sideways()) <= 0)
  for (const { message } of hostile) {
    await page.locator(`a.inbox-row[href*="${message.id}"]`).click()
    await page.getByRole('tab').first().waitFor()
    assert.equal(await rows(page).first().isVisible(), false)
    assert.ok((await sideways()) <= 0)
    await page.getByRole('article').getByRole('link', { name: 'Inbox' }).click()
    await rows(page).first().waitFor()
  }
})

test('the page asks for nothing but the public API and runs under a strict policy', async () => {
  fill()
  const violations: string[] = []
  const page = await openPage('/')
  page.on(
    'console',
    (line) => line.text().includes('Content Security Policy') && violations.push(line.text()),
  )
  await page.reload()
  await page.getByText('Confirm your address').click()
  await openedSubject(page, 'Confirm your address')
  await preview(page).getByText('Hello!').waitFor()
  await page.getByRole('tab', { name: 'Events' }).click()
  await page.getByText('Delivered').waitFor()
  const operation =
    /^(GET|POST|DELETE) \/(sendwright\/v1\/(inbox|session|system)|v3\/[^/]+\/events|v4\/domains|v5\/accounts\/subaccounts)/
  assert.deepEqual(
    api.requests.filter((request) => !operation.test(request)),
    [],
  )
  assert.deepEqual(violations, [])
})
