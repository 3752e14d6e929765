/**
 * Debian's HAProxy in front of the service: `npm run interop -- haproxy`. Every listener gets PROXY headers of both versions,
 * and HAProxy's own checks of the servers run all the time.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import pino from 'pino'
import { selfSigned } from '../../support/certificates.ts'
import { startTestService, TEST_KEY } from '../../support/service.ts'
import { Dialogue, plainLogin } from '../../support/smtp-dialogue.ts'
import { temporaryFolder } from '../../support/stores.ts'

const BALANCER = '127.97.0.1'
const [ONE, TWO] = ['127.60.0.1', '127.60.0.2']
const PASSWORD = 'long enough'
const VERSIONS = ['send-proxy', 'send-proxy-v2', 'send-proxy-v2 proxy-v2-options crc32c'] as const
/** Enough for dozens of checks. */
const CHECKS_MS = 2_000

interface Listener {
  name: 'smtp' | 'smtps' | 'http' | 'https'
  port: number
}

/** Ports of the front ends: one for each listener and version. */
const frontPort = (listener: number, version: number) => 3000 + 10 * listener + version

function configuration(host: string, listeners: readonly Listener[]): string {
  const proxies = listeners.flatMap(({ name, port }, at) =>
    VERSIONS.map((version, which) => {
      const check = `check inter 100ms check-send-proxy${name === 'http' ? ' rise 1' : ''}`
      return `listen ${name}-${which}
  bind ${BALANCER}:${frontPort(at, which)}
  ${name === 'http' ? 'option httpchk GET /health/live' : ''}
  server one ${host}:${port} source ${BALANCER} ${version} ${check}`
    }),
  )
  return `defaults
  mode tcp
  timeout connect 5s
  timeout client 30s
  timeout server 30s
${proxies.join('\n')}
`
}

/** @throws when something is not as it must be */
export async function runBalancer(): Promise<void> {
  const ended: (() => unknown)[] = []
  const t = { after: (run: () => unknown) => void ended.unshift(run) } as Parameters<
    typeof startTestService
  >[0]
  try {
    await check(t)
  } finally {
    for (const run of ended) await run()
  }
}

async function check(t: Parameters<typeof startTestService>[0]): Promise<void> {
  const folder = await temporaryFolder(t)
  const { cert, key } = selfSigned(['mail.test.example'])
  const [certificateFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  await writeFile(certificateFile, cert)
  await writeFile(keyFile, key, { mode: 0o600 })
  const lines: Record<string, unknown>[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const service = await startTestService(
    t,
    {
      SENDWRIGHT_SMTP_PORT: '2525',
      SENDWRIGHT_SMTPS_PORT: '4650',
      SENDWRIGHT_HTTPS_PORT: '8443',
      SENDWRIGHT_TLS_CERT: certificateFile,
      SENDWRIGHT_TLS_KEY: keyFile,
      SENDWRIGHT_SMTP_AUTH_WITHOUT_TLS: 'yes',
      SENDWRIGHT_SMTP_PROXY_PROTOCOL: `${BALANCER}/32`,
      SENDWRIGHT_HTTP_PROXY_PROTOCOL: `${BALANCER}/32`,
    },
    { log, isExempt: () => false },
  )
  const listeners: Listener[] = [
    { name: 'smtp', port: 2525 },
    { name: 'smtps', port: 4650 },
    { name: 'http', port: 8080 },
    { name: 'https', port: 8443 },
  ]
  const credentials = `/v3/domains/${service.domain}/credentials`
  await service.call('POST', credentials, { form: { login: 'app', password: PASSWORD } })
  const form = { address: `${ONE}/32`, force: 'yes' }
  assert.equal((await service.call('POST', '/v2/ip_whitelist', { form })).status, 200)

  const file = join(folder, 'haproxy.cfg')
  await writeFile(file, configuration(service.config.host, listeners))
  const haproxy = spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', 'inherit', 'inherit'] })
  t.after(() => end(haproxy))
  await once(haproxy, 'spawn')
  await sleep(CHECKS_MS)

  for (const [at, { name }] of listeners.entries()) {
    for (const [which, version] of VERSIONS.entries()) {
      const to = { port: frontPort(at, which), isTls: name.endsWith('s') }
      const tried = name.startsWith('smtp')
        ? [await logIn(ONE, to, service.domain), await logIn(TWO, to, service.domain)]
        : [await status(ONE, to), await status(TWO, to)]
      assert.deepEqual(tried, name.startsWith('smtp') ? ['235', '535'] : [200, 403], `${name}, ${version}`)
      console.log(`${name}, ${version}: the service sees the client, not HAProxy`)
    }
  }
  const failed = lines.filter(({ msg }) => msg === 'SMTP login failed')
  assert.deepEqual(new Set(failed.map(({ remoteAddress }) => remoteAddress)), new Set([TWO]))
  assert.deepEqual(
    lines.filter(({ msg }) => String(msg).includes('of a balancer')),
    [],
    'the checks of HAProxy leave no line',
  )
}

interface To {
  port: number
  isTls: boolean
}

/** The code of the reply: only addresses that the account allows may log in. */
async function logIn(client: string, { port, isTls }: To, domain: string): Promise<string | undefined> {
  const plain = connect({ host: BALANCER, port, localAddress: client })
  await once(plain, 'connect')
  const socket = isTls ? connectTls({ socket: plain, rejectUnauthorized: false }) : plain
  const dialogue = new Dialogue(socket)
  await dialogue.reply()
  await dialogue.say('EHLO app.example')
  const reply = await dialogue.say(`AUTH PLAIN ${plainLogin(`app@${domain}`, PASSWORD)}`)
  dialogue.destroy()
  return reply?.slice(0, 3)
}

async function status(client: string, { port, isTls }: To): Promise<number | undefined> {
  const auth = `api:${TEST_KEY}`
  const options = { host: BALANCER, port, localAddress: client, path: '/v4/domains', auth, agent: false }
  const request = isTls ? httpsRequest({ ...options, rejectUnauthorized: false }) : httpRequest(options)
  const [response] = await once(request.end(), 'response')
  response.resume()
  return response.statusCode
}

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}
