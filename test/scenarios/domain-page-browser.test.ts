/**
 * The domain pages of the running service in a real browser, with the test's own name server: a domain is
 * added, each record is copied with its button and published exactly as copied, and the page turns green.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { launchBrowser } from '../support/browser.ts'
import { createDnsServer, type DnsServer, type StubType } from '../support/dns-server.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'

const ROOT = join(import.meta.dirname, '../..')
const WAIT_MS = 20_000 // a step takes a fraction of it, even on a busy machine
const PHONE = { viewport: { width: 375, height: 700 } }
const REFRESH_MS = 10_000
const OWN_ADDRESS = '192.0.2.7'
const VERIFICATIONS_PER_MINUTE = 10

let browser: Browser
let dns: DnsServer
let service: TestService

before(async (t) => {
  // Fast if the dashboard is built already, as after an install.
  const built = spawnSync(process.execPath, [join(ROOT, 'scripts/build-web.mjs')], { encoding: 'utf8' })
  assert.equal(built.status, 0, built.stderr)
  ;[browser, dns] = await Promise.all([launchBrowser(), createDnsServer()])
  dns.set('spf.service.example', 'TXT', ['v=spf1 ip4:192.0.2.0/24 -all'])
  dns.set('_spf.mailboxes.example', 'TXT', ['v=spf1 ip4:198.51.100.0/24 -all'])
  service = await startTestService(t as TestContext, {
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_SPF_INCLUDE_HOST: 'spf.service.example',
    SENDWRIGHT_MX_HOSTS: 'mxa.service.example,mxb.service.example',
    SENDWRIGHT_TRACKING_CNAME_TARGET: 'track.service.example',
    SENDWRIGHT_IPS: OWN_ADDRESS,
    SENDWRIGHT_RATE_LIMIT: '100', // on, so that the limit of checks applies
  })
})
after(async () => {
  await browser.close()
  await dns.close()
})

/** A browser that has opened a one-time link; it may use the clipboard. */
async function signedIn(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const { body } = await service.call('POST', '/sendwright/v1/login-links')
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options })
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  context.setDefaultTimeout(WAIT_MS)
  const page = await context.newPage()
  await page.goto(body.url)
  await page.waitForURL(`${service.url}/`)
  await page.close()
  return context
}

async function openDomain(context: BrowserContext, name: string): Promise<Page> {
  const page = await context.newPage()
  page.on('pageerror', (error) => assert.fail(error))
  await page.goto(`${service.url}/domains/${name}`)
  await page.getByRole('heading', { level: 1, name }).waitFor()
  return page
}

const cards = (page: Page) => page.locator('.record-card[aria-label]')
const check = (page: Page) => page.getByRole('button', { name: 'Check now' }).click()
// Strings, because they run in the page.
const clipboardOf = (page: Page) => page.evaluate<string>('navigator.clipboard.readText()')
const sideways = (page: Page) =>
  page.evaluate<number>('document.documentElement.scrollWidth - window.innerWidth')
const stateOf = (card: Locator) => card.getAttribute('data-state')

/** The text that the button copies; the clipboard is cleared first, so that an older text does not count. */
async function copied(page: Page, card: Locator, what: string): Promise<string> {
  await page.evaluate("navigator.clipboard.writeText('')")
  await card.getByRole('button', { name: `Copy ${what}` }).click()
  return eventually(`${what} is in the clipboard`, () => clipboardOf(page))
}

/** Publishes the values that the page's buttons copy for each record. */
async function publishAll(page: Page): Promise<void> {
  const zone = new Map<string, { name: string; type: StubType; values: unknown[] }>()
  for (const card of await cards(page).all()) {
    const type = (await card.locator('.record-type').textContent()) as StubType
    const name = await copied(page, card, 'the host name')
    const value = await copied(page, card, 'the value')
    const one = type === 'MX' ? [Number(await copied(page, card, 'the priority')), value] : value
    const set = zone.get(`${name} ${type}`) ?? { name, type, values: [] }
    set.values.push(one)
    zone.set(`${name} ${type}`, set)
  }
  for (const { name, type, values } of zone.values()) dns.set(name, type, values as never)
}

/** Templates of the published description as patterns of "METHOD /path". */
async function publicOperations(): Promise<RegExp[]> {
  const { body } = await service.call('GET', '/openapi.json')
  return Object.entries(body.paths as Record<string, object>).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => {
      const pattern = path.replaceAll('.', '\\.').replaceAll(/\{[^}]+\}/g, '[^/]+')
      return new RegExp(`^${method.toUpperCase()} ${pattern}$`)
    }),
  )
}

test('a domain is added, each record copied and published, and everything turns green', async () => {
  const context = await signedIn()
  const page = await context.newPage()
  const requests = new Set<string>()
  page.on('pageerror', (error) => assert.fail(error))
  page.on('request', (each) => {
    if (['fetch', 'xhr'].includes(each.resourceType()))
      requests.add(`${each.method()} ${new URL(each.url()).pathname}`)
  })
  await page.goto(service.url)
  await page.getByRole('link', { name: 'Domains' }).click()
  await page.getByRole('button', { name: 'Add a domain' }).click()
  await page.getByLabel('Domain name').fill('not a name')
  await page.keyboard.press('Enter')
  await page.getByText('Invalid domain name').waitFor()
  await page.getByLabel('Domain name').fill(' Mail.Example.com ')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/domains/mail.example.com')
  await page.getByText('Unverified', { exact: true }).waitFor()
  await page.getByText('Still needed: DKIM and SPF').waitFor()
  const alert = page.getByRole('alert').filter({ hasText: 'Records of this service are missing' })
  await alert
    .getByText('mxb.service.example, which the MX records of sending domains name, has no address.')
    .waitFor()

  // The name has an SPF record of another mail service, and the tracking host points elsewhere.
  dns.set('mail.example.com', 'TXT', ['v=spf1 include:_spf.mailboxes.example -all'])
  dns.set('email.mail.example.com', 'CNAME', ['track.elsewhere.example'])
  await check(page)
  const spf = page.getByRole('article', { name: 'TXT mail.example.com', exact: true })
  await spf.getByText('Wrong', { exact: true }).waitFor()
  await spf.getByText('does not have include:spf.service.example. Change it to:').waitFor()
  const merged = 'v=spf1 include:_spf.mailboxes.example include:spf.service.example -all'
  assert.equal(await copied(page, spf, 'the value'), merged)
  await spf.getByText(`${dns.host}:${dns.port} answered for TXT mail.example.com`).waitFor()
  const tracking = page.getByRole('article', { name: 'CNAME email.mail.example.com' })
  await tracking.getByText('Point it to track.service.example.').waitFor()
  await tracking.getByText('track.elsewhere.example', { exact: true }).waitFor()
  const dkim = page.getByRole('article', { name: 'TXT k1._domainkey.mail.example.com' })
  await dkim.getByText('Not found yet').waitFor()
  await page.getByText('Does not sign').waitFor()

  for (const name of ['mxa', 'mxb', 'track']) dns.set(`${name}.service.example`, 'A', [OWN_ADDRESS])
  await check(page)
  await alert.waitFor({ state: 'detached' })

  // Now as the page instructs: key and SPF, the tracking host, two mail hosts, and the advice about DMARC.
  assert.equal(await cards(page).count(), 6)
  await publishAll(page)
  await check(page)
  await page.getByText('Active', { exact: true }).waitFor()
  await page.getByText('This domain may send.').waitFor()
  await page.locator('.record-card:not([data-state=valid])').first().waitFor({ state: 'detached' })
  for (const card of await cards(page).all()) {
    assert.equal(await stateOf(card), 'valid', (await card.getAttribute('aria-label')) ?? '')
    await card.getByText('Valid', { exact: true }).waitFor()
  }
  await page.getByText('Signs', { exact: true }).waitFor()
  await page.getByText('Last checked just now').waitFor()

  await page.getByRole('button', { name: 'Copy all as zone file' }).click()
  await page.getByText('Copied', { exact: true }).waitFor()
  const zone = await service.call('GET', '/sendwright/v1/domains/mail.example.com/zone')
  assert.equal(await clipboardOf(page), zone.text)
  const download = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Download' }).click()
  assert.equal((await download).suggestedFilename(), 'mail.example.com.zone')

  await page.getByRole('link', { name: 'Domains' }).first().click()
  await page.getByRole('link', { name: /^mail\.example\.com Active/ }).waitFor()
  const operations = await publicOperations()
  const unknown = [...requests].filter((request) => !operations.some((pattern) => pattern.test(request)))
  assert.deepEqual(unknown, [])
  await context.close()
})

test('an open page follows a check made elsewhere and queries no name server itself', async () => {
  await service.call('POST', '/v4/domains', { form: { name: 'waits.example', dkim_key_size: '1024' } })
  const context = await signedIn()
  await context.clock.install()
  const page = await openDomain(context, 'waits.example')
  await page.getByText('Not checked yet', { exact: true }).first().waitFor()
  await publishAll(page)
  assert.equal((await service.call('PUT', '/v4/domains/waits.example/verify')).body.domain.state, 'active')
  const asked = dns.queries.length
  await page.clock.fastForward(REFRESH_MS)
  await page.getByText('This domain may send.').waitFor()
  await page.getByRole('article', { name: 'TXT waits.example' }).getByText('Valid', { exact: true }).waitFor()
  assert.equal(dns.queries.length, asked)
  await context.close()
})

test('checking too often shows how long to wait', async () => {
  await service.call('POST', '/v4/domains', { form: { name: 'hasty.example', dkim_key_size: '1024' } })
  for (let n = 0; n < VERIFICATIONS_PER_MINUTE; n += 1)
    await service.call('PUT', '/v4/domains/hasty.example/verify')
  const context = await signedIn()
  await context.clock.install()
  const page = await openDomain(context, 'hasty.example')
  await check(page)
  const wait = page.getByRole('button', { name: /^Check again in \d+ s$/ })
  await wait.waitFor()
  assert.equal(await wait.isDisabled(), true)
  await page.getByText('Checked too often').waitFor()
  await page.clock.fastForward(70_000)
  await page.getByRole('button', { name: 'Check now' }).waitFor()
  await context.close()
})

test('the list can be searched, refusals of the API show in place, and deleting requires typing the name', async () => {
  for (const name of ['one.shop.example', 'two.shop.example'])
    await service.call('POST', '/v4/domains', { form: { name, dkim_key_size: '1024' } })
  const context = await signedIn()
  const page = await context.newPage()
  await page.goto(`${service.url}/domains`)
  await page.getByLabel('Search domains').fill('SHOP')
  await page.waitForURL('**/domains?q=SHOP')
  await page.getByText('2 domains').waitFor()
  await page.getByRole('button', { name: 'Add a domain' }).click()
  await page.getByLabel('Domain name').fill('one.shop.example')
  await page.keyboard.press('Enter')
  await page.getByText('This domain name is already taken').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: /^one\.shop\.example/ }).click()
  await page.getByLabel('Delete this domain').click()
  const remove = page.getByRole('button', { name: 'Delete the domain' })
  await page.getByLabel(/^Type one\.shop\.example/).fill('one.shop')
  await page.keyboard.press('Enter')
  assert.equal(await remove.isDisabled(), true)
  await page.getByLabel(/^Type one\.shop\.example/).fill('one.shop.example')
  await remove.click()
  await page.waitForURL('**/domains')
  await page.getByRole('link', { name: /^two\.shop\.example/ }).waitFor()
  assert.equal(await page.getByRole('link', { name: /^one\.shop\.example/ }).count(), 0)
  await page.goto(`${service.url}/domains/one.shop.example`)
  await page.getByText('There is no domain one.shop.example').waitFor()
  await page.goto(`${service.url}/domains/${service.domain}`)
  await page.getByText('needs no DNS records').waitFor()
  await context.close()
})

test('at phone width nothing scrolls sideways, and without the clipboard of secure pages copying still works', async () => {
  const name = 'a-rather-long-name-for-a-phone.department.example'
  await service.call('POST', '/v4/domains', { form: { name } })
  const context = await signedIn(PHONE)
  await context.addInitScript("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
  const page = await openDomain(context, name)
  await check(page)
  await page.getByText('Not found yet').first().waitFor()
  assert.ok((await sideways(page)) <= 0)
  const dkim = page.getByRole('article', { name: `TXT k1._domainkey.${name}` })
  await dkim.getByRole('button', { name: 'Copy the host name' }).click()
  await dkim.getByRole('button', { name: 'Copied' }).waitFor()
  // Readable only when pasted into an input.
  await page.getByRole('link', { name: 'Domains' }).first().click()
  await page.getByLabel('Search domains').focus()
  await page.keyboard.press('ControlOrMeta+V')
  assert.equal(await page.getByLabel('Search domains').inputValue(), `k1._domainkey.${name}`)
  assert.ok((await sideways(page)) <= 0)
  await context.close()
})
