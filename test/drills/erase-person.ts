/**
 * A person with some thousand messages among 100,000, and a million events, is erased while others are sent mail: nothing
 * is left of the person, no call of the others waits long, and an erasure that is killed in the middle goes on.
 * `DRILL_MESSAGES` and `DRILL_EVENTS` set other sizes, `DRILL_ALONE_MS` how long mail is sent before.
 */
import assert from 'node:assert/strict'
import { createReadStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'

export const title = 'A person is erased among a million events, beside 50 messages a second, over kill -9'

const MESSAGES = Number(process.env['DRILL_MESSAGES'] ?? 100_000)
const EVENTS = Number(process.env['DRILL_EVENTS'] ?? 1_000_000)
/** One of so many messages and events is the person's. */
const SHARE = 50
const PERSON = 'erased.person@example.org'
const EVERY_MS = 20
const ALONE_MS = Number(process.env['DRILL_ALONE_MS'] ?? 60_000)
const KILLS = 3
const ERASED_MAX_MS = 120_000
/** Beyond what it is alone. */
const P99_MORE_MAX_MS = 50
const PATH = '/sendwright/v1/people'

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const env = { SENDWRIGHT_DATA: folder, SENDWRIGHT_RATE_LIMIT: 'off', SENDWRIGHT_DNS: '127.0.0.1:9' }
  const host = ownAddress()
  let service = await startProcess(host, env)
  try {
    const { domain } = service
    await send(service, domain, PERSON)
    await service.end('SIGTERM')
    multiply(folder, domain, report)
    service = await startProcess(host, env, { domain })

    const alone = await sending(service, domain, async () => sleep(ALONE_MS))
    report.figure('accept p99 alone', alone.p99, 'ms')
    const first = await start(service)
    const all = countOf(folder)
    for (let kill = 1; kill <= KILLS; kill++) {
      // Below what the last kill has left, and above nothing: some entries are erased, others are not.
      const before = countOf(folder)
      while (countOf(folder) === before) await sleep(10)
      await service.end('SIGKILL')
      const left = countOf(folder)
      report.note(`kill ${kill}: ${left} of ${all} entries of the person left`)
      assert.ok(left > 0 && left < all, 'killed in the middle')
      service = await startProcess(host, env, { domain })
    }
    const begun = performance.now()
    const beside = await sending(service, domain, () => ended(service, first))
    const tookMs = performance.now() - begun
    report.figure('erased after the restart in', tookMs / 1_000, 's')
    report.figure('messages meanwhile', beside.sent)
    report.figure('accept p99 meanwhile', beside.p99, 'ms')
    report.figure('slowest', beside.slowest, 'ms')

    // Nothing is left to find: this reads everything once, uninterrupted.
    const again = performance.now()
    const rest = await start(service)
    const { counts } = await sendingWhile(service, domain, rest)
    report.figure('a pass over everything', (performance.now() - again) / 1_000, 's')
    assert.deepEqual(
      Object.keys(counts).filter((name) => (counts[name]?.['erased'] ?? 0) > 0),
      [],
    )
    assert.ok(tookMs < ERASED_MAX_MS, 'erased in time')
    assert.ok(beside.p99 < alone.p99 + P99_MORE_MAX_MS, 'the others are not disturbed')
  } finally {
    await service.end('SIGTERM')
  }
  assert.equal(countOf(folder), 0)
  for (const name of ['sendwright.db', 'sendwright.db-wal'])
    assert.ok(!(await holds(join(folder, name), PERSON)), `${name} has nothing of the person`)
  await rm(folder, { recursive: true, force: true })
}

type Task = { id: string; state: string; error?: string; counts: Record<string, Record<string, number>> }

async function call(service: ServiceProcess, method: string, path: string, form?: Record<string, string>) {
  const response = await fetch(service.url + path, {
    method,
    headers: { authorization: AUTHORIZATION },
    ...(form && { body: new URLSearchParams(form) }),
  })
  const text = await response.text()
  assert.ok(response.ok, `${path}: ${response.status} ${text}`)
  return JSON.parse(text)
}

const start = async (service: ServiceProcess): Promise<string> =>
  (await call(service, 'POST', `${PATH}/erase`, { address: PERSON, dry_run: 'false' })).task.id

async function ended(service: ServiceProcess, id: string): Promise<Task> {
  for (;;) {
    const task = (await call(service, 'GET', `${PATH}/tasks/${id}`)) as Task
    if (task.state === 'done') return task
    assert.notEqual(task.state, 'failed', task.error)
    await sleep(250)
  }
}

const send = (service: ServiceProcess, domain: string, to: string) =>
  call(service, 'POST', `/v3/${domain}/messages`, {
    ...{ from: `a@${domain}`, to, subject: `To ${to}`, text: `Dear ${to}, hello.`, 'o:tag': 'one' },
  })

/** Mail to others every 20 ms until `work` has ended. */
async function sending(service: ServiceProcess, domain: string, work: () => Promise<unknown>) {
  let isOver = false
  const tookMs: number[] = []
  const ends = work().finally(() => {
    isOver = true
  })
  const calls: Promise<void>[] = []
  for (let no = 0; !isOver; no++) {
    const at = performance.now()
    calls.push(
      send(service, domain, `u${no}@example.net`).then(() => void tookMs.push(performance.now() - at)),
    )
    await sleep(EVERY_MS)
  }
  await ends
  await Promise.all(calls)
  const sorted = tookMs.toSorted((a, b) => a - b)
  return {
    sent: sorted.length,
    p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    slowest: sorted.at(-1) ?? 0,
  }
}

async function sendingWhile(service: ServiceProcess, domain: string, id: string): Promise<Task> {
  let task: Task | undefined
  await sending(service, domain, async () => {
    task = await ended(service, id)
  })
  return task as Task
}

/** Copies the message of the person and its events, for the person and for others. */
function multiply(folder: string, domain: string, report: DrillReport): void {
  const database = new DatabaseSync(join(folder, 'sendwright.db'))
  database.exec('PRAGMA synchronous = OFF')
  const copies = (table: string, count: number, key: (no: number) => Record<string, unknown>) => {
    const [sample] = database
      .prepare(`SELECT * FROM ${table} WHERE ${table === 'events' ? 'recipient = ?' : '? <> 1'}`)
      .all(PERSON)
    assert.ok(sample, `${table} has a row`)
    const columns = Object.keys(sample)
    const insert = database.prepare(
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
    )
    database.exec('BEGIN')
    for (let no = 0; no < count; no++) {
      const address = no % SHARE === 0 ? PERSON : `other${no}@example.net`
      const row: Record<string, unknown> = { ...sample, ...key(no) }
      const values = columns.map((column) => {
        const value = row[column]
        if (typeof value === 'string') return value.replaceAll(PERSON, address)
        if (value instanceof Uint8Array)
          return Buffer.from(Buffer.from(value).toString().replaceAll(PERSON, address))
        return value as number | null
      })
      insert.run(...values)
    }
    database.exec('COMMIT')
    report.note(`${count} rows of ${table}`)
  }
  const id = (no: number) => `copy-${String(no).padStart(8, '0')}`
  copies('messages', MESSAGES, (no) => ({ id: id(no), message_id: `${id(no)}@${domain}` }))
  copies('deliveries', MESSAGES, (no) => ({ id: id(no), message_pk: id(no), state: 'delivered' }))
  const { last } = database.prepare('SELECT max(seq) AS last FROM events').get() as { last: number }
  copies('events', EVENTS, (no) => ({
    id: id(no),
    seq: last + 1 + no,
    message_id: `${id(no % MESSAGES)}@${domain}`,
  }))
  database.close()
}

/** Entries that name the person. */
function countOf(folder: string): number {
  const database = new DatabaseSync(join(folder, 'sendwright.db'), { readOnly: true, timeout: 10_000 })
  try {
    const count = (table: string) =>
      Number(database.prepare(`SELECT count(*) AS n FROM ${table} WHERE recipient = ?`).get(PERSON)?.['n'])
    return count('events') + count('deliveries')
  } finally {
    database.close()
  }
}

/** In pieces: the database has more than a gigabyte. */
async function holds(file: string, text: string): Promise<boolean> {
  let before = Buffer.alloc(0)
  try {
    for await (const piece of createReadStream(file, { highWaterMark: 2 ** 22 })) {
      const bytes = Buffer.concat([before, piece as Buffer])
      if (bytes.includes(text)) return true
      before = bytes.subarray(-text.length)
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  return false
}
