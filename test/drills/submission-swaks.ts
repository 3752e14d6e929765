/** swaks (Debian: swaks, libnet-ssleay-perl), an independent client, submits in every way that it supports. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DrillReport } from '../../scripts/drill.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, startProcess } from '../support/service-process.ts'

export const title =
  'Submission: swaks logs in over STARTTLS, TLS and in plain text, and is refused where it must be'

const PASSWORD = 'correct-horse'
const CASES: [name: string, args: string[], expected: RegExp][] = [
  ['AUTH PLAIN over STARTTLS', ['--tls', '-a', 'PLAIN'], /250 2\.0\.0 Queued </],
  ['AUTH LOGIN over STARTTLS', ['--tls', '-a', 'LOGIN'], /250 2\.0\.0 Queued </],
  ['TLS from the first byte', ['--tls-on-connect', '-p', '4650'], /250 2\.0\.0 Queued </],
  ['an attachment of 1 MB', ['--tls', '--attach', '@LARGE'], /250 2\.0\.0 Queued </],
  ['pipelined', ['--tls', '--pipeline'], /250 2\.0\.0 Queued </],
  ['option headers', ['--tls', '--header', 'X-Mailgun-Drop-Message: yes'], /250 2\.0\.0 Queued </],
  [
    'a bad option',
    ['--tls', '--header', 'X-Mailgun-Deliver-By: soon'],
    /554 5\.6\.0 soon is not an RFC-2822/,
  ],
  ['a wrong password', ['--tls', '-ap', 'wrong'], /535 5\.7\.8 Authentication failed/],
  ['no TLS', [], /Host did not advertise authentication/],
  ['no login', ['--tls', '-NOAUTH'], /550 5\.7\.1 Relaying denied/],
]

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const host = ownAddress()
  const service = await startProcess(host, {
    SENDWRIGHT_DATA: join(folder, 'data'),
    SENDWRIGHT_SMTPS_PORT: '4650',
    SENDWRIGHT_SMTP_AUTH_WITHOUT_TLS: 'no',
  })
  try {
    const login = `postmaster@${service.domain}`
    const answer = await fetch(`${service.url}/v3/domains/${service.domain}/credentials/postmaster`, {
      method: 'PUT',
      headers: { authorization: AUTHORIZATION },
      body: new URLSearchParams({ password: PASSWORD }),
    })
    assert.equal(answer.status, 200)
    const large = join(folder, 'large.txt')
    await writeFile(large, `${'x'.repeat(76)}\n`.repeat(14_000))
    for (const [name, args, expected] of CASES) {
      const auth = args.includes('-NOAUTH')
        ? []
        : ['-au', login, ...(args.includes('-ap') ? [] : ['-ap', PASSWORD])]
      const own = args.filter((arg) => arg !== '-NOAUTH').map((arg) => arg.replace('LARGE', large))
      const port = args.includes('-p') ? [] : ['-p', '2525']
      const common = ['-s', host, '-t', 'alice@example.org', '-f', `shop@${service.domain}`]
      const output = await swaks([...common, ...port, ...auth, ...own])
      assert.match(output, expected, name)
      report.figure(name, 'as it should be')
    }
  } finally {
    await service.end('SIGTERM')
    await rm(folder, { recursive: true, force: true })
  }
}

/** Its output, whatever its exit code. */
function swaks(args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('swaks', args, { timeout: 60_000, maxBuffer: 16 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error?.code === 'ENOENT') reject(error)
      else resolve(`${stdout}${stderr}`)
    })
  })
}
