/**
 * The domain pages of the running service in a real browser, with the test's own name server: a domain is
 * added, each record is copied with its button and published exactly as copied, and the page turns green.
 */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { after, afterEach, before, type TestContext, test } from 'node:test'
import type { BrowserContext, Locator, Page } from 'playwright-core'
import { systemClock } from '../../src/base/time/clock.ts'
import { createResolver } from '../../src/protocols/dns/resolver.ts'
import { type Dashboard, PHONE, press, pressToCopy, startDashboard } from '../support/dashboard.ts'
import { createDnsServer, type DnsServer, type StubType } from '../support/dns-server.ts'
import { eventually, ownAddress, type TestService } from '../support/service.ts'

const REFRESH_MS = 10_000
const OWN_ADDRESS = '192.0.2.7'
const VERIFICATIONS_PER_MINUTE = 10
/** Of the service's own DKIM zone. */
const ZONE = { host: ownAddress(), port: 5353 }

/** Stopped, so that a limit fills up no more while a slow machine works. */
let stoppedAt: number | undefined
const clock = { ...systemClock, monotonic: () => stoppedAt ?? systemClock.monotonic() }
let dashboard: Dashboard
let dns: DnsServer
let service: TestService

before(async (t) => {
  dns = await createDnsServer()
  dns.set('spf.service.example', 'TXT', ['v=spf1 ip4:192.0.2.0/24 -all'])
  dns.set('_spf.mailboxes.example', 'TXT', ['v=spf1 ip4:198.51.100.0/24 -all'])
  const env = {
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_SPF_INCLUDE_HOST: 'spf.service.example',
    SENDWRIGHT_DKIM_ZONE: 'dkim.service.example',
    SENDWRIGHT_DKIM_ZONE_LISTEN: `${ZONE.host}:${ZONE.port}`,
    SENDWRIGHT_MX_HOSTS: 'mxa.service.example,mxb.service.example',
    SENDWRIGHT_TRACKING_CNAME_TARGET: 'track.service.example',
    SENDWRIGHT_IPS: OWN_ADDRESS,
    SENDWRIGHT_RATE_LIMIT: '100', // on, so that the limit of checks applies
  }
  dashboard = await startDashboard(t as TestContext, env, { clock })
  service = dashboard.service
})
afterEach(() => dashboard.tidy())
after(() => dns.close())

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

test('a domain is added, each record copied and published, and everything turns green', async () => {
  const page = await dashboard.open('/')
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

  await pressToCopy(page.getByRole('button', { name: 'Copy all as zone file' }), (button) => button.click())
  const zone = await service.call('GET', '/sendwright/v1/domains/mail.example.com/zone')
  assert.equal(await clipboardOf(page), zone.text)
  const download = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Download' }).click()
  assert.equal((await download).suggestedFilename(), 'mail.example.com.zone')

  await page.getByRole('link', { name: 'Domains' }).first().click()
  await page.getByRole('link', { name: /^mail\.example\.com Active/ }).waitFor()
  await dashboard.steady(page)
})

test('an open page follows a check made elsewhere and queries no name server itself', async () => {
  await service.call('POST', '/v4/domains', { form: { name: 'waits.example', dkim_key_size: '1024' } })
  const context = await dashboard.signedIn()
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

test('checking too often shows how long to wait', async (t) => {
  stoppedAt = systemClock.monotonic()
  t.after(() => {
    stoppedAt = undefined
  })
  await service.call('POST', '/v4/domains', { form: { name: 'hasty.example', dkim_key_size: '1024' } })
  for (let n = 0; n < VERIFICATIONS_PER_MINUTE; n += 1)
    await service.call('PUT', '/v4/domains/hasty.example/verify')
  const context = await dashboard.signedIn()
  await context.clock.install()
  const page = await openDomain(context, 'hasty.example')
  // Shown for some seconds.
  await Promise.all([
    page.getByRole('button', { name: /^Check again in \d+ s$/, disabled: true }).waitFor(),
    page.getByText('Checked too often').waitFor(),
    check(page),
  ])
  await page.clock.fastForward(70_000)
  await page.getByRole('button', { name: 'Check now' }).waitFor()
  await context.close()
})

test('the list can be searched, refusals of the API show in place, and deleting requires typing the name', async () => {
  for (const name of ['one.shop.example', 'two.shop.example'])
    await service.call('POST', '/v4/domains', { form: { name, dkim_key_size: '1024' } })
  const page = await dashboard.open('/domains')
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
})

test('at phone width nothing scrolls sideways, and without the clipboard of secure pages copying still works', async () => {
  const name = 'a-rather-long-name-for-a-phone.department.example'
  await service.call('POST', '/v4/domains', { form: { name } })
  const context = await dashboard.signedIn({ look: PHONE })
  await context.addInitScript("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
  const page = await openDomain(context, name)
  await check(page)
  await page.getByText('Not found yet').first().waitFor()
  assert.ok((await sideways(page)) <= 0)
  const dkim = page.getByRole('article', { name: `TXT k1._domainkey.${name}` })
  await pressToCopy(dkim.getByRole('button', { name: 'Copy the host name' }), (button) => button.click())
  // Readable only when pasted into an input.
  await page.getByRole('link', { name: 'Domains' }).first().click()
  await page.getByLabel('Search domains').focus()
  await page.keyboard.press('ControlOrMeta+V')
  assert.equal(await page.getByLabel('Search domains').inputValue(), `k1._domainkey.${name}`)
  assert.ok((await sideways(page)) <= 0)
  await context.close()
})

/** A domain whose first key is published, so that it signs. */
async function verifiedDomain(name: string): Promise<void> {
  const made = await service.call('POST', '/v4/domains', { form: { name, dkim_key_size: '1024' } })
  for (const { name: at, record_type, value } of made.body.sending_dns_records)
    dns.set(at, record_type, [value] as never)
  const { body } = await service.call('PUT', `/v4/domains/${name}/verify`)
  assert.equal(body.domain.state, 'active')
}
/** Publishes the two CNAMEs of automatic sender security, and what the service's own zone answers for their targets. */
async function delegateKeys(name: string): Promise<void> {
  const zone = createResolver({ servers: [ZONE], clock: systemClock, attempts: 1 })
  const { body } = await service.call('GET', `/v4/domains/${name}`)
  for (const { name: at, record_type, value } of body.sending_dns_records) {
    if (record_type !== 'CNAME' || !at.includes('._domainkey.')) continue
    dns.set(at, 'CNAME', [value])
    dns.set(value, 'TXT', [...(await zone.query(value, 'TXT', { fresh: true })).records])
  }
  await zone.close()
  const verified = await service.call('PUT', `/v4/domains/${name}/verify`)
  assert.equal(verified.body.domain.state, 'active')
}
const domainOf = async (name: string) =>
  (await service.call('GET', `/v4/domains/${name}?h:extended=true`)).body.domain

test('by keyboard: tracking, footers, tracking host, connection and messages change, and a change is taken back', async () => {
  const name = 'options.example'
  await verifiedDomain(name)
  const tracking = async () => (await service.call('GET', `/v3/domains/${name}/tracking`)).body.tracking
  const page = await dashboard.open(`/domains/${name}`)
  await page.getByRole('link', { name: 'Settings' }).first().waitFor()
  await page.getByRole('navigation', { name: 'Pages of this domain' }).getByText('Settings').press('Enter')
  await page.waitForURL(`**/domains/${name}/settings`)
  const opens = page.getByRole('switch', { name: 'Opens' })
  await opens.waitFor()
  await page
    .getByText('Not verified')
    .or(page.getByText('Right', { exact: true }))
    .waitFor()
  await dashboard.sound(page)
  await opens.press('Space')
  await page.getByText('Opens: On').waitFor()
  assert.equal(await page.evaluate('document.activeElement.getAttribute("aria-label")'), 'Opens')
  assert.equal((await tracking()).open.active, true)
  await page.getByRole('button', { name: 'Undo' }).press('Enter')
  await page.getByText('Opens: as before').waitFor()
  assert.equal((await tracking()).open.active, false)
  await page.getByRole('combobox', { name: 'Clicks' }).selectOption('HTML only')
  await page.getByText('Clicks: HTML only').waitFor()
  assert.deepEqual((await tracking()).click, { active: true, htmlonly: true })
  await page.getByRole('switch', { name: 'Unsubscribe button on bulk mail' }).press('Space')
  await page.getByText('Unsubscribe button on bulk mail: Off').waitFor()
  assert.equal((await tracking()).unsubscribe.on_bulk, false)

  await page.getByRole('button', { name: 'Change the footers' }).press('Enter')
  await page.waitForURL('**/settings?edit=footers')
  await page.getByLabel('Text footer').fill('x'.repeat(11_000))
  await page.getByRole('button', { name: 'Save' }).press('Enter')
  await page.getByText('Footer is too long').waitFor()
  await page.getByLabel('Text footer').fill('Leave: %unsubscribe_url%')
  await page.getByRole('button', { name: 'Save' }).press('Enter')
  await page.getByText('Footers saved').waitFor()
  assert.equal((await tracking()).unsubscribe.text_footer, 'Leave: %unsubscribe_url%')

  await page.getByRole('button', { name: 'Change the tracking host' }).press('Enter')
  await page.getByLabel('First label').fill('not a label')
  await press(page, 'Enter')
  await page.getByText('web_prefix must be a valid atom').waitFor()
  await dashboard.sound(page)
  await page.getByLabel('First label').fill('links')
  await press(page, 'Enter')
  await page.getByText(`http://links.${name}`).waitFor()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Order a certificate' }).press('Enter')
  await page.getByText(/x509 certificates are not issued by this server|invalid CNAME record/).waitFor()

  await page.getByRole('switch', { name: 'Require TLS' }).press('Space')
  await page.getByText('Require TLS: On').waitFor()
  await page.getByRole('button', { name: 'Change the settings of messages' }).press('Enter')
  await page.getByLabel('Time to deliver, in hours').fill('9999')
  await press(page, 'Enter')
  await page.getByText('message_ttl is larger than the account maximum').waitFor()
  await page.getByLabel('Time to deliver, in hours').fill('1.5')
  await page.getByLabel('Copies of sent mail go to this URL').fill('https://archive.example/in')
  await press(page, 'Enter')
  await page.getByText('1.5 h').waitFor()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  const { message_ttl, archive_to, require_tls, mailfrom_host } = await domainOf(name)
  assert.deepEqual(
    { message_ttl, archive_to, require_tls, mailfrom_host },
    { message_ttl: 5400, archive_to: 'https://archive.example/in', require_tls: true, mailfrom_host: name },
  )
  await page.getByRole('link', { name: 'DKIM keys' }).press('Enter')
  await page.getByRole('button', { name: 'Deactivate k1' }).waitFor()
  await dashboard.sound(page)
  await page.getByRole('link', { name: 'SMTP logins' }).press('Enter')
  await page.getByRole('button', { name: `New password for postmaster@${name}` }).waitFor()
  await dashboard.sound(page)
})

test('by touch on a phone: a key is replaced by a published one; a login is made, reset and deleted', async () => {
  const name = 'keys.example'
  await verifiedDomain(name)
  const page = await dashboard.open(`/domains/${name}/keys`, { look: PHONE })
  const card = (selector: string) => page.getByRole('article', { name: selector })
  await card('k1').getByText('Signs', { exact: true }).waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Make a key' }).tap()
  await page.waitForURL('**/keys?form=add')
  await page.getByLabel('Selector').fill('next')
  await page.getByRole('button', { name: 'Make the key' }).tap()
  await page.getByText('Key next made.').waitFor()
  await page.getByRole('button', { name: 'Activate next' }).tap()
  await card('next').getByText('cannot activate domain key: dns record is not valid').waitFor()
  const host = await copied(page, card('next'), 'the host name of next')
  dns.set(host, 'TXT', [await copied(page, card('next'), 'the value of next')])
  await page.getByRole('button', { name: 'Activate next' }).tap()
  await card('next').getByText('Signs', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Deactivate k1' }).tap()
  await card('k1').getByText('Does not sign').waitFor()
  await page.getByRole('button', { name: 'Delete k1' }).tap()
  await page.getByLabel('Type k1 to confirm').fill('k1')
  await page.getByRole('button', { name: 'Delete', exact: true }).tap()
  await card('k1').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Switch on automatic sender security' }).tap()
  await page.getByRole('dialog').getByRole('button', { name: 'Switch on', exact: true }).tap()
  await page.getByText('Rotations begin once both records are found.').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Rotate now' }).isDisabled(), true)
  await delegateKeys(name)
  await page.reload()
  await page.getByText('No rotation is planned.').waitFor()
  await page.getByRole('button', { name: 'Rotate now' }).tap()
  await page.getByText('Rotation in progress').waitFor()
  await page.getByText('pdk2 is published and pdk1 still signs.').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Rotate now' }).isDisabled(), true)
  await dashboard.sound(page)

  await page.getByRole('link', { name: 'SMTP logins' }).tap()
  await page.getByText(`postmaster@${name}`).waitFor()
  assert.equal(await page.getByRole('button', { name: `Delete postmaster@${name}` }).count(), 0)
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Make a login' }).tap()
  await page.getByRole('textbox', { name: 'Login' }).fill('shop')
  await page.getByRole('button', { name: 'Make the login' }).tap()
  const secret = page.getByRole('dialog', { name: 'The password' })
  await secret.waitFor()
  await dashboard.sound(page)
  const first = await copied(page, secret, 'the password')
  assert.equal(first.length, 24)
  await secret.getByRole('button', { name: 'I have copied it' }).tap()
  await page.getByRole('button', { name: `New password for shop@${name}` }).tap()
  await page.getByRole('dialog').getByRole('button', { name: 'New password' }).tap()
  await secret.waitFor()
  assert.notEqual(await copied(page, secret, 'the password'), first)
  await secret.getByRole('button', { name: 'I have copied it' }).tap()
  await page.reload()
  await page.getByRole('button', { name: `Delete shop@${name}` }).tap()
  await page.getByLabel(`Type shop@${name} to confirm`).fill(`shop@${name}`)
  await page.getByRole('button', { name: 'Delete', exact: true }).tap()
  await page.getByText(`Login shop@${name} deleted`).waitFor()
  const { body } = await service.call('GET', `/v3/domains/${name}/credentials`)
  assert.deepEqual(
    body.items.map(({ login }: { login: string }) => login),
    [`postmaster@${name}`],
  )
})

test('a reader sees values without buttons, and no logins; a developer sees logins without buttons', async () => {
  const name = service.domain
  const keyOf = async (role: string) =>
    (await service.call('POST', '/v1/keys', { form: { role } })).body.key.secret
  const reader = await dashboard.open(`/domains/${name}/settings?edit=footers`, {
    key: await keyOf('basic'),
    look: PHONE,
  })
  await reader.getByText('Require TLS', { exact: true }).waitFor()
  await reader.getByText('Off', { exact: true }).first().waitFor()
  assert.equal(await reader.getByRole('switch').count(), 0)
  assert.equal(await reader.getByRole('dialog').count(), 0)
  assert.equal(await reader.getByRole('link', { name: 'SMTP logins' }).count(), 0)
  await dashboard.sound(reader)
  const developer = await dashboard.open(`/domains/${name}/logins?add=yes`, { key: await keyOf('developer') })
  await developer.getByText(`postmaster@${name}`).waitFor()
  assert.equal(await developer.getByRole('button', { name: /New password|Delete|Make/ }).count(), 0)
  assert.equal(await developer.getByRole('dialog').count(), 0)
  await developer.getByRole('link', { name: 'Webhooks' }).last().click()
  await developer.waitForURL(`**/webhooks?domain=${name}`)
})
