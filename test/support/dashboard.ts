/**
 * Tests of dashboard pages: the running service in a real browser. A page opened here is watched: it must write no error to
 * the console, break no rule of its Content-Security-Policy, ask no other host, and call only operations of
 * `/openapi.json`, with parameters that they know. `sound` checks that, WCAG 2.2 AA by axe-core, and that nothing jumps.
 *
 *     const dashboard = await startDashboard(t)
 *     afterEach(() => dashboard.tidy())
 *     for (const look of LOOKS) {
 *       const page = await dashboard.open('/activity', { look })
 *       await page.getByRole('heading', { level: 1, name: 'Activity' }).waitFor()
 *       await dashboard.sound(page)
 *     }
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { TestContext } from 'node:test'
import type axe from 'axe-core'
import type { BrowserContext, BrowserContextOptions, CDPSession, Locator, Page } from 'playwright-core'
import type { Operation } from '../../src/platform/http/operation.ts'
import { launchBrowser } from './browser.ts'
import { builtDashboard } from './built-dashboard.ts'
import type { NoonClock } from './clock.ts'
import { readingDeclaredNames } from './declared-names.ts'
import { HANG_MS } from './hang.ts'
import { eventually, startTestService, type TestService } from './service.ts'

/** A desk in light colours, and a phone of the smallest common width in dark ones. */
export const DESK: BrowserContextOptions = { viewport: { width: 1280, height: 860 }, colorScheme: 'light' }
export const PHONE: BrowserContextOptions = {
  viewport: { width: 360, height: 740 },
  colorScheme: 'dark',
  hasTouch: true,
  isMobile: true,
}
export const LOOKS: readonly BrowserContextOptions[] = [DESK, PHONE]

export interface OpenOptions {
  /** Default `DESK`. */
  look?: BrowserContextOptions
  /** API key to sign in with; default the service's admin key; null: without a session. */
  key?: string | null
  /** No later test gets the page: this one changes its clock, or what its requests get. */
  own?: boolean
}

export interface Dashboard {
  service: TestService
  /** A browser context with a session; closed when the test ends. */
  signedIn(options?: OpenOptions): Promise<BrowserContext>
  /** Opens a page with a session, watched. */
  open(path: string, options?: OpenOptions): Promise<Page>
  /**
   * Asserts that nothing forbidden has happened on the page so far, and that axe-core finds no violation, nor of what it calls
   * best practices.
   */
  sound(page: Page): Promise<void>
  /** The part of `sound` without axe-core: nothing forbidden has happened, nothing jumped, and nothing is too wide. */
  steady(page: Page): Promise<void>
  /**
   * After a test: empties the pages that it opened, with what they have stored, for the next test to open. A new page costs twice
   * as much: the browser starts a process for it.
   */
  tidy(): Promise<void>
}

/**
 * Starts a service with the built dashboard, and a browser; both end with the test. `env`: settings of the service. With a
 * `NoonClock` the pages have its time, too.
 */
export async function startDashboard(
  t: Pick<TestContext, 'after'>,
  env: Record<string, string> = {},
  overrides: Parameters<typeof startTestService>[2] = {},
): Promise<Dashboard> {
  builtDashboard()
  const operations = new PublicOperations()
  const { operation = readingDeclaredNames } = overrides
  const noting = (spec: Operation) => operation(operations.add(spec))
  const [browser, service] = await Promise.all([
    launchBrowser(),
    startTestService(t, env, { ...overrides, operation: noting }),
  ])
  t.after(() => browser.close())
  const faults = new WeakMap<Page, string[]>()
  const { aheadMs } = (overrides.clock ?? {}) as Partial<NoonClock>

  /** By what they look like; nobody is signed in there. */
  const empty = new Map<BrowserContextOptions, Page[]>()
  const opened: { page: Page; look: BrowserContextOptions }[] = []

  async function steady(page: Page): Promise<void> {
    assert.deepEqual(faults.get(page)?.splice(0), [])
    const { shifts, tooWide } = await page.evaluate<Placing>(PLACING)
    const sum = shifts.reduce((total, { value }) => total + value, 0)
    const moved = shifts.map(({ value, parts }) => `\n  ${value.toFixed(3)} ${parts.join(' | ')}`)
    assert.ok(sum <= SHIFT_MAX, `the page has jumped while it was loaded: ${sum.toFixed(3)}${moved.join('')}`)
    assert.deepEqual(tooWide, [], 'scrolled sideways')
  }
  async function signIn(context: BrowserContext, key = service.key): Promise<void> {
    const answer = await context.request.post(`${service.url}/sendwright/v1/session`, { data: { key } })
    assert.equal(answer.status(), 200, await answer.text())
  }
  async function newContext(look: BrowserContextOptions): Promise<BrowserContext> {
    const context = await browser.newContext({ reducedMotion: 'reduce', ...look })
    if (aheadMs !== undefined) await context.addInitScript(clockAhead(aheadMs))
    context.on('page', pressWhatIsEnabled)
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    context.setDefaultTimeout(HANG_MS)
    return context
  }
  async function newPage(look: BrowserContextOptions): Promise<Page> {
    const page = await (await newContext(look)).newPage()
    faults.set(page, watch(page, [service.url, new URL(service.config.publicUrl).origin], operations))
    await page.addInitScript(OBSERVE_SHIFTS)
    return page
  }
  return {
    service,
    async signedIn({ look = DESK, key } = {}) {
      const context = await newContext(look)
      if (key !== null) await signIn(context, key)
      return context
    },
    async open(path, { look = DESK, key, own = false } = {}) {
      const page = (own ? undefined : empty.get(look)?.pop()) ?? (await newPage(look))
      if (!own) opened.push({ page, look })
      faults.get(page)?.splice(0)
      if (key !== null) await signIn(page.context(), key)
      await page.goto(service.url + path)
      return page
    },
    async tidy() {
      for (const { page, look } of opened.splice(0)) {
        await page.evaluate('localStorage.clear()')
        await page.goto('about:blank')
        await page.mouse.move(0, 0)
        await page.context().clearCookies()
        empty.set(look, [...(empty.get(look) ?? []), page])
      }
    },
    async sound(page) {
      await steady(page)
      assert.deepEqual(await violations(page), [])
    },
    steady,
  }
}

/** Notes what a page must not do. */
function watch(page: Page, origins: readonly string[], operations: PublicOperations): string[] {
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(`exception: ${error.message}`))
  page.on('console', (message) => {
    // Responses with an error status are noted by the browser; pages show them.
    const isRefusal =
      /^Failed to load resource: (?:the server responded with a status|net::ERR_INTERNET_DISCONNECTED)/.test(
        message.text(),
      )
    // The policy of the frame that shows somebody's mail holds its images back.
    const isHeldBack = message.text().includes('directive: "img-src data:". The action has been blocked')
    if (message.type() === 'error' && !isRefusal && !isHeldBack) faults.push(`console: ${message.text()}`)
  })
  page.on('request', (request) => {
    const url = new URL(request.url())
    if (url.protocol === 'data:' || url.protocol === 'blob:') return
    if (!origins.includes(url.origin) && request.frame() === page.mainFrame())
      faults.push(`foreign request: ${request.url()}`)
    if (!['fetch', 'xhr', 'eventsource'].includes(request.resourceType())) return
    if (!operations.has(request.method(), url.pathname))
      faults.push(`no public operation: ${request.method()} ${url.pathname}`)
  })
  page.on('response', (response) => {
    const url = new URL(response.url())
    if (/^https?:$/.test(url.protocol) && !origins.includes(url.origin))
      faults.push(`foreign response: ${url}`)
    const ignored = response.headers()['x-service-ignored']
    if (ignored !== undefined) faults.push(`unknown parameters: ${url.pathname} ${ignored}`)
  })
  return faults
}

/**
 * What a service serves, noted as it registers that: its description would be made, compressed and read again by every file.
 */
class PublicOperations {
  /** By method and number of segments. */
  readonly #patterns = new Map<string, Set<string>>()

  constructor() {
    // The server registers it itself.
    this.#add('GET', '/openapi.json')
  }

  /** Returns the same operation. */
  add(spec: Operation): Operation {
    for (const path of [spec.path, ...(spec.aliases ?? [])]) this.#add(spec.method, path)
    return spec
  }

  has(method: string, path: string): boolean {
    const patterns = [...(this.#patterns.get(placeOf(method, path)) ?? [])]
    return patterns.some((pattern) => new RegExp(pattern).test(path))
  }

  #add(method: string, path: string): void {
    const place = placeOf(method, path)
    const pattern = `^${path.replaceAll('.', '\\.').replaceAll(/\{[^}]+\}/g, '[^/]+')}$`
    this.#patterns.set(place, (this.#patterns.get(place) ?? new Set<string>()).add(pattern))
  }
}

/** A name in a path holds no slash. */
const placeOf = (method: string, path: string) => `${method} ${path.split('/').length}`

/**
 * Notes what moves while the page is loaded, up to the first input or step back (Layout Instability of the W3C): the share of the
 * window that moved, times how far. What follows an input moves because of it, on a busy machine later than browsers allow for.
 */
const OBSERVE_SHIFTS = `if (window === window.top) {
  globalThis.layoutShifts = []
  const nameOf = ({ node, previousRect, currentRect }) =>
    (node?.cloneNode(false).outerHTML ?? node?.textContent ?? 'a part that is gone').slice(0, 80) +
    [previousRect, currentRect].map(({ x, y, width, height }) => ' ' + [x, y, width, height].map(Math.round)).join(' ->')
  const observer = new PerformanceObserver((list) => {
    for (const { value, sources } of list.getEntries())
      globalThis.layoutShifts.push({ value, parts: sources.map(nameOf) })
  })
  observer.observe({ type: 'layout-shift', buffered: true })
  for (const name of ['pointerdown', 'keydown', 'input', 'popstate'])
    window.addEventListener(name, () => observer.disconnect(), { capture: true, once: true })
}`
/** Locators whose `press` waits already: all have one prototype. */
const patient = new WeakSet<Locator>()

/** A button may be disabled until its data is there. Unlike a click, a key does not wait for that, and would be lost. */
function pressWhatIsEnabled(page: Page): void {
  const prototype = Object.getPrototypeOf(page.locator('html')) as Locator
  if (patient.has(prototype)) return
  patient.add(prototype)
  const { press } = prototype
  prototype.press = async function (this: Locator, key, options) {
    await eventually('it is enabled', () => this.isEnabled())
    await press.call(this, key, options)
  }
}

const clockAhead = (ms: number) => `globalThis.Date = class extends Date {
  constructor(...given) {
    super(...(given.length === 0 ? [Date.now()] : given))
  }
  static now() {
    return super.now() + ${ms}
  }
}`
interface Placing {
  /** What has moved while the page was loaded. */
  shifts: { value: number; parts: string[] }[]
  /** The page, its main part and its tables, which would have to be scrolled sideways to be read. */
  tooWide: string[]
}

const PLACING = `({
  shifts: globalThis.layoutShifts ?? [],
  tooWide: [...document.querySelectorAll('html, main, .table-scroll')]
    .filter((part) => part.scrollWidth > part.clientWidth)
    .map((part) => part.tagName + ' ' + part.className + ' is ' + (part.scrollWidth - part.clientWidth) + ' pixels too wide'),
})`

/** Half of what browsers' makers call good. */
const SHIFT_MAX = 0.05

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** Less than half of the text that the package exports: each document receives and parses it. */
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** A fault of a row is a fault of all rows. */
const NODES_SHOWN_MAX = 5

/** What axe-core finds, one line each. Frames are left out: what is in them is somebody else's mail. */
async function violations(page: Page): Promise<string[]> {
  // Without the nodes that break no rule: to name them takes most of the time.
  const options = JSON.stringify({ runOnly: RULES, iframes: false, resultTypes: ['violations'] })
  const find = () =>
    page.evaluate<axe.Result[] | undefined>(
      `globalThis.axe?.run(document, ${options}).then(({ violations }) => violations)`,
    )
  let found = await find()
  if (found === undefined) {
    // Once for each document.
    await addAxe(page)
    found = await find()
  }
  assert.ok(found)
  return found.flatMap(({ id, nodes }) =>
    nodes
      .slice(0, NODES_SHOWN_MAX)
      .map((node) => `${id}: ${node.target.join(' ')}: ${node.any[0]?.message ?? node.html}`),
  )
}

const sessions = new WeakMap<Page, Promise<CDPSession>>()

/**
 * By the browser's protocol, which a Content-Security-Policy does not concern, and without what Playwright wraps a text in. The
 * session ends with its page: Chromium 153 crashes when a passkey is added after one was detached.
 */
async function addAxe(page: Page): Promise<void> {
  const session = sessions.get(page) ?? page.context().newCDPSession(page)
  sessions.set(page, session)
  const { exceptionDetails } = await (await session).send('Runtime.evaluate', { expression: AXE })
  assert.equal(exceptionDetails, undefined)
}

/** Types once a field has the focus: a dialog gives it to its first one some time after that can be seen. */
export async function typeText(page: Page, text: string): Promise<void> {
  await page.locator('input:focus, textarea:focus, [contenteditable]:focus').waitFor()
  await page.keyboard.type(text)
}

/**
 * Resolves once an open window has given the focus to its first field, which takes it from one that is filled meanwhile: the
 * text would go to the wrong one.
 */
export async function windowHasFocus(page: Page): Promise<void> {
  // Asked again and again from here: a page under its policy evaluates no text by itself.
  const isFocused =
    "[...document.querySelectorAll('[role=dialog]')].at(-1)?.contains(document.activeElement) ?? true"
  await eventually('the window has the focus', () => page.evaluate<boolean>(isFocused))
}

/**
 * Presses a button that copies, and resolves once the page has said so, which it does for a moment only: it is noted in the page, as
 * a look from here may come too late. @throws after HANG_MS
 */
export async function pressToCopy(button: Locator, press: (button: Locator) => Promise<void>): Promise<void> {
  // Evaluated before the press, as the browser handles one command after the other.
  const said = button.page().evaluate(`new Promise((resolve, reject) => {
    const observer = new MutationObserver(() => {
      for (const button of document.querySelectorAll('button'))
        if ((button.getAttribute('aria-label') ?? button.textContent) === 'Copied') {
          observer.disconnect()
          resolve()
        }
    })
    observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true })
    setTimeout(() => reject(new Error('no button says "Copied"')), ${HANG_MS})
  })`)
  await Promise.all([said, press(button)])
}

/** Chooses in a field that finds options by a part of their names, as it is typed. */
export async function chooseOption(field: Locator, name: string): Promise<void> {
  const input = field.and(field.page().getByRole('combobox')) // its list has the same label
  await input.click()
  await input.fill(name)
  await field.page().getByRole('option', { name }).first().click()
}

/** Presses keys one after another, as a keyboard user does. */
export async function press(page: Page, ...keys: readonly string[]): Promise<void> {
  for (let at = 0; at < keys.length; at += 1) {
    const [key = '', letter] = keys.slice(at)
    if (key === 'g' && letter !== undefined) {
      // Its letter follows within a time: both are sent at once, however slow the machine is.
      await Promise.all([page.keyboard.press(key), page.keyboard.press(letter)])
      at += 1
    } else await page.keyboard.press(key)
  }
}
