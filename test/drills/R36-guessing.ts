/**
 * Passwords are guessed over SMTP from one address, from one network and from everywhere, while the owner logs in. Also
 * compares the time of a wrong password with that of an unknown login.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import type { DrillReport } from '../../scripts/drill.ts'
import { systemClock } from '../../src/base/time/clock.ts'
import { createCredentials } from '../../src/people/keys/credentials.ts'
import { readConfig } from '../../src/platform/config/config.ts'
import { createSealer } from '../../src/platform/store/secrets/sealing.ts'
import { openSqlite } from '../../src/platform/store/sqlite/sqlite.ts'
import { startService } from '../../src/service.ts'
import { collectedMb } from '../support/process-memory.ts'
import { seededNumbers } from '../support/random.ts'
import { ownAddress, TEST_KEY } from '../support/service.ts'
import { Dialogue, plainLogin } from '../support/smtp-dialogue.ts'

export const title = 'R36: 10,000 guesses over SMTP: few are looked at, the owner notices nothing'

const PASSWORD = 'correct-horse'
const SECRET = 'drill-secret-0123456789abcdef0123456789abcdef'
const CONNECTIONS = 200
const OWNER_ADDRESS = '127.99.1.1'
const RIGHT = '235 2.7.0'
const WRONG = '535 5.7.8'
const RSS_GROWTH_MAX_MB = 100
const TIMED_PAIRS = 200
const TIME_DIFFERENCE_MAX = 0.05

interface Attack {
  name: string
  tries: number
  /** Guesses checked in a minute; null: one budget per address. */
  perMinuteMax: number | null
  address(random: () => number): string
}

const below = (random: () => number, end: number) => Math.floor(random() * end)

const ATTACKS: readonly Attack[] = [
  { name: 'one address', tries: 3_000, perMinuteMax: 10, address: () => '127.100.1.1' },
  {
    name: 'one /24',
    tries: 3_000,
    perMinuteMax: 30,
    address: (random) => `127.101.1.${1 + below(random, 250)}`,
  },
  {
    name: 'one /20',
    tries: 3_500,
    perMinuteMax: 90,
    address: (random) => `127.102.${96 + below(random, 16)}.${1 + below(random, 250)}`,
  },
  {
    name: 'everywhere',
    tries: 500,
    perMinuteMax: null,
    address: (random) => `127.${110 + below(random, 140)}.${below(random, 256)}.${1 + below(random, 250)}`,
  },
]

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  try {
    await guess(folder, report)
    await compareTimes(folder, report)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function guess(folder: string, report: DrillReport): Promise<void> {
  const host = ownAddress()
  const config = readConfig({
    SENDWRIGHT_HOST: host,
    SENDWRIGHT_DATA: folder,
    SENDWRIGHT_SECRET: SECRET,
    SENDWRIGHT_API_KEY: TEST_KEY,
    SENDWRIGHT_SMTP_MAX_CONNECTIONS_PER_IP: String(2 * CONNECTIONS),
  })
  const service = await startService(config, pino({ level: 'silent' }), { isExempt: () => false })
  try {
    const domain = service.first.sandboxDomain
    const made = await fetch(`http://${host}:${service.port}/v3/domains/${domain}/credentials`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`api:${TEST_KEY}`).toString('base64')}` },
      body: new URLSearchParams({ login: 'app', password: PASSWORD }),
    })
    assert.equal(made.status, 200)
    const login = `app@${domain}`
    const tryFrom = (address: string, password: string) =>
      reply(host, service.smtp.port, address, login, password)
    const random = seededNumbers(36)
    assert.equal(await tryFrom(OWNER_ADDRESS, PASSWORD), RIGHT)
    const rssBefore = collectedMb()
    const ownersMs: number[] = []
    for (const { name, tries, perMinuteMax, address } of ATTACKS) {
      const begunAt = performance.now()
      let running = true
      const owner = (async () => {
        while (running) {
          const at = performance.now()
          assert.equal(await tryFrom(OWNER_ADDRESS, PASSWORD), RIGHT)
          ownersMs.push(performance.now() - at)
          await new Promise((resolve) => setTimeout(resolve, 200))
        }
      })()
      let left = tries
      let lookedAt = 0
      const guessers = Array.from({ length: CONNECTIONS }, async () => {
        while (left-- > 0) if ((await tryFrom(address(random), `guess ${left}`)) === WRONG) lookedAt++
      })
      await Promise.all(guessers)
      running = false
      await owner
      const minutes = (performance.now() - begunAt) / 60_000
      report.figure(`${name}: looked at`, lookedAt, `of ${tries} in ${Math.round(minutes * 60)} s`)
      if (perMinuteMax !== null) assert.ok(lookedAt <= perMinuteMax * Math.ceil(minutes), name)
    }
    const sorted = ownersMs.toSorted((a, b) => a - b)
    report.figure("the owner's logins", sorted.length)
    report.figure(
      "the owner's logins, p99",
      Math.round(sorted[Math.floor(sorted.length * 0.99)] as number),
      'ms',
    )
    const grownMb = collectedMb() - rssBefore
    report.figure('RSS growth', Math.round(grownMb), 'MB')
    assert.ok(grownMb <= RSS_GROWTH_MAX_MB)
  } finally {
    await service.stop()
  }
}

async function reply(
  host: string,
  port: number,
  localAddress: string,
  login: string,
  password: string,
): Promise<string | undefined> {
  const dialogue = await Dialogue.open({ host, port, localAddress })
  try {
    await dialogue.reply()
    await dialogue.say('EHLO guess.example')
    return (await dialogue.say(`AUTH PLAIN ${plainLogin(login, password)}`))?.slice(0, 9)
  } finally {
    dialogue.destroy()
  }
}

/** In turns, so that other load on the machine affects both alike. */
async function compareTimes(folder: string, report: DrillReport): Promise<void> {
  const store = await openSqlite(folder)
  try {
    const credentials = createCredentials(store, createSealer(SECRET), systemClock)
    const { name } = await store.db.selectFrom('domains').select('name').executeTakeFirstOrThrow()
    const msOf = async (login: string) => {
      const at = performance.now()
      assert.equal(await credentials.authenticate(`${login}@${name}`, 'wrong'), null)
      return performance.now() - at
    }
    const times: Record<'app' | 'nobody', number[]> = { app: [], nobody: [] }
    for (let n = 0; n < TIMED_PAIRS; n++) {
      for (const login of n % 2 ? (['app', 'nobody'] as const) : (['nobody', 'app'] as const)) {
        times[login].push(await msOf(login))
      }
    }
    const median = (values: number[]) => values.toSorted((a, b) => a - b)[TIMED_PAIRS / 2] as number
    const [wrong, unknown] = [median(times.app), median(times.nobody)]
    report.figure('wrong password, median', wrong.toFixed(2), 'ms')
    report.figure('unknown login, median', unknown.toFixed(2), 'ms')
    report.figure('difference', (((unknown - wrong) / wrong) * 100).toFixed(1), '%')
    assert.ok(Math.abs(unknown - wrong) / wrong < TIME_DIFFERENCE_MAX)
  } finally {
    await store.close()
  }
}
