/** `sendwright migrate` as a separate process: to PostgreSQL and back, cut off in the middle, and refused. */
// Slow: it moves whole installations between both databases.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { openSqliteTarget } from '../../src/carry/migrate/sqlite-side.ts'
import { openInstallation } from '../../src/platform/store/installation.ts'
import type { StoreUnavailable } from '../../src/platform/store/store.ts'
import { commandEnvironment, runCommand } from '../support/command.ts'
import { fillTables } from '../support/fill-tables.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { MAIN } from '../support/program.ts'
import { startS3 } from '../support/s3-server.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

const FILE = Buffer.alloc(700_000, 'attached ')

async function send(service: ServiceProcess, to: string, file?: Buffer): Promise<void> {
  const form = new FormData()
  const later = new Date(Date.now() + 86_400_000).toUTCString()
  const fields = { from: `sender@${service.domain}`, to, subject: to, text: 'Hi.', 'o:deliverytime': later }
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  form.append('o:tag', 'moved')
  if (file) form.set('attachment', new File([new Uint8Array(file)], 'large.bin'))
  const answer = await fetch(`${service.url}/v3/${service.domain}/messages`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body: form,
  })
  assert.equal(answer.status, 200, await answer.text())
}

async function postgres(t: TestContext) {
  const database = await createTestDatabase()
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  t.after(async () => {
    await client.end()
    await database.drop()
  })
  return { url: database.url, query: async (sql: string) => (await client.query(sql)).rows }
}

function onFolder(folder: string, sql: string): void {
  const database = new DatabaseSync(join(folder, 'sendwright.db'))
  database.exec(sql)
  database.close()
}

test('a service moves to PostgreSQL with its queue and files, and back', async (t) => {
  const folder = await temporaryFolder(t)
  const { url, query } = await postgres(t)
  const s3 = await startS3(t)
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const host = ownAddress()
  const common = { SENDWRIGHT_HOST: host, SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` }
  const old = { ...common, SENDWRIGHT_DATA: join(folder, 'old') }
  const start = async (env: Record<string, string>) => {
    const service = await startProcess(host, env)
    t.after(() => service.end('SIGKILL'))
    return service
  }
  const first = await start(old)
  for (const to of ['a@example.org', 'b@example.org']) await send(first, to)
  await send(first, 'file@example.org', FILE)

  const move = (env: Record<string, string>, to: string, ...args: string[]) =>
    runCommand({ ...env, SENDWRIGHT_MIGRATE_TO: to }, 'migrate', ...args)
  const settings = { ...old, ...s3.env }
  await first.end('SIGTERM')
  onFolder(old.SENDWRIGHT_DATA, "UPDATE deliveries SET due_at = 1 WHERE state = 'scheduled'")

  const planned = await move(settings, url, '--dry-run')
  assert.equal(planned.code, 0, planned.err)
  assert.match(planned.out, /The target is empty[\s\S]*1 files, 0\.7 MB: copied to s3:/)
  assert.deepEqual(
    await query("SELECT * FROM pg_tables WHERE schemaname = 'public'"),
    [],
    'nothing was written',
  )

  const moved = await move(settings, url)
  assert.equal(moved.code, 0, moved.err)
  assert.match(moved.out, /are equal: \d+ rows of \d+ tables and 1 files/)
  assert.equal((await move(settings, url, '--check', '--json')).code, 0)

  const secret = (await readFile(join(old.SENDWRIGHT_DATA, 'secret'), 'utf8')).trim()
  const node = { ...common, ...s3.env, SENDWRIGHT_DATA: join(folder, 'node'), SENDWRIGHT_SECRET: secret }
  const onPostgres = { ...node, SENDWRIGHT_DATABASE_URL: url }
  const second = await start(onPostgres)
  assert.equal(second.domain, first.domain)
  const messages = await sink.waitFor(3)
  assert.deepEqual(messages.map(({ envelope }) => envelope.to[0]).toSorted(), [
    'a@example.org',
    'b@example.org',
    'file@example.org',
  ])
  const large = messages.find(({ envelope }) => envelope.to[0] === 'file@example.org')
  assert.ok(large?.raw.toString('latin1').replaceAll('\r\n', '').includes(FILE.toString('base64')))
  await eventually('three delivered events', async () => {
    const [row] = await query("SELECT count(*) FROM events WHERE event = 'delivered'")
    return row?.['count'] === '3'
  })
  const back = join(folder, 'back')
  assert.match((await move(onPostgres, `sqlite:${back}`)).err, /a sign of life \d s ago. Stop all nodes/)
  await second.end('SIGTERM')
  const returned = await move(onPostgres, `sqlite:${back}`, '--json')
  assert.equal(returned.code, 0, returned.err + returned.out)
  const { tables, files } = JSON.parse(returned.out)
  assert.ok(
    tables.every((one: { digest: Record<string, string> }) => one.digest['source'] === one.digest['target']),
  )
  assert.equal(files.bytes, FILE.byteLength)
  for (const name of await readdir(back))
    assert.equal((await stat(join(back, name))).mode & 0o077, 0, `${name} is for its owner only`)
  const third = await start({ ...common, SENDWRIGHT_DATA: back, SENDWRIGHT_SECRET: secret })
  const page = await fetch(`${third.url}/v3/${third.domain}/events?event=accepted&tags=moved&ascending=yes`, {
    headers: { authorization: AUTHORIZATION },
  })
  assert.equal(((await page.json()) as { items: unknown[] }).items.length, 3, 'tags are found again')
  assert.equal(sink.messages.length, 3, 'nothing is sent twice')
})

/** The copy stands still when so many events, or a few more, are in the database: the lock is held by this session. */
const holdAfter = (count: number) => `
  CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF (SELECT count(*) FROM events WHERE xmin::text <> pg_current_xact_id()::text) > ${count} THEN
      PERFORM pg_advisory_xact_lock(1);
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER hold BEFORE INSERT ON events FOR EACH STATEMENT EXECUTE FUNCTION hold();
  SELECT pg_advisory_lock(1)`
const HOLD_NO_MORE = 'DROP TRIGGER hold ON events; DROP FUNCTION hold; SELECT pg_advisory_unlock(1)'
const END_OTHERS = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`

test('a copy that is killed continues, and no service starts on it before its end', async (t) => {
  const folder = join(await temporaryFolder(t), 'data')
  const { url, query } = await postgres(t)
  const env = { SENDWRIGHT_DATA: folder }
  const config = { databaseUrl: null, dataFolder: folder, secret: null }
  await (await openInstallation(config)).store.close()
  const side = openSqliteTarget(folder)
  await side.prepare()
  const [mark] = await side.query("SELECT value FROM installation WHERE name = 'secret-mark'")
  await fillTables(side, 20_000)
  await side.write((writer) => writer.run("INSERT INTO installation VALUES ('secret-mark', ?)", mark ?? []))
  await side.close()

  const marked = async () => {
    const [table] = await query("SELECT to_regclass('installation') AS name")
    if (table?.['name'] === null) return null
    const [row] = await query("SELECT value FROM installation WHERE name = 'unfinished-copy'")
    return row ? (JSON.parse(String(row['value'])) as { table: string | null; done: string[] }) : null
  }
  const file = join(await temporaryFolder(t), 'target')
  await writeFile(file, `${url}\n`, { mode: 0o600 })
  const eventsCopied = async () =>
    Number((await query('SELECT count(*)::int AS count FROM events'))[0]?.['count'])
  let before = -1
  for (const at of ['accounts', 'events']) {
    if (at === 'events') await query(holdAfter(before))
    const child = spawn(process.execPath, [MAIN, 'migrate', '--to-file', file], {
      env: { ...commandEnvironment(), ...env },
      stdio: 'inherit',
    })
    const ended = once(child, 'exit')
    await eventually(`more of ${at}`, async () => {
      const mark = await marked()
      if (!mark || (mark.table !== at && !mark.done.includes(at))) return false
      return (await eventsCopied()) > before
    })
    child.kill('SIGKILL')
    const [, signal] = await ended
    assert.equal(signal, 'SIGKILL', 'it was not at its end')
    // The server notices the end of a client late, and holds its locks until then.
    await eventually('its session has ended', async () => (await query(END_OTHERS)).length === 0)
    before = await eventsCopied()
  }
  await query(HOLD_NO_MORE)
  assert.ok(before > 0 && before < 20_004, `it was cut off in the middle, at ${before}`)
  await assert.rejects(openInstallation({ ...config, databaseUrl: url }), (error: StoreUnavailable) => {
    assert.match(error.detail, /a copy into it did not end. Run the same/)
    return true
  })
  onFolder(folder, "UPDATE alerts SET name = name || '!' WHERE id LIKE '%-1'")
  const rest = await runCommand(env, 'migrate', '--to-file', file, '--json')
  assert.equal(rest.code, 1)
  assert.deepEqual(JSON.parse(rest.out).differences, [
    `Table alerts: 1 row is different; the first is id = quotes ' " \\-1, in name.`,
  ])
  onFolder(folder, "UPDATE alerts SET name = rtrim(name, '!') WHERE id LIKE '%-1'")
  const again = await runCommand(env, 'migrate', '--to-file', file, '--json')
  const result = JSON.parse(again.out)
  assert.deepEqual({ code: again.code, differences: result.differences }, { code: 0, differences: [] })
  assert.equal(result.copiedRows, 0)
  assert.equal(await marked(), null)
})

test('wrong arguments are refused before anything is opened', async (t) => {
  const env = { SENDWRIGHT_DATA: join(await temporaryFolder(t), 'data') }
  const run = (...args: string[]) => runCommand(env, 'migrate', ...args)
  for (const args of [
    ['--to', 'sqlite:data'],
    ['--to', 'postgres://x/y', '--check', '--dry-run'],
    ['--to', 'postgres://x/y', '--to-file', 'other'],
    [],
  ])
    assert.equal((await run(...args)).code, 2, args.join(' '))
  for (const to of ['postgres://u:geheim@x/y', 'postgresql://x/y?sslmode=require&password=geheim']) {
    const { code, err } = await run('--to', to)
    assert.equal(code, 2)
    assert.match(err, /PGPASSWORD[\s\S]*SENDWRIGHT_MIGRATE_TO[\s\S]*--to-file/)
    assert.equal(err.includes('geheim'), false)
  }
  const { code, out } = await run('--to', 'postgres://x/y', '--json')
  assert.equal(code, 1)
  assert.match(JSON.parse(out).error, /There is nothing to copy/)
})
