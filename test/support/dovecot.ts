/**
 * A Dovecot of the system (packages dovecot-imapd, dovecot-lmtpd and dovecot-sieve) in a folder of its own: mailboxes read by
 * IMAP, filled by LMTP (RFC 2033), with a Sieve script each (RFC 5228). Fails with the packages' names where it is missing.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { HANG_MS } from './hang.ts'

export interface Dovecot {
  host: string
  imapPort: number
  /** TLS from the first byte; open if a certificate was given. */
  imapsPort: number
  password: string
  /** Delivers a message to a user, as the receiving server behind an MX would. @throws Error unless it is taken */
  deliver(user: string, message: string | Buffer): Promise<void>
  close(): Promise<void>
}

export interface DovecotUser {
  name: string
  /** Sieve script; default: keep in the inbox. */
  sieve?: string
}

const COMMAND = '/usr/sbin/dovecot'
const IMAP_PORT = 10_143
const IMAPS_PORT = 10_993
const LMTP_PORT = 10_024
/** Of the account that mail belongs to where the tests run as root: Dovecot refuses to use 0. */
const NOBODY = 65_534

/** `certificate`: IMAP has STARTTLS, and a port for TLS. */
export async function startDovecot(
  host: string,
  users: readonly DovecotUser[],
  certificate?: { cert: string; key: string },
): Promise<Dovecot> {
  if (spawnSync(COMMAND, ['--version']).status !== 0)
    throw new Error('Dovecot is needed: install dovecot-imapd, dovecot-lmtpd and dovecot-sieve')
  const isRoot = process.getuid?.() === 0
  // The folder of the tests is closed to other users.
  const folder = await mkdtemp(join(isRoot ? '/tmp' : tmpdir(), 'sendwright-dovecot-'))
  const [uid, gid] = isRoot ? [NOBODY, NOBODY] : [process.getuid?.() ?? 0, process.getgid?.() ?? 0]
  const mail = join(folder, 'mail')
  const sieve = join(folder, 'sieve')
  await chmod(folder, 0o755)
  for (const path of [mail, sieve]) {
    await mkdir(path)
    await chown(path, uid, gid)
  }
  for (const user of users) {
    const script = join(sieve, `${user.name}.sieve`)
    await writeFile(script, user.sieve ?? 'keep;\n')
    await chown(script, uid, gid)
  }
  const password = 'secret-of-the-seeds'
  await writeFile(join(folder, 'users'), users.map(({ name }) => `${name}:{PLAIN}${password}\n`).join(''))
  if (certificate) {
    await writeFile(join(folder, 'cert.pem'), certificate.cert)
    await writeFile(join(folder, 'key.pem'), certificate.key, { mode: 0o600 })
  }
  const file = join(folder, 'dovecot.conf')
  await writeFile(file, configuration({ folder, host, uid, gid, isRoot, hasTls: certificate !== undefined }))
  const child = spawn(COMMAND, ['-F', '-c', file], { stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr?.on('data', (bytes: Buffer) => {
    errors = (errors + bytes.toString()).slice(-10_000)
  })
  const close = async () => {
    await end(child)
    await rm(folder, { recursive: true, force: true, maxRetries: 10 })
  }
  try {
    for (const port of [IMAP_PORT, LMTP_PORT, ...(certificate ? [IMAPS_PORT] : [])])
      await untilOpen(host, port, child, () => errors)
  } catch (error) {
    await close()
    throw error
  }
  return {
    host,
    imapPort: IMAP_PORT,
    imapsPort: IMAPS_PORT,
    password,
    deliver: (user, message) => deliver(host, user, message),
    close,
  }
}

function configuration(at: {
  folder: string
  host: string
  uid: number
  gid: number
  isRoot: boolean
  hasTls: boolean
}): string {
  const { folder, host, uid, gid, isRoot, hasTls } = at
  const { username } = userInfo()
  const group = spawnSync('id', ['-gn'], { encoding: 'utf8' }).stdout.trim()
  const own = `default_internal_user = ${username}\ndefault_login_user = ${username}\ndefault_internal_group = ${group}`
  return `
base_dir = ${folder}/run
state_dir = ${folder}/state
log_path = ${folder}/log
protocols = imap lmtp
listen = ${host}
${hasTls ? `ssl = yes\nssl_cert = <${folder}/cert.pem\nssl_key = <${folder}/key.pem` : 'ssl = no'}
disable_plaintext_auth = no
auth_mechanisms = plain login
mail_location = maildir:${folder}/mail/%n
first_valid_uid = 1
${isRoot ? '' : own}
service anvil {
  chroot =
}
service imap-login {
  chroot =
  inet_listener imap {
    address = ${host}
    port = ${IMAP_PORT}
  }
  inet_listener imaps {
    address = ${host}
    port = ${hasTls ? IMAPS_PORT : 0}
    ssl = yes
  }
}
service lmtp {
  inet_listener lmtp {
    address = ${host}
    port = ${LMTP_PORT}
  }
}
passdb {
  driver = passwd-file
  args = username_format=%n ${folder}/users
}
userdb {
  driver = static
  args = uid=${uid} gid=${gid} home=${folder}/mail/%n
}
namespace inbox {
  inbox = yes
  mailbox Junk {
    auto = create
    special_use = \\Junk
  }
}
protocol lmtp {
  mail_plugins = sieve
  postmaster_address = postmaster@localhost
}
plugin {
  sieve = file:${folder}/sieve/%n.sieve
}
`
}

async function untilOpen(
  host: string,
  port: number,
  child: ChildProcess,
  errors: () => string,
): Promise<void> {
  const until = performance.now() + HANG_MS
  for (;;) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect({ host, port })
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
      socket.once('close', () => socket.destroy())
      socket.unref()
      socket.once('connect', () => socket.end())
    })
    if (isOpen) return
    if (child.exitCode !== null || performance.now() > until)
      throw new Error(`Dovecot did not start:\n${errors()}`)
    await sleep(20)
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}

/** One transaction of LMTP. */
async function deliver(host: string, user: string, message: string | Buffer): Promise<void> {
  const socket = connect({ host, port: LMTP_PORT })
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]()
  const reply = async (expected: string, command: string) => {
    for (;;) {
      const next = await lines.next()
      const line = next.done ? 'closed' : next.value
      if (/^\d{3}-/.test(line)) continue
      if (!line.startsWith(expected)) throw new Error(`LMTP ${command}: ${line}`)
      return
    }
  }
  const send = async (command: string, expected: string) => {
    socket.write(`${command}\r\n`)
    await reply(expected, command)
  }
  try {
    await reply('220', 'greeting')
    await send('LHLO test.example', '250')
    await send('MAIL FROM:<>', '250')
    await send(`RCPT TO:<${user}@seeds.example>`, '250')
    await send('DATA', '354')
    const text = message.toString('latin1').replace(/\r?\n/g, '\r\n').replace(/^\./gm, '..')
    socket.write(Buffer.from(`${text}\r\n.\r\n`, 'latin1'))
    await reply('250', 'message')
    socket.write('QUIT\r\n')
  } finally {
    socket.destroy()
  }
}
