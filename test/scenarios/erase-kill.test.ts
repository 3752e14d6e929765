// By name: it kills processes of the service, again and again.
/** kill -9 in the middle of an erasure: it goes on where it was, and leaves nothing. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type Database, eachDatabase } from '../support/databases.ts'
import { createMigratedDatabase } from '../support/migrated.ts'
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

/** The database of the service, read and written from outside. */
interface Outside {
  env: Record<string, string>
  /** Entries of the person. */
  left(): Promise<number>
  /** Copies the first event of the person. */
  multiply(): Promise<void>
}

const COUNT = `SELECT count(*) AS n FROM events WHERE recipient = '${PERSON}'`

const OUTSIDE: Record<Database, (t: TestContext) => Promise<Outside>> = {
  async sqlite(t) {
    const folder = await temporaryFolder(t)
    const opened = <T>(use: (database: DatabaseSync) => T): T => {
      const database = new DatabaseSync(join(folder, 'sendwright.db'), { timeout: 10_000 })
      try {
        return use(database)
      } finally {
        database.close()
      }
    }
    return {
      env: { SENDWRIGHT_DATA: folder },
      left: async () => opened((database) => Number(database.prepare(COUNT).get()?.['n'])),
      multiply: async () =>
        opened((database) => {
          const rows = database.prepare("SELECT name FROM pragma_table_info('events')").all()
          database.exec(copying(rows.map(({ name }) => String(name))))
        }),
    }
  },
  async postgres(t) {
    const database = await createMigratedDatabase()
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    t.after(async () => {
      await client.end()
      await database.drop()
    })
    return {
      env: {
        ...{ SENDWRIGHT_DATA: await temporaryFolder(t), SENDWRIGHT_DATABASE_URL: database.url },
        SENDWRIGHT_SECRET: 'secret-of-the-test-0123456789abcdef',
      },
      left: async () => Number((await client.query(COUNT)).rows[0].n),
      async multiply() {
        const { fields } = await client.query('SELECT * FROM events LIMIT 0')
        // The database numbers events itself.
        await client.query(copying(fields.map(({ name }) => name).filter((name) => name !== 'seq')))
      },
    }
  },
}

eachDatabase((database) => {
  test('an erasure that is killed with entries left goes on, and counts each entry once', async (t) => {
    const host = ownAddress()
    const { env, left, multiply } = await OUTSIDE[database](t)
    const settings = { ...env, SENDWRIGHT_DNS: '127.0.0.1:9', SENDWRIGHT_SANDBOX_RECIPIENTS: '*' }
    const start = async (domain?: string) => {
      const started = await startProcess(host, settings, domain === undefined ? {} : { domain })
      t.after(() => started.end('SIGKILL'))
      return started
    }
    let service = await start()
    const { domain } = service
    await call(service, `/v3/${domain}/messages`, {
      ...{ from: `a@${domain}`, to: PERSON, subject: 'Hello', text: 'Hi.' },
    })
    await service.end('SIGTERM')
    await multiply()
    const all = await left()

    service = await start(domain)
    const erase = { address: PERSON, dry_run: 'false' }
    const { task } = await call(service, '/sendwright/v1/people/erase', erase)
    for (let kill = 0; kill < KILLS; kill++) {
      const before = await left()
      while ((await left()) === before) await sleep(1)
      await service.end('SIGKILL')
      const rest = await left()
      assert.ok(rest > 0 && rest < all, `${rest} of ${all} are left`)
      service = await start(domain)
    }
    const done = async () => {
      const found = await call(service, `/sendwright/v1/people/tasks/${task.id}`)
      assert.notEqual(found.state, 'failed', found.error)
      return found.state === 'done' && found
    }
    const { counts } = await eventually('the end', done).catch(() => eventually('the end', done))
    assert.equal(await left(), 0)
    assert.equal(counts.events.erased, all)
  })
})

/** Copies the first event of the person. `columns`: of events. */
function copying(columns: readonly string[]): string {
  const values = columns.map((column) =>
    column === 'seq' ? 'top.seq + no' : column === 'id' ? "'copy-' || no" : `one.${column}`,
  )
  return `WITH RECURSIVE numbers (no) AS (SELECT 1 UNION ALL SELECT no + 1 FROM numbers WHERE no < ${EVENTS})
    INSERT INTO events (${columns.join(', ')}) SELECT ${values.join(', ')}
    FROM (SELECT * FROM events WHERE recipient = '${PERSON}' LIMIT 1) AS one,
      (SELECT max(seq) AS seq FROM events) AS top, numbers`
}
