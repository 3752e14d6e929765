/** The inbox page of the running service in a real browser: what its owner sees, and nobody else. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import type { Browser, BrowserContext } from 'playwright-core'
import { launchBrowser } from '../support/browser.ts'
import { startDashboard, windowHasFocus } from '../support/dashboard.ts'
import { HANG_MS } from '../support/hang.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'

const ROOT = join(import.meta.dirname, '../..')

let browser: Browser
let service: TestService

before(async (t) => {
  // Fast if the dashboard is built already, as after an install.
  const built = spawnSync(process.execPath, [join(ROOT, 'scripts/build.mjs')], { encoding: 'utf8' })
  assert.equal(built.status, 0, built.stderr)
  browser = await launchBrowser()
  service = await startTestService(t as TestContext)
})
after(() => browser.close())

/** A browser that has opened a one-time link. */
async function signedIn(): Promise<BrowserContext> {
  const { body } = await service.call('POST', '/sendwright/v1/login-links')
  const context = await browser.newContext()
  context.setDefaultTimeout(HANG_MS)
  const page = await context.newPage()
  await page.goto(body.url)
  await page.waitForURL(`${service.url}/`)
  await page.close()
  return context
}

test('the one-time link opens the inbox, a sent message appears without a reload, and opens', async () => {
  const context = await signedIn()
  const page = await context.newPage()
  const foreign: string[] = []
  page.on('request', (each) => {
    if (!each.url().startsWith(service.url) && !each.url().startsWith('data:')) foreign.push(each.url())
  })
  await page.goto(service.url)
  await page.getByText('Live', { exact: true }).waitFor()
  const sent = await service.send({
    subject: 'Seen in the browser',
    html: '<h1>It works</h1><script>document.title = "hacked"</script>',
  })
  await page.getByText('Seen in the browser').click()
  await page.getByText('DKIM valid').waitFor()
  await page.frameLocator('iframe').getByText('It works').waitFor()
  await page.getByRole('tab', { name: /^Events/ }).click()
  await page
    .getByText(/^delivered$/i)
    .first()
    .waitFor()
  await page.getByRole('tab', { name: /^Headers/ }).click()
  await page.getByText(sent.body.id.slice(1, -1)).first().waitFor()
  assert.notEqual(await page.title(), 'hacked')
  assert.deepEqual(foreign, [])
  await context.close()
})

test('a message is checked, tagged, shown in dark colours, and worked through by keys', async () => {
  const context = await signedIn()
  const page = await context.newPage()
  for (const subject of ['Older', 'Newer']) {
    await service.send({
      subject,
      html: '<style>@media (prefers-color-scheme: dark) { p { color: #fedcba } }</style><p style="display:flex">Hello</p><a href="http://192.168.7.7/x">link</a>',
      'o:tracking': 'no',
    })
    // Captured before the next one is sent: deliveries overtake each other on a busy machine.
    const list = async () => (await service.call('GET', `/sendwright/v1/inbox?subject=${subject}`)).body.items
    await eventually(`${subject} is captured`, async () => (await list())[0])
  }
  await page.goto(service.url)
  await page.getByText('Newer').click()
  await page.frameLocator('iframe').getByText('Hello').waitFor()
  const shown = async () => (await page.locator('iframe').getAttribute('srcdoc')) ?? ''
  assert.match(await shown(), /@media \(max-width: 0\) \{ p/)
  await page.getByRole('switch', { name: 'Dark', exact: true }).press('Space')
  await eventually('dark colours', async () => /@media \(min-width: 0\) \{ p/.test(await shown()))
  await page.frameLocator('iframe').getByText('Hello').waitFor()
  await page.getByRole('tab', { name: /^Links/ }).click()
  await page.getByRole('button', { name: 'Check links and images' }).click()
  await page.getByText('Not called').waitFor()
  await page.getByRole('tab', { name: 'Checks' }).click()
  await page.getByText('% supported').waitFor()
  await page.getByText('display:flex').click()
  await page.locator('details[open]').getByText('Outlook (Windows)').waitFor()
  await page.getByRole('heading', { name: 'SPF, DKIM and DMARC' }).waitFor()
  await page.getByRole('button', { name: 'Edit tags' }).click()
  const form = page.getByRole('dialog', { name: 'Tags of this message' })
  await windowHasFocus(page)
  await form.getByLabel('Tags, separated by commas').fill('checked, by hand')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.waitFor({ state: 'detached' })
  await page.locator('.message-tags').getByText('by hand').waitFor()
  await page.keyboard.press('n')
  await page.getByRole('heading', { level: 2, name: 'Older' }).waitFor()
  await page.keyboard.press('p')
  await page.getByRole('heading', { level: 2, name: 'Newer' }).waitFor()
  await page.keyboard.press('d')
  await page.getByRole('dialog', { name: 'Delete this message?' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.keyboard.press('u')
  await page.getByText('Choose a message to read it here').waitFor()
  await page.locator('a.inbox-row[data-unread]', { hasText: 'Newer' }).waitFor()
  await page.keyboard.press('?')
  await page.getByText('Mark as unread, and close').waitFor()
  await context.close()
})

test('a message is released: the window says what leaves, and what the server said of each address', async (t) => {
  const context = await signedIn()
  const page = await context.newPage()
  await service.send({ subject: 'For the outside', text: 'Hello' })
  await page.goto(service.url)
  await page.getByText('For the outside').click()
  await page.getByRole('button', { name: 'Delete this message' }).waitFor()
  assert.equal(await page.getByRole('button', { name: 'Release to real addresses' }).count(), 0, 'it is off')
  await context.close()

  const sink = await createSink()
  t.after(() => sink.close())
  const dashboard = await startDashboard(t, { SENDWRIGHT_INBOX_RELEASE: `smtp://${sink.host}:${sink.port}` })
  await dashboard.service.send({ subject: 'For the outside', text: 'Hello' })
  const open = await dashboard.open('/inbox')
  await open.getByText('For the outside').click()
  await open.getByRole('button', { name: 'Release to real addresses' }).click()
  const form = open.getByRole('dialog', { name: 'Release this message?' })
  await windowHasFocus(open)
  await form.getByText('For the outside').waitFor()
  const addresses = form.getByLabel('Addresses')
  sink.on('RCPT TO:<gone@example.org>', '550 5.1.1 No such user here')
  await addresses.fill('gone@example.org')
  await form.getByRole('button', { name: 'Release to 1 address' }).click()
  await form.getByRole('alert').getByText('gone@example.org: 550 5.1.1 No such user here').waitFor()
  assert.equal(sink.messages.length, 0)
  await addresses.fill('ann@example.org,\nbob@example.org')
  await form.getByRole('button', { name: 'Release to 2 addresses' }).click()
  await form.getByRole('status').getByText('bob@example.org').waitFor()
  assert.deepEqual(sink.messages[0]?.envelope.to, ['ann@example.org', 'bob@example.org'])
  assert.equal(await addresses.inputValue(), '')
  assert.equal(await form.getByRole('button', { name: 'Release', exact: true }).isDisabled(), true)
  await addresses.fill(Array.from({ length: 11 }, (_, at) => `a${at}@example.org`).join(' '))
  await form.getByText('At most 10 addresses').waitFor()
  await dashboard.sound(open)
})

test('a link works once, and without a session nothing is shown', async () => {
  const { body } = await service.call('POST', '/sendwright/v1/login-links')
  const path = new URL(body.url).pathname
  assert.equal((await service.call('HEAD', path, { key: null })).status, 200)
  const first = await service.call('GET', path, { key: null })
  assert.equal(first.status, 200)
  assert.match(first.headers.get('set-cookie') ?? '', /HttpOnly; SameSite=Strict/)
  assert.equal((await service.call('GET', path, { key: null })).status, 404)

  const context = await browser.newContext()
  context.setDefaultTimeout(HANG_MS)
  const page = await context.newPage()
  await page.goto(service.url)
  await page.getByText('sendwright login-link').first().waitFor()
  await context.close()
  for (const path of ['', '/stream', '/x', '/x/raw', '/x/attachments/0']) {
    assert.equal((await service.call('GET', `/sendwright/v1/inbox${path}`, { key: null })).status, 401, path)
  }
})

test('a page of another origin can neither read nor change anything with the session', async () => {
  await service.send({ subject: 'Private matter' })
  await eventually('it is in the inbox', async () => {
    const { body } = await service.call('GET', '/sendwright/v1/inbox?subject=private')
    return body.items.length > 0
  })
  const attacker = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html').end('<title>attacker</title>')
  }).listen(0, '127.0.0.3')
  await once(attacker, 'listening')
  const context = await signedIn()
  try {
    const page = await context.newPage()
    await page.goto(`http://127.0.0.3:${(attacker.address() as AddressInfo).port}/`)
    const inbox = `${service.url}/sendwright/v1/inbox`
    const read = await page.evaluate(async (url) => {
      const outcome = (promise: Promise<Response>) =>
        promise
          .then((answer) => answer.text().then((text) => `read ${answer.status} ${text.length}`))
          .catch(() => 'refused')
      return {
        get: await outcome(fetch(url, { credentials: 'include' })),
        delete: await outcome(fetch(url, { method: 'DELETE', credentials: 'include' })),
        // A "simple" request reaches the server without a preflight; its response is opaque.
        post: await outcome(
          fetch(url.replace('/inbox', '/login-links'), {
            method: 'POST',
            credentials: 'include',
            mode: 'no-cors',
          }),
        ),
      }
    }, inbox)
    assert.deepEqual(read, { get: 'refused', delete: 'refused', post: 'read 0 0' })
    // A string, because it runs in the page.
    const framed = await page.evaluate(`new Promise((resolve) => {
      const frame = document.createElement('iframe')
      frame.src = ${JSON.stringify(service.url)}
      frame.onload = () => resolve(frame.contentDocument !== null)
      document.body.append(frame)
    })`)
    assert.equal(framed, false)
    const { body } = await service.call('GET', '/sendwright/v1/inbox?subject=private')
    assert.equal(body.items.length, 1)
  } finally {
    await context.close()
    attacker.close()
  }
})

test('a state-changing request that names a foreign origin is refused, whatever credentials it carries', async () => {
  const headers = { origin: 'https://evil.example' }
  assert.equal((await service.call('DELETE', '/sendwright/v1/inbox', { headers })).status, 403)
  const crossSite = { 'sec-fetch-site': 'cross-site' }
  assert.equal((await service.call('DELETE', '/sendwright/v1/inbox', { headers: crossSite })).status, 403)
})

test('a session is refused under a foreign host name (DNS rebinding), an API key is not', async () => {
  const signIn = await service.call('POST', '/sendwright/v1/session', {
    form: { key: service.key },
    key: null,
  })
  const cookie = (signIn.headers.get('set-cookie') ?? '').split(';')[0] as string
  const status = (headers: Record<string, string>) =>
    new Promise<number | undefined>((resolve, reject) => {
      const { hostname, port } = new URL(service.url)
      request({ hostname, port, path: '/sendwright/v1/inbox', headers }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
        .on('error', reject)
        .end()
    })
  assert.equal(await status({ cookie }), 200)
  assert.equal(await status({ cookie, host: 'evil.example' }), 403)
  const authorization = `Basic ${Buffer.from(`api:${service.key}`).toString('base64')}`
  assert.equal(await status({ authorization, host: 'evil.example' }), 200)
})
