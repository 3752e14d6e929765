/**
 * The disk fills up, on a tmpfs of 64 MiB: mail is refused with 507, mail in flight is neither lost nor
 * sent twice, and everything continues soon after space is free again, outside the database or inside it.
 * Needs the right to mount.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { judge, post, queueTotals } from '../support/crash-rig.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'

export const title = 'R6: a full disk refuses mail, repeats none, and is got over within ten seconds'

const CLIENTS = 8
const FILL_MAX_MS = 30_000
const EMPTIED_MAX_MS = 15_000
const DRAINED_MAX_MS = 15_000
const BODY = 'x'.repeat(5_000)

export async function run(report: DrillReport): Promise<void> {
  for (const [name, floor] of [
    ['with a floor of 8 MiB', '8m'],
    ['without a floor', '0'],
  ] as const)
    await fill(report, name, floor)
  await empty(report)
}

/** Captured mail fills the disk; deleting it frees space, although the database file occupies all of it. */
async function empty(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', folder])
  const service = await startProcess(ownAddress(), {
    SENDWRIGHT_DATA: folder,
    SENDWRIGHT_FREE_SPACE_MIN: '8m',
  })
  const freeMegabytes = async () => {
    const { bavail, bsize } = await statfs(folder)
    return (bavail * bsize) / 1024 ** 2
  }
  try {
    const ledger = new Set<string>()
    const statuses = await sendUntilRefused(service, ledger)
    const fullAt = performance.now()
    while ((await queueTotals(service)) > 0 && performance.now() - fullAt < DRAINED_MAX_MS) await sleep(50)
    const queued = await queueTotals(service)
    const full = await freeMegabytes()
    const headers = { authorization: AUTHORIZATION }
    await fetch(`${service.url}/sendwright/v1/inbox`, { method: 'DELETE', headers })
    const emptiedAt = performance.now()
    while (!(await accepts(service, new Set())) && performance.now() - emptiedAt < EMPTIED_MAX_MS)
      await sleep(50)
    const resumed = (performance.now() - emptiedAt) / 1000
    await sleep(3_000)
    report.figure('captured mail deleted: accepted before', ledger.size)
    report.figure('captured mail deleted: not delivered for lack of room', queued)
    report.figure('captured mail deleted: refused with', [...statuses].join(', '))
    report.figure('captured mail deleted: accepts again after', resumed, 's')
    report.figure('captured mail deleted: free before', full, 'MiB')
    report.figure('captured mail deleted: free 3 s later', await freeMegabytes(), 'MiB')
    assert.deepEqual([...statuses], [507])
    assert.ok(resumed <= 10)
    assert.ok((await freeMegabytes()) > full + 8)
  } finally {
    await service.end('SIGKILL')
    execFileSync('umount', [folder])
    await rm(folder, { recursive: true, force: true })
  }
}

async function fill(report: DrillReport, name: string, floor: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', folder])
  const sink = await createSink({ host: ownAddress() })
  sink.on('DATA-DOT', async () => {
    await sleep(5)
    return '250 2.0.0 Ok'
  })
  const service = await startProcess(ownAddress(), {
    SENDWRIGHT_DATA: folder,
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_FREE_SPACE_MIN: floor,
  })
  try {
    const ledger = new Set<string>()
    const ballast = join(folder, 'ballast')
    await writeFile(ballast, Buffer.alloc(30 * 1024 * 1024))
    const statuses = await sendUntilRefused(service, ledger)
    const readable = await fetch(`${service.url}/v4/domains`, { headers: { authorization: AUTHORIZATION } })
    await sleep(3_000)
    const again = await post(service, { to: 'user@example.org', subject: 'full', text: BODY })
    if ('id' in again) ledger.add(again.id)
    await rm(ballast)
    const freedAt = performance.now()
    while (!(await accepts(service, ledger))) await sleep(50)
    const resumed = (performance.now() - freedAt) / 1000
    while ((await queueTotals(service)) > 0) await sleep(50)
    const { lost, repeated } = judge(ledger, sink)
    await service.end('SIGTERM')
    const database = new DatabaseSync(join(folder, 'sendwright.db'))
    const integrity = database.prepare('PRAGMA integrity_check').get() as { integrity_check: string }
    database.close()
    report.figure(`${name}: accepted`, ledger.size)
    report.figure(`${name}: refused with`, [...statuses].join(', '))
    report.figure(`${name}: reading while full`, readable.status)
    report.figure(`${name}: accepts again after`, resumed, 's')
    report.figure(`${name}: lost`, lost.length)
    report.figure(`${name}: repeated`, repeated.length)
    report.figure(`${name}: integrity`, integrity.integrity_check)
    assert.deepEqual([...statuses], [507])
    assert.deepEqual({ lost, repeated }, { lost: [], repeated: [] })
    assert.equal(integrity.integrity_check, 'ok')
    assert.ok(resumed <= 10)
  } finally {
    await service.end('SIGKILL')
    await sink.close()
    execFileSync('umount', [folder])
    await rm(folder, { recursive: true, force: true })
  }
}

async function sendUntilRefused(service: ServiceProcess, ledger: Set<string>): Promise<Set<number | null>> {
  const statuses = new Set<number | null>()
  const until = performance.now() + FILL_MAX_MS
  let number = 0
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      for (let refused = 0; refused < 3 && performance.now() < until; ) {
        const answer = await post(service, {
          to: `user${number}@example.org`,
          subject: `${number++}`,
          text: BODY,
        })
        if ('id' in answer) ledger.add(answer.id)
        else {
          refused++
          statuses.add(answer.status)
        }
      }
    }),
  )
  return statuses
}

async function accepts(service: ServiceProcess, ledger: Set<string>): Promise<boolean> {
  const answer = await post(service, { to: 'user@example.org', subject: 'free again', text: 'Hi.' })
  if ('id' in answer) ledger.add(answer.id)
  return 'id' in answer
}
