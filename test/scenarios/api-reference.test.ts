/** The API reference and the guides in a real browser, and the code that the reference shows. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, before, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import type { Locator } from 'playwright-core'
import {
  type ApiDescription,
  type Operation,
  type Reference,
  readDescription,
} from '../../web/src/reference/description.ts'
import { exampleOf } from '../../web/src/reference/example.ts'
import { LANGUAGES, snippetOf } from '../../web/src/reference/snippets.ts'
import { type Dashboard, LOOKS, PHONE, press, startDashboard, typeText } from '../support/dashboard.ts'
import { HANG_MS } from '../support/hang.ts'
import { lacking } from '../support/lacking.ts'
import { temporaryFolder } from '../support/stores.ts'

/** Most of its time Java compiles, its own sources and ours; what follows is too short for fast code to pay. */
const JAVA_FLAGS = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC']

let dashboard: Dashboard
let reference: Reference
before(async (t) => {
  dashboard = await startDashboard(t as TestContext)
  const { body } = await dashboard.service.call('GET', '/openapi.json', { key: null })
  reference = readDescription(body as ApiDescription)
})
afterEach(() => dashboard.tidy())

const operationOf = (id: string): Operation => {
  const operation = reference.byId.get(id)
  assert.ok(operation, id)
  return operation
}

test('there is code for every operation in every language', () => {
  const listed = reference.tags.flatMap(({ operations }) => operations)
  assert.ok(listed.length > 300)
  assert.equal(reference.byId.size, listed.length)
  for (const operation of reference.byId.values()) {
    const request = exampleOf(operation, reference)
    const fixed = operation.path.split(/\{[^}]+\}/)
    assert.ok(fixed.every((part) => request.url.includes(part)) && !/[{}]/.test(request.url), request.url)
    for (const [language] of LANGUAGES) {
      const code = snippetOf(language, request)
      assert.ok(code.includes(request.url), `${language}: ${code}`)
      assert.match(code, new RegExp(`\\b${operation.method}\\b`, 'i'))
      assert.equal(code.includes('API_KEY'), operation.rights.public !== true)
    }
  }
})

test('the curl, JavaScript and Java code works: a message is sent, a list is imported, figures are asked for', async (t) => {
  const { service } = dashboard
  const folder = await temporaryFolder(t)
  const options = {
    cwd: folder,
    timeout: HANG_MS,
    env: { ...process.env, API_KEY: service.key },
  }
  const run = async (language: 'curl' | 'javascript' | 'java', id: string) => {
    const code = snippetOf(
      language,
      exampleOf(operationOf(id), reference, { domain_name: service.domain, domain: service.domain }),
    )
    if (language === 'java') {
      await writeFile(join(folder, 'Call.java'), code)
      return (await promisify(execFile)('java', [...JAVA_FLAGS, 'Call.java'], options)).stdout
    }
    const [program, ...flags] =
      language === 'curl' ? ['sh', '-c'] : [process.execPath, '--input-type=module', '--eval']
    const { stdout } = await promisify(execFile)(program as string, [...flags, code], options)
    return stdout
  }
  await writeFile(join(folder, 'list.csv'), 'address\nbob@example.org\n')
  for (const language of ['curl', 'javascript', 'java'] as const) {
    const why = language !== 'javascript' && lacking(language)
    if (why !== false) {
      t.diagnostic(`${why}: its code was not run`)
      continue
    }
    assert.match(await run(language, 'sendMessage'), /Queued/)
    assert.match(await run(language, 'importBounces'), /file uploaded successfully/)
    assert.match(await run(language, 'readMetrics'), /"items"/)
  }
})

test('by keyboard and signed out: search, open an operation, its code in all languages', async () => {
  const page = await dashboard.open('/docs', { key: null })
  await page.getByRole('heading', { level: 1, name: 'API reference' }).waitFor()
  await page.getByText(String(reference.byId.size), { exact: true }).waitFor()
  await dashboard.sound(page)
  await press(page, '/')
  await typeText(page, 'messages send parts')
  await page.getByRole('link', { name: /Send a message from parts/ }).waitFor()
  await press(page, 'Enter')
  await page.getByRole('heading', { level: 1, name: 'Send a message from parts' }).waitFor()
  assert.equal(new URL(page.url()).pathname, '/docs/sendMessage')
  await page.getByText('Roles: admin, developer, sending.').waitFor()
  // The window gets the focus again: the session is asked for once more, and the page stays.
  const heading = await page.getByRole('heading', { level: 1 }).elementHandle()
  const asked = page.waitForResponse(/\/sendwright\/v1\/system$/)
  await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))")
  await asked
  await page.getByRole('tab', { name: 'curl' }).waitFor()
  assert.equal(await heading?.evaluate((node) => node.isConnected), true)
  const url = `${reference.baseUrl}/v3/example.com/messages`
  await page.getByRole('tab', { name: 'curl' }).focus()
  for (const [language, label] of LANGUAGES) {
    const panel = page.getByRole('tabpanel', { name: label })
    await panel.waitFor()
    const code = await panel.innerText()
    assert.ok(code.includes(url) && /post/i.test(code), code)
    await panel.getByRole('button', { name: `Copy the ${label} code` }).waitFor()
    assert.equal(new URL(page.url()).searchParams.get('code') ?? 'curl', language)
    await press(page, 'ArrowRight')
  }
  await dashboard.sound(page)
  await page.getByRole('link', { name: 'Sign in' }).press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
})

test('at both looks: the start, an operation with a body of objects, one that does not exist', async () => {
  for (const look of LOOKS) {
    const page = await dashboard.open('/docs', { look })
    await page.getByRole('heading', { level: 1, name: 'API reference' }).waitFor()
    await page.getByText('Base URL').waitFor()
    await dashboard.sound(page)
    const group = page.getByRole('button', { name: /^Alerts/ })
    await (look === PHONE ? group.tap() : group.click())
    const link = page.getByRole('link', { name: /Create an alert|alert/i }).first()
    await (look === PHONE ? link.tap() : link.click())
    await page.getByRole('heading', { level: 2, name: 'Responses' }).waitFor()
    await page.goto(`${dashboard.service.url}/docs/createAlert?code=go`)
    await page.getByRole('tab', { name: 'Go', selected: true }).waitFor()
    for (const name of ['Body', 'Responses'])
      await page.getByRole('region', { name }).getByText('comparator', { exact: true }).waitFor()
    await dashboard.sound(page)
    await page.goto(`${dashboard.service.url}/docs/nothing`)
    await page.getByText('There is no such operation').waitFor()
    await dashboard.sound(page)
  }
})

test('guides, signed out and at both looks: search, open, follow a link within the text, copy, back to the reference', async () => {
  for (const look of LOOKS) {
    const isPhone = look === PHONE
    const page = await dashboard.open('/docs', { look, key: null })
    const use = (link: Locator) => (isPhone ? link.tap() : link.click())
    await use(page.getByRole('link', { name: 'Guides' }))
    await page.getByRole('heading', { level: 1, name: 'Guides' }).waitFor()
    await dashboard.sound(page)
    await press(page, '/')
    await typeText(page, 'a zebra crossing')
    await page.getByText('No guide has all these words').waitFor()
    await page.getByRole('textbox', { name: 'Search guides' }).fill('reverse proxy')
    await page.getByRole('navigation').getByRole('link', { name: 'Going live' }).waitFor()
    await use(page.getByRole('navigation').getByRole('link', { name: 'Going live' }))
    await page.getByRole('heading', { level: 2, name: '3. HTTPS and ports' }).waitFor()
    assert.equal(await page.title(), 'Going live · Sendwright')
    await page.getByRole('button', { name: 'Copy the nginx block' }).waitFor()
    if (!isPhone) {
      // Searching again leaves the guide open.
      await page.getByRole('textbox', { name: 'Search guides' }).fill('backups')
      await page.getByRole('navigation').getByRole('link', { name: 'Backups' }).waitFor()
      assert.equal(new URL(page.url()).pathname, '/docs/guides/going-live')
    }
    await dashboard.sound(page)
    await use(page.getByRole('article').getByRole('link', { name: 'Backups' }))
    await page.getByRole('heading', { level: 1, name: 'Backups' }).waitFor()
    assert.equal(new URL(page.url()).pathname, '/docs/guides/backup')
    await dashboard.sound(page)
    await page.goto(`${dashboard.service.url}/docs/guides/api-messages`)
    await page.getByRole('heading', { level: 1, name: /^Messages/ }).waitFor()
    await dashboard.sound(page)
    await page.goto(`${dashboard.service.url}/docs/guides/nothing`)
    await page.getByText('There is no such guide').waitFor()
  }
})
