/** The frame of the dashboard in a real browser: navigation, keyboard, palette, rights, subaccounts, weight. */
import assert from 'node:assert/strict'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, before, type TestContext, test } from 'node:test'
import { builtDashboard } from '../support/built-dashboard.ts'
import { type Dashboard, DESK, PHONE, press, startDashboard, typeText } from '../support/dashboard.ts'
import { untilQuiet } from '../support/dashboard-pages.ts'

/** Compressed bytes of scripts and styles until the first page stands. */
const FIRST_LOAD_MAX_BYTES = 210_000
/** Of everything, data included, until a section that nobody has opened before stands. */
const SECTION_REQUESTS_MAX = 20
/** A smaller file costs more by its request than by its bytes. */
const SMALL_FILE_BYTES = 3_000
/** Styles of sections that have few of their own, and short guides. */
const SMALL_FILES_MAX = 14
/** Paper of the size A4, less its margins, in CSS pixels. */
const SHEET = { width: 718, height: 1_047 }

let dashboard: Dashboard
before(async (t) => {
  // The dashboard acts for subaccounts by our own name of the header, whatever the configured one is.
  dashboard = await startDashboard(t as TestContext, { SENDWRIGHT_HEADER_PREFIX: 'X-Acme-' })
})
afterEach(() => dashboard.tidy())

test('sections open by keyboard alone: by letters, by the palette, and the help lists both', async () => {
  const page = await dashboard.open('/')
  await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor()
  await press(page, 'g', 'd')
  await page.getByRole('heading', { level: 1, name: 'Domains' }).waitFor()
  await press(page, 'Control+k')
  await page.getByRole('combobox', { name: 'Search or jump' }).waitFor()
  await typeText(page, 'add dom')
  await page.getByRole('option', { name: /Add a domain/ }).waitFor()
  await dashboard.sound(page)
  await press(page, 'Enter')
  await page.getByLabel('Domain name').waitFor()
  assert.match(page.url(), /\/domains\?add=yes$/)
  await press(page, 'Escape', '?')
  const help = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
  await help.getByText('Domains').waitFor()
  await dashboard.sound(page)
  await press(page, 'Escape')
  await help.waitFor({ state: 'detached' })
  await press(page, 'j')
  const focused = () => page.evaluate<string>('document.activeElement.textContent')
  assert.match(await focused(), /sandbox/)
  await press(page, 'Enter')
  await page.getByText('needs no DNS records').waitFor()
})

test('single keys can be switched off, and do nothing in an input', async () => {
  const page = await dashboard.open('/domains')
  await page.getByLabel('Search domains').waitFor()
  await press(page, '/', 'g', 'i', 'x')
  assert.equal(await page.getByLabel('Search domains').inputValue(), 'gix')
  await page.getByRole('button', { name: 'Keyboard shortcuts' }).click()
  await page.getByLabel('Shortcuts of a single key').press('Space')
  await press(page, 'Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.getByRole('heading', { level: 1 }).click()
  await press(page, 'g', 'i', '/')
  assert.equal(new URL(page.url()).pathname, '/domains')
  await press(page, 'Control+k')
  await page.getByRole('combobox').waitFor()
})

test('a page that fails leaves the navigation', async () => {
  const page = await dashboard.open('/domains', { own: true })
  const audit = '**/sendwright/v1/audit?*'
  await page.route(audit, (route) => route.fulfill({ json: { items: [null], paging: {} } }))
  await page.getByRole('link', { name: 'Settings' }).click()
  await page.getByRole('link', { name: 'Audit log' }).first().click()
  await page.getByRole('heading', { level: 1, name: 'This page cannot be shown' }).waitFor()
  await page.getByRole('link', { name: 'Domains' }).click()
  await page.getByRole('heading', { level: 1, name: 'Domains' }).waitFor()
})

test('on a phone the menu opens the sections by touch, and nothing scrolls sideways', async () => {
  const page = await dashboard.open('/', { look: PHONE })
  await page.getByRole('button', { name: 'Menu' }).tap()
  await page.getByRole('dialog').getByRole('link', { name: 'Domains' }).waitFor()
  await dashboard.sound(page)
  await page.getByRole('dialog').getByRole('link', { name: 'Domains' }).tap()
  await page.getByRole('heading', { level: 1, name: 'Domains' }).waitFor()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await dashboard.sound(page)
})

test('a role sees only what it may do', async () => {
  const { body } = await dashboard.service.call('POST', '/v1/keys', { form: { role: 'basic' } })
  const page = await dashboard.open('/domains', { key: body.key.secret })
  await page.getByText(dashboard.service.domain).waitFor()
  assert.equal(await page.getByRole('button', { name: 'Add a domain' }).count(), 0)
  await press(page, 'Control+k')
  await typeText(page, 'domain')
  await page.getByRole('option', { name: /^Domains/ }).waitFor()
  assert.equal(await page.getByRole('option', { name: /Add a domain/ }).count(), 0)
})

test('acting for a subaccount: every link keeps it, its data is shown, and the way back', async () => {
  const { service } = dashboard
  const created = await service.call('POST', '/v5/accounts/subaccounts', { form: { name: 'Branch' } })
  const { id } = created.body.subaccount
  const headers = { 'x-service-on-behalf-of': id }
  await service.call('POST', '/v4/domains', { form: { name: 'branch.example' }, headers })
  const page = await dashboard.open('/domains')
  await page.getByText(service.domain).waitFor()
  await page.getByRole('button', { name: 'Own account' }).click()
  await page.getByRole('button', { name: 'Branch' }).click()
  await page.getByRole('button', { name: 'Acting for Branch' }).waitFor()
  await press(page, 'g', 'd')
  await page.getByText('branch.example').waitFor()
  assert.equal(await page.getByText(service.domain).count(), 0)
  assert.equal(new URL(page.url()).searchParams.get('account'), id)
  await page.getByRole('link', { name: /branch\.example/ }).click()
  await page.getByRole('heading', { level: 1, name: 'branch.example' }).waitFor()
  const download = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Download' }).click()
  assert.equal((await download).suggestedFilename(), 'branch.example.zone')
  await dashboard.sound(page)
  await page.getByRole('button', { name: 'Acting for Branch' }).click()
  await page.getByRole('button', { name: 'Back to the own account' }).click()
  await page.getByRole('button', { name: 'Own account' }).waitFor()
  assert.equal(new URL(page.url()).searchParams.get('account'), null)
})

test('the first load is small, and other sections are loaded on demand', async () => {
  const { service } = dashboard
  // With gzip, the only form that browsers take over plain HTTP.
  const bytesOf = async (path: string) => {
    const response = await fetch(service.url + path, { headers: { 'accept-encoding': 'gzip' } })
    await response.arrayBuffer()
    return Number(response.headers.get('content-length'))
  }
  for (const [path, title] of [
    ['/', 'Inbox'],
    ['/overview', 'Overview'],
  ] as const) {
    const context = await dashboard.signedIn({ look: DESK })
    const page = await context.newPage()
    const files = new Set<string>()
    page.on('response', (response) => {
      const { pathname } = new URL(response.url())
      if (pathname.startsWith('/assets/')) files.add(pathname)
    })
    await page.goto(service.url + path)
    await page.getByRole('heading', { level: 1, name: title }).waitFor()
    const sizes = await Promise.all([...files].map(bytesOf))
    const first = sizes.reduce((sum, size) => sum + size, 0)
    assert.ok(first > 50_000 && first <= FIRST_LOAD_MAX_BYTES, `${path}: ${first} bytes`)
    await page.getByRole('link', { name: 'Domains' }).click()
    await page.getByRole('heading', { level: 1, name: 'Domains' }).waitFor()
    assert.ok(files.size > sizes.length)
    await context.close()
  }
})

test('no section takes many requests at its first visit, and few files are small', async () => {
  const { service } = dashboard
  const page = await dashboard.open('/')
  await page.getByRole('navigation', { name: 'Sections' }).waitFor()
  const sections = await page.evaluate<string[]>(
    "[...document.querySelectorAll('.shell-side .shell-section')].map((link) => link.getAttribute('href'))",
  )
  assert.ok(sections.length >= 10, `${sections}`)
  const counts: Record<string, number> = {}
  for (const path of sections) {
    // A new document has loaded nothing of a section; what the browser's cache serves is a request too.
    await page.goto(`${service.url}${path === '/domains' ? '/settings' : '/domains'}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await untilQuiet(page)
    let requests = 0
    const note = () => {
      requests += 1
    }
    page.on('request', note)
    await page.locator(`.shell-side .shell-section[href="${path}"]`).click()
    await page.getByRole('heading', { level: 1 }).waitFor()
    await untilQuiet(page)
    page.off('request', note)
    counts[path] = requests
  }
  const tooMany = Object.entries(counts).filter(([, count]) => count > SECTION_REQUESTS_MAX)
  assert.deepEqual(tooMany, [], JSON.stringify(counts))

  const assets = join(builtDashboard(), 'assets')
  const sizes = readdirSync(assets)
    .filter((name) => /\.(?:js|css)$/.test(name))
    .map((name) => statSync(join(assets, name)).size)
  const small = sizes.filter((size) => size < SMALL_FILE_BYTES).length
  assert.ok(
    small <= SMALL_FILES_MAX,
    `${small} of ${sizes.length} files have less than ${SMALL_FILE_BYTES} bytes`,
  )
})

test('every section prints whole: nothing is cut, scrolls or is dark, and the navigation is left out', async () => {
  const { service } = dashboard
  for (let index = 0; index < 40; index++)
    await service.send({ subject: `Printed ${index}`, to: `reader-${index}@example.org` })
  const page = await dashboard.open('/', { look: { ...PHONE, viewport: SHEET, isMobile: false }, own: true })
  await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor()
  const paths = ['/', '/overview', '/activity', '/statistics', '/sending/templates', '/delivery', '/domains']
  for (const path of [
    ...paths,
    `/domains/${service.domain}`,
    '/webhooks',
    '/settings/system',
    '/docs/guides/quick-start',
  ]) {
    await page.emulateMedia({ media: 'screen' })
    await page.goto(service.url + path)
    await page.getByRole('heading', { level: 1 }).first().waitFor()
    await untilQuiet(page)
    await page.emulateMedia({ media: 'print' })
    await page.locator('html[data-mantine-color-scheme="light"]').waitFor()
    assert.deepEqual(await page.evaluate<string[]>(CUT_IN_PRINT), [], path)
    assert.equal(await page.locator('.shell-side, .shell-bar').filter({ visible: true }).count(), 0, path)
  }
  await page.emulateMedia({ media: 'screen' })
  await page.locator('html[data-mantine-color-scheme="dark"]').waitFor()
  await page.goto(`${service.url}/activity`)
  await page.getByText('reader-39@example.org').first().waitFor()
  const sheets = (await page.pdf({ format: 'A4' })).toString('latin1').match(/\/Type\s*\/Page\b/g) ?? []
  assert.ok(sheets.length > 1, `${sheets.length} sheet`)
})

/** What of the page is not on paper: parts that scroll or clip what they hold, and such that are wider than the sheet. */
const CUT_IN_PRINT = `(() => {
  const faults = []
  for (const part of document.querySelectorAll('html, body, #root, .shell, .shell-body, main, main *')) {
    if (part.closest('svg, iframe, select, input, textarea')) continue
    const { overflowX, overflowY, clipPath } = getComputedStyle(part)
    const hides = (overflow) => overflow !== 'visible'
    if (clipPath !== 'none' || part.clientHeight < 3) continue
    const cutsDown = hides(overflowY) && part.scrollHeight > part.clientHeight + 1
    const cutsAcross = hides(overflowX) && part.scrollWidth > part.clientWidth + 1
    if (cutsDown || cutsAcross) faults.push('cut: ' + part.tagName + ' ' + part.className)
  }
  const { scrollWidth, clientWidth } = document.documentElement
  if (scrollWidth > clientWidth + 1) {
    const wide = [...document.querySelectorAll('main *')].find((part) => part.getBoundingClientRect().right > clientWidth + 1)
    faults.push('too wide by ' + (scrollWidth - clientWidth) + ': ' + wide?.tagName + ' ' + wide?.className)
  }
  const main = document.querySelector('main')
  if (main && document.documentElement.scrollHeight + 1 < main.getBoundingClientRect().bottom) faults.push('main is cut')
  return faults
})()`
