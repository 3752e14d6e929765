/** Signing in with OpenID Connect, in a real browser at a real provider. */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { launchBrowser } from '../support/browser.ts'
import { HANG_MS } from '../support/hang.ts'
import { CLIENT_ID, CLIENT_SECRET, createOidcProvider, type OidcProvider } from '../support/oidc-provider.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { activeUser, as, invite, PASSWORD } from '../support/users.ts'

const ROOT = join(import.meta.dirname, '../..')
const BUTTON = 'Sign in with Acme'

let browser: Browser
let provider: OidcProvider
let service: TestService

before(async (t) => {
  const built = spawnSync(process.execPath, [join(ROOT, 'scripts/build.mjs')], { encoding: 'utf8' })
  assert.equal(built.status, 0, built.stderr)
  provider = await createOidcProvider()
  browser = await launchBrowser()
  service = await startTestService(t as TestContext, {
    SENDWRIGHT_OIDC_ISSUER: provider.issuer,
    SENDWRIGHT_OIDC_CLIENT_ID: CLIENT_ID,
    SENDWRIGHT_OIDC_CLIENT_SECRET: CLIENT_SECRET,
    SENDWRIGHT_OIDC_LABEL: 'Acme',
    SENDWRIGHT_OIDC_DOMAINS: 'example.org',
    SENDWRIGHT_OIDC_ROLE_CLAIM: 'groups',
    SENDWRIGHT_OIDC_NEW_USER_ROLE: 'basic',
  })
  provider.open(`${service.config.publicUrl}/sendwright/v1/oidc/callback`)
})
after(async () => {
  await browser.close()
  await provider.close()
})

async function newContext(): Promise<BrowserContext> {
  const context = await browser.newContext({ reducedMotion: 'reduce' })
  context.setDefaultTimeout(HANG_MS)
  return context
}

async function open(context: BrowserContext): Promise<Page> {
  const page = await context.newPage()
  page.on('pageerror', (error) => assert.fail(error))
  await page.goto(service.url)
  return page
}

/** Through the provider's pages. */
async function signInAs(page: Page, login: string): Promise<void> {
  await page.getByRole('button', { name: BUTTON }).click()
  await page.locator('input[name=login]').fill(login)
  await page.locator('input[name=password]').fill('any')
  await page.locator('button[type=submit]').click()
  await page.getByRole('button', { name: 'Continue' }).click()
}

async function leave(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Your account/ }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
}
const isIn = (page: Page) => page.getByRole('button', { name: /^Your account/ }).waitFor()
const refusal = async (page: Page, text: string) => {
  await page.getByRole('heading', { name: 'You are not signed in' }).waitFor()
  await page.getByText(text).waitFor()
}
const userOf = async (email: string) => {
  const { body } = await service.call('GET', '/v5/users?limit=100')
  return (body.users as { id: string; email: string; role: string; auth: { method: string } }[]).find(
    (user) => user.email === email,
  )
}

test('an invited person signs in with the provider, out, and in again', async () => {
  await invite(service, 'ann@example.org', 'developer')
  provider.claims.set('ann@example.org', { name: 'Ann', groups: ['staff', 'support'] })
  const context = await newContext()
  const page = await open(context)
  await signInAs(page, 'ann@example.org')
  await isIn(page)
  assert.equal(page.url(), `${service.url}/`)
  const ann = await userOf('ann@example.org')
  assert.deepEqual([ann?.role, ann?.auth.method], ['support', 'oidc'], "the provider's role")
  await leave(page)
  await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()
  // The provider still knows the person, which is no proof of who sits there.
  await page.getByRole('button', { name: BUTTON }).click()
  await isIn(page)
  const post = (path: string, body: object) =>
    page.evaluate(
      async ([url, text]) => {
        const headers = { 'content-type': 'application/json' }
        const answer = await fetch(url, { method: 'POST', headers, body: text })
        return (await answer.json()) as { proof_required?: boolean; url: string }
      },
      [`/sendwright/v1${path}`, JSON.stringify(body)] as const,
    )
  assert.equal((await post('/me/passkeys/options', {})).proof_required, true)
  await page.goto((await post('/oidc/sign-ins', { proof: true })).url)
  await page.locator('input[name=login]').fill('ann@example.org')
  await page.locator('input[name=password]').fill('any')
  await page.locator('button[type=submit]').click()
  await isIn(page)
  assert.equal((await post('/me/passkeys/options', {})).proof_required, undefined)
  await context.close()
})

test('a stranger gets a user of the role for new ones; who is not verified, or of another domain, gets none', async () => {
  const context = await newContext()
  const page = await open(context)
  await signInAs(page, 'new@example.org')
  await isIn(page)
  assert.equal((await userOf('new@example.org'))?.role, 'basic')
  await context.close()
  for (const [login, claims, text] of [
    ['fake@example.org', { email_verified: false }, 'Acme has not verified your mail address'],
    ['mallory@example.net', {}, 'Addresses in example.net may not sign in here'],
  ] as const) {
    provider.claims.set(login, claims)
    const other = await newContext()
    const refused = await open(other)
    await signInAs(refused, login)
    await refusal(refused, text)
    assert.equal(await userOf(login), undefined)
    await refused.getByText('To the sign-in page').click()
    await refused.getByRole('button', { name: BUTTON }).waitFor()
    await other.close()
  }
})

test('a linked user has no password and no older session; a second person and a disabled user get nowhere', async () => {
  const { cookie } = await activeUser(service, 'bob@example.org', 'admin')
  provider.claims.set('bob@example.org', { groups: ['developer'] })
  const context = await newContext()
  const page = await open(context)
  await signInAs(page, 'bob@example.org')
  await isIn(page)
  assert.equal((await as(service, cookie, 'GET', '/v5/users/me')).status, 401)
  const json = { email: 'bob@example.org', password: PASSWORD }
  const tried = await service.call('POST', '/sendwright/v1/session', { key: null, json })
  assert.equal(tried.status, 401)
  await context.close()

  provider.claims.set('bob2', { email: 'bob@example.org' })
  const other = await newContext()
  const second = await open(other)
  await signInAs(second, 'bob2')
  await refusal(second, 'is linked with another account of Acme')
  await other.close()

  const id = await invite(service, 'carl@example.org')
  assert.equal((await service.call('PUT', `/v5/users/${id}`, { form: { is_disabled: 'true' } })).status, 200)
  const disabled = await newContext()
  const third = await open(disabled)
  await signInAs(third, 'carl@example.org')
  await refusal(third, 'Your user is disabled')
  await disabled.close()
})

test('a redirect that this browser did not begin, or that was used before, signs nobody in', async () => {
  const context = await newContext()
  const page = await open(context)
  const callbacks: string[] = []
  page.on('request', (request) => {
    if (request.url().includes('/oidc/callback')) callbacks.push(request.url())
  })
  await signInAs(page, 'ann@example.org')
  await isIn(page)
  const [callback] = callbacks
  assert.ok(callback)
  const again = await fetch(callback, { redirect: 'manual' })
  assert.equal(again.status, 400, 'without the cookie')
  assert.equal(again.headers.get('set-cookie'), null)
  const other = await newContext()
  const page2 = await other.newPage()
  await page2.goto(callback)
  await refusal(page2, 'begun in another browser')
  await context.close()
  await other.close()
})
