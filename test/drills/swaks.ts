/**
 * A real SMTP client, swaks, submits mail: with a login over STARTTLS, and in ways that are refused. swaks must be
 * on the PATH (Debian: `swaks`).
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DrillReport } from '../../scripts/drill.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

export const title = 'swaks submits with AUTH over STARTTLS, and is refused as the contract says'

const PASSWORD = 'long enough'
const TIMEOUT_MS = 30_000

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const sink = await createSink()
  const host = ownAddress()
  try {
    const service = await startProcess(host, {
      SENDWRIGHT_DATA: folder,
      SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}`,
      SENDWRIGHT_SMTP_AUTH_WITHOUT_TLS: 'no',
    })
    await talk(service, `${host}:2525`, sink, report).finally(() => service.end('SIGTERM'))
  } finally {
    await sink.close()
    await rm(folder, { recursive: true, force: true })
  }
}

async function talk(service: ServiceProcess, server: string, sink: Sink, report: DrillReport): Promise<void> {
  const made = await fetch(`${service.url}/v3/domains/${service.domain}/credentials`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body: new URLSearchParams({ login: 'app', password: PASSWORD }),
  })
  assert.equal(made.status, 200, await made.text())
  const login = ['--auth-user', `app@${service.domain}`]
  const auth = [...login, '--auth-password', PASSWORD]
  const cases: [what: string, options: string[], reply: RegExp][] = [
    ['AUTH PLAIN over STARTTLS', ['--tls', '--auth', 'PLAIN', ...auth], /^<~\s+250 2\.0\.0 Queued <.+>$/m],
    ['AUTH LOGIN over STARTTLS', ['--tls', '--auth', 'LOGIN', ...auth], /^<~\s+250 2\.0\.0 Queued <.+>$/m],
    [
      'wrong password',
      ['--tls', '--auth', 'PLAIN', ...login, '--auth-password', 'wrong'],
      /^<~\*\s+535 5\.7\.8 Authentication failed$/m,
    ],
    [
      'login of another domain',
      ['--tls', '--auth', 'PLAIN', '--auth-user', 'app@other.example', '--auth-password', PASSWORD],
      /^<~\*\s+535 5\.7\.8 Authentication failed$/m,
    ],
    [
      'no TLS: no login offered',
      ['--auth', 'PLAIN', ...auth],
      /^\*\*\* Host did not advertise authentication$/m,
    ],
    ['no login', ['--tls'], /^<~\*\*?\s+550 5\.7\.1 Relaying denied$/m],
  ]
  for (const [what, options, reply] of cases) {
    const output = await swaks([
      '--server',
      server,
      '--from',
      `app@${service.domain}`,
      '--to',
      'ann@example.org',
      '--header',
      'X-Mailgun-Tag: by swaks',
      ...options,
    ])
    assert.match(output, reply)
    report.figure(what, reply.exec(output)?.[0] ?? '')
  }
  const messages = await sink.waitFor(2)
  assert.equal(messages.length, 2)
  for (const { raw } of messages) {
    assert.match(raw.toString(), /^X-Service-Tag: by swaks\r$/m)
    assert.match(raw.toString(), /^DKIM-Signature:/m)
  }
  report.figure('delivered', messages.length, 'messages')
}

/** The dialogue, whatever its result. */
function swaks(options: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('swaks', options, { timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
      if (error && typeof error.code !== 'number') reject(error)
      else resolve(stdout + stderr)
    })
  })
}
