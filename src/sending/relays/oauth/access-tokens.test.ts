/** Tokens of a login over their life, with a token server of real HTTP: renewal, refusal, rotation, several processes. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pino from 'pino'
import { createTestClock, type TestClock } from '../../../../test/support/clock.ts'
import { createMigratedDatabase } from '../../../../test/support/migrated.ts'
import { eventually } from '../../../../test/support/service.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import { LIFE_SECONDS, startTokenServer } from '../../../../test/support/token-server.ts'
import { parseCidr } from '../../../base/net/ip.ts'
import { type Clock, systemClock } from '../../../base/time/clock.ts'
import { createHttpClient } from '../../../platform/posts/http-client.ts'
import { openPostgres } from '../../../platform/store/postgres/postgres.ts'
import { createSealer } from '../../../platform/store/secrets/sealing.ts'
import { type Store, StoreUnavailable } from '../../../platform/store/store.ts'
import { givenRelay, type Relay, rowOfRelay } from '../relay.ts'
import { createAccessTokens } from './access-tokens.ts'

const MINUTE_MS = 60_000

const allow = [parseCidr('127.0.0.0/8')].flatMap((cidr) => cidr ?? [])

const sealer = createSealer('secret')

function tokensOn(t: TestContext, store: Store, clock: Clock, owner = 'one') {
  const client = createHttpClient({ resolve: async () => [], allow, clock: systemClock })
  t.after(() => client.close())
  return createAccessTokens({ store, sealer, clock, client, owner, log: pino({ level: 'silent' }) })
}

interface Given {
  clientSecret?: string
  refreshToken?: string
  /** Replaces the one before. */
  revision?: number
}

/** A stored relay that logs in with a refresh token. */
async function relayAt(store: Store, tokenUrl: string, given: Given = {}): Promise<Relay> {
  const { clientSecret = 'hush-hush', refreshToken = 'refresh-0', revision = 1 } = given
  const oauth = { token_url: tokenUrl, client_id: 'client', grant: 'refresh_token' as const }
  const secrets = { client_secret: clientSecret, refresh_token: refreshToken }
  const login = { username: 'user@example.com', oauth: { ...oauth, ...secrets } }
  const relay = { ...givenRelay('m365', { host: 'relay.example', login }, null, sealer), revision }
  await store.db.deleteFrom('relays').execute()
  await store.db.insertInto('relays').values(rowOfRelay(relay, 0)).execute()
  return relay
}

eachStore(
  'a token serves until it ends, and is renewed before, without a login that waits',
  async (store, t) => {
    const server = await startTokenServer(t)
    const clock = createTestClock()
    const tokens = tokensOn(t, store, clock)
    const token = tokens.of(await relayAt(store, server.url))
    assert.equal(await token(), 'access-1')
    clock.leap(44 * MINUTE_MS)
    assert.equal(await token(), 'access-1')
    assert.equal(server.used.length, 1)
    clock.leap(2 * MINUTE_MS)
    assert.equal(await token(), 'access-1', 'the old one, while a new one is fetched')
    await eventually('a new token', async () => (await token()) === 'access-2')
    assert.equal(server.used.length, 2)
    clock.leap(61 * MINUTE_MS)
    assert.equal(await token(), 'access-3', 'nobody has logged in meanwhile')
    // Another start of the service, with what is stored.
    assert.equal(await tokensOn(t, store, clock, 'two').of(await relayAt(store, server.url))(), 'access-3')
    assert.equal(server.used.length, 3)
  },
)

eachStore('many logins at a time are one request', async (store, t) => {
  const server = await startTokenServer(t)
  const token = tokensOn(t, store, createTestClock()).of(await relayAt(store, server.url))
  const all = await Promise.all(Array.from({ length: 20 }, () => token()))
  assert.deepEqual([...new Set(all), server.used.length], ['access-1', 1])
})

eachStore('a refused token is renewed at once, except for a new one', async (store, t) => {
  const server = await startTokenServer(t)
  const clock = createTestClock()
  const token = tokensOn(t, store, clock).of(await relayAt(store, server.url))
  assert.equal(await token(), 'access-1')
  assert.equal(await token('access-1'), 'access-1', 'it is not its age')
  clock.leap(2 * MINUTE_MS)
  assert.equal(await token('access-0'), 'access-1', 'it was renewed meanwhile')
  assert.equal(await token('access-1'), 'access-2')
  assert.equal(server.used.length, 2)
})

eachStore('a failure has the words of the server, and lasts as long as it asks', async (store, t) => {
  const server = await startTokenServer(t)
  const clock = createTestClock()
  const tokens = tokensOn(t, store, clock)
  const relay = await relayAt(store, server.url)
  const token = tokens.of(relay)
  const words = { error: 'invalid_grant', error_description: 'AADSTS700082: The refresh token has expired.' }
  server.fault = { status: 400, body: words }
  for (const _ of [1, 2, 3])
    await assert.rejects(async () => token(), /invalid_grant: AADSTS700082: The refresh token has expired\.$/)
  assert.equal(server.used.length, 1)
  const state = await tokens.stateOf(relay)
  assert.deepEqual([state.expiresAt, state.failedAt], [null, clock.now()])
  assert.match(state.failure ?? '', /AADSTS700082/)
  clock.leap(6 * MINUTE_MS)
  server.fault = { status: 503, headers: { 'retry-after': '120' } }
  await assert.rejects(async () => token(), /status 503$/)
  clock.leap(MINUTE_MS)
  await assert.rejects(async () => token(), /status 503$/)
  assert.equal(server.used.length, 2)
  clock.leap(2 * MINUTE_MS)
  server.fault = null
  assert.equal(await token(), 'access-3')
  assert.deepEqual(await tokens.stateOf(relay), {
    expiresAt: clock.now() + LIFE_SECONDS * 1_000,
    failure: null,
    failedAt: null,
  })
})

eachStore('a failure before the end leaves the token in use, and is shown', async (store, t) => {
  const server = await startTokenServer(t)
  const clock = createTestClock()
  const tokens = tokensOn(t, store, clock)
  const relay = await relayAt(store, server.url)
  const token = tokens.of(relay)
  await token()
  server.fault = { status: 401, body: { error: 'invalid_client' } }
  clock.leap(50 * MINUTE_MS)
  assert.equal(await token(), 'access-1')
  await eventually('the failure', async () =>
    /invalid_client/.test((await tokens.stateOf(relay)).failure ?? ''),
  )
  assert.equal(await token(), 'access-1')
  clock.leap(11 * MINUTE_MS)
  await assert.rejects(async () => token(), /invalid_client/)
})

eachStore(
  'a changed relay asks at once, with the refresh token that the server gave last',
  async (store, t) => {
    const server = await startTokenServer(t, { rotates: true })
    const clock = createTestClock()
    const tokens = tokensOn(t, store, clock)
    assert.equal(await tokens.of(await relayAt(store, server.url))(), 'access-1')
    clock.leap(50 * MINUTE_MS)
    // Another client secret, but no other refresh token.
    assert.equal(
      await tokens.of(await relayAt(store, server.url, { clientSecret: 'other', revision: 2 }))(),
      'access-2',
    )
    assert.deepEqual(server.used, ['refresh-0', 'refresh-1'])
    // A process that has not read the change yet.
    assert.equal(await tokens.of(await relayAt(store, server.url))(), 'access-2')
    server.valid = 'refresh-new'
    assert.equal(
      await tokens.of(await relayAt(store, server.url, { refreshToken: 'refresh-new', revision: 3 }))(),
      'access-3',
    )
    assert.deepEqual(server.used.slice(2), ['refresh-new'])
  },
)

eachStore('every refresh token is used once, and nothing is stored in the clear', async (store, t) => {
  const server = await startTokenServer(t, { rotates: true })
  const clock = createTestClock()
  for (const owner of ['one', 'two', 'three']) {
    await tokensOn(t, store, clock, owner).of(await relayAt(store, server.url))()
    clock.leap(61 * MINUTE_MS)
  }
  assert.deepEqual(server.used, ['refresh-0', 'refresh-1', 'refresh-2'])
  const rows = await store.db.selectFrom('relay_tokens').selectAll().execute()
  assert.equal(rows.length, 1)
  for (const value of Object.values(rows[0] ?? {}))
    assert.doesNotMatch(
      value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value),
      /refresh-\d|access-\d/,
    )
})

eachStore('a database that is away while a refresh token comes does not cost it', async (store, t) => {
  const server = await startTokenServer(t, { rotates: true })
  const clock = createTestClock()
  let away = 0
  const failing: Store = {
    ...store,
    db: store.db,
    statement: store.statement,
    commit: async (unit, order) => {
      if (/SET access_sealed/.test(unit[0]?.sql ?? '') && away++ < 3) throw new StoreUnavailable('away')
      return store.commit(unit, order)
    },
  }
  const fetched = tokensOn(t, failing, clock).of(await relayAt(store, server.url))()
  let token: string | null = null
  void Promise.resolve(fetched).then((value) => {
    token = value
  })
  await eventually('the token', async () => {
    await clock.advance(1_000)
    return token !== null
  })
  assert.equal(token, 'access-1')
  clock.leap(61 * MINUTE_MS)
  assert.equal(await tokensOn(t, store, clock).of(await relayAt(store, server.url))(), 'access-2')
})

test('two nodes at once ask once, and a node that died holds nobody up for long', async (t) => {
  const database = await createMigratedDatabase()
  const stores = [await openPostgres(database.url), await openPostgres(database.url)] as const
  t.after(async () => {
    for (const store of stores) await store.close()
    await database.drop()
  })
  const server = await startTokenServer(t, { rotates: true })
  const clock = createTestClock()
  const [one, two] = stores.map((store, index) => tokensOn(t, store, clock, `node-${index}`))
  const relay = await relayAt(stores[0], server.url)
  const gate = Promise.withResolvers<void>()
  server.gate = gate.promise
  const asked = [...Array(5)].flatMap(() => [one?.of(relay)(), two?.of(relay)()])
  await eventually('a request', async () => server.used.length > 0)
  gate.resolve()
  const stop = new AbortController()
  const ticking = tick(clock, stop.signal)
  assert.deepEqual(new Set(await Promise.all(asked)), new Set(['access-1']))
  assert.deepEqual(server.used, ['refresh-0'])
  // Taken by a node that is gone: until a time of the database's clock.
  clock.leap(61 * MINUTE_MS)
  await stores[0].commit([
    { sql: 'UPDATE relay_tokens SET taken_by = ?, taken_until = time_from_now(500)', values: ['gone'] },
  ])
  assert.equal(await two?.of(relay)(), 'access-2')
  clock.leap(61 * MINUTE_MS)
  await stores[0].commit([
    { sql: 'UPDATE relay_tokens SET taken_by = ?, taken_until = time_from_now(600000)', values: ['gone'] },
  ])
  const waiting = assert.rejects(async () => one?.of(relay)(), /the service is stopping/)
  await one?.close()
  await waiting
  stop.abort()
  await ticking
})

/** Lets the test's time pass with the real one. */
async function tick(clock: TestClock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await clock.advance(50)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

eachStore('a relay that was removed has no tokens, also where a login comes late', async (store, t) => {
  const server = await startTokenServer(t)
  const tokens = tokensOn(t, store, createTestClock())
  const relay = await relayAt(store, server.url)
  assert.deepEqual(await tokens.stateOf(relay), { expiresAt: null, failure: null, failedAt: null })
  await store.db.deleteFrom('relays').execute()
  await assert.rejects(async () => tokens.of(relay)(), /the relay m365 was removed/)
  assert.deepEqual(await store.db.selectFrom('relay_tokens').selectAll().execute(), [])
})
