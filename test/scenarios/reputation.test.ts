/**
 * Gmail Postmaster Tools and Microsoft SNDS, day by day, with fake servers of both: what is read, stored, shown and alerted,
 * and that no day is lost to their errors and quotas.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Store } from '../../src/platform/store/store.ts'
import { createTestClock, type TestClock } from '../support/clock.ts'
import { eachDatabase } from '../support/databases.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { runJobAfter } from '../support/jobs.ts'
import {
  DAY_MS,
  dateText,
  type GoogleServer,
  googleBody,
  SNDS_KEY,
  type SndsServer,
  startGoogle,
  startSnds,
} from '../support/reputation-servers.ts'
import {
  type Answer,
  eventually,
  ownAddress,
  startTestService,
  type TestService,
} from '../support/service.ts'
import { createSubaccount, onBehalf } from '../support/subaccounts.ts'

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
const SOURCES = '/sendwright/v1/reputation-sources'
const GPT = '/v1/reputationanalytics/gpt'
const SNDS = '/v1/reputationanalytics/snds'
const [IP, OTHER_IP] = ['127.0.92.9', '127.0.92.10']

interface Scene {
  service: TestService
  store(): Store
  clock: TestClock
  google: GoogleServer
  snds: SndsServer
  /** The date of that many days ago. */
  date(daysAgo: number): string
  /** Runs the daily read after that time. */
  readAfter(ms: number): Promise<void>
  get(path: string, headers?: Record<string, string>): Promise<Answer['body']>
}

async function start(t: TestContext, database: 'sqlite' | 'postgres' = 'sqlite'): Promise<Scene> {
  const clock = createTestClock()
  const ticking = setInterval(() => void clock.advance(10), 5)
  t.after(() => clearInterval(ticking))
  const google = await startGoogle(t)
  const snds = await startSnds(t)
  const env = { SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8', SENDWRIGHT_IPS: `${IP},${OTHER_IP}` }
  let store: Store | null = null
  const service = await startTestService(t, env, {
    ...{ clock, random: () => 0, database },
    areas: [
      (core) => {
        store = core.store
        return {}
      },
    ],
  })
  return {
    ...{ service, clock, google, snds, store: () => store as unknown as Store },
    date: (daysAgo) => dateText(clock.now() - daysAgo * DAY_MS),
    readAfter: (ms) => runJobAfter(service, clock, 'reputation', ms),
    async get(path, headers = {}) {
      const { status, body, text } = await service.call('GET', path, { headers })
      assert.equal(status, 200, text)
      return body
    },
  }
}

/** Adds a domain, as if DNS had proven it. */
async function addProven({ service, store }: Pick<Scene, 'service' | 'store'>, name: string): Promise<void> {
  const form = { name, dkim_key_size: '1024' }
  assert.equal((await service.call('POST', '/v4/domains', { form })).status, 200)
  await store()
    .db.updateTable('domains')
    .set({ verified: 1, state: 'active' })
    .where('name', '=', name)
    .execute()
}

async function connect({ service, google, snds, get }: Scene): Promise<void> {
  const bodies = { google: googleBody(google), snds: { key: SNDS_KEY, api_url: snds.url } }
  for (const [name, json] of Object.entries(bodies)) {
    const { status, text } = await service.call('PUT', `${SOURCES}/${name}`, { json })
    assert.equal(status, 200, text)
    assert.doesNotMatch(text, /planted/)
    await eventually(`a read of ${name}`, async () => (await get(`${SOURCES}/${name}`)).last_read_at !== null)
  }
}

const hitsOf = async ({ get }: Scene, name: string) => {
  const { items } = await get('/sendwright/v1/alerts')
  return items.find((check: { name: string }) => check.name === `sendwright:${name}`).hits as {
    dimension_value: string
    latest_value: string
    advice: string
  }[]
}

/** The hits of a check after it has looked again. */
async function look(scene: Scene, name: string) {
  await runJobAfter(scene.service, scene.clock, `alert-${name}`, 11 * MINUTE_MS)
  return hitsOf(scene, name)
}

/** A hit ends at the second check that does not find it. */
async function isOver(scene: Scene, name: string): Promise<void> {
  for (const _ of [1, 2]) await look(scene, name)
  assert.deepEqual(await hitsOf(scene, name), [], name)
}

eachDatabase((database) =>
  test('both sources are read daily, shown to whose they are, and alerted at the documented limits', async (t) => {
    const scene = await start(t, database)
    const { service, store, clock, google, snds, date, readAfter, get } = scene
    const receiver = await createReceiver({ host: ownAddress() })
    t.after(() => receiver.close())
    const setting = { event_type: 'send_alert', channel: 'webhook', settings: { url: receiver.url } }
    assert.equal((await service.call('POST', '/v1/alerts/settings/events', { json: setting })).status, 200)
    const { domain } = service

    await t.test('without credentials everything is empty, and says so', async () => {
      for (const path of ['domains', `domains/${domain}`, 'domains_list', 'domainsfbl', 'summary/errors']) {
        const { data, total, configured } = await get(`${GPT}/${path}`)
        assert.deepEqual([data, total, configured], [[], 0, false], path)
      }
      assert.deepEqual(await get(SNDS), { summary: [], total: 0, configured: false })
      for (const name of ['google', 'snds'])
        assert.equal((await service.call('GET', `${SOURCES}/${name}`)).status, 404)
      assert.equal(google.asked.length + snds.asked.length, 0)
    })

    google.domains = {
      [domain]: {
        compliance: { SPF: 'COMPLIANT', DMARC_POLICY: 'NEEDS_WORK' },
        days: {
          [date(2)]: {
            spam: 0.0005,
            loops: { 'campaign-7': 0.02 },
            errors: { 'reject low_ip_reputation': 0.25 },
          },
          [date(1)]: { spam: 0.0004 },
          // Older than what is asked for at first.
          [date(31)]: { spam: 1 },
        },
      },
      'stranger.example': { days: { [date(1)]: { spam: 1 } } },
      // Added to the account, and not verified.
      'claimed.example': { days: { [date(1)]: { spam: 1 } } },
      'unverified.example': { days: {}, verificationState: 'UNVERIFIED' },
    }
    snds.days = {
      [date(2)]: [{ ip: IP, filter: 'RED', complaints: '2.3%', traps: 5 }],
      [date(1)]: [{ ip: IP }, { ip: '192.0.2.77', recipients: 200 }],
    }
    const claim = { name: 'claimed.example', dkim_key_size: '1024' }
    assert.equal((await service.call('POST', '/v4/domains', { form: claim })).status, 200)
    await connect(scene)

    await t.test('the days of a domain, as Gmail names them', async () => {
      const { data, total, compliance, configured } = await get(`${GPT}/domains/${domain}`)
      assert.deepEqual([total, configured], [2, true])
      const [newest, older] = data
      assert.deepEqual(
        [
          newest.date,
          newest.user_reported_spam_ratio,
          newest.spf_success_ratio,
          newest.inbound_encryption_ratio,
        ],
        [`${date(1)}T00:00:00Z`, 0.0004, 1, 0.98],
      )
      assert.deepEqual(older.feedback_loops, [{ id: 'campaign-7', spam_ratio: 0.02 }])
      assert.deepEqual(older.delivery_errors, [
        { error_class: 'PERMANENT_ERROR', error_type: 'LOW_IP_REPUTATION', error_ratio: 0.25 },
      ])
      assert.deepEqual(compliance, [
        { requirement: 'SPF', status: 'COMPLIANT' },
        { requirement: 'DMARC_POLICY', status: 'NEEDS_WORK' },
      ])
      assert.deepEqual((await get(`${GPT}/domains?limit=1&offset=1`)).data, [older])
      assert.deepEqual((await get(`${GPT}/domains_list`)).data, [{ name: domain, date: newest.date }])
      const [loop] = (await get(`${GPT}/domainsfbl`)).data
      assert.deepEqual(loop, { name: domain, id: 'campaign-7', ratio: 0.02, date: older.date })
      const summary = await get(`${GPT}/summary`)
      assert.deepEqual([summary.domains, summary.days], [1, 2])
      assert.ok(Math.abs(summary.user_reported_spam_ratio - 0.00045) < 1e-9)
      assert.deepEqual((await get(`${GPT}/summary/errors`)).data[0].error_ratio, 0.125)
      assert.equal((await get(`${GPT}/summary/domains`)).data[0].compliance.length, 2)
      const before = Math.floor((clock.now() - 2 * DAY_MS) / 1000)
      assert.equal((await get(`${GPT}/domains?timeRangeEnd=${before}`)).total, 1)
    })

    await t.test('an address, as SNDS names it, without what others have sent', async () => {
      const { summary, total } = await get(SNDS)
      assert.deepEqual([total, summary[0].ip_address, summary[0].filter_result], [1, IP, 'GREEN'])
      const days = await get(`${SNDS}/${IP}?sortBy=trap_hits`)
      assert.deepEqual(
        days.summary.map(({ trap_hits, complaint_rate }: Answer['body']) => [trap_hits, complaint_rate]),
        [
          [5, '2.3%'],
          [0, '< 0.1%'],
        ],
      )
      assert.equal(days.summary[0].trap_percentage, 0.5)
      assert.doesNotMatch(JSON.stringify(days), /planted/)
      for (const ip of ['192.0.2.77', 'nonsense'])
        assert.equal((await service.call('GET', `${SNDS}/${ip}`)).status, 404)
      const traps = await get(`/v1/spamtraps?start=${date(30)}&end=${date(0)}&limit=10`)
      const none = { pristine: 0, recycled: 0, typo: 0, harvested: 0 }
      assert.deepEqual(traps.items, [{ date: date(2), ...none, total: 5 }])
      assert.deepEqual((await get('/v2/spamtraps?dimension=ip&limit=10')).items, [
        { dimension: IP, ...none, total: 5 },
      ])
      assert.deepEqual((await get('/v2/spamtraps?domain=a.example')).items, [])
    })

    await t.test('a subaccount sees nothing of its parent, and the parent asks for it', async () => {
      const id = await createSubaccount(service, 'tenant')
      const headers = onBehalf(id)
      assert.equal((await get(`${GPT}/domains`, headers)).total, 0)
      assert.equal((await service.call('GET', `${GPT}/domains/${domain}`, { headers })).status, 404)
      assert.equal((await service.call('GET', `${SOURCES}/google`, { headers })).status, 403)
      assert.equal((await get(`${GPT}/domains?include_subaccounts=true`)).total, 2)
    })

    await t.test('0.3 % complaints at Gmail are an alert, 0.1 % a warning', async () => {
      const posted = (name: string) =>
        receiver.posts.filter(({ body }) => body?.['event-data'].alert.name === `sendwright:${name}`).length
      assert.deepEqual(await look(scene, 'gmail-spam-rate-warning'), [])
      const days = google.domains[domain]?.days ?? {}
      days[date(0)] = { spam: 0.001 }
      await readAfter(DAY_MS)
      const [warning] = await look(scene, 'gmail-spam-rate-warning')
      assert.deepEqual([warning?.dimension_value, warning?.latest_value], [domain, '0.0010'])
      assert.deepEqual(await look(scene, 'gmail-spam-rate'), [])
      days[date(0)] = { spam: 0.003 }
      await readAfter(DAY_MS)
      const [alert] = await look(scene, 'gmail-spam-rate')
      assert.deepEqual([alert?.dimension_value, alert?.latest_value], [domain, '0.0030'])
      assert.match(alert?.advice ?? '', /called 0\.30 % of the mail of .* spam on /)
      await isOver(scene, 'gmail-spam-rate-warning')
      await eventually('the notice', async () => posted('gmail-spam-rate') === 1)
      const [needs] = await look(scene, 'gmail-compliance')
      assert.match(needs?.advice ?? '', /needs work: DMARC_POLICY\. /)
      days[date(0)] = { spam: 0.0001 }
      await readAfter(DAY_MS)
      await isOver(scene, 'gmail-spam-rate')
      await eventually('the end', async () => posted('gmail-spam-rate') === 2)
    })

    await t.test('red, complaints over 0.3 %, traps and blocks at SNDS are alerts', async () => {
      const names = ['snds-filter-result', 'snds-complaints', 'snds-traps', 'snds-blocked']
      for (const name of names) assert.deepEqual(await hitsOf(scene, name), [], name)
      snds.days[date(0)] = [
        { ip: IP, filter: 'RED', complaints: '0.4%', traps: 3 },
        { ip: OTHER_IP, filter: 'YELLOW', complaints: '0.3%' },
      ]
      snds.states = [`${OTHER_IP},127.0.92.20,Yes,Blocked due to user complaints`, `${IP},${IP},No,`]
      await readAfter(DAY_MS)
      for (const name of names.slice(0, 3)) {
        const hits = await look(scene, name)
        assert.deepEqual(
          hits.map(({ dimension_value }) => dimension_value),
          [IP],
          name,
        )
      }
      const [block] = await look(scene, 'snds-blocked')
      assert.match(
        block?.advice ?? '',
        /blocks 127\.0\.92\.10-127\.0\.92\.20: "Blocked due to user complaints"/,
      )
      const { summary } = await get(`${SNDS}?search=${OTHER_IP}`)
      assert.deepEqual(
        [summary[0].is_blocked, summary[0].block_text],
        [true, 'Blocked due to user complaints'],
      )
    })

    await t.test('after a year they are gone, and with their domain', async () => {
      for (const table of ['gmail_days', 'snds_days'] as const)
        await store().commit([{ sql: `UPDATE ${table} SET day = day - ?`, values: [367 * DAY_MS] }])
      const name = 'leaving.example'
      await addProven(scene, name)
      google.domains = { [name]: { days: { [date(1)]: { spam: 0 } } } }
      snds.days = {}
      await readAfter(DAY_MS)
      assert.equal((await get(`${GPT}/domains?timeRangeStart=0`)).total, 1)
      assert.deepEqual(await store().db.selectFrom('snds_days').selectAll().execute(), [])
      assert.equal((await service.call('DELETE', `/v3/domains/${name}`)).status, 200)
      await eventually('no rows', async () => {
        const rows = await store().db.selectFrom('gmail_days').selectAll().execute()
        return rows.length === 0
      })
    })
  }),
)

test('errors are in clear words, are waited out, and cost no day', async (t) => {
  const scene = await start(t)
  const { service, store, clock, google, snds, date, readAfter, get } = scene
  const { domain } = service
  google.domains = { [domain]: { days: {} } }
  await connect(scene)
  const state = (name: string) => get(`${SOURCES}/${name}`)

  await t.test('each error', async () => {
    const cases: [fault: GoogleServer['fault'], error: RegExp][] = [
      [
        { status: 401 },
        /^Google does not accept the login: .* \(status 401\) Google says: "Something is wrong\."/,
      ],
      [{ status: 403 }, /^Google denies access: add the account to the users /],
      [{ status: 404 }, /^Google knows no such thing: /],
      [{ status: 429 }, /^The quota at Google is used up \(status 429\)/],
      [{ status: 503 }, /^Google does not answer at present \(status 503\)\./],
      [{ status: 302, body: '' }, /^Google has answered with the status 302\.$/],
      [{ status: 200, body: '<html>' }, /^Google's answer about the list of domains cannot be read/],
      [{ status: 200, body: '{"domains":7}' }, /cannot be read/],
    ]
    for (const [fault, error] of cases) {
      google.fault = fault
      const { body } = await service.call('POST', `${SOURCES}/google/test`)
      assert.equal(body.ok, false)
      assert.match(body.result, error)
    }
    google.fault = null
    google.tokenFault = {
      status: 400,
      body: { error: 'invalid_grant', error_description: 'Token has been expired or revoked.' },
    }
    const refused = (await service.call('POST', `${SOURCES}/google/test`)).body.result
    assert.match(
      refused,
      /^Google gives no access token: .*: invalid_grant: Token has been expired or revoked\.$/,
    )
    google.tokenFault = null
    const good = await service.call('POST', `${SOURCES}/google/test`)
    assert.deepEqual(good.body, {
      ok: true,
      result: 'Postmaster Tools list 1 domains, 1 of them readable; 1 belong to this service.',
    })

    const sndsCases: [fault: SndsServer['fault'], error: RegExp][] = [
      [{ status: 403 }, /^SNDS denies access: automated data access is switched off/],
      [{ status: 500 }, /^SNDS does not answer at present \(status 500\)\.$/],
      [
        { status: 200, body: '<html></html>', type: 'text/html' },
        /^SNDS has answered with a page instead of data\./,
      ],
      [{ status: 200, body: 'a,b\r\n' }, /^SNDS's answer cannot be read/],
      [{ status: 200, body: 'not an address,b,c,d\r\n' }, /^SNDS's answer cannot be read/],
    ]
    for (const [fault, error] of sndsCases) {
      snds.fault = fault
      assert.match((await service.call('POST', `${SOURCES}/snds/test`)).body.result, error)
    }
    snds.fault = null
  })

  await t.test('a quota that ends in the midst: the rest is read later, and once', async () => {
    const names = ['a.reputation.example', 'b.reputation.example', 'c.reputation.example']
    for (const name of names) {
      await addProven(scene, name)
      google.domains[name] = { days: { [date(0)]: { spam: 0.002 } } }
    }
    // The list, both requests about the first two domains and the first about the third.
    google.quota = 6
    google.asked.length = 0
    await readAfter(DAY_MS)
    const failed = await state('google')
    assert.match(failed.error, /quota/)
    assert.equal(Date.parse(failed.next_read_at) - Date.parse(failed.error_at), 15 * MINUTE_MS)
    const queried = () =>
      google.asked.filter((line) => line.startsWith('query')).map((line) => line.split(' ')[1])
    assert.equal(queried().length, 3)
    google.quota = Number.POSITIVE_INFINITY
    await readAfter(16 * MINUTE_MS)
    assert.equal((await state('google')).error, null)
    assert.equal(new Set(queried()).size, 4)
    assert.equal(queried().length, 5, 'only the one that failed is asked for again')
  })

  await t.test('five days without an answer are read later', async () => {
    google.fault = { status: 503 }
    snds.fault = { status: 503 }
    await readAfter(DAY_MS)
    assert.equal((await state('google')).failures, 1)
    const since = (await state('google')).failing_since
    await readAfter(16 * MINUTE_MS)
    const { failures, failing_since, error_at, next_read_at } = await state('google')
    assert.equal(failing_since, since)
    assert.equal(failures, 2)
    assert.equal(Date.parse(next_read_at) - Date.parse(error_at), 30 * MINUTE_MS)
    await readAfter(4 * DAY_MS)
    const [source] = await look(scene, 'reputation-sources')
    assert.match(source?.advice ?? '', /^google cannot be read: Google does not answer at present/)
    google.fault = null
    snds.fault = null
    const missed = [1, 2, 3, 4, 5].map(date)
    for (const day of missed) {
      ;(google.domains[domain] as { days: object }).days = {
        ...google.domains[domain]?.days,
        [day]: { spam: 0.0002 },
      }
      snds.days[day] = [{ ip: IP, recipients: 7 }]
    }
    await readAfter(7 * HOUR_MS)
    const days = (await get(`${GPT}/domains/${domain}`)).data.map((day: { date: string }) =>
      day.date.slice(0, 10),
    )
    for (const day of missed) assert.ok(days.includes(day), `Gmail, ${day}`)
    const addressDays = (await get(`${SNDS}/${IP}`)).summary.map((day: { date: string }) =>
      day.date.slice(0, 10),
    )
    for (const day of missed) assert.ok(addressDays.includes(day), `SNDS, ${day}`)
    await isOver(scene, 'reputation-sources')
  })

  await t.test('a domain that was taken away is told at that domain, and the others are read', async () => {
    ;(google.domains['b.reputation.example'] as { status: number }).status = 403
    await readAfter(DAY_MS)
    const { error, domains } = await state('google')
    assert.equal(error, null)
    const faults = domains.filter((one: { error: string | null }) => one.error !== null)
    assert.deepEqual(
      faults.map(({ name }: { name: string }) => name),
      ['b.reputation.example'],
    )
    assert.match(
      faults[0].error,
      /^Google denies access: .* Google says: "The caller does not have permission"$/,
    )
  })

  await t.test('secrets go to nobody else', async () => {
    const { refresh_token: _, client_secret: __, ...same } = googleBody(google)
    assert.equal((await service.call('PUT', `${SOURCES}/google`, { json: same })).status, 200)
    const elsewhere = { ...same, token_url: 'https://token.attacker.example/' }
    const { status, body } = await service.call('PUT', `${SOURCES}/google`, { json: elsewhere })
    assert.deepEqual([status, body.message], [400, 'refresh_token is missing'])
    const plain = { key: SNDS_KEY, api_url: 'http://snds.example/' }
    assert.equal((await service.call('PUT', `${SOURCES}/snds`, { json: plain })).status, 400)
    const rows = await store().db.selectFrom('reputation_sources').selectAll().execute()
    for (const row of rows)
      for (const value of Object.values(row))
        assert.doesNotMatch(
          Buffer.from(value instanceof Uint8Array ? value : String(value)).toString('latin1'),
          /planted/,
        )
  })
  assert.ok(clock.now() > 0)
})
