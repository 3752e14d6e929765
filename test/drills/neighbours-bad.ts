/** Single mails to a healthy provider, alone and then together with a dead, a silent, a greylisting and a limiting one. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DrillReport } from '../../scripts/drill.ts'
import { post } from '../support/crash-rig.ts'
import { createInternet } from '../support/internet.ts'
import { ownAddress } from '../support/service.ts'
import { type ServiceProcess, startProcess } from '../support/service-process.ts'
import type { Sink } from '../support/smtp-sink.ts'

export const title = 'neighbours: bad destinations do not change how long mail to healthy ones takes'

const SINGLES = 300
const BACKLOG_PER_BAD = 500
/** What the noise of two shared cores may add to a median. */
const NOISE_MS = 10

export async function run(report: DrillReport): Promise<void> {
  const closers: (() => unknown)[] = []
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  try {
    const internet = await createInternet({
      after: (close?: unknown) => closers.push(close as () => unknown),
    })
    const healthy = await internet.site(['healthy.example'])
    const silent = await internet.site(['silent.example'])
    silent.on('CONNECT', null)
    const grey = await internet.site(['grey.example'])
    grey.on('RCPT TO', '451 4.7.1 greylisted, try later')
    const busy = await internet.site(['busy.example'])
    busy.on('MAIL', '421 4.7.0 too many messages, slow down')
    internet.host('dead.example', 'mx.dead.example', '127.255.255.2')
    const service = await startProcess(ownAddress(), { ...internet.env, SENDWRIGHT_DATA: folder })
    closers.push(() => service.end('SIGKILL'))
    await singles(service, healthy) // warm-up: code compiled and connections opened at first use
    const alone = await singles(service, healthy)
    for (const bad of ['silent', 'grey', 'busy', 'dead']) {
      for (let n = 0; n < BACKLOG_PER_BAD; n++) await queue(service, `user${n}@${bad}.example`)
    }
    const beside = await singles(service, healthy)
    report.figure('queued to each bad one', BACKLOG_PER_BAD)
    report.figure('alone: median', at(alone, 0.5), 'ms')
    report.figure('alone: 95 of 100', at(alone, 0.95), 'ms')
    report.figure('beside the bad ones: median', at(beside, 0.5), 'ms')
    report.figure('beside the bad ones: 95 of 100', at(beside, 0.95), 'ms')
    assert.ok(at(beside, 0.5) <= at(alone, 0.5) * 1.05 + NOISE_MS, 'healthy mail takes longer')
  } finally {
    for (const close of closers.reverse()) await close()
    await rm(folder, { recursive: true, force: true })
  }
}

async function queue(service: ServiceProcess, to: string): Promise<void> {
  assert.ok('id' in (await post(service, { to, subject: 'Hello', text: 'Hi.' })), 'refused')
}

/** Milliseconds from the call until the server has the message, sorted. */
async function singles(service: ServiceProcess, sink: Sink): Promise<number[]> {
  const times: number[] = []
  for (let n = 0; n < SINGLES; n++) {
    const startedAt = performance.now()
    const arrived = sink.waitFor(sink.messages.length + 1)
    await queue(service, `user${n}@healthy.example`)
    await arrived
    times.push(performance.now() - startedAt)
  }
  return times.sort((a, b) => a - b)
}

const at = (sorted: readonly number[], share: number) => sorted[Math.floor(sorted.length * share)] ?? 0
