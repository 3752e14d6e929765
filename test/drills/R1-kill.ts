/**
 * `kill -9` at random moments while messages are accepted and delivered; started again each time. The ledger
 * holds every Message-Id that a client got a 200 for, the sink every message that it answered 250 to.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

export const title = 'R1: nothing accepted is lost, and hardly anything doubled, when the process is killed'

const SENDS = 2_000
const KILLS = 10
const CLIENTS = 16
const BODY = 'x'.repeat(10_000)
const DRAIN_MAX_MS = 120_000

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const sink = await createSink({ host: ownAddress() })
  const host = ownAddress()
  const env = { SENDWRIGHT_DATA: folder, SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` }
  const rig: Rig = { service: await startProcess(host, env), ledger: new Set(), next: 0 }
  try {
    const kills = killRepeatedly(rig, sink, () => startProcess(host, env), report)
    await Promise.all(Array.from({ length: CLIENTS }, () => client(rig)))
    const { openAtKills, slowestStartMs } = await kills
    await drained(rig, sink)
    judge(rig.ledger, sink, openAtKills, report)
    report.figure('slowest start to ready', slowestStartMs, 'ms')
  } finally {
    await rig.service.end('SIGKILL')
    await sink.close()
    await rm(folder, { recursive: true, force: true })
  }
}

interface Rig {
  service: ServiceProcess
  /** Message-Ids that were answered with 200. */
  ledger: Set<string>
  next: number
}

/** Sends one after another until enough are accepted; a refused or broken call is not in the ledger and not repeated. */
async function client(rig: Rig): Promise<void> {
  while (rig.ledger.size < SENDS) {
    const number = rig.next++
    const { url, domain } = rig.service
    const body = new URLSearchParams({
      from: `sender@${domain}`,
      to: `user${number}@example.org`,
      subject: `message ${number}`,
      text: BODY,
    })
    const answer = await fetch(`${url}/v3/${domain}/messages`, {
      method: 'POST',
      headers: { authorization: AUTHORIZATION },
      body,
    }).catch(() => null)
    if (answer?.status === 200) rig.ledger.add(((await answer.json()) as { id: string }).id)
    else await sleep(20)
  }
}

async function killRepeatedly(
  rig: Rig,
  sink: Sink,
  restart: () => Promise<ServiceProcess>,
  report: DrillReport,
) {
  let openAtKills = 0
  let slowestStartMs = 0
  for (let kill = 1; kill <= KILLS; kill++) {
    // Spread over the sends, each at a moment of its own.
    const due = (kill * SENDS) / (KILLS + 1)
    while (rig.ledger.size < due) await sleep(1)
    await sleep(Math.random() * 50)
    const open = sink.connections.open
    openAtKills += open
    await rig.service.end('SIGKILL')
    const begun = performance.now()
    rig.service = await restart()
    slowestStartMs = Math.max(slowestStartMs, Math.round(performance.now() - begun))
    report.note(
      `kill ${kill}: ${open} connections open, ${rig.ledger.size} accepted, ${sink.messages.length} received`,
    )
  }
  return { openAtKills, slowestStartMs }
}

async function drained(rig: Rig, sink: Sink): Promise<void> {
  const until = performance.now() + DRAIN_MAX_MS
  for (;;) {
    const answer = await fetch(`${rig.service.url}/sendwright/v1/system`, {
      headers: { authorization: AUTHORIZATION },
    })
    const { queue } = (await answer.json()) as { queue: Record<string, number> }
    if (Object.values(queue).every((count) => count === 0)) return
    if (performance.now() > until)
      throw new Error(`not drained: ${JSON.stringify(queue)}, ${sink.messages.length} received`)
    await sleep(100)
  }
}

function judge(ledger: Set<string>, sink: Sink, openAtKills: number, report: DrillReport): void {
  const received = new Map<string, number>()
  for (const { raw } of sink.messages) {
    const id = /^message-id: *(<[^>]+>)/im.exec(raw.subarray(0, 8192).toString('latin1'))?.[1] ?? 'none'
    received.set(id, (received.get(id) ?? 0) + 1)
  }
  const lost = [...ledger].filter((id) => !received.has(id))
  const doubled = [...received.values()].reduce((sum, count) => sum + count - 1, 0)
  report.figure('kills', KILLS)
  report.figure('accepted with 200', ledger.size)
  report.figure('received by the sink', sink.messages.length)
  report.figure('lost', lost.length)
  report.figure('repeated', doubled)
  report.figure('connections open at the kills', openAtKills)
  assert.deepEqual(lost, [], 'accepted messages were lost')
  assert.ok(doubled <= openAtKills, 'more repeats than connections open at the kills')
}
