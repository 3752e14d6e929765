/** Database files damaged from outside: what the service and the command line report, and what they stop. */
// Slow: it damages the databases of whole processes.
import assert from 'node:assert/strict'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { runCommand } from '../support/command.ts'
import { post, queueTotals } from '../support/crash-rig.ts'
import { seededNumbers } from '../support/random.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { AUTHORIZATION, EndedAtStart, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

const PAGE_BYTES = 4096
/** A mail is due when the damage, which is done at once, is long there. */
const DUE_AFTER_MS = 20_000
/** What is due is claimed by then. */
const CLAIMED_AFTER_MS = 3_000

/** A service with some messages on its disk, and the settings to start it again. */
async function rig(t: TestContext, messages: number) {
  const folder = await temporaryFolder(t)
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const host = ownAddress()
  const env = { SENDWRIGHT_DATA: folder, SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` }
  const start = async () => {
    const service = await startProcess(host, env)
    t.after(() => service.end('SIGKILL'))
    return service
  }
  const first = await start()
  for (let number = 0; number < messages; number++) {
    const answer = await post(first, { to: `user${number}@example.org`, subject: `${number}`, text: 'Hi.' })
    assert.ok('id' in answer, JSON.stringify(answer))
  }
  await eventually('an empty queue', async () => (await queueTotals(first)) === 0)
  const stop = async () => void (await first.end('SIGTERM'))
  return {
    folder,
    file: join(folder, 'sendwright.db'),
    env: { ...env, SENDWRIGHT_HOST: host },
    first,
    start,
    stop,
    sink,
  }
}

/** Overwrites part of a file with random bytes, the same in each run. */
async function scribble(file: string, at: number, length: number, seed = 26): Promise<void> {
  const random = seededNumbers(seed)
  const bytes = Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)))
  const handle = await open(file, 'r+')
  await handle.write(bytes, 0, length, at)
  await handle.sync()
  await handle.close()
}

/** Offset of the first page of a table or an index. */
function rootOf(file: string, name: string): number {
  const database = new DatabaseSync(file, { readOnly: true })
  const row = database.prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?').get(name)
  database.close()
  return (Number(row?.['rootpage']) - 1) * PAGE_BYTES
}

async function startFails(start: () => Promise<ServiceProcess>): Promise<string> {
  const error = await start().then(
    () => assert.fail('it started'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof EndedAtStart, String(error))
  return error.message
}

test('a start refuses a damaged index, table or header with an explanation, and doctor says how to recover', async (t) => {
  const { file, env, start, stop } = await rig(t, 10)
  await stop()
  const places: [what: string, at: number, length: number, advice: RegExp | null][] = [
    [
      'an index',
      rootOf(file, 'deliveries_due'),
      PAGE_BYTES,
      /Only indexes are damaged \(deliveries_due\).*REINDEX/,
    ],
    ['a table', rootOf(file, 'deliveries'), PAGE_BYTES, /restore the newest backup.*\.recover/],
    ['the header', 0, 100, null],
  ]
  for (const [what, at, length, advice] of places) {
    const handle = await open(file)
    const whole = Buffer.alloc(length)
    await handle.read(whole, 0, length, at)
    await handle.close()
    await scribble(file, at, length)
    const said = await startFails(start)
    assert.ok(said.includes(`The database "${file}" is damaged`), `${what}: ${said}`)
    assert.doesNotMatch(said, /\n +at /, `${what}: no stack`)
    if (advice) {
      const { code, out } = await runCommand(env, 'doctor')
      assert.equal(code, 1)
      assert.match(out, advice, `${what}: ${out}`)
    }
    const repair = await open(file, 'r+')
    await repair.write(whole, 0, length, at)
    await repair.close()
  }
  const service = await start()
  assert.ok('id' in (await post(service, { to: 'user@example.org', subject: 'whole', text: 'Hi.' })))
})

test('damage found at run time stops accepting and claiming, and health reports it', async (t) => {
  const { folder, file, first: service, sink } = await rig(t, 1)
  const dueAt = Date.now() + DUE_AFTER_MS
  const later = await fetch(`${service.url}/v3/${service.domain}/messages`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body: new URLSearchParams({
      ...{ from: `sender@${service.domain}`, to: 'later@example.org', subject: 'later', text: 'Hi.' },
      'o:deliverytime': new Date(dueAt).toUTCString(),
    }),
  })
  assert.equal(later.status, 200)
  const healthy = await fetch(`${service.url}/health`)
  assert.equal(healthy.status, 200)
  // The pages are in memory or in the log: a truncated file is noticed all the same.
  const handle = await open(file, 'r+')
  await handle.truncate(0)
  await handle.close()
  const log = await open(`${file}-wal`, 'r+')
  await log.truncate(0)
  await log.close()
  const sick = await eventually('health says so', async () => {
    await post(service, { to: 'user@example.org', subject: 'sick', text: 'Hi.' })
    const answer = await fetch(`${service.url}/health`)
    return answer.status === 503 && ((await answer.json()) as { reason: string })
  })
  const arrived = sink.messages.length
  assert.match(sick.reason, /^The (database is damaged|disk of the database failed)/)
  assert.doesNotMatch(sick.reason, new RegExp(folder))
  assert.deepEqual(await post(service, { to: 'user@example.org', subject: 'sick', text: 'Hi.' }), {
    status: 503,
  })
  // Lines of the log are gathered before they are written.
  await eventually('the log says so', async () =>
    service
      .output()
      .split('\n')
      .some((line) => line.includes(`\\"${file}\\" is damaged`) || line.includes('The disk failed')),
  )
  await sleep(Math.max(0, dueAt + CLAIMED_AFTER_MS - Date.now()))
  assert.equal(sink.messages.length, arrived, 'nothing was claimed')
})
