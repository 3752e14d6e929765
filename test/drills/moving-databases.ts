/**
 * An installation with a million events (`MOVING_EVENTS` for another number) goes to PostgreSQL and back with
 * `sendwright migrate`, which compares both sides row by row; then the two SQLite files are compared by their digests.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { DrillReport } from '../../scripts/drill.ts'
import { openSqliteTarget } from '../../src/carry/migrate/sqlite-side.ts'
import { runCommand } from '../support/command.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { ownAddress } from '../support/service.ts'
import { startProcess } from '../support/service-process.ts'

export const title = 'Moving: a million events to PostgreSQL and back, compared row by row'

const EVENTS = Number(process.env['MOVING_EVENTS'] ?? 1_000_000)
/** What a delivered event takes, about. */
const PAYLOAD_CHARS = 600

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const database = await createTestDatabase()
  try {
    const env = { SENDWRIGHT_DATA: join(folder, 'data'), SENDWRIGHT_HOST: ownAddress() }
    await (await startProcess(env.SENDWRIGHT_HOST, env)).end('SIGTERM')
    await fill(env.SENDWRIGHT_DATA)
    const there = await move(env, database.url)
    report.note(`to PostgreSQL: ${JSON.stringify(there)}`)
    const back = join(folder, 'back')
    const again = await move({ ...env, SENDWRIGHT_DATABASE_URL: database.url }, `sqlite:${back}`)
    report.note(`back: ${JSON.stringify(again)}`)
    for (const [way, { rows, copySeconds, seconds }] of Object.entries({
      'to PostgreSQL': there,
      back: again,
    })) {
      report.figure(`copied ${way}`, Math.round(rows / copySeconds), 'rows/s')
      report.figure(`copied and compared ${way}`, Math.round(rows / seconds), 'rows/s')
      report.figure(`the whole command ${way}`, seconds.toFixed(1), 's')
    }
    const digests = [env.SENDWRIGHT_DATA, back].map(digestOfEvents)
    report.figure('events that are the same after both ways', digests[0] === digests[1] ? EVENTS : 0)
    assert.equal(digests[0], digests[1])
  } finally {
    await database.drop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function move(env: Record<string, string>, to: string) {
  const startedAt = performance.now()
  const { code, out, err } = await runCommand({ ...env, SENDWRIGHT_MIGRATE_TO: to }, 'migrate', '--json')
  assert.equal(code, 0, out + err)
  const seconds = (performance.now() - startedAt) / 1000
  const { copiedRows, copySeconds, compareSeconds, differences } = JSON.parse(out)
  assert.deepEqual(differences, [])
  return { rows: copiedRows as number, copySeconds: copySeconds as number, compareSeconds, seconds }
}

async function fill(folder: string): Promise<void> {
  const database = new DatabaseSync(join(folder, 'sendwright.db'))
  database.exec(`INSERT INTO events (id, account_id, domain_name, event, timestamp_us, recipient, message_id, payload_json,
      tags_json, recipient_hash)
    WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${EVENTS})
    SELECT 'event-' || n, 'account', 'moved.example.org', 'delivered', 1700000000000000 + n,
      'user' || n || '@example.net', 'message-' || n,
      '{"event":"delivered","n":' || n || ',"text":"' || hex(zeroblob(${PAYLOAD_CHARS / 2})) || '"}',
      CASE WHEN n % 2 = 0 THEN '["news","week-' || (n % 50) || '"]' END, n % 1000003
    FROM numbers`)
  database.close()
  // As the service leaves them.
  const side = openSqliteTarget(folder)
  await side.prepare()
  await side.finish([], () => {})
  await side.close()
}

function digestOfEvents(folder: string): string {
  const database = new DatabaseSync(join(folder, 'sendwright.db'), { readOnly: true })
  const hash = createHash('sha256')
  for (const row of database.prepare('SELECT * FROM events ORDER BY seq').iterate())
    hash.update(JSON.stringify(row))
  database.close()
  return hash.digest('hex')
}
