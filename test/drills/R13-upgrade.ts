/**
 * A queue of 10,000 that earlier releases have accepted, upgraded to this one. Twenty times the new program is killed
 * between its start and the end of its migrations; each time the rest is made by the next start, and nothing is lost. Then the
 * queue is delivered. From the last release and the one before it; `R13_FROM=COMMIT` names another.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { openInstallation } from '../../src/platform/store/installation.ts'
import { readMigrations } from '../../src/platform/store/migrate.ts'
import { checkOut, earlierRelease } from '../support/old-release.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'

export const title =
  'R13: a queue of 10,000 survives the upgrade, and 20 kills in the middle of the migrations'

const QUEUE = 10_000
const PER_CALL = 1_000
const KILLS = 20

export async function run(report: DrillReport): Promise<void> {
  const named = process.env['R13_FROM']
  const releases = named === undefined ? [earlierRelease(), earlierRelease(1)] : [named]
  for (const release of releases) {
    assert.ok(release !== null, 'the repository has no earlier release')
    await upgradeFrom(release, report)
  }
}

async function upgradeFrom(release: string, report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const host = ownAddress()
  const sink = await createSink({ host: ownAddress() })
  const data = join(folder, 'data')
  const env = {
    SENDWRIGHT_DATA: data,
    SENDWRIGHT_HOST: host,
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
  }
  try {
    const root = join(folder, 'old')
    checkOut(release, root)
    const old = await startProcess(host, env, { root })
    for (let at = 0; at < QUEUE; at += PER_CALL) await postBatch(old, at)
    await old.end('SIGTERM')
    const before = countsOf(data)
    assert.equal(before.counts.get('deliveries'), QUEUE)
    const newest = readMigrations('sqlite').length
    report.figure(`${release}: migrations that the upgrade applies`, newest - before.versions)
    const unfinished = await kills(folder, data, env, before.counts)
    report.figure(`${release}: kills, and those before the last migration`, `${KILLS}, ${unfinished}`)

    onFolder(data, "UPDATE deliveries SET due_at = 1 WHERE state = 'scheduled'")
    const upgraded = await startProcess(host, env)
    await sink.waitFor(QUEUE)
    await upgraded.end('SIGTERM')
    const recipients = sink.messages.flatMap(({ envelope }) => envelope.to)
    report.figure(`${release}: delivered after the upgrade`, new Set(recipients).size)
    report.figure(`${release}: repeated`, recipients.length - new Set(recipients).size)
    assert.deepEqual([new Set(recipients).size, recipients.length], [QUEUE, QUEUE])
  } finally {
    await sink.close()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Accepted now, due in a day. */
async function postBatch(service: ServiceProcess, from: number): Promise<void> {
  const form = new URLSearchParams({
    from: `sender@${service.domain}`,
    subject: 'queued',
    text: 'Hi %recipient.n%.',
    'o:deliverytime': new Date(Date.now() + 86_400_000).toUTCString(),
  })
  const variables: Record<string, { n: number }> = {}
  for (let number = from; number < from + PER_CALL; number++) {
    form.append('to', `user${number}@example.org`)
    variables[`user${number}@example.org`] = { n: number }
  }
  form.set('recipient-variables', JSON.stringify(variables))
  const answer = await fetch(`${service.url}/v3/${service.domain}/messages`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body: form,
  })
  assert.equal(answer.status, 200, await answer.text())
}

/** Each on a copy of its own. Resolves to how many left migrations to do. */
async function kills(
  folder: string,
  data: string,
  env: Record<string, string>,
  before: ReadonlyMap<string, number>,
): Promise<number> {
  const main = resolve(import.meta.dirname, '../../src/main.ts')
  const newest = readMigrations('sqlite').length
  const spawned = (copy: string) =>
    spawn(process.execPath, [main, 'serve'], {
      env: { PATH: process.env['PATH'], ...env, SENDWRIGHT_DATA: copy, SENDWRIGHT_LOG_LEVEL: 'error' },
      stdio: 'ignore',
    })
  // The span to spread the kills over: from the first change of the schema to the last.
  const span = await migrationSpan(folder, data, spawned)
  let unfinished = 0
  for (let kill = 0; kill < KILLS; kill++) {
    const copy = join(folder, 'copy')
    await cp(data, copy, { recursive: true, filter: (path) => !path.endsWith('service.sock') })
    const child = spawned(copy)
    const exited = once(child, 'exit')
    await sleep(span.from + ((span.to - span.from) * (kill + 0.5)) / KILLS)
    child.kill('SIGKILL')
    await exited
    const { versions } = countsOf(copy)
    if (versions < newest) unfinished++
    const { store } = await openInstallation({ databaseUrl: null, dataFolder: copy, secret: null })
    await store.close()
    const after = countsOf(copy)
    assert.equal(after.versions, newest)
    assert.equal(after.integrity, 'ok')
    for (const table of ['deliveries', 'messages', 'events', 'accounts', 'domains'])
      assert.equal(after.counts.get(table), before.get(table), `${table} after kill ${kill}`)
    await rm(copy, { recursive: true })
  }
  return unfinished
}

/** Milliseconds from the start of the process. */
async function migrationSpan(
  folder: string,
  data: string,
  spawned: (copy: string) => ReturnType<typeof spawn>,
) {
  const copy = join(folder, 'copy')
  await cp(data, copy, { recursive: true, filter: (path) => !path.endsWith('service.sock') })
  const { versions } = countsOf(copy)
  const newest = readMigrations('sqlite').length
  const startedAt = performance.now()
  const child = spawned(copy)
  const exited = once(child, 'exit')
  let from: number | null = null
  for (;;) {
    const now = countsOf(copy, false).versions
    const elapsed = performance.now() - startedAt
    if (now > versions) from ??= elapsed
    if (now === newest) {
      child.kill('SIGKILL')
      await exited
      await rm(copy, { recursive: true })
      const start = from ?? elapsed
      // Starts differ by a fifth.
      return { from: start * 0.8, to: Math.max(elapsed, start) * 1.05 }
    }
    await sleep(1)
  }
}

function onFolder(folder: string, sql: string): void {
  const database = new DatabaseSync(join(folder, 'sendwright.db'))
  database.exec(sql)
  database.close()
}

function countsOf(folder: string, isWhole = true) {
  const database = new DatabaseSync(join(folder, 'sendwright.db'), { timeout: 10_000 })
  const number = (sql: string) => Number(Object.values(database.prepare(sql).get() ?? {})[0])
  const counts = new Map<string, number>()
  try {
    const versions = number('SELECT count(*) FROM schema_versions')
    if (!isWhole) return { versions, counts, integrity: '' }
    for (const { name } of database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all())
      counts.set(String(name), number(`SELECT count(*) FROM ${name}`))
    const [row] = database.prepare('PRAGMA integrity_check(1)').all()
    return { versions, counts, integrity: String(row?.['integrity_check']) }
  } finally {
    database.close()
  }
}
