/**
 * Real proxies between the service and the receiver: `npm run interop -- egress`. Those of HAProxy (as root: it binds to addresses of
 * others), microsocks and Dante that are installed send one mail each, over STARTTLS, and fail once.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { selfSigned } from '../../support/certificates.ts'
import { createInternet } from '../../support/internet.ts'
import { eventually, startTestService } from '../../support/service.ts'
import { temporaryFolder } from '../../support/stores.ts'

const HOST = '127.97.0.2'
const DOMAIN = 'site.example'

interface Proxy {
  program: string
  /** Address that it sends from. */
  ip: string
  url: string
  port: number
  /** Its arguments; `file` is the name of its configuration. */
  args(file: string): string[]
  configuration: string
  login?: string
}

const PROXIES: readonly Proxy[] = [
  {
    program: '/usr/sbin/haproxy',
    ip: '127.96.0.9',
    ...{ url: `haproxy://${HOST}:2600`, port: 2600 },
    args: (file) => ['-db', '-f', file],
    configuration: `listen egress
  mode tcp
  bind ${HOST}:2600 accept-proxy
  source 0.0.0.0 usesrc clientip
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  server target 0.0.0.0:0
`,
  },
  {
    program: '/usr/bin/microsocks',
    ip: '127.96.0.10',
    ...{ url: `socks5://sender:secret@${HOST}:1080`, port: 1080 },
    args: () => ['-i', HOST, '-p', '1080', '-b', '127.96.0.10', '-u', 'sender', '-P', 'secret'],
    configuration: '',
  },
  {
    program: '/usr/sbin/danted',
    ip: '127.0.0.1',
    ...{ url: `socks5://${HOST}:1081`, port: 1081 },
    args: (file) => ['-f', file, '-p', `${file}.pid`],
    configuration: `logoutput: stderr
internal: ${HOST} port = 1081
external: 127.0.0.1
socksmethod: none
clientmethod: none
user.privileged: root
user.unprivileged: nobody
client pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }
socks pass { from: 0.0.0.0/0 to: 0.0.0.0/0 command: connect }
`,
  },
]

/** @throws when something is not as it must be */
export async function runEgress(): Promise<void> {
  for (const proxy of PROXIES) {
    if (!isInstalled(proxy.program)) console.log(`left out: ${proxy.program} is not installed`)
    else await sendThrough(proxy)
  }
}

async function sendThrough(proxy: Proxy): Promise<void> {
  const { program, ip, url } = proxy
  const ended: (() => unknown)[] = []
  const t = { after: (run: () => unknown) => void ended.unshift(run) } as Parameters<
    typeof startTestService
  >[0]
  try {
    const internet = await createInternet(t)
    const sink = await internet.site([DOMAIN], { tls: selfSigned([`mx.${DOMAIN}`]) })
    const file = join(await temporaryFolder(t), 'proxy.conf')
    await writeFile(file, proxy.configuration)
    const child = spawn(program, proxy.args(file), { stdio: ['ignore', 'ignore', 'inherit'] })
    t.after(() => end(child))
    await untilOpen(proxy.port)
    const env = { ...internet.env, SENDWRIGHT_IPS: ip, SENDWRIGHT_EGRESS: `${ip}=${url}` }
    const service = await startTestService(t, { ...env, SENDWRIGHT_RETRY_SCHEDULE: '1s,1s' })
    const send = (to: string) => service.send({ to, 'o:skip-verification': 'yes' })
    await send(`a@${DOMAIN}`)
    const [message] = await sink.waitFor(1)
    assert.deepEqual([message?.remoteAddress, message?.tls], [ip, true])
    console.log(`${program}: the receiver sees ${ip}, over TLS`)

    internet.host('closed.example', 'mx.closed.example', '127.255.255.3')
    const { id } = (await send('a@closed.example')).body
    const path = `/sendwright/v1/messages/${encodeURIComponent(id)}/deliveries`
    const item = await eventually('one attempt', async () => {
      const [found] = (await service.call('GET', path)).body.items
      return found.attempts > 0 ? found : null
    })
    console.log(`${program}, a server that is closed: ${item.reason.sentence}`)
  } finally {
    for (const run of ended) await run()
  }
}

function isInstalled(program: string): boolean {
  try {
    accessSync(program, constants.X_OK)
    return true
  } catch {
    return false
  }
}

async function untilOpen(port: number): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const socket = connect(port, HOST)
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isOpen) return
    await sleep(100)
  }
  throw new Error(`nothing listens on port ${port}`)
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}
