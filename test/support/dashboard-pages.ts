/** Going through the dashboard by its links. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'playwright-core'

/** A page has shown its data when it has asked nothing for this long. */
const QUIET_MS = 700
const PAGE_LIMIT_MS = 60_000

/** Pages of one kind have equal texts: parts of a path with digits, dots or signs are names. */
export const kindOf = (path: string): string =>
  (path.split(/[?#]/)[0] ?? '')
    .split('/')
    .map((part) => (/[\d.@%]/.test(part) ? '*' : part))
    .join('/')

/** What the API serves, such as downloads, and no page. */
const API_PATH = /^\/(?:v\d+|sendwright)\/|\.json$/

/** Links to pages of the dashboard, as they are in the markup. */
export async function linksOf(page: Page): Promise<string[]> {
  const links = await page.evaluate<string[]>(
    `[...document.querySelectorAll('a[href^="/"]')].filter((link) => link.target !== '_blank').map((link) => link.getAttribute('href'))`,
  )
  return links.filter((path) => !API_PATH.test(path))
}

/** Streams of live pages stay open; only what ends is waited for. */
export async function untilQuiet(page: Page): Promise<void> {
  let last = performance.now()
  const note = () => {
    last = performance.now()
  }
  page.on('request', note)
  page.on('requestfinished', note)
  const end = last + PAGE_LIMIT_MS
  while (performance.now() - last < QUIET_MS && performance.now() < end) await sleep(50)
  page.off('request', note)
  page.off('requestfinished', note)
}
