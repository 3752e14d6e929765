import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { launchBrowser } from './browser.ts'

const PAGE = `<!doctype html><meta charset="utf-8"><title>Probe</title>
<body style="font: 24px sans-serif; background: #fff; margin: 40px">
<h1>Größe 10 €</h1><button onclick="count.textContent = Number(count.textContent) + 1">Add one</button>
<p>Clicked <output id="count">0</output> times</p>`

/** Width and height of the image are in the header chunk of a PNG (RFC 2083 §4.1.1). */
function pngSize(image: Buffer): { width: number; height: number } {
  assert.equal(image.subarray(1, 4).toString('latin1'), 'PNG')
  return { width: image.readUInt32BE(16), height: image.readUInt32BE(20) }
}

const server = createServer((_request, response) => {
  response.setHeader('content-type', 'text/html')
  response.end(PAGE)
})
let browser: Browser
let url: string

before(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  browser = await launchBrowser()
})

after(async () => {
  await browser?.close()
  server.close()
  server.closeAllConnections()
})

test('a page is shown, clicked and photographed', async () => {
  const page = await browser.newPage({ viewport: { width: 640, height: 360 } })
  await page.goto(url)
  await page.getByRole('button', { name: 'Add one' }).click()
  await page.getByRole('button', { name: 'Add one' }).click()
  assert.equal(await page.locator('#count').textContent(), '2')
  const image = await page.screenshot()
  assert.deepEqual(pngSize(image), { width: 640, height: 360 })
  await page.close()
})

test('text is drawn with a real font: letters differ in width', async () => {
  const page = await browser.newPage()
  await page.goto(url)
  // As text, because the types of the browser's globals are not available here.
  const widths = await page.evaluate<number[]>(`
    const pen = document.createElement('canvas').getContext('2d')
    pen.font = '40px sans-serif'
    const measured = ['iii', 'WWW', '€€€'].map((text) => pen.measureText(text).width)
    measured`)
  assert.equal(new Set(widths).size, 3, String(widths))
  assert.ok(Math.min(...widths) > 0)
  await page.close()
})

test('a page cannot reach a host outside', async () => {
  const page = await browser.newPage()
  await page.goto(url)
  const failed = page.waitForEvent('requestfailed')
  await page.setContent('<img src="http://example.com/pixel.gif">')
  assert.match((await failed).failure()?.errorText ?? '', /ERR_NAME_NOT_RESOLVED/)
  await page.close()
})
