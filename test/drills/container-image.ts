/**
 * The container image: built by Podman from the Containerfile as it is, started as compose.yaml says, checked by its own
 * health check, sends to an SMTP server, is stopped and started again with its data. Needs root, podman, runc, debootstrap,
 * and the packages of npm and Debian.
 *
 * The two base images are made here, under the names that the Containerfile has: a fresh Debian 12, and the same with the
 * Node of the lock file and this machine's npm. So no registry of images is asked. All that Podman keeps is below a temporary
 * folder.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { copyFile, cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import type { DrillReport } from '../../scripts/drill.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'

export const title =
  'container image: built by Podman, started as compose.yaml says, healthy, sends, keeps its data over a restart'

const exec = promisify(execFile)
const ROOT = resolve(import.meta.dirname, '../..')
const CONTAINERFILE = join(ROOT, 'deploy/container/Containerfile')
const KEY = 'a-key-of-the-drill-123456'
const IMAGE = 'localhost/sendwright:latest'
const USER_ID = '10001'
const OUTPUT_BYTES_MAX = 64e6
/** Podman asks for more than a machine may allow. */
const LIMITS = ['--ulimit', 'nofile=16384:16384', '--ulimit', 'nproc=4096:4096']
/** Of the authority that signs for npm's registry, where the network has one of its own. */
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt'

interface Compose {
  services: Record<string, Record<string, unknown>>
}

type Podman = (...args: string[]) => Promise<string>

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const podman: Podman = async (...args) => {
    const store = ['--root', join(folder, 'store'), '--runroot', join(folder, 'run')]
    const how = ['--tmpdir', join(folder, 'tmp'), '--cgroup-manager', 'cgroupfs', '--runtime', 'runc']
    return (await exec('podman', [...store, ...how, ...args], { maxBuffer: OUTPUT_BYTES_MAX })).stdout.trim()
  }
  const host = ownAddress()
  const sink = await createSink({ host: ownAddress() })
  try {
    report.note('making the base images')
    await makeBases(podman, folder)
    report.note('building the image')
    const begun = performance.now()
    await build(podman)
    report.figure('built in', (performance.now() - begun) / 1_000, 's')
    const [base = '', own = ''] = await Promise.all(
      [baseNames().at(-1) as string, IMAGE].map((name) =>
        podman('image', 'inspect', '--format', '{{.Size}}', name),
      ),
    )
    report.figure('size of the image', Math.round(Number(own) / 1e6), 'MB')
    report.figure('of that over its base image', Math.round((Number(own) - Number(base)) / 1e6), 'MB')

    const relay = `smtp://${sink.host}:${sink.port}`
    const settings = [`SENDWRIGHT_HOST=${host}`, `SENDWRIGHT_API_KEY=${KEY}`, `SENDWRIGHT_DELIVERY=${relay}`]
    settings.push('SENDWRIGHT_ALLOW_NETWORKS=127.0.0.0/8')
    const url = `http://${host}:8080`
    const first = await start(podman, settings)
    await eventually('the service', () => isReady(url))
    await podman('healthcheck', 'run', first)
    report.figure('ready after the first start', await secondsToReady(podman, first, url), 's')
    await checkConfinement(podman, first)
    await checkCache(podman, first)
    const domain = await sandboxOf(url)
    await send(url, domain)
    const [message] = await sink.waitFor(1)
    assert.deepEqual(message?.envelope.to, ['ann@example.org'])

    await stop(podman, first)
    await assert.rejects(fetch(`${url}/health/ready`), 'it has stopped')
    const second = await start(podman, settings)
    report.figure('ready with its data', await secondsToReady(podman, second, url), 's')
    await podman('healthcheck', 'run', second)
    assert.equal(await sandboxOf(url), domain, 'the data was kept')
    await send(url, domain)
    await sink.waitFor(2)
    report.figure('sent through the relay', sink.messages.length, 'messages')
    const pid = await podman('inspect', '--format', '{{.State.Pid}}', second)
    const [, resident = ''] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    report.figure('resident set', Math.round(Number(resident) / 1_024), 'MiB')
    await stop(podman, second)
  } finally {
    await sink.close()
    await podman('rm', '--all', '--force', '--time', '0').catch(() => {})
    await exec('umount', ['--lazy', join(folder, 'store/overlay')]).catch(() => {})
    await rm(folder, { recursive: true, force: true })
  }
}

/** Images that the Containerfile builds on, and does not make itself, in their order. */
function baseNames(): string[] {
  const stages = [...readFileSync(CONTAINERFILE, 'utf8').matchAll(/^FROM (\S+)(?: AS (\S+))?$/gm)]
  const made = stages.map(([, , name]) => name)
  return stages.flatMap(([, name]) => (name === undefined || made.includes(name) ? [] : [name]))
}

async function makeBases(podman: Podman, folder: string): Promise<void> {
  const root = join(folder, 'base')
  await exec('debootstrap', ['--variant=minbase', 'bookworm', root], { maxBuffer: OUTPUT_BYTES_MAX })
  await rm(join(root, 'var/cache/apt'), { recursive: true, force: true })
  // As in the image of Debian: otherwise apt leaves 70 MB in the layer.
  const rules = 'Dir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n'
  await writeFile(join(root, 'etc/apt/apt.conf.d/docker-clean'), rules)
  const kinds = baseNames().map((name) => {
    const kind = /\/(debian:bookworm|node:24-bookworm)(-slim)?$/.exec(name)?.[1]
    if (kind === undefined) throw new Error(`Cannot make the base image "${name}"`)
    return { name, hasNode: kind.startsWith('node') }
  })
  const importAs = async (name: string, ...changes: string[]) => {
    const archive = join(folder, 'base.tar')
    await exec('tar', ['-C', root, '-cf', archive, '.'])
    await podman('import', '--quiet', ...changes.flatMap((change) => ['--change', change]), archive, name)
    await rm(archive)
  }
  for (const { name } of kinds.filter(({ hasNode }) => !hasNode)) await importAs(name)
  await addNode(root)
  for (const { name } of kinds.filter(({ hasNode }) => hasNode))
    await importAs(name, `ENV NODE_EXTRA_CA_CERTS=${AUTHORITIES}`)
}

/** Where the image of Node has them. */
async function addNode(root: string): Promise<void> {
  const bin = join(root, 'usr/local/bin')
  await copyFile(process.execPath, join(bin, 'node'))
  // Set by `npm run`.
  const program = process.env['npm_execpath'] || (await exec('which', ['npm'])).stdout.trim()
  const npm = dirname(dirname(realpathSync(program)))
  await cp(npm, join(root, 'usr/local/lib/node_modules/npm'), { recursive: true })
  for (const name of ['npm', 'npx'])
    await symlink(`../lib/node_modules/npm/bin/${name}-cli.js`, join(bin, name))
  await mkdir(dirname(join(root, AUTHORITIES)), { recursive: true })
  await copyFile(process.env['NODE_EXTRA_CA_CERTS'] || AUTHORITIES, join(root, AUTHORITIES))
}

/** Each step runs in a root of its own, without a registry. npm's settings of this machine are lent, not copied. */
async function build(podman: Podman): Promise<void> {
  const npmrc = join(homedir(), '.npmrc')
  const lent = existsSync(npmrc) ? ['--volume', `${npmrc}:/root/.npmrc:ro`] : []
  const how = ['--isolation', 'chroot', '--pull=never', '--format', 'docker', ...lent]
  await podman('build', ...how, '--file', CONTAINERFILE, '--tag', IMAGE, ROOT)
}

/** As compose.yaml starts it, in the network of this machine. */
async function start(podman: Podman, settings: readonly string[]): Promise<string> {
  const text = readFileSync(join(ROOT, 'deploy/container/compose.yaml'), 'utf8')
  const { services } = parse(text.replace(/\$\{\w+:-([^}]*)\}/g, '$1')) as Compose
  const service = services['sendwright']
  assert.ok(service)
  const list = (name: string) => (service[name] ?? []) as string[]
  const flags = [
    ...(service['read_only'] === true ? ['--read-only', '--read-only-tmpfs=false'] : []),
    ...list('tmpfs').flatMap((path) => ['--tmpfs', path]),
    ...list('cap_drop').flatMap((capability) => ['--cap-drop', capability]),
    ...list('security_opt').flatMap((option) => ['--security-opt', option.replace(/:true$/, '')]),
    ...list('volumes').flatMap((volume) => ['--volume', volume]),
    ...['--stop-timeout', String(Number.parseInt(String(service['stop_grace_period']), 10))],
    ...[
      ...Object.entries(service['environment'] as object).map((pair) => pair.join('=')),
      ...settings,
    ].flatMap((setting) => ['--env', setting]),
  ]
  // The interval of the health check belongs to systemd: the drill runs the check itself.
  return podman('run', '--detach', '--network', 'host', ...LIMITS, ...flags, IMAGE)
}

/** From the start of the container's process. @throws Error when it is not ready */
async function secondsToReady(podman: Podman, container: string, url: string): Promise<number> {
  await eventually('the service', () => isReady(url))
  const readyAt = Date.now()
  const startedAt = await podman('inspect', '--format', '{{.State.StartedAt.UnixMilli}}', container)
  return (readyAt - Number(startedAt)) / 1_000
}

const isReady = (url: string) =>
  fetch(`${url}/health/ready`).then(
    ({ ok }) => ok,
    () => false,
  )

/** The user, no capabilities, no new ones, a root that cannot be written, a data folder that can. */
async function checkConfinement(podman: Podman, container: string): Promise<void> {
  const pid = await podman('inspect', '--format', '{{.State.Pid}}', container)
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  assert.match(status, new RegExp(`^Uid:\\s+${USER_ID}\\s+${USER_ID}\\s+${USER_ID}\\s+${USER_ID}$`, 'm'))
  assert.match(status, /^CapEff:\s+0+$/m)
  assert.match(status, /^CapBnd:\s+0+$/m)
  assert.match(status, /^NoNewPrivs:\s+1$/m)
  for (const path of ['/usr/lib/sendwright/x', '/etc/x', '/x'])
    await assert.rejects(podman('exec', '--user', 'root', container, 'touch', path), /Read-only file system/)
  const mode = await podman('exec', container, 'stat', '--format', '%u %a', '/data', '/data/secret')
  assert.equal(mode, `${USER_ID} 700\n${USER_ID} 600`)
}

/** Compiled code of the image is used, and nobody but root could change it. */
async function checkCache(podman: Podman, container: string): Promise<void> {
  const command = 'NODE_DEBUG_NATIVE=COMPILE_CACHE sendwright --version 2>&1'
  const text = await podman('exec', container, 'sh', '-c', command)
  assert.match(text, /main\.js was accepted/)
  const cache = '/usr/lib/sendwright/cache'
  assert.equal(await podman('exec', container, 'find', cache, '!', '-user', 'root'), '')
}

/** Ends by SIGTERM, in time: one that had to be killed has exit code 137. */
async function stop(podman: Podman, container: string): Promise<void> {
  await podman('stop', container)
  assert.equal(await podman('inspect', '--format', '{{.State.ExitCode}}', container), '0')
  await podman('rm', container)
}

const call = (url: string, path: string, form?: Record<string, string>) =>
  fetch(url + path, {
    headers: { authorization: `Basic ${btoa(`api:${KEY}`)}` },
    ...(form && { method: 'POST', body: new URLSearchParams(form) }),
  })

async function sandboxOf(url: string): Promise<string> {
  const response = await call(url, '/v4/domains')
  const { items } = (await response.json()) as { items: { name: string; type: string }[] }
  return items.find(({ type }) => type === 'sandbox')?.name as string
}

async function send(url: string, domain: string): Promise<void> {
  const form = { from: `shop@${domain}`, to: 'ann@example.org', subject: 'Hello', text: 'Hello' }
  const response = await call(url, `/v3/${domain}/messages`, form)
  assert.equal(response.status, 200, await response.text())
}
