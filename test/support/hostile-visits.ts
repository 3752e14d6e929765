/** Visits pages of a dashboard whose data are payloads, and notes each script that ran and each request to elsewhere. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { type Dashboard, startDashboard } from './dashboard.ts'
import { kindOf, linksOf, untilQuiet } from './dashboard-pages.ts'
import { hostileTexts, type Planted, plantTexts, REPORT } from './hostile-texts.ts'
import { createReceiver } from './http-receiver.ts'
import { ownAddress } from './service.ts'

export interface HostileVisits extends Planted {
  /** Opens the path, waits until the page has its data, and returns it. */
  visit(path: string): Promise<Page>
  /** Opens all the paths, in a few pages one after another: a new page costs as much as what it shows. */
  visitEach(paths: readonly string[]): Promise<void>
  /** Follows links from `/`; of each kind of page at most `each`. Returns the paths visited. */
  visitAll(each: number): Promise<string[]>
  /** Asserts that nothing has run, that nobody was asked elsewhere, and that a payload would have been noticed. */
  assertNothingRan(): Promise<void>
}

const PAGES_AT_A_TIME = 4

/** `t` ends everything. */
export async function startHostileVisits(
  t: Pick<TestContext, 'after'>,
  count: number,
): Promise<HostileVisits> {
  const elsewhere = await createReceiver({ host: ownAddress() })
  t.after(() => elsewhere.close())
  const env = {
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    SENDWRIGHT_TRANSCRIPTS: 'all',
    SENDWRIGHT_DNS: '127.0.0.1:9',
    SENDWRIGHT_IPS: '127.0.75.1,127.0.75.8=shared',
  }
  const dashboard = await startDashboard(t, env)
  const planted = await plantTexts(dashboard.service, hostileTexts(count, elsewhere.url))
  t.after(() => planted.receiver.close())
  const context = await dashboard.signedIn()
  t.after(() => context.close())
  const ran: string[] = []
  // In every frame, those without an origin included.
  await context.exposeFunction(REPORT, (payload: unknown) => ran.push(String(payload)))
  context.on('dialog', (dialog) => {
    ran.push(`dialog ${dialog.message()}`)
    void dialog.dismiss()
  })
  const visit = async (path: string) => visitIn(await context.newPage(), dashboard, path)
  return {
    ...planted,
    visit,
    async visitEach(paths) {
      const left = [...paths]
      const visitOneByOne = async () => {
        const page = await context.newPage()
        for (let path = left.shift(); path !== undefined; path = left.shift())
          await visitIn(page, dashboard, path)
        await page.close()
      }
      await Promise.all(Array.from({ length: PAGES_AT_A_TIME }, visitOneByOne))
    },
    async visitAll(each) {
      const seen = new Map<string, number>()
      const visited: string[] = []
      const waiting = new Set(['/'])
      // A set yields what is added while it is read.
      for (const path of waiting) {
        const times = seen.get(kindOf(path)) ?? 0
        if (times >= each) continue
        seen.set(kindOf(path), times + 1)
        const page = await visit(path)
        visited.push(path)
        for (const link of await linksOf(page)) waiting.add(link)
        await page.close()
      }
      return visited
    },
    async assertNothingRan() {
      assert.deepEqual(ran, [], 'payloads whose script ran')
      assert.deepEqual(
        elsewhere.posts.map(({ path }) => path),
        [],
        'payloads that loaded something',
      )
      const page = await context.newPage()
      await page.setContent(`<img src="${elsewhere.url}/control" onerror="${REPORT}('control')">`)
      await page.waitForFunction('document.images[0].complete')
      await page.close()
      assert.deepEqual([ran, elsewhere.posts.length], [['control'], 1])
    },
  }
}

async function visitIn(page: Page, { service }: Dashboard, path: string): Promise<Page> {
  await page.goto(service.url + path)
  await untilQuiet(page)
  return page
}
