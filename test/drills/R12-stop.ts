/** Repeated SIGTERM under load: each stop ends in time, nothing is lost or repeated. */
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

export const title = 'R12: SIGTERM under load ends within 30 s, loses nothing and repeats nothing'

const SENDS = 4_000
const STOPS = 10
const CLIENTS = 16
const STOP_MAX_MS = 30_000
const BODY = 'x'.repeat(10_000)

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const sink = await createSink({ host: ownAddress() })
  const host = ownAddress()
  const env = { SENDWRIGHT_DATA: folder, SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` }
  let service = await startProcess(host, env)
  const ledger = new Set<string>()
  let next = 0
  const client = async () => {
    while (ledger.size < SENDS) {
      const number = next++
      const answer = await post(service, {
        to: `user${number}@example.org`,
        subject: `${number}`,
        text: BODY,
      })
      if ('id' in answer) ledger.add(answer.id)
      else await sleep(20)
    }
  }
  try {
    const clients = Array.from({ length: CLIENTS }, client)
    let slowest = 0
    const codes = new Set<number | null>()
    for (let stop = 1; stop <= STOPS; stop++) {
      while (ledger.size < (stop * SENDS) / (STOPS + 1)) await sleep(1)
      const startedAt = performance.now()
      codes.add(await service.end('SIGTERM'))
      slowest = Math.max(slowest, performance.now() - startedAt)
      service = await startProcess(host, env)
    }
    await Promise.all(clients)
    while ((await queueTotals(service)) > 0) await sleep(50)
    const { lost, repeated } = judge(ledger, sink)
    report.figure('stops', STOPS)
    report.figure('accepted with 200', ledger.size)
    report.figure('slowest stop', slowest / 1000, 's')
    report.figure('exit codes', [...codes].join(', '))
    report.figure('lost', lost.length)
    report.figure('repeated', repeated.length)
    assert.deepEqual({ lost, repeated }, { lost: [], repeated: [] })
    assert.ok(slowest <= STOP_MAX_MS)
  } finally {
    await service.end('SIGKILL')
    await sink.close()
    await rm(folder, { recursive: true, force: true })
  }
}
