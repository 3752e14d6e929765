// By name: it kills processes of the service, again and again.
/** kill -9 in the middle of an erasure: it goes on where it was, and leaves nothing. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { temporaryFolder } from '../support/stores.ts'

const PERSON = 'erased.person@example.org'
const EVENTS = 20_000
const KILLS = 3

async function call(service: ServiceProcess, path: string, form?: Record<string, string>) {
  const answer = await fetch(service.url + path, {
    method: form ? 'POST' : 'GET',
    headers: { authorization: AUTHORIZATION },
    ...(form && { body: new URLSearchParams(form) }),
  })
  assert.ok(answer.ok, `${path}: ${answer.status}`)
  // biome-ignore lint/suspicious/noExplicitAny: a test reaches into bodies freely
  return answer.json() as Promise<any>
}

test('an erasure that is killed with entries left goes on, and counts each entry once', async (t) => {
  const host = ownAddress()
  const folder = await temporaryFolder(t)
  const env = {
    ...{ SENDWRIGHT_DATA: folder, SENDWRIGHT_DNS: '127.0.0.1:9' },
    SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
  }
  const start = async (domain?: string) => {
    const started = await startProcess(host, env, domain === undefined ? {} : { domain })
    t.after(() => started.end('SIGKILL'))
    return started
  }
  let service = await start()
  const { domain } = service
  await call(service, `/v3/${domain}/messages`, {
    ...{ from: `a@${domain}`, to: PERSON, subject: 'Hello', text: 'Hi.' },
  })
  await service.end('SIGTERM')
  const database = new DatabaseSync(join(folder, 'sendwright.db'), { timeout: 10_000 })
  t.after(() => database.close())
  multiply(database)
  const left = () =>
    Number(database.prepare('SELECT count(*) AS n FROM events WHERE recipient = ?').get(PERSON)?.['n'])
  const all = left()

  service = await start(domain)
  const { task } = await call(service, '/sendwright/v1/people/erase', { address: PERSON, dry_run: 'false' })
  for (let kill = 0; kill < KILLS; kill++) {
    const before = left()
    while (left() === before) await sleep(1)
    await service.end('SIGKILL')
    assert.ok(left() > 0 && left() < all, `${left()} of ${all} are left`)
    service = await start(domain)
  }
  const done = async () => {
    const found = await call(service, `/sendwright/v1/people/tasks/${task.id}`)
    assert.notEqual(found.state, 'failed', found.error)
    return found.state === 'done' && found
  }
  const { counts } = await eventually('the end', done).catch(() => eventually('the end', done))
  assert.equal(left(), 0)
  assert.equal(counts.events.erased, all)
})

/** Copies the first event of the person. */
function multiply(database: DatabaseSync): void {
  const columns = database
    .prepare("SELECT name FROM pragma_table_info('events')")
    .all()
    .map(({ name }) => String(name))
  const values = columns.map((column) =>
    column === 'seq' ? 'top.seq + no' : column === 'id' ? "'copy-' || no" : `one.${column}`,
  )
  database.exec(`WITH RECURSIVE numbers (no) AS (SELECT 1 UNION ALL SELECT no + 1 FROM numbers WHERE no < ${EVENTS})
    INSERT INTO events (${columns.join(', ')}) SELECT ${values.join(', ')}
    FROM (SELECT * FROM events WHERE recipient = '${PERSON}' LIMIT 1) AS one,
      (SELECT max(seq) AS seq FROM events) AS top, numbers`)
}
