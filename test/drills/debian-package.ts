/**
 * The Debian package in a fresh Debian 12 below a temporary folder: installed with its dependencies, started as its unit
 * says, upgraded beside a live queue, removed and purged. Needs root, dpkg-deb, debootstrap, and Debian's packages.
 */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { copyFile, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import type { DrillReport } from '../../scripts/drill.ts'
import { makeRelease } from '../../scripts/release/release.ts'
import { eventually, ownAddress } from '../support/service.ts'

export const title =
  'Debian package: install, send, upgrade beside a live queue, remove and purge in a fresh Debian 12'

const exec = promisify(execFile)
const KEY = 'a-key-of-the-drill-123456'
const SCHEDULED = 20
const PROGRAM = '/usr/lib/sendwright/bin/sendwright'
const UNIT = 'usr/lib/systemd/system/sendwright.service'

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const root = join(folder, 'debian')
  const running: { stop(): Promise<void> }[] = []
  const inside = async (...command: string[]) => {
    const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' }
    return (await exec('chroot', [root, ...command], { env, maxBuffer: 64e6 })).stdout
  }
  try {
    report.note('making two versions of the package')
    const make = async (version: string) => {
      const [file] = await makeRelease({
        ...{ root: resolve(import.meta.dirname, '../..'), folder, kinds: ['deb'], version, quick: true },
        processor: process.arch === 'arm64' ? 'arm64' : 'x64',
      })
      return file as string
    }
    const [older, newer] = [await make('0.0.1'), await make('0.0.2')]
    report.figure('size of the package', Math.round((await stat(newer)).size / 1e6), 'MB, quickly compressed')
    report.note('making a fresh Debian 12')
    await exec('debootstrap', ['--variant=minbase', 'bookworm', root], { maxBuffer: 64e6 })
    await exec('mount', ['--bind', '/dev', join(root, 'dev')])
    await exec('mount', ['-t', 'proc', 'proc', join(root, 'proc')])
    for (const file of [older, newer]) await copyFile(file, join(root, 'root', basename(file)))

    await inside('apt-get', 'install', '-y', '--no-install-recommends', `/root/${basename(older)}`)
    const unit = readFileSync(join(root, UNIT), 'utf8')
    assert.match(unit, new RegExp(`^ExecStart=${PROGRAM} serve$`, 'm'))
    assert.match(unit, /^User=sendwright$/m)
    assert.match(await inside('sendwright', '--version'), /^sendwright \d/)
    assert.match(await inside('zcat', '/usr/share/man/man1/sendwright.1.gz'), /^\.SS queue$/m)
    assert.match(await inside('cat', '/usr/share/bash-completion/completions/sendwright'), /_sendwright/)
    report.figure(
      'installed size',
      await inside('du', '-sm', '/usr/lib/sendwright').then(Number.parseFloat),
      'MB',
    )

    const host = ownAddress()
    const first = await start(root, unit, host)
    running.push(first)
    const domain = await sandboxOf(first.url)
    await send(first.url, domain, {})
    const later = new Date(Date.now() + 3_600_000).toUTCString().replace('GMT', '+0000')
    for (let n = 0; n < SCHEDULED; n++) await send(first.url, domain, { 'o:deliverytime': later })
    await eventually(
      'the captured message',
      async () => (await items(first.url, '/sendwright/v1/inbox')).length === 1,
    )
    report.figure('sent in the fresh system', 1, 'message, captured')

    await inside('dpkg', '--install', `/root/${basename(newer)}`)
    assert.equal((await call(first.url, '/health/ready')).status, 200, 'it runs on while it is upgraded')
    await first.stop()
    const second = await start(root, unit, host)
    running.push(second)
    assert.equal((await items(second.url, '/sendwright/v1/scheduled')).length, SCHEDULED)
    await send(second.url, domain, {})
    await eventually(
      'the second one',
      async () => (await items(second.url, '/sendwright/v1/inbox')).length === 2,
    )
    report.figure('queued before the upgrade and after it', `${SCHEDULED} and ${SCHEDULED}`, 'messages')
    assert.match(await inside('env', `SENDWRIGHT_HOST=${host}`, 'sendwright', 'health'), /ready/)
    await second.stop()

    const data = join(root, 'var/lib/sendwright')
    const files = ['/var/lib/sendwright', '/var/lib/sendwright/sendwright.db']
    const owned = await inside('stat', '-c', '%U %a', ...files)
    assert.equal(owned, 'sendwright 700\nsendwright 600\n')
    await inside('apt-get', 'remove', '-y', 'sendwright')
    assert.ok(!existsSync(join(root, PROGRAM)))
    assert.ok((await readdir(data)).length > 0, 'removing keeps the data')
    await inside('apt-get', 'purge', '-y', 'sendwright')
    assert.ok(!existsSync(data) && !existsSync(join(root, 'etc/sendwright')), 'purging removes the data')
    assert.doesNotMatch(readFileSync(join(root, 'etc/passwd'), 'utf8'), /^sendwright:/m)
    report.figure('after remove, after purge', 'data kept, data gone')
  } finally {
    for (const service of running) await service.stop()
    for (const name of ['proc', 'dev']) await exec('umount', ['-l', join(root, name)]).catch(() => {})
    await rm(folder, { recursive: true, force: true })
  }
}

/** The unit's command as the unit's user with the unit's environment, as systemd would start it. */
async function start(root: string, unit: string, host: string) {
  const environment = [...unit.matchAll(/^Environment=(.*)$/gm)].map(([, value]) => value as string)
  const cache = join(root, 'var/cache/sendwright')
  await exec('chroot', [root, 'install', '-d', '-o', 'sendwright', cache.slice(root.length)])
  const own = [`SENDWRIGHT_HOST=${host}`, `SENDWRIGHT_API_KEY=${KEY}`, 'PATH=/usr/bin:/bin']
  const child = spawn(
    'chroot',
    ['--userspec=sendwright:sendwright', root, 'env', '-i', ...environment, ...own, PROGRAM, 'serve'],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  )
  const url = `http://${host}:8080`
  await eventually('the service', () =>
    call(url, '/health/ready').then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  return {
    url,
    async stop() {
      if (child.exitCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    },
  }
}

const call = (url: string, path: string, form?: Record<string, string>) =>
  fetch(url + path, {
    headers: { authorization: `Basic ${btoa(`api:${KEY}`)}` },
    ...(form && { method: 'POST', body: new URLSearchParams(form) }),
  })

async function items(url: string, path: string): Promise<Record<string, string>[]> {
  const response = await call(url, path)
  assert.equal(response.status, 200, path)
  return ((await response.json()) as { items: Record<string, string>[] }).items
}

async function sandboxOf(url: string): Promise<string> {
  const sandbox = (await items(url, '/v4/domains')).find(({ type }) => type === 'sandbox')
  return sandbox?.name as string
}

async function send(url: string, domain: string, options: Record<string, string>): Promise<void> {
  const form = { from: `shop@${domain}`, to: 'ann@example.org', subject: 'Hello', text: 'Hello', ...options }
  assert.equal((await call(url, `/v3/${domain}/messages`, form)).status, 200)
}
