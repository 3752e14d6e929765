/** The button of a domain's page that writes its records: shown first, written as shown, checked, and taken back. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startDashboard } from '../support/dashboard.ts'
import { createDnsServer } from '../support/dns-server.ts'
import { createFakeZone, startProviderApi, TOKEN } from '../support/dns-zone.ts'

const NAME = 'mail.shop.example'

test('records are shown, written and taken back in the dashboard', async (t) => {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  const { service, signedIn } = await startDashboard(t as TestContext, {
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    SENDWRIGHT_SPF_INCLUDE_HOST: 'spf.service.example',
  })
  await service.call('POST', '/v4/domains', { form: { name: NAME } })
  const zone = createFakeZone('shop.example', ['mail TXT "v=spf1 a -all"', 'mail MX 1 mx.other.example'])
  const before = zone.lines()
  const context = await signedIn()
  const page = await context.newPage()
  page.on('pageerror', (error) => assert.fail(error))
  const write = page.getByRole('button', { name: 'Write at the DNS provider' })
  await page.goto(`${service.url}/domains/${NAME}`)
  await page.getByRole('button', { name: 'Check now' }).waitFor()
  assert.equal(await write.count(), 0, 'not without a provider')

  const api = await startProviderApi(t, 'desec', zone)
  const json = { kind: 'desec', secret: TOKEN, api_url: api.url }
  await service.call('PUT', '/sendwright/v1/dns-providers/main', { json })
  await page.reload()
  await write.click()
  const window = page.getByRole('dialog')
  await window.getByText('This is what would be written at main.').waitFor()
  // By case: a random key of DKIM may contain the letters.
  const spf = window.getByRole('listitem').filter({ hasText: /SPF TXT/ })
  assert.match(await spf.innerText(), /v=spf1 a -all\s+v=spf1 a include:spf\.service\.example -all/)
  const mx = window.getByRole('listitem').filter({ hasText: 'Mail host' })
  assert.match(await mx.innerText(), /left: the domain receives its mail elsewhere/)
  assert.deepEqual(zone.lines(), before)

  zone.add('mail', 'TXT', '"somebody was here"')
  zone.put(NAME, 'TXT', 300, ['"v=spf1 mx -all"'])
  await window.getByRole('button', { name: 'Write these' }).click()
  await window.getByText('DNS has changed since this was shown').waitFor()
  zone.put(NAME, 'TXT', 300, ['"v=spf1 a -all"'])
  await window.getByRole('button', { name: 'Write these' }).click()
  await window.getByText('The records were looked up').waitFor()
  assert.deepEqual(zone.find(NAME, 'TXT')?.values, ['"v=spf1 a include:spf.service.example -all"'])
  await window.getByRole('button', { name: 'Close', exact: true }).last().click()

  await page.getByRole('button', { name: 'Take the last change back' }).click()
  await window.getByRole('button', { name: 'Take it back' }).click()
  await window.getByText('The records were looked up').waitFor()
  assert.deepEqual(zone.lines(), before)
})
