/** The pages of addresses, warm-ups and pools in a real browser. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { afterEach, before, type TestContext, test } from 'node:test'
import {
  chooseOption,
  type Dashboard,
  DESK,
  LOOKS,
  PHONE,
  press,
  startDashboard,
} from '../support/dashboard.ts'
import { eventually } from '../support/service.ts'

const [ONE, TWO, THREE, SHARED, SPARE] = [1, 2, 3, 4, 5].map((at) => `127.0.92.${at}`) as [
  string,
  string,
  string,
  string,
  string,
]
let dashboard: Dashboard
before(async (t) => {
  dashboard = await startDashboard(t as TestContext, {
    SENDWRIGHT_IPS: `${ONE},${TWO},${THREE},${SHARED}=shared,${SPARE}=spare`,
  })
})
afterEach(() => dashboard.tidy())

const call = async (path: string) => (await dashboard.service.call('GET', path)).body

test('by keyboard: an address with its health and domains is warmed up, and that is cancelled', async () => {
  const { domain } = dashboard.service
  for (const look of LOOKS) {
    const page = await dashboard.open('/delivery/ips', { look })
    await page.getByRole('link', { name: ONE }).waitFor()
    await page.getByText('Dedicated').first().waitFor()
    await dashboard.sound(page)
    if (look === PHONE) continue
    await page.getByRole('button', { name: 'Request an address' }).press('Enter')
    await page.getByRole('link', { name: SPARE }).waitFor()
    await press(page, 'j', 'Enter')
    await page.getByRole('heading', { level: 1, name: ONE }).waitFor()
    await page.getByText('It is not on warm-up').waitFor()
    await page.getByText('No provider blocks it').waitFor()
    await dashboard.sound(page)
    await page.getByRole('button', { name: 'Start a warm-up' }).press('Enter')
    await page.getByText(/Stage 1 of 15/).waitFor()
    await page.getByRole('img', { name: '0 of 15 stages are done' }).waitFor()
    await dashboard.sound(page)
    await page.getByRole('button', { name: `Cancel the warm-up of ${ONE}` }).press('Enter')
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).last().press('Enter')
    await page.getByText('It is not on warm-up').waitFor()

    await page.getByRole('button', { name: 'Assign a domain' }).press('Enter')
    await chooseOption(page.getByRole('dialog').getByLabel('Domain'), domain)
    await press(page, 'Tab')
    await page.getByRole('dialog').getByRole('button', { name: 'Assign' }).press('Enter')
    await page.getByText(`${domain} sends from it`).waitFor()
    await page.getByRole('button', { name: 'Switch off' }).press('Enter')
    await page.getByText(`${ONE} is switched off`).waitFor()
    const enabled = async () => (await call('/v3/ips/details/all')).items[0].enabled
    assert.equal(await enabled(), false)
    await page.getByRole('button', { name: 'Undo' }).press('Enter')
    await page.getByRole('button', { name: 'Switch off' }).waitFor()
    assert.equal(await enabled(), true)
  }
})

test('by touch on a phone: a warm-up is started, paused, seen by provider, resumed and cancelled', async () => {
  const { service } = dashboard
  const page = await dashboard.open('/delivery/warmups', { look: PHONE })
  await page.getByText('No address is on warm-up').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Start a warm-up' }).first().tap()
  const form = page.getByRole('dialog', { name: 'Start a warm-up' })
  await form.getByLabel('Address').selectOption(TWO)
  await dashboard.sound(page)
  await form.getByRole('button', { name: 'Start the warm-up' }).tap()
  await page.getByText('0% of 1,000 messages in these 24 hours').waitFor()
  await page.getByRole('button', { name: `Pause the warm-up of ${TWO}` }).tap()
  await page.getByText('Paused', { exact: true }).waitFor()
  await dashboard.sound(page)
  const progress = () => call(`/sendwright/v1/ip-warmups/${TWO}`)
  assert.notEqual((await progress()).paused_at, null)
  assert.equal((await service.send({ to: 'reader@example.org', 'o:sending-ip': TWO })).status, 200)
  await eventually('counted', async () => (await progress()).providers[0]?.sent === 1)

  await page.getByRole('link', { name: TWO }).tap()
  await page.getByText('no stage is completed until you resume it').waitFor()
  const providers = page.getByRole('region', { name: 'By provider' })
  await providers.getByText('All others').waitFor()
  await providers.getByText('Stage 1 of 15').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: `Resume the warm-up of ${TWO}` }).tap()
  await page.getByText(`The warm-up of ${TWO} goes on`).waitFor()
  assert.equal((await progress()).paused_at, null)
  await page.getByRole('button', { name: `Pause the warm-up of ${TWO}` }).waitFor()
  await page.getByRole('button', { name: 'Undo' }).last().tap()
  await eventually('paused again', async () => (await progress()).paused_at !== null)
  await page.getByRole('button', { name: `Resume the warm-up of ${TWO}` }).waitFor()
  await page.goBack()
  await page.getByRole('button', { name: `Resume the warm-up of ${TWO}` }).tap()
  await page.getByText('Paused', { exact: true }).waitFor({ state: 'detached' })
  await page.getByRole('button', { name: `Cancel the warm-up of ${TWO}` }).tap()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).last().tap()
  await page.getByText('No address is on warm-up').waitFor()
})

test('a pool is made, gets a domain and a subaccount, and is deleted by its name', async () => {
  const { service } = dashboard
  await service.call('POST', '/v5/accounts/subaccounts', { form: { name: 'Shop' } })
  const page = await dashboard.open('/delivery/pools', { look: DESK })
  await page.getByText('No pools').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Create a pool' }).first().press('Enter')
  const form = page.getByRole('dialog', { name: 'Create a pool' })
  await form.getByLabel('Name').fill('news')
  await form.getByLabel(TWO).press('Space')
  await dashboard.sound(page)
  await form.getByRole('button', { name: 'Create' }).press('Enter')
  await page.getByRole('heading', { level: 1, name: 'news' }).waitFor()
  await dashboard.sound(page)
  const poolId = new URL(page.url()).pathname.split('/').at(-1) ?? ''
  const pool = async () => (await call(`/v3/ip_pools/${poolId}`)).details
  assert.deepEqual((await pool()).ips, [TWO])

  await page.getByRole('button', { name: 'Add an address' }).press('Enter')
  await chooseOption(page.getByRole('dialog').getByLabel('Address'), THREE)
  await page.getByRole('dialog').getByRole('button', { name: 'Add' }).press('Enter')
  await page.getByText(`${THREE} is in the pool`).waitFor()
  await page.getByRole('button', { name: 'Link a domain' }).press('Enter')
  await chooseOption(page.getByRole('dialog').getByLabel('Domain'), service.domain)
  await page.getByRole('dialog').getByRole('button', { name: 'Link' }).press('Enter')
  await page.getByText(`${service.domain} sends from the pool`).waitFor()
  assert.deepEqual((await pool()).linked_domains, [service.domain])
  await page.getByRole('button', { name: 'Delegate' }).press('Enter')
  await chooseOption(page.getByRole('dialog').getByLabel('Subaccount'), 'Shop')
  await page.getByRole('dialog').getByRole('button', { name: 'Delegate' }).press('Enter')
  await page.getByText('Shop may use the pool').waitFor()
  await page.getByRole('button', { name: 'Revoke it from Shop' }).press('Enter')
  await page.getByText('No subaccount uses it').waitFor()
  await page.getByRole('button', { name: `Remove ${THREE}` }).press('Enter')
  await page.getByText(`${THREE} is not in the pool any more`).waitFor()
  await page.getByRole('button', { name: `Remove ${TWO}` }).press('Enter')
  await page.getByText('pool is linked to domains and must have at least one IP').waitFor()

  const phone = await dashboard.open(`/delivery/pools/${poolId}?open=delete`, { look: PHONE })
  const ask = phone.getByRole('dialog', { name: 'Delete this pool?' })
  await ask.getByLabel('Type news to confirm').fill('news')
  await dashboard.sound(phone)
  await ask.getByRole('button', { name: 'Delete' }).tap()
  await phone.getByText('Pool news deleted').waitFor()
  await eventually('gone', async () => (await call('/v3/ip_pools')).ip_pools.length === 0)
})

test('dynamic pools are set up, a domain is enrolled, kept in a set and taken out, and all of it is in the history', async () => {
  const { service } = dashboard
  const { domain } = service
  const page = await dashboard.open('/delivery/dynamic-pools', { look: DESK })
  await page.getByText('Dynamic pools are not set up').waitFor()
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Set up the sets' }).press('Enter')
  const sets = page.getByRole('dialog', { name: 'Set up the sets' })
  for (const [ip, band] of [
    [TWO, 'Good'],
    [THREE, 'New'],
    [ONE, 'Poor'],
  ] as const)
    await sets.getByLabel(`Set of ${ip}`).selectOption(band)
  await dashboard.sound(page)
  await sets.getByRole('button', { name: 'Save' }).press('Enter')
  await page.getByText('The sets are saved').waitFor()
  await page.getByText('No domain is enrolled').waitFor()
  await page.getByRole('button', { name: 'Enroll a domain' }).press('Enter')
  const form = page.getByRole('dialog', { name: 'Enroll a domain' })
  await chooseOption(form.getByLabel('Domain'), domain)
  await form.getByRole('button', { name: 'Enroll' }).press('Enter')
  await page.getByText(`${domain} is enrolled`).waitFor()
  await page.getByLabel(`Who chooses the set of ${domain}`).selectOption('always Good')
  await page.getByText(`${domain} stays in the set Good`).waitFor()
  await dashboard.sound(page)
  const enrolled = async () => (await call('/v1/dynamic_pools/domains')).items[0]
  assert.deepEqual([(await enrolled()).pool, (await enrolled()).override], ['dynamic_good', true])

  const phone = await dashboard.open('/delivery/dynamic-pools', { look: PHONE })
  await phone.getByRole('radiogroup', { name: 'Show' }).getByText('History').tap()
  await phone.getByText('override set').waitFor()
  await dashboard.sound(phone)
  await phone.getByRole('radiogroup', { name: 'Show' }).getByText('Domains').tap()
  await phone.getByRole('button', { name: `Take out ${domain}` }).tap()
  const leaving = phone.getByRole('dialog', { name: `Take out ${domain}` })
  await dashboard.sound(phone)
  await leaving.getByRole('button', { name: 'Take out' }).tap()
  await phone.getByText(`${domain} is taken out`).waitFor()
  await phone.getByText('No domain is enrolled').waitFor()
  await phone.getByRole('radiogroup', { name: 'Show' }).getByText('Sets').tap()
  await phone.getByText(TWO).waitFor()
  await dashboard.sound(phone)
  await phone.getByRole('button', { name: 'Remove the sets' }).tap()
  await phone.getByRole('dialog').getByRole('button', { name: 'Remove the sets' }).tap()
  await phone.getByText('Dynamic pools are not set up').waitFor()
})

test('a reader sees addresses and pools, and changes nothing', async () => {
  const { body } = await dashboard.service.call('POST', '/v1/keys', { form: { role: 'basic' } })
  const page = await dashboard.open(`/delivery/ips/${ONE}?add=yes`, { key: body.key.secret })
  await page.getByText('It is not on warm-up').waitFor()
  const main = page.getByRole('main')
  assert.equal(await main.getByRole('button', { name: /warm-up|Switch|Assign|Remove/ }).count(), 0)
  assert.equal(await page.getByRole('dialog').count(), 0)
})
