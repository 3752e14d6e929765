/** One account floods the API far over its rate; another one's calls stay fast, and every 429 says when to retry. */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { LOAD_LIMIT_MS } from '../../bench/support/flow.ts'
import { makeContent, sendRequest, singleFields } from '../../bench/support/messages.ts'
import { type Rig, within, withRig } from '../../bench/support/rig.ts'
import { startService } from '../../bench/support/service.ts'
import { httpLoad } from '../../bench/support/systems.ts'
import type { DrillReport } from '../../scripts/drill.ts'
import { randomHex } from '../../src/base/ids.ts'
import { systemClock } from '../../src/base/time/clock.ts'
import { createKeys } from '../../src/people/keys/api-keys.ts'
import { createSealer } from '../../src/platform/store/secrets/sealing.ts'
import { openSqlite } from '../../src/platform/store/sqlite/sqlite.ts'
import { createSandbox } from '../../src/sending/domains/create-domain.ts'

export const title = 'R47: one account sends 2,000 requests a second; the other one notices little'

const FLOOD_PER_SECOND = 2_000
const FLOOD_CONNECTIONS = 64
const GOOD_PER_SECOND = 20
const SECONDS = 20
/** The flood starts before and ends after the normal calls. */
const AROUND_SECONDS = 2
const GOOD_P99_MAX_MS = 300
const RATE_LIMIT = 100
/** A bucket starts full, so one more window is accepted; another one for rounding at both ends. */
const SECONDS_MORE = 2
const SECRET = 'drill-secret-0123456789abcdef0123456789abcdef'

export async function run(report: DrillReport): Promise<void> {
  await withRig(tmpdir(), (rig) => measure(rig, report))
}

async function measure(rig: Rig, report: DrillReport): Promise<void> {
  const env = {
    SENDWRIGHT_SECRET: SECRET,
    SENDWRIGHT_RATE_LIMIT: String(RATE_LIMIT),
    SENDWRIGHT_LOG_LEVEL: 'warn',
    SENDWRIGHT_DELIVERY: 'capture',
  }
  const first = await startService(rig, { database: 'sqlite', env })
  await first.stop()
  const other = await secondAccount(first.dataFolder)
  const service = await startService(rig, { database: 'sqlite', env, dataFolder: first.dataFolder })

  const content = { ...makeContent(500), html: null }
  const planned = ['o:deliverytime', new Date(Date.now() + 3_600_000).toUTCString()] as const
  const good = sendRequest(service, [...singleFields(service.domain, content), planned])
  const bad = sendRequest({ ...service, ...other }, [...singleFields(other.domain, content), planned])
  const flood = httpLoad(rig, service, bad, FLOOD_CONNECTIONS, true)
  const calls = httpLoad(rig, service, good, GOOD_PER_SECOND)

  const alone = await calls({ perSecond: GOOD_PER_SECOND, seconds: 5, firstNumber: 0 })
  const flooding = flood({
    perSecond: FLOOD_PER_SECOND,
    seconds: SECONDS + 2 * AROUND_SECONDS,
    firstNumber: 0,
  })
  flooding.catch(() => {}) // awaited below
  await calls({ perSecond: GOOD_PER_SECOND, seconds: AROUND_SECONDS, firstNumber: 1_000_000 })
  const beside = await calls({ perSecond: GOOD_PER_SECOND, seconds: SECONDS, firstNumber: 2_000_000 })
  const flooded = await within(LOAD_LIMIT_MS, 'the flood', flooding)

  const requests = flooded.accepted + flooded.limited
  report.figure('flood', requests / (SECONDS + 2 * AROUND_SECONDS), 'requests/s')
  report.figure('flood, answered with 200', flooded.accepted, 'requests')
  report.figure('flood, answered with 429', flooded.limited, 'requests')
  report.figure('429 without Retry-After', flooded.limitedWithoutTime, 'requests')
  report.figure("the other's calls alone, p99", alone.latencyMs.p99, 'ms')
  report.figure("the other's calls beside the flood, p99", beside.latencyMs.p99, 'ms')
  report.figure("the other's calls that failed", alone.failed + beside.failed)
  assert.equal(flooded.failure, null)
  assert.ok(flooded.limited > 0 && flooded.limitedWithoutTime === 0, 'a 429 says when to come again')
  const lastedSeconds = (flooded.lastAt - flooded.firstAt) / 1_000
  assert.ok(flooded.accepted <= RATE_LIMIT * (lastedSeconds + SECONDS_MORE), 'the limit holds')
  assert.equal(alone.failed + beside.failed, 0, beside.failure ?? '')
  assert.ok(beside.latencyMs.p99 <= GOOD_P99_MAX_MS, "the other's calls stay quick")
}

/** A second account with a domain and a key, inserted into the database of the stopped service. */
async function secondAccount(dataFolder: string): Promise<{ domain: string; authorization: string }> {
  const store = await openSqlite(dataFolder)
  try {
    const sealer = createSealer(SECRET)
    const accountId = randomHex(12)
    const { id: parentId } = await store.db.selectFrom('accounts').select('id').executeTakeFirstOrThrow()
    await store.db
      .insertInto('accounts')
      .values({
        id: accountId,
        parent_id: parentId,
        name: 'Flood',
        signing_key_sealed: sealer.seal('webhook-signing-key', `key-${randomHex(16)}`),
        created_at: Date.now(),
      })
      .execute()
    const domain = 'flood.sendwright.localhost'
    await createSandbox({ store, sealer, clock: systemClock }, accountId, domain)
    const { secret } = await createKeys(store, sealer, systemClock).create({
      accountId,
      kind: 'user',
      role: 'admin',
      description: 'flood',
      domainName: null,
      requestor: null,
      userName: null,
      expiresAt: null,
    })
    return { domain, authorization: `Basic ${Buffer.from(`api:${secret}`).toString('base64')}` }
  } finally {
    await store.close()
  }
}
