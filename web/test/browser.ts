import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import bundledChromium from '@sparticuz/chromium'
import { type Browser, chromium } from 'playwright-core'
import { build } from 'vite'

export async function launchBrowser(): Promise<Browser> {
  const executablePath = await bundledChromium.executablePath()
  // The package's own flags are for cloud functions and switch the site isolation off that we want to see work.
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
}

/** Builds the dashboard into a new folder; `remove` deletes it. */
export async function buildDashboard(): Promise<{ folder: string; remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-web-'))
  const root = join(import.meta.dirname, '..')
  await build({
    root,
    configFile: join(root, 'vite.config.ts'),
    logLevel: 'error',
    build: { outDir: folder },
  })
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) }
}
