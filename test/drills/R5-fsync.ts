/**
 * The disk fails: fsync returns EIO (strace injects it into the running process). No message may be accepted
 * from then on, the service reports that it is not ready, and a new start delivers everything accepted before.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { judge, post, queueTotals } from '../support/crash-rig.ts'
import { ownAddress } from '../support/service.ts'
import { startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'
import { attachStrace } from '../support/strace.ts'

export const title = 'R5: after a failed sync nothing is accepted, and nothing accepted is lost'

const BEFORE = 100
const AFTER = 50

export async function run(report: DrillReport): Promise<void> {
  for (const [name, when] of [
    ['once', '1'],
    ['always', '1+'],
  ] as const)
    await fail(report, name, when)
}

async function fail(report: DrillReport, name: string, when: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const sink = await createSink({ host: ownAddress() })
  const host = ownAddress()
  const env = { SENDWRIGHT_DATA: folder, SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` }
  let service = await startProcess(host, env)
  try {
    const ledger = new Set<string>()
    for (let number = 0; number < BEFORE; number++) {
      const answer = await post(service, {
        to: `user${number}@example.org`,
        subject: `${number}`,
        text: 'Hi.',
      })
      if ('id' in answer) ledger.add(answer.id)
    }
    const inject = `inject=fsync,fdatasync:error=EIO:when=${when}`
    const strace = await attachStrace(service.child.pid as number, [
      '-e',
      'trace=fsync,fdatasync',
      '-e',
      inject,
      '-o',
      '/dev/null',
    ])
    let accepted = 0
    const refusals = new Map<number | null, number>()
    for (let number = 0; number < AFTER; number++) {
      const answer = await post(service, {
        to: `late${number}@example.org`,
        subject: `late ${number}`,
        text: 'Hi.',
      })
      if ('id' in answer) {
        accepted++
        ledger.add(answer.id)
      } else refusals.set(answer.status, (refusals.get(answer.status) ?? 0) + 1)
    }
    const ready = await fetch(`${service.url}/health/ready`).catch(() => null)
    await strace.detach()
    await service.end('SIGKILL')
    service = await startProcess(host, env)
    while ((await queueTotals(service)) > 0) await sleep(50)
    const { lost, repeated } = judge(ledger, sink)
    report.figure(`${name}: accepted before`, ledger.size - accepted)
    report.figure(`${name}: accepted after the failed sync`, accepted)
    report.figure(
      `${name}: refused`,
      [...refusals].map(([status, count]) => `${count} x ${status}`).join(', '),
    )
    report.figure(`${name}: readiness`, ready?.status ?? 'gone')
    report.figure(`${name}: lost`, lost.length)
    report.figure(`${name}: repeated`, repeated.length)
    assert.equal(accepted, 0)
    assert.notEqual(ready?.status, 200)
    assert.deepEqual(lost, [])
  } finally {
    await service.end('SIGKILL')
    await sink.close()
    await rm(folder, { recursive: true, force: true })
  }
}
