/**
 * Postfix, alone and with OpenDKIM as milter, from the system's packages. Each is a separate instance with its own
 * configuration, queue and data folder, on loopback only, relaying everything to the sink, or posting it there, without
 * DNS, the rest as installed. Postfix writes no log here, which is in its favour.
 */
import { spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type KeptProcess, startKept } from './kept-process.ts'
import { type Rig, until } from './rig.ts'
import { freePort } from './service.ts'

export interface Postfix {
  port: number
  /** Process ids of Postfix's master, and of OpenDKIM if it signs. */
  roots: number[]
  stop(): Promise<void>
}

export const PEER_DOMAIN = 'peer.bench.example'
export const PEER_SENDER = `sender@${PEER_DOMAIN}`

const INSTALL = 'apt-get install -y --no-install-recommends postfix opendkim'
const START_LIMIT_MS = 30_000
/** Debian's path. */
const MASTER_PROGRAM = '/usr/lib/postfix/sbin/master'
const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' }

// As in Debian's master.cf, but without chroot, so that the daemons find their libraries and the sink.
const MASTER = (port: number) => `
127.0.0.1:${port} inet n - n - - smtpd
pickup    unix  n - n 60    1 pickup
cleanup   unix  n - n -     0 cleanup
qmgr      unix  n - n 300   1 qmgr
tlsmgr    unix  - - n 1000? 1 tlsmgr
rewrite   unix  - - n -     - trivial-rewrite
bounce    unix  - - n -     0 bounce
defer     unix  - - n -     0 bounce
trace     unix  - - n -     0 bounce
verify    unix  - - n -     1 verify
flush     unix  n - n 1000? 0 flush
proxymap  unix  - - n -     - proxymap
smtp      unix  - - n -     - smtp
relay     unix  - - n -     - smtp
showq     unix  n - n -     - showq
error     unix  - - n -     - error
retry     unix  - - n -     - error
discard   unix  - - n -     - discard
local     unix  - n n -     - local
anvil     unix  - - n -     1 anvil
scache    unix  - - n -     1 scache
`

/** Gives each message to a program that posts it, as any user who wants that with Postfix does. */
const POST_TRANSPORT = (url: string) => `
post      unix  - n n -     - pipe
  user=nobody argv=/usr/bin/curl --silent --show-error --fail --output /dev/null
  --header Content-Type:message/rfc822 --data-binary @- ${url}
`

/** Installs what is missing, as root, from the system's packages. @throws with instructions when it cannot */
export function ensurePeers(): void {
  if (peersInstalled()) return
  const apt = (...args: string[]) =>
    spawnSync('apt-get', args, {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      encoding: 'utf8',
      timeout: 10 * 60_000,
    })
  if (process.getuid?.() === 0) {
    const update = apt('update', '-qq')
    const install = apt('install', '-y', '--no-install-recommends', 'postfix', 'opendkim')
    if (peersInstalled()) return
    console.error(`${update.stderr ?? ''}\n${install.stderr ?? ''}`.slice(-2_000))
  }
  throw new Error(`Postfix and OpenDKIM are not installed; as root: ${INSTALL}`)
}

const peersInstalled = () => existsSync(MASTER_PROGRAM) && existsSync('/usr/sbin/opendkim')

export function peerVersions(): Record<string, string> {
  if (!peersInstalled()) return { postfix: 'not installed', opendkim: 'not installed' }
  const run = (command: string, ...args: string[]) => {
    const { stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', env: ENVIRONMENT })
    return `${stdout}${stderr}`
  }
  return {
    postfix: run('/usr/sbin/postconf', '-d', '-h', 'mail_version').trim(),
    opendkim: /Filter v(\S+)/.exec(run('/usr/sbin/opendkim', '-V'))?.[1] ?? 'unknown',
  }
}

let started = 0

export async function startPostfix(
  rig: Rig,
  target: { sinkPort: number; signed: boolean } | { postTo: string },
): Promise<Postfix> {
  if (process.getuid?.() !== 0) throw new Error('Postfix runs only for root; start the bench as root')
  const folder = join(rig.folder, `postfix-${++started}`)
  const [config, queue, data] = ['config', 'queue', 'data'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  for (const path of [config, queue, data]) mkdirSync(path, { recursive: true })
  const { uid, gid } = accountOf('postfix')
  chownSync(data, uid, gid)
  const milter = 'signed' in target && target.signed ? await startOpendkim(rig, folder) : null
  const port = await freePort()
  const transport = 'postTo' in target ? POST_TRANSPORT(target.postTo) : ''
  writeFileSync(join(config, 'master.cf'), MASTER(port) + transport)
  const next: Record<string, string> =
    'postTo' in target
      ? { default_transport: 'post' }
      : { relayhost: `[127.0.0.1]:${target.sinkPort}`, smtp_dns_support_level: 'disabled' }
  writeFileSync(join(config, 'main.cf'), mainCf({ queue, data, next, milter: milter?.port ?? null }))
  // Creates the queue's folders. The master is started separately, because it must end with us.
  const check = spawnSync('/usr/sbin/postfix', ['-c', config, 'check'], {
    env: ENVIRONMENT,
    encoding: 'utf8',
    timeout: START_LIMIT_MS,
  })
  if (check.status !== 0) throw new Error(`Postfix refuses its configuration:\n${check.stderr}`)
  const kept = await startKept([MASTER_PROGRAM, '-c', config, '-s'], {
    cwd: folder,
    env: { ...ENVIRONMENT, MAIL_CONFIG: config },
    outputFile: join(folder, 'output'),
  })
  const stop = async () => {
    await kept.end('SIGTERM')
    await milter?.process.end('SIGTERM')
  }
  rig.defer('Postfix', stop)
  await untilListening('Postfix', port, kept)
  return { port, roots: [kept.pid, ...(milter ? [milter.process.pid] : [])], stop }
}

function mainCf(parts: {
  queue: string
  data: string
  /** Settings that say where everything goes. */
  next: Readonly<Record<string, string>>
  milter: number | null
}): string {
  const settings: Record<string, string> = {
    compatibility_level: '3.6',
    queue_directory: parts.queue,
    data_directory: parts.data,
    myhostname: 'mail.bench.example',
    mydestination: '',
    inet_interfaces: '127.0.0.1',
    inet_protocols: 'ipv4',
    mynetworks: '127.0.0.0/8',
    smtpd_relay_restrictions: 'permit_mynetworks, reject',
    smtpd_peername_lookup: 'no',
    ...parts.next,
    alias_maps: '',
    alias_database: '',
    ...(parts.milter !== null && {
      smtpd_milters: `inet:127.0.0.1:${parts.milter}`,
      milter_default_action: 'tempfail',
    }),
  }
  return Object.entries(settings)
    .map(([name, value]) => `${name} = ${value}\n`)
    .join('')
}

async function startOpendkim(rig: Rig, folder: string): Promise<{ port: number; process: KeptProcess }> {
  const port = await freePort()
  const keyFile = join(folder, 'dkim.pem')
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  writeFileSync(keyFile, privateKey.export({ type: 'pkcs1', format: 'pem' }))
  chmodSync(keyFile, 0o600)
  const configFile = join(folder, 'opendkim.conf')
  writeFileSync(
    configFile,
    [
      'Mode s',
      `Domain ${PEER_DOMAIN}`,
      'Selector k1',
      `KeyFile ${keyFile}`,
      'Canonicalization relaxed/relaxed',
      'SignatureAlgorithm rsa-sha256',
      'OversignHeaders From',
      `Socket inet:${port}@127.0.0.1`,
      'Background no',
      'Syslog no',
      'RequireSafeKeys no', // /tmp is world-writable; the folder below it belongs to us alone
      `PidFile ${join(folder, 'opendkim.pid')}`,
      '',
    ].join('\n'),
  )
  const kept = await startKept(['/usr/sbin/opendkim', '-f', '-x', configFile], {
    cwd: folder,
    env: ENVIRONMENT,
    outputFile: join(folder, 'opendkim.output'),
  })
  rig.defer('OpenDKIM', () => kept.end('SIGTERM'))
  await untilListening('OpenDKIM', port, kept)
  return { port, process: kept }
}

const untilListening = (what: string, port: number, kept: KeptProcess) =>
  until(`start of ${what}`, START_LIMIT_MS, () => {
    if (!kept.isRunning()) throw new Error(`${what} ended at its start:\n${kept.output()}`)
    return new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1')
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
  })

function accountOf(name: string): { uid: number; gid: number } {
  const fields = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find((line) => line[0] === name)
  if (!fields) throw new Error(`There is no user "${name}"; install Postfix: ${INSTALL}`)
  return { uid: Number(fields[2]), gid: Number(fields[3]) }
}
