/** A recipient with a phone, without JavaScript, unsubscribes and undoes it. */
import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { launchBrowser } from '../support/browser.ts'
import { LINK_SECRET, type Links, linksOf } from '../support/links.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'

const PHONE = { width: 360, height: 640 }

let browser: Browser
let service: TestService
let links: Links

before(async (t) => {
  const sink = await createSink({ host: ownAddress() })
  service = await startTestService(t as TestContext, {
    SENDWRIGHT_SECRET: LINK_SECRET,
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
  })
  after(() => sink.close())
  browser = await launchBrowser()
  await service.send({ to: 'alice@example.org' })
  const message = await eventually('the mail', async () => sink.messages[0])
  links = await linksOf(service, message)
})
after(() => browser.close())

const tagsOf = async () => {
  const { status, body } = await service.call('GET', `/v3/${service.domain}/unsubscribes/alice@example.org`)
  return status === 404 ? null : (body.tags as string[])
}

for (const colorScheme of ['light', 'dark'] as const) {
  test(`unsubscribe and undo on a phone without JavaScript (${colorScheme})`, async () => {
    const context = await browser.newContext({ javaScriptEnabled: false, viewport: PHONE, colorScheme })
    context.setDefaultTimeout(20_000)
    const page = await context.newPage()
    const faults: string[] = []
    page.on('console', (message) => faults.push(message.text()))
    page.on('request', (request) => {
      if (!request.url().startsWith(service.url)) faults.push(request.url())
    })
    await page.goto(links.unsubscribe())
    await page.getByRole('heading', { name: 'Unsubscribe' }).waitFor()
    assert.equal(await tagsOf(), null)
    const button = page.getByRole('button', { name: 'Unsubscribe' })
    const box = await button.boundingBox()
    // Within the screen, and high enough for a thumb.
    assert.ok(box && box.x >= 0 && box.x + box.width <= PHONE.width && box.height >= 44)
    await button.click()
    await page.getByRole('heading', { name: 'You are unsubscribed' }).waitFor()
    assert.deepEqual(await tagsOf(), ['*'])
    await page.reload()
    await page.getByRole('heading', { name: 'You are unsubscribed' }).waitFor()
    await page.goto(links.unsubscribe())
    await page.getByRole('button', { name: 'Undo: subscribe again' }).click()
    await page.getByRole('heading', { name: 'You are subscribed again' }).waitFor()
    assert.equal(await tagsOf(), null)
    assert.deepEqual(await context.cookies(), [])
    assert.deepEqual(faults, [])
    await context.close()
  })
}

test('the page takes the colours of the reader and never scrolls sideways', async () => {
  const backgrounds: string[] = []
  for (const colorScheme of ['light', 'dark'] as const) {
    const context = await browser.newContext({ viewport: PHONE, colorScheme })
    const page = await context.newPage()
    await page.goto(links.unsubscribe({ recipient: `${'long'.repeat(15)}@${'host.'.repeat(30)}example.org` }))
    const { background, width } = (await page.evaluate(
      // Runs in the browser in an isolated context; the page itself has no script.
      `({ background: getComputedStyle(document.body).backgroundColor, width: document.documentElement.scrollWidth })`,
    )) as { background: string; width: number }
    backgrounds.push(background)
    assert.ok(width <= PHONE.width)
    await context.close()
  }
  assert.equal(new Set(backgrounds).size, 2)
})
