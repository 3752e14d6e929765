/** A monthly message limit is exact under parallel requests, with several processes, and after kill -9. */
// Slow: it kills processes of the service, again and again.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openPostgres } from '../../src/platform/store/postgres/postgres.ts'
import { openSqlite } from '../../src/platform/store/sqlite/sqlite.ts'
import type { Store } from '../../src/platform/store/store.ts'
import { clockAhead, createNoonClock } from '../support/clock.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { temporaryFolder } from '../support/stores.ts'

const SECRET = '0123456789abcdef0123456789abcdef'
const LIMIT = 1_000
/** No month ends meanwhile. */
const NOON = clockAhead(createNoonClock().aheadMs)
const MESSAGES = 1_000
const RECIPIENTS = 5

const call = (service: ServiceProcess, method: string, path: string, body?: URLSearchParams) =>
  fetch(service.url + path, { method, headers: { authorization: AUTHORIZATION }, ...(body && { body }) })

/** The status; null if the process is gone. */
async function send(service: ServiceProcess, recipients: number): Promise<number | null> {
  const body = new URLSearchParams({ from: `a@${service.domain}`, subject: 'Hi', text: 'Hi.' })
  body.set('o:testmode', 'yes')
  for (let at = 0; at < recipients; at++) body.append('to', `user${at}@example.org`)
  const answer = await call(service, 'POST', `/v3/${service.domain}/messages`, body).catch(() => null)
  await answer?.text().catch(() => null)
  return answer?.status ?? null
}

const current = async (service: ServiceProcess): Promise<number> => {
  const answer = await call(service, 'GET', '/v5/accounts/limit/custom/monthly')
  return ((await answer.json()) as { current: number }).current
}

async function setLimit(services: readonly ServiceProcess[]): Promise<void> {
  const body = new URLSearchParams({ limit: String(LIMIT) })
  const [first] = services as [ServiceProcess]
  assert.equal((await call(first, 'PUT', '/v5/accounts/limit/custom/monthly', body)).status, 200)
}

/** Ends all services when the test ends, and drops the database after that. */
async function startOnPostgres(t: TestContext, count: number) {
  const database = await createTestDatabase()
  const services: ServiceProcess[] = []
  t.after(async () => {
    await Promise.all(services.map((service) => service.end('SIGKILL')))
    await database.drop()
  })
  for (let at = 0; at < count; at++)
    services.push(
      await startProcess(ownAddress(), {
        SENDWRIGHT_DATA: await temporaryFolder(t),
        SENDWRIGHT_DATABASE_URL: database.url,
        SENDWRIGHT_SECRET: SECRET,
        SENDWRIGHT_SMTP_PORT: '0',
        ...NOON,
      }),
    )
  return { services, url: database.url }
}

/** Events and the limit's own count, from the database. */
async function accepted(store: Store): Promise<{ events: number; used: number }> {
  const [row] = await store.read({
    sql: `SELECT (SELECT COUNT(*) FROM events WHERE event = 'accepted') AS events,
      (SELECT used FROM message_limits) AS used`,
    values: [],
  })
  return { events: Number(row?.['events']), used: Number(row?.['used']) }
}

test('of 5,000 recipients sent through two processes at once, exactly 1,000 are accepted (postgres)', async (t) => {
  const { services, url } = await startOnPostgres(t, 2)
  await setLimit(services)
  const statuses = await Promise.all(
    Array.from({ length: MESSAGES }, (_, at) => send(services[at % 2] as ServiceProcess, RECIPIENTS)),
  )
  assert.equal(statuses.filter((status) => status === 200).length, LIMIT / RECIPIENTS)
  assert.equal(statuses.filter((status) => status === 403).length, MESSAGES - LIMIT / RECIPIENTS)
  const store = await openPostgres(url)
  assert.deepEqual(await accepted(store), { events: LIMIT, used: LIMIT })
  await store.close()
  for (const service of services) assert.equal(await current(service), LIMIT)
})

test('a process that is killed takes nothing of the limit with it (postgres)', async (t) => {
  const { services, url } = await startOnPostgres(t, 2)
  const [survivor, victim] = services as [ServiceProcess, ServiceProcess]
  await setLimit(services)
  const posts = Array.from({ length: 200 }, (_, at) => send(at % 2 === 0 ? survivor : victim, 3))
  await Promise.race(posts.filter((_, at) => at % 2 === 1))
  await victim.end('SIGKILL')
  await Promise.all(posts)
  const store = await openPostgres(url)
  // The server may still be ending the victim's last transaction.
  const before = await eventually('the last transaction of the victim', async () => {
    const counts = await accepted(store)
    return counts.events === counts.used && counts
  })
  assert.ok(before.used >= 3 && before.used < LIMIT)
  const rest = await Promise.all(Array.from({ length: 200 }, () => send(survivor, 10)))
  assert.ok(rest.includes(403))
  while ((await send(survivor, 1)) === 200);
  assert.deepEqual(await accepted(store), { events: LIMIT, used: LIMIT })
  await store.close()
})

test('the limit is exact over parallel requests and a kill (sqlite)', async (t) => {
  const host = ownAddress()
  const folder = await temporaryFolder(t)
  const start = () => startProcess(host, { SENDWRIGHT_DATA: folder, SENDWRIGHT_SMTP_PORT: '0', ...NOON })
  const first = await start()
  await setLimit([first])
  const posts = Array.from({ length: 100 }, () => send(first, 3))
  await Promise.race(posts)
  await first.end('SIGKILL')
  await Promise.all(posts)
  const second = await start()
  try {
    const statuses = await Promise.all(Array.from({ length: 400 }, () => send(second, RECIPIENTS)))
    assert.ok(statuses.includes(200) && statuses.includes(403))
    while ((await send(second, 1)) === 200);
  } finally {
    await second.end('SIGTERM')
  }
  const store = await openSqlite(folder)
  assert.deepEqual(await accepted(store), { events: LIMIT, used: LIMIT })
  await store.close()
})
