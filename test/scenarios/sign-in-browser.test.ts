/** Users in a real browser: invitation, password, code, recovery code, reset, time-out, signing out everywhere. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { fromBase32 } from '../../src/base/base32.ts'
import { totpCode, totpStep } from '../../src/people/sign-in/totp.ts'
import { launchBrowser } from '../support/browser.ts'
import { createTestClock, type TestClock } from '../support/clock.ts'
import { HANG_MS } from '../support/hang.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { activeUser, as, invite, mailedToken, PASSWORD } from '../support/users.ts'

const ROOT = join(import.meta.dirname, '../..')
const NEW_PASSWORD = 'another staple entirely'

let browser: Browser
let clock: TestClock
let service: TestService

before(async (t) => {
  // Fast if the dashboard is built already, as after an install.
  const built = spawnSync(process.execPath, [join(ROOT, 'scripts/build.mjs')], { encoding: 'utf8' })
  assert.equal(built.status, 0, built.stderr)
  clock = createTestClock(Date.now())
  browser = await launchBrowser()
  service = await startTestService(t as TestContext, {}, { clock })
})
after(() => browser.close())

async function newContext(): Promise<BrowserContext> {
  const context = await browser.newContext({ reducedMotion: 'reduce' })
  context.setDefaultTimeout(HANG_MS)
  return context
}

async function open(context: BrowserContext, path = '/'): Promise<Page> {
  const page = await context.newPage()
  page.on('pageerror', (error) => assert.fail(error))
  await page.goto(service.url + path)
  return page
}

async function enter(page: Page, email: string, password = PASSWORD): Promise<void> {
  await page.getByLabel('Email address').fill(email)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

async function leave(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Your account/ }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
}
const isIn = (page: Page) => page.getByRole('button', { name: /^Your account/ }).waitFor()
const isOut = (page: Page) => page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()
const heading = (page: Page, name: string) => page.getByRole('heading', { name }).waitFor()

test('an invited person chooses a password, is signed in, and signs in again with it', async () => {
  await invite(service, 'ann@example.org', 'admin')
  const token = await mailedToken(service, 'ann@example.org', 'invitation')
  const context = await newContext()
  const page = await open(context, `/#invitation=${token}`)
  const urls: string[] = []
  page.on('request', (request) => urls.push(request.url(), JSON.stringify(request.headers())))
  await heading(page, 'Welcome: choose a password')
  assert.equal(page.url(), `${service.url}/`, 'the address has no token any more')
  await page.getByLabel('New password').fill('short')
  await page.keyboard.press('Enter')
  await page.getByText('The password must have 12 to 256 characters.').waitFor()
  await page.getByLabel('New password').fill(PASSWORD)
  await page.keyboard.press('Enter')
  await isIn(page)
  assert.ok(!urls.join().includes(token))
  await leave(page)
  await isOut(page)
  await enter(page, 'ann@example.org', 'wrong password')
  await page.getByText('The address or the password is wrong.').waitFor()
  await enter(page, 'Ann@Example.org')
  await isIn(page)
  // The same page with the link that is used up.
  await page.evaluate(`window.location.hash = 'invitation=${token}'`)
  await heading(page, 'Welcome: choose a password')
  await page.getByLabel('New password').fill(PASSWORD)
  await page.keyboard.press('Enter')
  await page.getByText('This link has been used or is too old.').waitFor()
  await page.getByText('To the sign-in page').click()
  await isIn(page)
  await context.close()
})

test('a code of the app is requested after the password; a recovery code works too', async () => {
  const { cookie } = await activeUser(service, 'bob@example.org')
  const call = (method: string, json: object) => as(service, cookie, method, '/sendwright/v1/me/totp', json)
  const begun = await call('POST', { current_password: PASSWORD })
  const secret = fromBase32(begun.body.secret) as Buffer
  const code = () => totpCode(secret, totpStep(clock.now()))
  const { body } = await call('PUT', { current_password: PASSWORD, code: code() })
  clock.leap(30_000)
  const context = await newContext()
  const page = await open(context)
  await enter(page, 'bob@example.org')
  const field = page.getByLabel('Code', { exact: true })
  await field.fill('000000')
  await page.keyboard.press('Enter')
  await page.getByText('The code is wrong, or was used before.').waitFor()
  await field.fill(code())
  await page.keyboard.press('Enter')
  await isIn(page)
  await leave(page)
  await enter(page, 'bob@example.org')
  await field.fill(code())
  await page.keyboard.press('Enter')
  await page.getByText('The code is wrong, or was used before.').waitFor()
  await field.fill(body.recovery_codes[3])
  await page.keyboard.press('Enter')
  await isIn(page)
  await context.close()
})

test('a forgotten password is reset by mail', async () => {
  await activeUser(service, 'carol@example.org')
  const context = await newContext()
  const page = await open(context)
  await page.getByLabel('Email address').fill('carol@example.org')
  await page.getByText('Forgot your password?').click()
  await heading(page, 'Forgot your password?')
  assert.equal(await page.getByLabel('Email address').inputValue(), 'carol@example.org')
  await page.getByRole('button', { name: 'Send the link' }).click()
  await page.getByText('a mail with a link has been sent').waitFor()
  const token = await mailedToken(service, 'carol@example.org', 'Reset')
  const other = await open(context, `/#reset=${token}`)
  await other.getByLabel('New password').fill(NEW_PASSWORD)
  await other.keyboard.press('Enter')
  await other.getByText('Your password was changed.').waitFor()
  await other.getByRole('button', { name: 'Sign in' }).click()
  await isOut(other)
  await enter(other, 'carol@example.org', NEW_PASSWORD)
  await isIn(other)
  await context.close()
})

test('signing out everywhere ends sessions of other browsers, and a session ends for lack of use', async () => {
  const { cookie } = await activeUser(service, 'dave@example.org')
  const [one, two] = [await newContext(), await newContext()]
  const pages = [await open(one), await open(two)]
  for (const page of pages) {
    await enter(page, 'dave@example.org')
    await isIn(page)
  }
  assert.equal((await as(service, cookie, 'DELETE', '/sendwright/v1/me/sessions')).status, 200)
  for (const page of pages) {
    await page.reload()
    await isOut(page)
  }
  const [page] = pages as [Page, Page]
  const form = { inactive_session_timeout: '300' }
  assert.equal((await service.call('PUT', '/v5/accounts', { form })).status, 200)
  await enter(page, 'dave@example.org')
  await isIn(page)
  await page.reload()
  await isIn(page)
  clock.leap(301_000)
  await page.reload()
  await isOut(page)
  await one.close()
  await two.close()
})
