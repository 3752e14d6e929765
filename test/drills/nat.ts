/**
 * Mail through a router with source NAT, and by IPv6 with a reverse name and without. Three network namespaces: the service, with a
 * private address; the router, which makes it a public one; a mail server beyond. The namespaces belong to processes, so that nothing is left of them. Needs root,
 * util-linux, iproute2 and nft.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { createInternet } from '../support/internet.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'

export const title =
  'nat: behind source NAT everything names the public address; IPv6 is used once it has a name'

const INSIDE = 'SENDWRIGHT_DRILL_NAT'
const LOCAL = '10.200.0.4'
const PUBLIC = '11.0.0.7'
const SERVER = '11.0.0.25'
const [LOCAL6, SERVER6] = ['2a00:1::4', '2a00:2::25']
const REVERSE6 = '4.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.0.0.a.2.ip6.arpa'
const WORLD_MAX_MS = 120_000
const OUTSIDE = join(import.meta.dirname, '../support/nat-outside.ts')

export async function run(report: DrillReport): Promise<void> {
  if (process.env[INSIDE] === undefined) return runInNamespace(report)
  const ended: (() => unknown)[] = []
  const t = { after: (run: () => unknown) => void ended.unshift(run) } as Parameters<
    typeof startTestService
  >[0]
  try {
    await tryAll(t, report)
  } finally {
    for (const run of ended) await run()
  }
}

/** The same drill, in a network namespace that ends with it. */
async function runInNamespace(report: DrillReport): Promise<void> {
  const command = ['--net', process.execPath, process.argv[1] as string, 'nat']
  const child = spawn('unshare', command, {
    env: { ...process.env, [INSIDE]: 'yes' },
    stdio: 'inherit',
    timeout: WORLD_MAX_MS,
  })
  const [code] = await once(child, 'exit')
  assert.equal(code, 0, 'the drill in its namespace')
  report.figure('passed in a namespace of its own', 'yes')
}

async function tryAll(t: Parameters<typeof startTestService>[0], report: DrillReport): Promise<void> {
  const messages = await buildWorld(t)
  const internet = await createInternet(t)
  for (const domain of ['site.example', 'gmail.com']) internet.host(domain, `mx.${domain}`, SERVER)
  const arrival = async () => JSON.parse((await messages.next()).value) as Record<string, string>
  const sends = async (service: TestService) => {
    await service.send({ to: 'a@site.example' })
    const { remoteAddress, raw } = await arrival()
    const [event] = await eventually('its event', async () => {
      const found = await service.events('?event=delivered')
      return found.length > 0 ? found : null
    })
    const header = /^X-Service-Sending-Ip: (.*)\r$/im.exec(raw ?? '')?.[1]
    const envelope = event?.['envelope'] as Record<string, unknown> | undefined
    return { remoteAddress, header, event: envelope?.['sending-ip'] }
  }
  const checkOf = async (service: TestService, check = 'public-address') => {
    const { items } = (await service.call('GET', '/sendwright/v1/system/checks')).body
    return items.find(({ name }: { name: string }) => name === check)
  }

  const mapped = await startTestService(t, { ...internet.env, SENDWRIGHT_IPS: `${LOCAL}@${PUBLIC}` })
  assert.deepEqual(await sends(mapped), { remoteAddress: PUBLIC, header: PUBLIC, event: PUBLIC })
  report.note(`with the map: receiver, header field and event name ${PUBLIC}`)
  const { items } = (await mapped.call('GET', '/sendwright/v1/ips')).body
  assert.deepEqual([items[0].ip, items[0].local_ip], [PUBLIC, LOCAL])
  const bound = await eventually('checked', async () => {
    const { check } = (await mapped.call('GET', '/sendwright/v1/ips')).body.items[0]
    return check.checked_at === null ? null : check
  })
  assert.equal(bound.bound, true)
  const good = await checkOf(mapped)
  assert.deepEqual(
    [good.state, good.sentence],
    ['ok', `Mail leaves from ${PUBLIC}, as mx.gmail.com sees it.`],
  )
  await mapped.service.stop()

  const unmapped = await startTestService(t, internet.env)
  assert.deepEqual(await sends(unmapped), { remoteAddress: PUBLIC, header: LOCAL, event: LOCAL })
  const { state, sentence } = await checkOf(unmapped)
  assert.equal(state, 'warning')
  assert.match(sentence, new RegExp(`SENDWRIGHT_IPS=${LOCAL}@${PUBLIC}`))
  report.note(`without it: ${sentence}`)
  report.figure('mails through NAT', 2)

  // Each time a domain that was not looked up before: what is known then counts for the time that it is remembered.
  const sendsTo = async (domain: string) => {
    internet.host(domain, `mx.${domain}`, SERVER)
    internet.dns.set(`mx.${domain}`, 'AAAA', [SERVER6])
    await unmapped.send({ to: `a@${domain}` })
    return (await arrival())['remoteAddress']
  }
  const isAskedFor = (name: string) =>
    eventually(name, async () => internet.dns.queries.some((query) => query.name === name))
  for (const domain of ['one.example', 'two.example']) {
    assert.equal(await sendsTo(domain), PUBLIC, 'IPv6 without a name')
    await isAskedFor(REVERSE6)
  }
  assert.equal((await checkOf(unmapped, 'ipv6')).state, 'warning')
  internet.dns.set(REVERSE6, 'PTR', ['mail.six.example'])
  internet.dns.set('mail.six.example', 'AAAA', [LOCAL6])
  await unmapped.restart()
  assert.equal(await sendsTo('three.example'), PUBLIC, 'nothing is known yet')
  await isAskedFor('mail.six.example')
  const domains = Array.from({ length: 20 }, (_, at) => `later${at}.example`)
  await eventually('by IPv6', async () => (await sendsTo(domains.shift() as string)) === LOCAL6)
  const six = await checkOf(unmapped, 'ipv6')
  assert.deepEqual([six.state, six.sentence], ['ok', `IPv6 is used from ${LOCAL6}.`])
  report.note(`without a name by IPv4; with one: ${six.sentence}`)
}

/** Resolves with the lines that the server outside prints, one for each message. */
async function buildWorld(t: Parameters<typeof startTestService>[0]): Promise<AsyncIterator<string>> {
  const router = await inNamespace(t, ['sleep', '300'])
  const outside = await inNamespace(t, [process.execPath, OUTSIDE, '2500', SERVER, SERVER6])
  const on = (child: ChildProcess, command: string) => sh(`nsenter --target ${child.pid} --net ${command}`)
  sh('ip link set lo up')
  sh(`ip link add in0 type veth peer name in1 netns ${router.pid}`)
  sh(`ip addr add ${LOCAL}/24 dev in0`)
  sh('ip link set in0 up')
  on(router, `ip link add out1 type veth peer name out0 netns ${outside.pid}`)
  on(router, 'ip addr add 10.200.0.1/24 dev in1')
  on(router, `ip addr add ${PUBLIC}/24 dev out1`)
  for (const link of ['lo', 'in1', 'out1']) on(router, `ip link set ${link} up`)
  on(router, 'sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1')
  on(router, 'nft add table ip nat')
  on(router, "nft 'add chain ip nat post { type nat hook postrouting priority 100 ; }'")
  on(router, `nft add rule ip nat post oifname out1 snat to ${PUBLIC}`)
  on(outside, `ip addr add ${SERVER}/24 dev out0`)
  for (const link of ['lo', 'out0']) on(outside, `ip link set ${link} up`)
  sh('ip route add default via 10.200.0.1')
  sh(`ip addr add ${LOCAL6}/64 dev in0 nodad`)
  on(router, 'ip addr add 2a00:1::1/64 dev in1 nodad')
  on(router, 'ip addr add 2a00:2::1/64 dev out1 nodad')
  on(outside, `ip addr add ${SERVER6}/64 dev out0 nodad`)
  on(outside, 'ip route add default via 2a00:2::1')
  sh('ip route add default via 2a00:1::1')
  const lines = createInterface({ input: outside.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  outside.stdin?.write('go\n')
  assert.equal((await lines.next()).value, 'listening')
  return lines
}

async function inNamespace(
  t: Parameters<typeof startTestService>[0],
  command: string[],
): Promise<ChildProcess> {
  const child = spawn('unshare', ['--net', ...command], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  const own = readlinkSync('/proc/self/ns/net')
  while (readlinkSync(`/proc/${child.pid}/ns/net`) === own) await sleep(10)
  return child
}

const sh = (command: string) =>
  execFileSync('sh', ['-c', command], { stdio: ['ignore', 'inherit', 'inherit'] })
