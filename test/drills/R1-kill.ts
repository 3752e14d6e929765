/**
 * `kill -9` at random moments while messages are accepted, half over HTTP and half over SMTP, and delivered, with a
 * restart each time. The ledger has every Message-Id for which a client got a 200 or 250, the sink every message to
 * which it replied 250. A message received twice counts for the first kill after its first receipt.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { connectSmtp } from '../../src/protocols/smtp/client.ts'
import type { SmtpConnection } from '../../src/protocols/smtp/connection.ts'
import { passwordLogin } from '../../src/protocols/smtp/login.ts'
import { post, queueTotals } from '../support/crash-rig.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

export const title = 'R1: nothing accepted is lost, and hardly anything doubled, when the process is killed'

const SENDS = 10_000
const KILLS = 20
const CLIENTS = 8
const LOGIN = 'drill'
const PASSWORD = 'drill-password-0123456789'
const BODY = `${'x'.repeat(98)}\r\n`.repeat(100)
const CONNECTIONS_MAX = 20 // to the relay: at most this many transactions can be past the final dot
const REPEATED_MEAN_MAX = 2
const FIRST_DELIVERY_MAX_MS = 5_000
const DRAIN_MAX_MS = 120_000
/** After a refusal or a broken connection. */
const PAUSE_MS = 20

type Protocol = 'http' | 'smtp'

interface Rig {
  service: ServiceProcess
  /** Message-Ids that were answered with 200 or 250. */
  ledger: Set<string>
  accepted: Record<Protocol, number>
  next: number
}

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const sink = await createSink({ host: ownAddress() })
  const host = ownAddress()
  const env = {
    SENDWRIGHT_DATA: folder,
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_RELAY_CONNECTIONS: String(CONNECTIONS_MAX),
  }
  const rig: Rig = {
    service: await startProcess(host, env),
    ledger: new Set(),
    accepted: { http: 0, smtp: 0 },
    next: 0,
  }
  try {
    await createLogin(rig.service)
    const kills = killRepeatedly(rig, sink, () => startProcess(host, env), report)
    await Promise.all(Array.from({ length: CLIENTS }).flatMap(() => [httpClient(rig), smtpClient(rig, host)]))
    const { receivedAtKills, firstDeliveries } = await kills
    await drained(rig, sink)
    judge(rig, sink, { receivedAtKills, firstDeliveries }, report)
  } finally {
    await rig.service.end('SIGKILL')
    await sink.close()
    await rm(folder, { recursive: true, force: true })
  }
}

async function createLogin({ url, domain }: ServiceProcess): Promise<void> {
  const answer = await fetch(`${url}/v3/domains/${domain}/credentials`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body: new URLSearchParams({ login: LOGIN, password: PASSWORD }),
  })
  assert.equal(answer.status, 200, await answer.text())
}

const enough = ({ accepted }: Rig, protocol: Protocol) => accepted[protocol] >= SENDS / 2

/** Sends one after the other until enough are accepted; a refused or broken call is neither recorded nor repeated. */
async function httpClient(rig: Rig): Promise<void> {
  while (!enough(rig, 'http')) {
    const number = rig.next++
    const fields = { to: `user${number}@example.org`, subject: `message ${number}`, text: BODY }
    const answer = await post(rig.service, fields)
    if ('id' in answer) record(rig, 'http', answer.id)
    else await sleep(PAUSE_MS)
  }
}

/** The same over connections kept until they break. */
async function smtpClient(rig: Rig, host: string): Promise<void> {
  let connection: SmtpConnection | null = null
  while (!enough(rig, 'smtp')) {
    try {
      connection ??= await connectSmtp({
        host,
        port: 2525,
        heloName: 'client.example',
        tls: 'none',
        verify: false,
        auth: passwordLogin({ user: `${LOGIN}@${rig.service.domain}`, password: PASSWORD }),
      })
      const number = rig.next++
      const id = `<${number}.drill@${rig.service.domain}>`
      if (await submit(connection, rig.service.domain, number, id)) record(rig, 'smtp', id)
    } catch {
      connection?.close()
      connection = null
      await sleep(PAUSE_MS)
    }
  }
  await connection?.quit()
}

async function submit(
  connection: SmtpConnection,
  domain: string,
  number: number,
  id: string,
): Promise<boolean> {
  const to = `user${number}@example.org`
  const headers = [`From: sender@${domain}`, `To: ${to}`, `Subject: message ${number}`, `Message-Id: ${id}`]
  const { data } = await connection.send({
    returnPath: `sender@${domain}`,
    recipients: [to],
    message: { headers, body: [Buffer.from(BODY)] },
    sizeBytes: BODY.length + 200,
    utf8: false,
  })
  if (data?.code === 250) return true
  throw new Error(`refused: ${data?.code ?? 'no recipient accepted'}`)
}

function record(rig: Rig, protocol: Protocol, id: string): void {
  rig.ledger.add(id)
  rig.accepted[protocol]++
}

async function killRepeatedly(
  rig: Rig,
  sink: Sink,
  restart: () => Promise<ServiceProcess>,
  report: DrillReport,
) {
  const receivedAtKills: number[] = []
  const firstDeliveries: number[] = []
  for (let kill = 1; kill <= KILLS; kill++) {
    // Spread over the sends, at random moments.
    const due = (kill * SENDS) / (KILLS + 1)
    while (rig.ledger.size < due) await sleep(1)
    await sleep(Math.random() * 50)
    await rig.service.end('SIGKILL')
    // Messages sent by the dead process are still read, and count as received before its end.
    await sink.idle()
    const received = sink.messages.length
    receivedAtKills.push(received)
    const startedAt = performance.now()
    const first = sink.waitFor(received + 1).then(() => firstDeliveries.push(performance.now() - startedAt))
    rig.service = await restart()
    await first
    report.note(`kill ${kill}: ${rig.ledger.size} accepted, ${received} received`)
  }
  return { receivedAtKills, firstDeliveries }
}

async function drained({ service }: Rig, sink: Sink): Promise<void> {
  const until = performance.now() + DRAIN_MAX_MS
  for (;;) {
    const left = await queueTotals(service)
    if (left === 0) return
    if (performance.now() > until) throw new Error(`${left} not drained, ${sink.messages.length} received`)
    await sleep(100)
  }
}

function judge(
  { ledger, accepted }: Rig,
  sink: Sink,
  { receivedAtKills, firstDeliveries }: { receivedAtKills: number[]; firstDeliveries: number[] },
  report: DrillReport,
): void {
  const idsOfSubject = new Map<string, Set<string>>()
  /** Position of the latest receipt. */
  const received = new Map<string, number>()
  const repeats = receivedAtKills.map(() => 0)
  let otherwise = 0
  for (const [index, { raw }] of sink.messages.entries()) {
    const head = raw.subarray(0, 8192).toString('latin1')
    const id = /^message-id: *(<[^>]+>)/im.exec(head)?.[1] ?? 'none'
    const subject = /^subject: *(.+)\r$/im.exec(head)?.[1] ?? 'none'
    idsOfSubject.set(subject, (idsOfSubject.get(subject) ?? new Set()).add(id))
    const before = received.get(id)
    received.set(id, index)
    if (before === undefined) continue
    // A message received before a kill without a recorded outcome is sent again by a later process.
    const kill = receivedAtKills.findIndex((count) => count > before)
    if (kill < 0 || (receivedAtKills[kill] as number) > index) otherwise++
    else repeats[kill] = (repeats[kill] ?? 0) + 1
  }
  const lost = [...ledger].filter((id) => !received.has(id))
  const doubled = repeats.reduce((sum, count) => sum + count, otherwise)
  const slowest = Math.max(...firstDeliveries)
  report.figure('kills', receivedAtKills.length)
  report.figure('accepted over HTTP', accepted.http)
  report.figure('accepted over SMTP', accepted.smtp)
  report.figure('received by the sink', sink.messages.length)
  report.figure('lost', lost.length)
  report.figure('repeated', doubled)
  report.figure('repeated per kill, mean', doubled / receivedAtKills.length)
  report.figure('repeated per kill, most', Math.max(...repeats))
  report.figure('repeated, kill by kill', repeats.join(' '))
  report.figure('slowest start to first delivery', slowest / 1000, 's')
  // Each of these killed a process that had started after a crash (mail/deliver/attempt/final-dots.ts).
  const later = repeats.slice(1).reduce((sum, count) => sum + count, 0) / (repeats.length - 1)
  report.figure('repeated per kill but the first, mean', later)
  assert.deepEqual(lost, [], 'accepted messages were lost')
  assert.equal(otherwise, 0, 'repeated without a kill')
  assert.ok(later <= REPEATED_MEAN_MAX, 'too many repeats after a crash')
  assert.ok(Math.max(...repeats) <= CONNECTIONS_MAX, 'more repeats than transactions in flight at a kill')
  assert.ok(
    [...idsOfSubject.values()].every(({ size }) => size === 1),
    'a repeat has another Message-Id',
  )
  assert.ok(slowest <= FIRST_DELIVERY_MAX_MS, 'the first delivery after a start came late')
}
