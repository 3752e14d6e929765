/** The guides as static files, opened in a browser without any server. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { launchBrowser } from '../test/support/browser.ts'
import { GUIDES } from '../web/guides.ts'
import { writeDocsSite } from './docs-site.ts'

const folder = mkdtempSync(join(tmpdir(), 'docs-site-'))
let names: string[]
before(async () => {
  names = await writeDocsSite(folder)
})

test('every guide has a page, and every link leads to a file and a heading in it', () => {
  const pages = names.filter((name) => name.endsWith('.html'))
  assert.equal(pages.length, GUIDES.flatMap(({ files }) => files).length + 1)
  let links = 0
  for (const name of pages)
    for (const [, href = ''] of readFileSync(join(folder, name), 'utf8').matchAll(
      /(?:href|src)="([^"]+)"/g,
    )) {
      if (/^https?:/.test(href)) continue
      const [file, anchor] = href.split('#')
      const target = join(folder, file === '' ? name : (file ?? ''))
      assert.ok(existsSync(target), `${name}: ${href}`)
      if (anchor !== undefined)
        assert.ok(readFileSync(target, 'utf8').includes(`id="${anchor}"`), `${name}: ${href}`)
      links += 1
    }
  assert.ok(links > 1_000, `${links} links`)
})

test('a browser without network finds guides by their words', async (t) => {
  const browser = await launchBrowser()
  t.after(() => browser.close())
  const page = await browser.newPage()
  const asked: string[] = []
  page.on('request', (request) => {
    if (!request.url().startsWith('file:')) asked.push(request.url())
  })
  await page.goto(pathToFileURL(join(folder, 'index.html')).href)
  await page.getByLabel('Search guides').fill('proxy balancer')
  const shown = page.locator('nav li:visible')
  const found = await shown.allTextContents()
  assert.ok(found.includes('Behind NAT and balancers'), found.join(', '))
  assert.ok(
    !found.includes('Ghost newsletters through your own server') && found.length < 12,
    found.join(', '),
  )
  await shown.getByText('Behind NAT and balancers').click()
  await page.getByRole('heading', { level: 1, name: 'Behind NAT and balancers' }).waitFor()
  assert.deepEqual(asked, [])
})
