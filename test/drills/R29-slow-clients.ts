/**
 * Slow clients on HTTP and SMTP: 2,500 connections on each from 50 addresses, silent or sending a byte a second, which
 * reconnect when they are closed; one address that opens more connections than allowed; and two normal clients, one
 * that sends over HTTP and one over SMTP.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createConnection, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { DrillReport } from '../../scripts/drill.ts'
import { residentBytes, residentPeakBytes } from '../support/process-memory.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import type { SlowCounts, SlowLoad } from '../support/slow-clients.ts'
import { Dialogue } from '../support/smtp-dialogue.ts'

export const title = 'R29: 5,000 slow clients on HTTP and SMTP; good ones notice little'

const CONNECTIONS = 2_500
const PER_ADDRESS = 100
const GOOD_SECONDS = 30
const GOOD_PAUSE_MS = 200
const P99_MAX_MS = 500
const RSS_MAX_MB = 400
const FILL_MAX_MS = 40_000
/** The deadline of 10 s, plus the check every second and a busy machine. */
const DEADLINE_MS = { least: 9_900, most: 13_000 }
const GREEDY = { address: '127.230.0.1', http: 1_100, httpMax: 1_000, smtp: 110, smtpMax: 100 }
const MB = 2 ** 20
const PASSWORD = 'a password of the drill'

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const host = ownAddress()
  try {
    const service = await startProcess(host, { SENDWRIGHT_DATA: folder })
    const workers: Worker[] = []
    await measure(service, host, workers, report).finally(async () => {
      for (const worker of workers) await worker.terminate()
      await service.end('SIGTERM')
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function measure(
  service: ServiceProcess,
  host: string,
  workers: Worker[],
  report: DrillReport,
): Promise<void> {
  const pid = service.child.pid as number
  const login = await createLogin(service)
  const overHttp = () => sendOverHttp(service)
  const overSmtp = () => sendOverSmtp(host, service.domain, login)
  const alone = [await repeat(overHttp, 5), await repeat(overSmtp, 5)]
  report.figure('RSS before', (await residentBytes(pid)) / MB, 'MB')

  const slow = { host, connections: CONNECTIONS, perAddress: PER_ADDRESS }
  const head = 'GET / HTTP/1.1\r\nHost: a\r\nX-Slow: '
  const http = startLoad(workers, { ...slow, port: 8080, network: 210, drip: head })
  const smtp = startLoad(workers, { ...slow, port: 2525, network: 220, drip: 'NOOP slowly' })
  await http.filled()
  await smtp.filled()
  report.figure('RSS with all of them', (await residentBytes(pid)) / MB, 'MB')
  // Clients without a login give way to others once they have been idle for a second.
  await sleep(2_000)

  const [byHttp, bySmtp] = await Promise.all([repeat(overHttp, GOOD_SECONDS), repeat(overSmtp, GOOD_SECONDS)])
  const times = [
    ['HTTP alone', alone[0]],
    ['SMTP alone', alone[1]],
    ['HTTP beside them', byHttp],
    ['SMTP beside them', bySmtp],
  ] as const
  for (const [name, measured] of times) {
    report.figure(`good client, ${name}, p99`, p99(measured?.latenciesMs ?? []), 'ms')
    report.figure(
      `good client, ${name}, calls and failures`,
      `${measured?.latenciesMs.length}, ${measured?.failed}`,
    )
  }
  for (const [name, { counts }] of [
    ['HTTP', http],
    ['SMTP', smtp],
  ] as const) {
    report.figure(`slow on ${name}, open at the end`, counts().open)
    for (const [line, count] of Object.entries(counts().endings)) {
      report.figure(`slow on ${name}, ended with "${line}"`, count)
    }
  }
  const { least, most } = http.counts().lastedMs
  report.figure(
    'silent HTTP connection, shortest and longest',
    `${Math.round(least)}, ${Math.round(most)}`,
    'ms',
  )
  report.figure('RSS after 30 s of them', (await residentBytes(pid)) / MB, 'MB')
  const [httpRefused, smtpRefused] = await tryGreedily(host)
  report.figure('greedy address, HTTP connections answered 503', httpRefused)
  report.figure('greedy address, SMTP connections answered 421', smtpRefused)
  report.figure('RSS peak', (await residentPeakBytes(pid)) / MB, 'MB')

  for (const measured of [byHttp, bySmtp]) {
    assert.equal(measured.failed, 0, measured.failure)
    assert.ok(p99(measured.latenciesMs) <= P99_MAX_MS, 'good clients stay quick')
  }
  assert.equal(httpRefused, GREEDY.http - GREEDY.httpMax)
  assert.equal(smtpRefused, GREEDY.smtp - GREEDY.smtpMax)
  assert.ok(least >= DEADLINE_MS.least && most <= DEADLINE_MS.most, 'headers have 10 s')
  assert.ok((await residentPeakBytes(pid)) / MB <= RSS_MAX_MB, 'memory stays')
}

interface Load {
  counts(): SlowCounts
  /** Once nearly all of its connections are open. */
  filled(): Promise<void>
}

function startLoad(workers: Worker[], load: SlowLoad): Load {
  const worker = new Worker(join(import.meta.dirname, '../support/slow-clients.ts'), { workerData: load })
  workers.push(worker)
  let counts: SlowCounts = { open: 0, endings: {}, lastedMs: { least: 0, most: 0 } }
  worker.on('message', (latest: SlowCounts) => {
    counts = latest
  })
  return {
    counts: () => counts,
    async filled() {
      const until = performance.now() + FILL_MAX_MS
      while (counts.open < 0.95 * load.connections) {
        assert.ok(performance.now() < until, `only ${counts.open} connections are open`)
        await sleep(100)
      }
    },
  }
}

async function createLogin({ url, domain }: ServiceProcess): Promise<string> {
  const answer = await fetch(`${url}/v3/domains/${domain}/credentials`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body: new URLSearchParams({ login: 'good', password: PASSWORD }),
  })
  assert.equal(answer.status, 200)
  return `good@${domain}`
}

async function sendOverHttp({ url, domain }: ServiceProcess): Promise<void> {
  const body = new URLSearchParams({ from: `a@${domain}`, to: 'b@example.org', subject: 'Hi', text: 'Hi.' })
  const headers = { authorization: AUTHORIZATION }
  const answer = await fetch(`${url}/v3/${domain}/messages`, { method: 'POST', headers, body })
  assert.equal(answer.status, 200, await answer.text())
}

/** From the connection to QUIT. */
async function sendOverSmtp(host: string, domain: string, login: string): Promise<void> {
  const client = await Dialogue.open({ host, port: 2525 })
  try {
    const expect = async (status: string, reply: Promise<string | null>) => {
      const got = await reply
      assert.ok(got?.startsWith(status), `${status} expected: ${got}`)
    }
    await expect('220', client.reply())
    await expect('250', client.say('EHLO good.example'))
    const plain = Buffer.from(`\0${login}\0${PASSWORD}`).toString('base64')
    await expect('235', client.say(`AUTH PLAIN ${plain}`))
    await expect('250', client.say(`MAIL FROM:<a@${domain}>`))
    await expect('250', client.say('RCPT TO:<b@example.org>'))
    await expect('354', client.say('DATA'))
    await expect('250', client.say(`From: a@${domain}\r\nTo: b@example.org\r\nSubject: Hi\r\n\r\nHi.\r\n.`))
    await expect('221', client.say('QUIT'))
  } finally {
    client.destroy()
  }
}

interface Measured {
  latenciesMs: number[]
  failed: number
  failure: string
}

/** One call after the other, with pauses. */
async function repeat(call: () => Promise<void>, seconds: number): Promise<Measured> {
  const measured: Measured = { latenciesMs: [], failed: 0, failure: '' }
  const until = performance.now() + seconds * 1_000
  while (performance.now() < until) {
    const startedAt = performance.now()
    try {
      await call()
    } catch (error) {
      measured.failed += 1
      measured.failure = String(error)
    }
    measured.latenciesMs.push(performance.now() - startedAt)
    await sleep(GOOD_PAUSE_MS)
  }
  return measured
}

function p99(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.ceil(values.length * 0.99) - 1] ?? Number.NaN
}

/** More connections than one address may have; resolves how many of them were refused with a response. */
async function tryGreedily(host: string): Promise<[http: number, smtp: number]> {
  const refused: number[] = []
  for (const [port, count, max] of [
    [8080, GREEDY.http, GREEDY.httpMax],
    [2525, GREEDY.smtp, GREEDY.smtpMax],
  ] as const) {
    const sockets: Socket[] = []
    const answers: Promise<string>[] = []
    for (let at = 0; at < count; at++) {
      const socket = createConnection({ host, port, localAddress: GREEDY.address })
      socket.on('error', () => {})
      sockets.push(socket)
      await once(socket, 'connect')
      if (at >= max) answers.push(text(socket))
    }
    const wanted = port === 2525 ? /^421 / : /^HTTP\/1\.1 503 /
    refused.push((await Promise.all(answers)).filter((answer) => wanted.test(answer)).length)
    for (const socket of sockets) socket.destroy()
  }
  return refused as [number, number]
}
