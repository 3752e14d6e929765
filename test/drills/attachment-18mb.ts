/**
 * An attachment of 18 MB, 24.6 MB as built: sent once, then 20 at once, to an independent server that compares every
 * byte. The service streams it from the request to the disk and from there to the server, so its memory hardly
 * grows.
 */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SMTPServer } from 'smtp-server'
import type { DrillReport } from '../../scripts/drill.ts'
import { residentBytes, residentPeakBytes } from '../support/process-memory.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'

export const title = 'An 18 MB attachment: memory for one, and for 20 at once'

const FILE = randomBytes(18_000_000)
const AT_ONCE = 20
const MB = 1_048_576
const ONE_MAX_MB = 60
const MANY_MAX_MB = 300
const SAMPLE_EVERY_MS = 20
const WAIT_MAX_MS = 180_000

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const receiver = await startReceiver()
  try {
    const service = await startProcess(ownAddress(), {
      SENDWRIGHT_DATA: folder,
      SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${receiver.port}`,
    })
    await measure(service, receiver, report).finally(() => service.end('SIGTERM'))
  } finally {
    await receiver.close()
    await rm(folder, { recursive: true, force: true })
  }
}

async function measure(service: ServiceProcess, receiver: Receiver, report: DrillReport): Promise<void> {
  // One-time costs of a first message: compiled code, a connection, the signing key.
  await send(service, 'warm@example.org', Buffer.from('small'))
  await receiver.until(1)
  await sleep(1_000)
  const pid = service.child.pid as number
  const idle = await residentBytes(pid)
  report.figure('idle', idle / MB, 'MB')
  for (const [count, max] of [
    [1, ONE_MAX_MB],
    [AT_ONCE, MANY_MAX_MB],
  ] as const) {
    const before = receiver.hashes.length
    const startedAt = performance.now()
    const peak = peakOf(pid)
    await Promise.all(Array.from({ length: count }, (_, n) => send(service, `r${n}@example.org`, FILE)))
    report.figure(`${count} accepted`, performance.now() - startedAt, 'ms')
    await receiver.until(before + count)
    report.figure(`${count} delivered`, performance.now() - startedAt, 'ms')
    const grownMb = ((await peak.stop()) - idle) / MB
    report.figure(`growth with ${count}`, grownMb, 'MB')
    const sent = receiver.hashes.slice(before)
    assert.ok(
      sent.every((hash) => hash === FILE_HASH),
      'the attachment was changed in transit',
    )
    assert.ok(grownMb < max, `memory grew by ${grownMb} MB with ${count}, aim ${max}`)
  }
  report.figure('built message', receiver.largestBytes() / 1e6, 'MB')
  report.figure('highest RSS', (await residentPeakBytes(pid)) / MB, 'MB')
}

/** The highest sampled resident set from now on. */
function peakOf(pid: number): { stop(): Promise<number> } {
  let peak = 0
  let stopped = false
  const sampling = (async () => {
    while (!stopped) {
      peak = Math.max(peak, await residentBytes(pid))
      await sleep(SAMPLE_EVERY_MS)
    }
  })()
  return {
    async stop() {
      stopped = true
      await sampling
      return peak
    },
  }
}

async function send(service: ServiceProcess, to: string, file: Buffer): Promise<void> {
  const form = new FormData()
  form.append('from', `sender@${service.domain}`)
  form.append('to', to)
  form.append('subject', 'A file')
  form.append('text', 'Here it is.')
  form.append('attachment', new Blob([new Uint8Array(file)]), 'file.bin')
  const answer = await fetch(`${service.url}/v3/${service.domain}/messages`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body: form,
  })
  assert.equal(answer.status, 200, await answer.text())
}

interface Receiver {
  port: number
  /** SHA-256 of the attachment of each message. */
  hashes: string[]
  largestBytes(): number
  until(count: number): Promise<void>
  close(): Promise<void>
}

const FILE_HASH = createHash('sha256').update(FILE).digest('hex')

async function startReceiver(): Promise<Receiver> {
  const hashes: string[] = []
  let largest = 0
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    size: 50 * MB,
    onData(stream, _session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (bytes: Buffer) => chunks.push(bytes))
      stream.on('end', () => {
        const raw = Buffer.concat(chunks).toString('latin1')
        largest = Math.max(largest, raw.length)
        const start = raw.indexOf('\r\n\r\n', raw.lastIndexOf('Content-Disposition:'))
        const file = Buffer.from(raw.slice(start + 4, raw.indexOf('\r\n--', start + 4)), 'base64')
        hashes.push(createHash('sha256').update(file).digest('hex'))
        done()
      })
    },
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.server.address() as AddressInfo).port,
    hashes,
    largestBytes: () => largest,
    async until(count) {
      const end = performance.now() + WAIT_MAX_MS
      while (hashes.length < count) {
        if (performance.now() > end) throw new Error(`${hashes.length} of ${count} came in ${WAIT_MAX_MS} ms`)
        await sleep(SAMPLE_EVERY_MS)
      }
    },
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}
