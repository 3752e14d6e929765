/**
 * People with some thousand messages each among 100,000, and a million events are erased one after the other while others
 * are sent 50 messages a second. Turns without and with an erasure alternate in the same run, so that both see the same
 * machine: nothing is left of a person, and the calls of the others take as long in both. The last erasure is killed in the
 * middle and goes on. `DRILL_MESSAGES` and `DRILL_EVENTS` set other sizes, `DRILL_ALONE_MS` how long a turn without is.
 */
import assert from 'node:assert/strict'
import { createReadStream, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'

export const title = 'People are erased among a million events, beside 50 messages a second, over kill -9'

const MESSAGES = Number(process.env['DRILL_MESSAGES'] ?? 100_000)
const EVENTS = Number(process.env['DRILL_EVENTS'] ?? 1_000_000)
const ALONE_MS = Number(process.env['DRILL_ALONE_MS'] ?? 30_000)
const PEOPLE = ['first.person@example.org', 'second.person@example.org', 'third.person@example.org'] as const
/** One of so many messages and events is a person's. */
const SHARE = 50
const EVERY_MS = 20
const KILLS = 3
const ERASED_MAX_MS = 120_000
/** Beyond what it is without. */
const P99_MORE_MAX_MS = 50
const PATH = '/sendwright/v1/people'

interface Turn {
  name: string
  tookMs: number
  /** CPU of the service, in milliseconds. */
  cpuMs: number
  /** How long each call of the others took, in order of length. */
  calls: readonly number[]
}

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const env = { SENDWRIGHT_DATA: folder, SENDWRIGHT_RATE_LIMIT: 'off', SENDWRIGHT_DNS: '127.0.0.1:9' }
  const host = ownAddress()
  let service = await startProcess(host, env)
  try {
    const { domain } = service
    await send(service, domain, PEOPLE[0])
    await service.end('SIGTERM')
    multiply(folder, domain, report)
    service = await startProcess(host, env, { domain })
    // A million events that come at once are counted and indexed for minutes, at the cost of everybody.
    report.figure('until all events are counted and indexed', await followed(folder), 's')

    const turns: Turn[] = []
    const turn = async (name: string, work: () => Promise<unknown>) => {
      turns.push(await sending(service, domain, name, work))
    }
    const [killed, ...whole] = PEOPLE
    for (const [no, person] of whole.entries()) {
      await turn(`without ${no + 1}`, () => sleep(ALONE_MS))
      await turn(`erasure ${no + 1}`, async () => ended(service, await start(service, person)))
    }
    await turn(`without ${whole.length + 1}`, () => sleep(ALONE_MS))
    const id = await start(service, killed)
    service = await kills(service, folder, killed, report, () => startProcess(host, env, { domain }))
    await turn('erasure after kills', () => ended(service, id))

    // Nothing is left to find: this reads everything once.
    const { counts } = await ended(service, await start(service, whole[0] as string))
    const found = Object.keys(counts).filter((name) => (counts[name]?.['erased'] ?? 0) > 0)
    assert.deepEqual(found, [])
    showTurns(turns, report)
  } finally {
    await service.end('SIGTERM')
  }
  for (const person of PEOPLE) {
    assert.equal(countOf(folder, person), 0)
    for (const name of ['sendwright.db', 'sendwright.db-wal'])
      assert.ok(!(await holds(join(folder, name), person)), `${name} has nothing of the person`)
  }
  await rm(folder, { recursive: true, force: true })
}

/** Resolves with the seconds until the followers of events have seen those that are there now. */
async function followed(folder: string): Promise<number> {
  const begunAt = performance.now()
  const database = new DatabaseSync(join(folder, 'sendwright.db'), { readOnly: true })
  try {
    const { newest } = database.prepare('SELECT max(seq) AS newest FROM events').get() as { newest: number }
    const places = database.prepare(`SELECT min(seq) AS seq FROM (SELECT seq FROM event_index_place
      UNION ALL SELECT seq FROM event_followers WHERE name = 'counters')`)
    while ((places.get() as { seq: number }).seq < newest) await sleep(500)
  } finally {
    database.close()
  }
  return (performance.now() - begunAt) / 1_000
}

/** Kills the service with entries of the person left and others erased, again and again. */
async function kills(
  first: ServiceProcess,
  folder: string,
  person: string,
  report: DrillReport,
  restart: () => Promise<ServiceProcess>,
): Promise<ServiceProcess> {
  let service = first
  const all = countOf(folder, person)
  for (let kill = 1; kill <= KILLS; kill++) {
    const before = countOf(folder, person)
    while (countOf(folder, person) === before) await sleep(10)
    await service.end('SIGKILL')
    const left = countOf(folder, person)
    report.figure(`left at kill ${kill}`, `${left} of ${all}`, 'entries')
    assert.ok(left > 0 && left < all, 'killed in the middle')
    service = await restart()
  }
  return service
}

/** Prints the turns side by side, and compares the calls in all turns without an erasure with those in all with one. */
function showTurns(turns: readonly Turn[], report: DrillReport): void {
  const columns = ['turn', 'seconds', 'CPU s', 'messages/s', 'p50 ms', 'p99 ms', 'slowest ms']
  const line = (cells: readonly string[]) =>
    cells.map((cell, at) => (at === 0 ? cell.padEnd(20) : cell.padStart(11))).join('')
  report.note(line(columns))
  for (const { name, tookMs, cpuMs, calls } of turns) {
    const figures = [quantile(calls, 0.5), quantile(calls, 0.99), calls.at(-1) ?? 0]
    const rate = (calls.length / tookMs) * 1_000
    const cells = [tookMs / 1_000, cpuMs / 1_000, rate, ...figures].map((value) => value.toFixed(1))
    report.note(line([name, ...cells]))
  }
  const isErasure = ({ name }: Turn) => name.startsWith('erasure')
  const pooled = (chosen: readonly Turn[]) => chosen.flatMap(({ calls }) => calls).toSorted((a, b) => a - b)
  const [beside, alone] = [pooled(turns.filter(isErasure)), pooled(turns.filter((one) => !isErasure(one)))]
  for (const [name, share] of [
    ['p50', 0.5],
    ['p99', 0.99],
  ] as const) {
    report.figure(`${name} without an erasure`, quantile(alone, share), 'ms')
    report.figure(`${name} beside an erasure`, quantile(beside, share), 'ms')
  }
  const slowest = Math.max(...turns.filter(isErasure).map(({ tookMs }) => tookMs))
  report.figure('slowest erasure', slowest / 1_000, 's')
  assert.ok(slowest < ERASED_MAX_MS, 'erased in time')
  assert.ok(quantile(beside, 0.99) < quantile(alone, 0.99) + P99_MORE_MAX_MS, 'the others are not disturbed')
}

const quantile = (sorted: readonly number[], share: number) => sorted[Math.floor(sorted.length * share)] ?? 0

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

const start = async (service: ServiceProcess, address: string): Promise<string> =>
  (await call(service, 'POST', `${PATH}/erase`, { address, dry_run: 'false' })).task.id

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

/** Mail to others, 50 a second, until `work` has ended. */
async function sending(
  service: ServiceProcess,
  domain: string,
  name: string,
  work: () => Promise<unknown>,
): Promise<Turn> {
  let isOver = false
  const took: number[] = []
  const begunAt = performance.now()
  const cpuBefore = cpuMs(service)
  const ends = work().finally(() => {
    isOver = true
  })
  const calls: Promise<void>[] = []
  for (let no = 0; !isOver; no++) {
    const at = performance.now()
    calls.push(send(service, domain, `u${no}@example.net`).then(() => void took.push(performance.now() - at)))
    // A turn of the clock that came late is made up for.
    await sleep(Math.max(0, begunAt + (no + 1) * EVERY_MS - performance.now()))
  }
  await ends
  const tookMs = performance.now() - begunAt
  await Promise.all(calls)
  const used = cpuMs(service) - cpuBefore
  return { name, tookMs, cpuMs: used, calls: took.toSorted((a, b) => a - b) }
}

/** Used by the process so far, by proc(5): user and system, in ticks of 10 ms. */
function cpuMs({ child }: ServiceProcess): number {
  const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** Copies the message of the first person and its events, for each person and for others. */
function multiply(folder: string, domain: string, report: DrillReport): void {
  const database = new DatabaseSync(join(folder, 'sendwright.db'))
  database.exec('PRAGMA synchronous = OFF')
  const copies = (table: string, count: number, key: (no: number) => Record<string, unknown>) => {
    const [sample] = database
      .prepare(`SELECT * FROM ${table} WHERE ${table === 'events' ? 'recipient = ?' : '? <> 1'}`)
      .all(PEOPLE[0])
    assert.ok(sample, `${table} has a row`)
    const columns = Object.keys(sample)
    const insert = database.prepare(
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
    )
    database.exec('BEGIN')
    for (let no = 0; no < count; no++) {
      const address = PEOPLE[no % SHARE] ?? `other${no}@example.net`
      const row: Record<string, unknown> = { ...sample, ...key(no) }
      const values = columns.map((column) => {
        const value = row[column]
        if (typeof value === 'string') return value.replaceAll(PEOPLE[0], address)
        if (value instanceof Uint8Array)
          return Buffer.from(Buffer.from(value).toString().replaceAll(PEOPLE[0], address))
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
function countOf(folder: string, person: string): number {
  const database = new DatabaseSync(join(folder, 'sendwright.db'), { readOnly: true, timeout: 10_000 })
  try {
    const count = (table: string) =>
      Number(database.prepare(`SELECT count(*) AS n FROM ${table} WHERE recipient = ?`).get(person)?.['n'])
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
