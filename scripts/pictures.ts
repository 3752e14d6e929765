/**
 * Pictures of every page of the dashboard: `npm run pictures`. They are written to `docs/images/pages`, at a desk in light
 * colours and on a phone in dark ones; `npm run pictures -- domain` takes those whose names contain a word. Needs Linux
 * with `unshare` and `ip`: the service runs in a network of its own, where addresses of documentation (RFC 5737) are its
 * own, and nothing outside can be reached.
 */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import type { BrowserContextOptions } from 'playwright-core'
import { fill, queryOne } from '../bench/support/stored-data.ts'
import { systemClock } from '../src/base/time/clock.ts'
import { openSqlite } from '../src/platform/store/sqlite/sqlite.ts'
import { indexEvents } from '../src/watching/events/search/indexing.ts'
import { createCounting } from '../src/watching/metrics/counting.ts'
import { launchBrowser } from '../test/support/browser.ts'
import { type Dashboard, DESK, PHONE, startDashboard } from '../test/support/dashboard.ts'
import { linksOf, untilQuiet } from '../test/support/dashboard-pages.ts'
import { createDnsServer } from '../test/support/dns-server.ts'
import { eventStatement } from '../test/support/events.ts'
import { startTestService } from '../test/support/service.ts'
import { createSink, type Sink } from '../test/support/smtp-sink.ts'
import {
  DOMAINS,
  fillAccount,
  HOOKS,
  IPS,
  REPUTED,
  sendCaptured,
  sendMail,
  setReplies,
} from './pictures/account.ts'
import { history, RECEIVERS } from './pictures/history.ts'
import { PAGES, type PicturedPage } from './pictures/pages.ts'
import { withPalette } from './pictures/png.ts'

const FOLDER = join(import.meta.dirname, '../docs/images/pages')
const LOOKS: readonly [string, BrowserContextOptions][] = [
  ['desk', DESK],
  ['phone', { ...PHONE, viewport: { width: 390, height: 844 } }],
]
const MX_PORT = 25
const DNS_PORT = 53
const DATA = '/var/lib/sendwright'
/** What the folder's file system seems to have; memory is taken for what is written only. */
const DISK = '80g'
/** Documentation networks of RFC 5737: the service's own, and those of the providers. */
const NETWORKS = ['203.0.113.0/24', '198.51.100.0/24']
const HOOKS_ADDRESS = '198.51.100.80'
/** Last parts of the service's addresses. */
const OWN = [10, 11, 12, 13, 14, 15, 16, 17, 20]
const INSIDE = 'PICTURES_INSIDE'

const cleanups: (() => unknown)[] = []
const t = { after: (cleanup: () => unknown) => void cleanups.unshift(cleanup) }

if (process.env[INSIDE] === undefined) process.exitCode = await runInside()
else {
  try {
    await takeAll(process.argv.slice(2))
  } finally {
    for (const cleanup of cleanups) await cleanup()
  }
}

/** Runs this program again, in a network of its own. */
async function runInside(): Promise<number> {
  // The first start unpacks the browser, with owners that are unknown inside.
  await (await launchBrowser()).close()
  const own = OWN.map((last) => `203.0.113.${last}/32`)
  const addresses = [...own, ...NETWORKS].map((each) => `ip addr add ${each} dev lo`)
  const folder = `mount -t tmpfs -o size=${DISK} none /var/lib && mkdir -m 700 ${DATA}`
  const script = ['ip link set lo up', ...addresses, folder, 'exec "$@"'].join(' && ')
  const command = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  const words = ['--user', '--map-root-user', '--net', '--mount', 'sh', '-c', script, 'sh', ...command]
  const { status, error } = spawnSync('unshare', words, {
    stdio: 'inherit',
    env: { ...process.env, [INSIDE]: 'yes' },
  })
  if (error) throw error
  return status ?? 1
}

async function takeAll(words: readonly string[]): Promise<void> {
  const wanted = PAGES.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)))
  const dns = await createDnsServer({ port: DNS_PORT })
  t.after(() => dns.close())
  const sinks = await startProviders(dns)
  await startHooks(dns)
  publishHosts(dns)
  const env = {
    SENDWRIGHT_DATA: DATA,
    SENDWRIGHT_PUBLIC_URL: 'https://mail.example.com',
    SENDWRIGHT_HOSTNAME: 'mail.example.com',
    SENDWRIGHT_DELIVERY: 'direct',
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_MX_PORT: String(MX_PORT),
    SENDWRIGHT_ALLOW_NETWORKS: ['127.0.0.0/8', ...NETWORKS].join(','),
    SENDWRIGHT_IPS: `${[...IPS, ...REPUTED].join(',')},203.0.113.20=shared,203.0.113.13=spare,203.0.113.14=spare,203.0.113.15=spare`,
    SENDWRIGHT_EVENT_RETENTION_DAYS: '60',
    SENDWRIGHT_WEBHOOK_SCHEDULE: '1h',
    SENDWRIGHT_TRANSCRIPTS: 'all',
  }
  await prepare(env, dns)
  setReplies(sinks)
  const dashboard = await startDashboard(t, env)
  await sendMail(dashboard.service)
  await mkdir(FOLDER, { recursive: true })
  for (const page of wanted.filter(({ captured }) => captured !== true)) await take(dashboard, page)
  const captured = wanted.filter((page) => page.captured === true)
  if (captured.length === 0) return
  await dashboard.service.service.stop()
  const other = await startDashboard(t, { ...env, SENDWRIGHT_DELIVERY: 'capture' })
  await sendCaptured(other.service)
  for (const page of captured) await take(other, page)
}

/** The account's own application, whose address for the customer file fails. */
async function startHooks(dns: Awaited<ReturnType<typeof createDnsServer>>): Promise<void> {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(request.url === '/crm/mail' ? 503 : 200).end()
  })
  t.after(() => server.close())
  server.listen(80, HOOKS_ADDRESS)
  await once(server, 'listening')
  dns.set(HOOKS, 'A', [HOOKS_ADDRESS])
}

/** What the operator of a service publishes. */
function publishHosts(dns: Awaited<ReturnType<typeof createDnsServer>>): void {
  for (const host of ['', 'mxa.', 'mxb.', 'track.']) dns.set(`${host}mail.example.com`, 'A', [IPS[0]])
  dns.set('spf.mail.example.com', 'TXT', ['v=spf1 ip4:203.0.113.0/24 -all'])
  for (const last of OWN) {
    dns.set(`mx${last}.mail.example.com`, 'A', [`203.0.113.${last}`])
    dns.set(`${last}.113.0.203.in-addr.arpa`, 'PTR', [`mx${last}.mail.example.com`])
  }
}

/** A server for each domain of recipients. */
async function startProviders(dns: Awaited<ReturnType<typeof createDnsServer>>): Promise<Map<string, Sink>> {
  const sinks = new Map<string, Sink>()
  for (const [at, { domain, mx }] of RECEIVERS.entries()) {
    const sink = await createSink({ host: `198.51.100.${10 + at}`, port: MX_PORT })
    t.after(() => sink.close())
    sinks.set(domain, sink)
    dns.set(domain, 'MX', [[10, mx]])
    dns.set(mx, 'A', [sink.host])
  }
  return sinks
}

/** The account and its history, in the folder of a service that is stopped again. */
async function prepare(
  env: Record<string, string> & { SENDWRIGHT_DATA: string },
  dns: Awaited<ReturnType<typeof createDnsServer>>,
): Promise<void> {
  const first = await startTestService(t, env)
  await fillAccount(first, dns)
  await first.service.stop()
  const place = { dataFolder: env.SENDWRIGHT_DATA, databaseUrl: null }
  const { account_id } = await queryOne(place, `SELECT account_id FROM domains WHERE type = 'sandbox'`)
  const parts = { accountId: String(account_id), domains: DOMAINS, ips: IPS, nowMs: Date.now() }
  await fill(place, eventRows(parts))
  const store = await openSqlite(place.dataFolder)
  await indexEvents(store)
  await createCounting(store, systemClock, (rule) => rule === 'rate-limit').follower.stepToEnd()
  await store.close()
}

function* eventRows(parts: Parameters<typeof history>[0]) {
  for (const event of history(parts)) yield eventStatement(event)
}

async function take(dashboard: Dashboard, { name, path, link, open }: PicturedPage): Promise<void> {
  const one = async ([look, options]: (typeof LOOKS)[number]) => {
    const page = await dashboard.open(path, { look: options, ...(name === 'sign-in' && { key: null }) })
    await untilQuiet(page)
    if (link) {
      const found = (await linksOf(page)).find((each) => link.test(each))
      if (found === undefined) throw new Error(`${name}: no link ${link} on ${path}`)
      await page.goto(dashboard.service.url + found)
      await untilQuiet(page)
    }
    await open?.(page, dashboard.service)
    const picture = await page.screenshot({ animations: 'disabled', caret: 'hide' })
    await writeFile(join(FOLDER, `${name}-${look}.png`), withPalette(picture))
    const fault = await dashboard.sound(page).then(
      () => '',
      (error: Error) => `: ${error.message}`,
    )
    console.log(`${name}-${look}${fault}`)
    await page.context().close()
  }
  await Promise.all(LOOKS.map(one))
}
