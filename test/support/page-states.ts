/**
 * Every page of the dashboard in every state. The router itself lists the pages, so that a new one is tried without a word here,
 * unless its path has a part that names something: then `NAMED` says where one is found.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { BrowserContextOptions, Page, Request, Route } from 'playwright-core'
import type { Dashboard } from './dashboard.ts'
import { untilQuiet } from './dashboard-pages.ts'
import { FILLED_ENV, fillAccount, setFaults } from './fill-account.ts'
import { createReceiver } from './http-receiver.ts'
import { addDomains, addRows } from './many-rows.ts'
import type { TestService } from './service.ts'

export const DOMAINS = 130
export const MEMBERS = 10_000
export const TAGS = 500

/** How requests for a page's data end. Those of the frame, without which there is no page, are as always. */
export const FAILING = ['500', '503', 'offline'] as const
export type Answering = (typeof FAILING)[number] | 'normal' | 'held' | '401' | 'long names'

const API = /^\/(?:v\d+|sendwright)\/|^\/openapi\.json$/
const FRAME = /^\/(?:sendwright\/v1\/(?:session|system|sign-in-methods)|v5\/accounts\/subaccounts\?limit=20)$/
const FAULT_MAX = 500
const STEP_MAX_MS = 60_000 // a page without what is awaited must not take the time of the others
const MOVING = `document.getAnimations().filter(({ playState }) => playState === 'running')
  .map((animation) => animation.animationName ?? animation.transitionProperty ?? 'an animation')`
const FOCUS_FAULT = `(() => {
  const focused = document.activeElement
  if (focused === null || focused === document.body || focused.tagName === 'IFRAME') return null
  const box = focused.getBoundingClientRect()
  const name = focused.outerHTML.slice(0, 120)
  if (box.width === 0 || box.height === 0) return 'on what is not visible: ' + name
  const shows = [focused, focused.parentElement, focused.nextElementSibling].some((part) => {
    const style = part && getComputedStyle(part)
    return style && (style.outlineStyle !== 'none' || style.boxShadow !== 'none')
  })
  return shows || /^(INPUT|TEXTAREA|SELECT)$/.test(focused.tagName) ? null : 'not shown: ' + name
})()`
/** Lets the pauses before repeated requests, of one and two seconds, pass at once where `hurries` is set. */
const HURRY = `if (window === window.top) {
  const later = window.setTimeout
  window.setTimeout = (run, ms, ...values) =>
    later(run, globalThis.hurries && (ms === 1_000 || ms === 2_000) ? 0 : ms, ...values)
}`

/** A long word, right-to-left letters between Latin ones, and marks that turn the direction. */
const LONG = `${'Unbreakable'.repeat(12)} שלום עולם مرحبا بالعالم \u202eabc\u202c`
const NAMES = /"(name|description|subject|comment|title|note|reason)":"(?:[^"\\]|\\.)+"/g

/** What a page shows of a value that it has not. */
export const RAW_VALUE = /\b(?:undefined|null|NaN|Invalid Date)\b|\[object \w+\]/
export const PAGE_TEXT = "document.querySelector('main')?.innerText ?? ''"

/** Adds to a filled account what only few have: many domains, members of a list, and tags. */
function fillHuge(service: TestService): void {
  addDomains(service, DOMAINS)
  addRows(service, 'list_members', MEMBERS, (at) => {
    const address = `member-${at}@example.net`
    return { address_key: address, address }
  })
  addRows(service, 'tags', TAGS, (at) => ({ tag_key: `tag-${at}`, tag: `tag-${at}` }))
}

/** The values that paths name, by the path's pattern. */
async function namesOf(service: TestService, domain: string): Promise<Record<string, string>> {
  const get = async (path: string) => (await service.call('GET', path)).body
  const first = async (path: string, list: string, name: string) => (await get(path))[list][0][name] as string
  const { items: logs } = (await service.call('POST', '/v1/analytics/logs', { json: {} })).body
  const addresses = (await get('/v3/ips')).items as string[]
  return {
    '/sending/templates/$name': 'hello',
    '/sending/lists/$address': `news@${domain}`,
    '/sending/validation/$id': await first('/v4/address/validate/bulk', 'jobs', 'id'),
    '/sending/placement/$id': await first('/v4/inbox/results', 'items', 'result_id'),
    '/people/$address': logs[0].recipient,
    '/activity/$id': logs[0].message.headers['message-id'],
    '/delivery/ips/$ip': addresses[0] ?? '',
    '/delivery/pools/$id': await first('/v3/ip_pools', 'ip_pools', 'pool_id'),
    '/domains/$name': domain,
    '/domains/$name/health': domain,
    '/domains/$name/receivers': domain,
    '/domains/$name/settings': domain,
    '/domains/$name/keys': domain,
    '/domains/$name/logins': domain,
    '/settings/keys/$id': await first('/v1/keys', 'items', 'id'),
    '/settings/subaccounts/$id': await first('/v5/accounts/subaccounts', 'subaccounts', 'id'),
    '/docs/guides/$guide': 'architecture',
    '/docs/$operation': 'listDomains',
    '/webhooks/attempts/$id': await first('/sendwright/v1/webhooks/attempts', 'items', 'id'),
    '/inbox/$id': await first('/sendwright/v1/inbox', 'items', 'id'),
  }
}

/** Patterns of the paths of all pages, as the router knows them. */
const patternsOf = (page: Page): Promise<string[]> =>
  page.evaluate<string[]>('Object.keys(globalThis.__TSR_ROUTER__.routesByPath)')

function pathsOf(patterns: readonly string[], names: Readonly<Record<string, string>>): string[] {
  const unnamed = patterns.filter((pattern) => pattern.includes('$') && names[pattern] === undefined)
  assert.deepEqual(unnamed, [], 'new pages: add what their paths name to test/support/page-states.ts')
  return patterns.map((pattern) => pattern.replace(/\$\w+/, encodeURIComponent(names[pattern] ?? '')))
}

/** Which of the pages: all would take too long for one file. */
export interface Part {
  /** From 0. */
  index: number
  of: number
}

export interface States {
  page: Page
  /** How data are answered from now on; `held` requests are answered by the next call. */
  answer(how: Answering): Promise<void>
  /** Opens a page; returns the requests for its data. */
  visit(path: string): Promise<string[]>
  /** Resolves once the page has asked for nothing for a while. */
  settled(): Promise<void>
  /** Runs a check for each page, or for those of one part of several, and fails with all that it has found. */
  onEachPage(check: (path: string) => Promise<unknown>, part?: Part): Promise<void>
  /** Presses Tab some times: each must go to something visible that shows that it has the focus, unless there is nothing more. */
  inFocus(times: number): Promise<void>
  /** Names of what is in motion. */
  moving(): Promise<string[]>
}

/** A service with very many of everything, and its pages with answers that are controlled. */
export async function startStates(
  t: Pick<TestContext, 'after'>,
  start: (t: Pick<TestContext, 'after'>, env: Record<string, string>) => Promise<Dashboard>,
  look?: BrowserContextOptions,
): Promise<{ dashboard: Dashboard; states: States }> {
  const receiver = await createReceiver()
  t.after(() => receiver.close())
  const dashboard = await start(t, FILLED_ENV)
  const { service } = dashboard
  await setFaults(service)
  const { domain } = await fillAccount(service, service.call, 'mail.shop.example', receiver.url)
  assert.equal(
    (await service.call('POST', '/v5/accounts/subaccounts', { form: { name: 'Empty' } })).status,
    200,
  )
  fillHuge(service)
  const sink = { kind: 'nats', servers: ['127.0.0.1:9'], topic: 'mail', paused: true }
  assert.equal((await service.call('PUT', '/sendwright/v1/event-sinks/broker', { json: sink })).status, 200)
  const page = await openAny(dashboard, look)
  const paths = pathsOf(await patternsOf(page), await namesOf(service, domain))
  return { dashboard, states: await controlStates(dashboard, page, paths) }
}

/** A service on its first day, and those of its pages whose paths name nothing that it has not. */
export async function startEmptyStates(
  t: Pick<TestContext, 'after'>,
  start: (t: Pick<TestContext, 'after'>) => Promise<Dashboard>,
): Promise<{ dashboard: Dashboard; states: States }> {
  const dashboard = await start(t)
  const page = await openAny(dashboard)
  const paths = (await patternsOf(page)).filter((pattern) => !pattern.includes('$'))
  return { dashboard, states: await controlStates(dashboard, page, paths) }
}

async function openAny(dashboard: Dashboard, look?: BrowserContextOptions): Promise<Page> {
  const page = await dashboard.open('/settings', { own: true, ...(look && { look }) })
  await page.getByRole('heading', { level: 1 }).waitFor()
  return page
}

/** A page whose answers are controlled. */
async function controlStates(dashboard: Dashboard, page: Page, paths: readonly string[]): Promise<States> {
  let how: Answering = 'normal'
  let held: (() => Promise<void>)[] = []
  let asked: string[] = []
  page.setDefaultTimeout(STEP_MAX_MS)
  await page.addInitScript(HURRY)
  await page.route(
    (url) => API.test(url.pathname),
    async (route, request) => {
      const url = new URL(request.url())
      if (FRAME.test(url.pathname + url.search) && how !== '401') return route.fallback()
      asked.push(`${request.method()} ${url.pathname}`)
      if (how === 'held') held.push(() => route.fallback())
      else await end(route, request, how)
    },
  )
  const states: States = {
    page,
    async answer(next) {
      how = next
      for (const release of held.splice(0)) await release().catch(() => undefined)
    },
    async visit(path) {
      asked = []
      held = []
      await page.goto(dashboard.service.url + path, { waitUntil: 'domcontentloaded' })
      if (FAILING.some((each) => each === how)) await page.evaluate('globalThis.hurries = true')
      return asked
    },
    settled: () => untilQuiet(page),
    async onEachPage(check, part = { index: 0, of: 1 }) {
      const faults: string[] = []
      for (const path of paths.filter((_, at) => at % part.of === part.index)) {
        try {
          await check(path)
        } catch (error) {
          faults.push(
            `${path}: ${error instanceof Error ? error.message.replaceAll(/\s+/g, ' ').slice(0, FAULT_MAX) : error}`,
          )
        }
      }
      assert.equal(faults.join('\n\n'), '')
    },
    async inFocus(times) {
      await page.evaluate('document.activeElement?.blur()')
      for (let at = 0; at < times; at++) {
        await page.keyboard.press('Tab')
        const fault = await page.evaluate<string | null>(FOCUS_FAULT)
        if (fault !== null) throw new Error(`the focus after ${at + 1} tabs: ${fault}`)
      }
    },
    moving: () => page.evaluate<string[]>(MOVING),
  }
  return states
}

async function end(route: Route, request: Request, how: Answering): Promise<void> {
  if (how === 'offline') return route.abort('internetdisconnected')
  if (how === '401') return route.fulfill({ status: 401, json: { message: 'Unauthorized' } })
  if (how === '500') return route.fulfill({ status: 500, json: { message: 'It broke inside' } })
  if (how === '503') return route.fulfill({ status: 503, contentType: 'text/html', body: '<h1>Busy</h1>' })
  const isOurs = request.resourceType() === 'eventsource' || request.url().endsWith('/openapi.json')
  if (how !== 'long names' || isOurs) return route.fallback()
  const response = await route.fetch()
  const text = await response.text()
  const isJson = response.headers()['content-type']?.includes('json') === true
  const body = isJson ? text.replaceAll(NAMES, (_, name) => `"${name}":${JSON.stringify(LONG)}`) : text
  await route.fulfill({ response, body })
}
