/**
 * The profile in a real browser: second factor by QR code, recovery codes, passkeys of a virtual authenticator (the
 * WebAuthn domain of the browser's protocol), sessions, dates.
 */
// Slow: it works one part of the dashboard in a browser; ten-tasks-browser and dashboard-browser visit all.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, before, type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { fromBase32 } from '../../src/base/base32.ts'
import { totpCode, totpStep } from '../../src/people/sign-in/totp.ts'
import { createTestClock, type TestClock } from '../support/clock.ts'
import { type Dashboard, DESK, PHONE, startDashboard, windowHasFocus } from '../support/dashboard.ts'
import { activeUser, invite, mailedToken, PASSWORD } from '../support/users.ts'

let clock: TestClock
let dashboard: Dashboard

before(async (t) => {
  clock = createTestClock(Date.now())
  const { port, forwardTo } = await listenOnLocalhost(t as TestContext)
  const env = { SENDWRIGHT_PUBLIC_URL: `http://localhost:${port}` }
  dashboard = await startDashboard(t as TestContext, env, { clock })
  forwardTo(new URL(dashboard.service.url))
})
afterEach(() => dashboard.tidy())

/** Passkeys need a host name, and every service of a test has an address: connections are passed on. */
async function listenOnLocalhost(t: TestContext) {
  let target = { port: 0, host: '' }
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    const onward = connect(target)
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      sockets.add(one)
      one.pipe(other)
      one.on('error', () => other.destroy()).on('close', () => other.destroy())
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const forwardTo = ({ hostname, port }: URL) => {
    target = { host: hostname, port: Number(port) }
  }
  return { port: (server.address() as AddressInfo).port, forwardTo }
}

/** The sign-in page, at the public URL. */
async function openSignIn(path = '/', look = DESK): Promise<Page> {
  const page = await dashboard.open('/', { look, key: null, own: true })
  await page.goto(dashboard.service.config.publicUrl + path)
  return page
}

async function enter(page: Page, email: string, password = PASSWORD): Promise<void> {
  await page.getByLabel('Email address').fill(email)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

const menu = (page: Page) => page.getByRole('button', { name: /^Your account/ })
const isIn = (page: Page) => menu(page).waitFor()
const isOut = (page: Page) => page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()

async function openProfile(page: Page): Promise<void> {
  await menu(page).click()
  await page.getByRole('link', { name: 'Profile' }).click()
  await page.getByRole('heading', { level: 1, name: 'Profile' }).waitFor()
}

async function leave(page: Page): Promise<void> {
  await menu(page).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await isOut(page)
}

/** A device with a finger sensor, whose owner always agrees. */
async function addAuthenticator(page: Page): Promise<void> {
  const browser = await page.context().newCDPSession(page)
  await browser.send('WebAuthn.enable')
  await browser.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
}

/** What the window shows of a list of codes, which is then closed. */
async function keptCodes(page: Page): Promise<string[]> {
  const codes = page.getByRole('list', { name: 'Recovery codes' }).getByRole('listitem')
  await codes.first().waitFor()
  const texts = await codes.allTextContents()
  await page.getByRole('button', { name: 'I have kept them' }).click()
  return texts
}

test('somebody sets up an app, loses the phone, gets in by a recovery code, and goes on with a passkey', async () => {
  const { service } = dashboard
  const email = 'ann@example.org'
  await invite(service, email, 'support')
  const token = await mailedToken(service, email, 'invitation')
  const page = await openSignIn(`/#invitation=${token}`)
  await addAuthenticator(page)
  await page.getByLabel('New password').fill(PASSWORD)
  await page.keyboard.press('Enter')
  await isIn(page)

  await openProfile(page)
  await page.getByRole('button', { name: 'Set up an app' }).click()
  const window = page.getByRole('dialog', { name: 'Set up an app' })
  await window.getByRole('button', { name: 'Set up an app' }).click()
  await window.getByRole('img', { name: 'QR code for the authenticator app' }).waitFor()
  const secret = fromBase32((await window.locator('code').innerText()).toLowerCase()) as Buffer
  await windowHasFocus(page)
  await window.getByLabel('Code that the app shows').fill('000000')
  await page.keyboard.press('Enter')
  await window.getByText('The code is wrong').waitFor()
  await window.getByLabel('Code that the app shows').fill(totpCode(secret, totpStep(clock.now())))
  await page.keyboard.press('Enter')
  const codes = await keptCodes(page)
  assert.equal(codes.length, 10)
  await page.getByText('10 are left').waitFor()
  await dashboard.sound(page)
  await leave(page)

  await enter(page, email)
  await page.getByLabel('Code', { exact: true }).fill(codes[4] as string)
  await page.keyboard.press('Enter')
  await isIn(page)
  await openProfile(page)
  await page.getByText('9 are left').waitFor()

  clock.leap(11 * 60_000)
  await page.getByRole('button', { name: 'Add a passkey' }).click()
  await windowHasFocus(page)
  await page.getByRole('dialog').getByLabel('Name').fill('Laptop')
  await page.keyboard.press('Enter')
  // The sign-in is too long ago.
  const proof = page.getByRole('dialog', { name: 'Is it you?' })
  await proof.waitFor()
  await windowHasFocus(page)
  await proof.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await proof.getByLabel('Code, or a recovery code').fill(codes[5] as string)
  await page.keyboard.press('Enter')
  await page.getByText('Passkey "Laptop" was added').waitFor()
  await page.getByRole('cell', { name: 'Laptop', exact: true }).waitFor()
  await dashboard.sound(page)

  await page.getByRole('button', { name: 'Remove the app' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove the app' }).click()
  await page.getByText('The authenticator app was removed').waitFor()
  await leave(page)

  await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
  await isIn(page)
  await leave(page)
  // And as the second factor, after the password.
  await enter(page, email)
  await page.getByRole('button', { name: 'Use a passkey instead' }).click()
  await isIn(page)
  // It proves later who is there, without a password.
  await openProfile(page)
  clock.leap(11 * 60_000)
  await page.getByRole('button', { name: 'Remove Laptop' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click()
  await page
    .getByRole('dialog', { name: 'Is it you?' })
    .getByRole('button', { name: 'Use a passkey' })
    .click()
  await page.getByText('You have none.').waitFor()
  await dashboard.sound(page)
})

test('a user names itself, ends another session, and all dates follow its language and zone', async () => {
  const { service } = dashboard
  const email = 'bea@example.org'
  await activeUser(service, email, 'admin')
  const page = await openSignIn()
  await enter(page, email)
  await isIn(page)
  await openProfile(page)
  await page.getByRole('row', { name: /This one/ }).waitFor()
  assert.equal(await page.getByRole('table', { name: 'Sessions' }).locator('tbody tr').count(), 2)
  await page.getByRole('button', { name: /^End the session in/ }).click()
  await page.getByText('The session was ended').waitFor()
  await page.getByRole('button', { name: /^End the session in/ }).waitFor({ state: 'detached' })

  await page.getByLabel('Name', { exact: true }).fill('Bea Bee')
  await page.getByLabel('Language of dates').selectOption('de')
  await page.getByLabel('Time zone of dates').selectOption('Asia/Tokyo')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved').waitFor()
  await page.getByRole('button', { name: 'Your account: Bea Bee' }).waitFor()
  const shown = new Intl.DateTimeFormat('de', {
    dateStyle: 'medium',
    timeStyle: 'short',
    timeZone: 'Asia/Tokyo',
  })
  const cells = page.getByRole('table', { name: 'Sessions' }).locator('time')
  const at = await cells.first().getAttribute('datetime')
  assert.equal(await cells.first().innerText(), shown.format(Date.parse(at as string)))
  await page.reload()
  await isIn(page)
  assert.equal(
    await cells.first().innerText(),
    shown.format(Date.parse(at as string)),
    'also at the next visit',
  )
  await page.goto(`${service.config.publicUrl}/domains`)
  const day = new Intl.DateTimeFormat('de', { dateStyle: 'medium', timeZone: 'Asia/Tokyo' })
  const created = page.locator('main time').first()
  await created.waitFor()
  const createdAt = Date.parse((await created.getAttribute('datetime')) as string)
  const words = new Intl.DateTimeFormat('de', {
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    timeZone: 'Asia/Tokyo',
  })
  assert.ok(
    [day.format(createdAt), words.format(createdAt)].includes(await created.innerText()),
    await created.innerText(),
  )
  await dashboard.sound(page)
})

test('the password is changed, which ends other sessions; the menu changes colours and fits a phone', async () => {
  const email = 'cem@example.org'
  await activeUser(dashboard.service, email, 'basic')
  const page = await openSignIn('/', PHONE)
  await enter(page, email)
  await isIn(page)
  await menu(page).tap()
  await page.getByText('cem@example.org').waitFor()
  await page.getByRole('button', { name: 'Use light colours' }).tap()
  await page.locator('html[data-mantine-color-scheme="light"]').waitFor()
  await dashboard.sound(page)
  await page.getByRole('link', { name: 'Profile' }).tap()
  await page.getByRole('button', { name: 'Change the password' }).tap()
  await windowHasFocus(page)
  await page.getByLabel('New password').fill('another staple entirely')
  await page.getByRole('dialog').getByRole('button', { name: 'Change the password' }).tap()
  await page.getByText('Your password was changed').waitFor()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  const sessions = page.getByRole('table', { name: 'Sessions' }).locator('tbody tr')
  await sessions.nth(1).waitFor({ state: 'detached' })
  assert.equal(await sessions.count(), 1)
  await dashboard.sound(page)
})

test('a session of a key has a menu, and no profile', async () => {
  const page = await dashboard.open('/settings/profile')
  await page.getByText('This session belongs to no user').waitFor()
  await menu(page).click()
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
  assert.equal(await page.getByRole('link', { name: 'Profile' }).count(), 0)
  await dashboard.sound(page)
})
