/**
 * A service with 512 MB of memory, as the kernel counts it: twenty messages of 18 MB at once over HTTP, then over SMTP,
 * delivered meanwhile to a relay, or to the built-in inbox. None may be lost, all get a response, and the service survives.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTransport } from 'nodemailer'
import { SMTPServer } from 'smtp-server'
import type { DrillReport } from '../../scripts/drill.ts'
import { makeMemoryGroup } from '../support/memory-group.ts'
import { serviceFlags } from '../support/node-flags.ts'
import { residentBytes } from '../support/process-memory.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'

export const title = 'Twenty messages of 18 MB at once with 512 MB of memory'

const MB = 1_048_576
const LIMIT_MB = 512
const AT_ONCE = 20
const FILE = randomBytes(18_000_000)
const WAIT_MAX_MS = 240_000
const SAMPLE_EVERY_MS = 20

export async function run(report: DrillReport): Promise<void> {
  await toRelay(report)
  await toInbox(report)
}

async function toRelay(report: DrillReport): Promise<void> {
  const relay = await startRelay()
  try {
    await withService(
      { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${relay.port}` },
      report,
      async (service, measured) => {
        for (const [way, send] of [
          ['HTTP', overHttp],
          ['SMTP', await overSmtp(service)],
        ] as const) {
          const accepted = await burst(way, service, send, measured)
          await until(`mail sent over ${way} at the relay`, () =>
            accepted.every((name) => relay.names.has(name)),
          )
          report.figure(`over ${way}: accepted and at the relay`, accepted.length, `of ${AT_ONCE}`)
        }
      },
    )
  } finally {
    await relay.close()
  }
}

async function toInbox(report: DrillReport): Promise<void> {
  await withService({}, report, async (service, measured) => {
    const accepted = await burst('HTTP', service, overHttp, measured)
    await until('mail in the inbox', async () => {
      const answer = await fetch(`${service.url}/sendwright/v1/inbox?limit=100`, {
        headers: { authorization: AUTHORIZATION },
      })
      const text = await answer.text()
      return accepted.every((name) => text.includes(name))
    })
    report.figure('to the inbox: accepted and there', accepted.length, `of ${AT_ONCE}`)
  })
}

type Measured = (what: string, run: () => Promise<void>) => Promise<void>

async function withService(
  env: Record<string, string>,
  report: DrillReport,
  run: (service: ServiceProcess, measured: Measured) => Promise<void>,
): Promise<void> {
  const group = makeMemoryGroup(LIMIT_MB * MB)
  if (group === null) throw new Error('this needs control groups, and root')
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const settings = { SENDWRIGHT_DATA: folder, ...env }
  const service = await startProcess(ownAddress(), settings, {
    flags: serviceFlags(),
    memoryGroup: group.folder,
  }).catch((error: unknown) => {
    group.remove()
    throw error
  })
  try {
    await run(service, async (what, work) => {
      const peak = peakOf(service.child.pid as number)
      const startedAt = performance.now()
      await work().finally(async () => report.figure(`${what}: peak RSS`, (await peak.stop()) / MB, 'MB'))
      report.figure(`${what}: took`, (performance.now() - startedAt) / 1_000, 's')
    })
    assert.equal(service.child.signalCode, null, 'it lives')
    assert.equal(group.kills(), 0)
  } catch (error) {
    report.note(service.output().slice(-2_000))
    throw error
  } finally {
    report.figure('killed for want of memory', group.kills())
    await service.end('SIGTERM')
    group.remove()
    await rm(folder, { recursive: true, force: true })
  }
}

type Send = (service: ServiceProcess, name: string) => Promise<'accepted' | 'refused'>

/** Sends all at once, and repeats those that are refused, until all are accepted; resolves their names. */
async function burst(
  way: string,
  service: ServiceProcess,
  send: Send,
  measured: Measured,
): Promise<string[]> {
  const names = Array.from(
    { length: AT_ONCE },
    (_, n) => `${way.toLowerCase()}-${n}-${randomBytes(4).toString('hex')}`,
  )
  await measured(way, async () => {
    const end = performance.now() + WAIT_MAX_MS
    await Promise.all(
      names.map(async (name) => {
        while ((await send(service, name)) === 'refused') {
          assert.ok(performance.now() < end, 'it is refused for ever')
          await sleep(1_000)
        }
      }),
    )
  })
  return names
}

const overHttp: Send = async (service, name) => {
  const form = new FormData()
  form.append('from', `sender@${service.domain}`)
  form.append('to', `${name}@example.org`)
  form.append('subject', name)
  form.append('text', 'Here it is.')
  form.append('attachment', new Blob([FILE]), 'file.bin')
  const answer = await fetch(`${service.url}/v3/${service.domain}/messages`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body: form,
  })
  const text = await answer.text()
  if (answer.status === 200) return 'accepted'
  assert.equal(answer.status, 503, text)
  assert.ok(Number(answer.headers.get('retry-after')) > 0, 'it says when to come again')
  return 'refused'
}

async function overSmtp(service: ServiceProcess): Promise<Send> {
  const login = { user: `sender@${service.domain}`, pass: 'drill-password-0123456789' }
  const answer = await fetch(`${service.url}/v3/domains/${service.domain}/credentials`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body: new URLSearchParams({ login: login.user, password: login.pass }),
  })
  assert.equal(answer.status, 200, await answer.text())
  const { hostname: host } = new URL(service.url)
  return async (_service, name) => {
    const transport = createTransport({
      host,
      port: 2525,
      auth: login,
      ignoreTLS: true,
      socketTimeout: WAIT_MAX_MS,
    })
    const message = {
      ...{ from: login.user, to: `${name}@example.org`, subject: name, text: 'Here it is.' },
      attachments: [{ filename: 'file.bin', content: FILE }],
    }
    try {
      await transport.sendMail(message)
      return 'accepted'
    } catch (error) {
      const { responseCode } = error as { responseCode?: number }
      assert.ok([421, 451, 452].includes(responseCode ?? 0), String(error))
      return 'refused'
    } finally {
      transport.close()
    }
  }
}

/** The highest sampled resident set from now on. */
function peakOf(pid: number): { stop(): Promise<number> } {
  let peak = 0
  let stopped = false
  const sampling = (async () => {
    while (!stopped) {
      peak = Math.max(peak, await residentBytes(pid).catch(() => 0))
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

async function until(what: string, condition: () => Promise<boolean> | boolean): Promise<void> {
  const end = performance.now() + WAIT_MAX_MS
  while (!(await condition())) {
    assert.ok(performance.now() < end, `${what}: not in ${WAIT_MAX_MS} ms`)
    await sleep(200)
  }
}

interface Relay {
  port: number
  /** Local parts of the recipients of complete messages. */
  names: Set<string>
  close(): Promise<void>
}

/** Stores nothing that it accepts. */
async function startRelay(): Promise<Relay> {
  const names = new Set<string>()
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    size: 50 * MB,
    onData(stream, session, done) {
      let bytes = 0
      stream.on('data', (chunk: Buffer) => {
        bytes += chunk.byteLength
      })
      stream.on('end', () => {
        for (const { address } of session.envelope.rcptTo)
          if (bytes > (FILE.byteLength * 4) / 3) names.add(address.split('@')[0] as string)
        done()
      })
    },
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.server.address() as AddressInfo).port,
    names,
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}
