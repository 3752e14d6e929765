/** Mail that leaves from an address that this machine does not have: by NAT, and through proxies. */
import assert from 'node:assert/strict'
import { connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { readProxyHeader } from '../../src/protocols/proxy/header.ts'
import { selfSigned } from '../support/certificates.ts'
import { createTestClock } from '../support/clock.ts'
import { createInternet } from '../support/internet.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'
import { createSocksServer } from '../support/socks-server.ts'

const DOMAIN = 'site.example'
const BASE = '/sendwright/v1'
/** From documentation networks (RFC 5737): no host has them. */
const [PUBLIC, PROXIED] = ['192.0.2.7', '203.0.113.9']
const LOCAL = '127.0.70.4'
const NAME = 'mail.nat.example'

interface Item {
  state: string
  attempts: number
  reason: { code: string; sentence: string }
}

const itemsOf = async (service: TestService, id: string): Promise<Item[]> =>
  (await service.call('GET', `${BASE}/messages/${encodeURIComponent(id)}/deliveries`)).body.items

async function addressOf(service: TestService, ip: string) {
  const { items } = (await service.call('GET', `${BASE}/ips`)).body
  return items.find((item: { ip: string }) => item.ip === ip)
}

async function delivered(service: TestService): Promise<Record<string, unknown>[]> {
  const found = await service.events('?event=delivered')
  return found.map(({ envelope, recipient, 'delivery-status': status }) => ({
    recipient,
    ip: (envelope as Record<string, unknown>)['sending-ip'],
    tls: (status as Record<string, unknown>)['tls'],
  }))
}

const lastHeader = (sink: Sink) =>
  /^X-Service-Sending-Ip: (.*)\r$/im.exec(String(sink.messages.at(-1)?.raw))?.[1]

test('behind NAT the connection is bound to the local address, and everything names the public one', async (t) => {
  const internet = await createInternet(t)
  const sink = await internet.site([DOMAIN])
  internet.dns.set('7.2.0.192.in-addr.arpa', 'PTR', [NAME])
  internet.dns.set(NAME, 'A', [PUBLIC])
  const service = await startTestService(t, {
    ...internet.env,
    SENDWRIGHT_IPS: `${LOCAL}@${PUBLIC}@${NAME}`,
    SENDWRIGHT_REQUIRE_FCRDNS: 'yes',
  })
  const checked = await eventually('the address is checked', async () => {
    const found = await addressOf(service, PUBLIC)
    return found.usable ? found : null
  })
  assert.equal(checked.local_ip, LOCAL)
  assert.equal(checked.proxy, null)
  // Loopback addresses can be bound without being listed by the system.
  assert.deepEqual(
    [checked.check.bound, checked.check.dns_agrees, checked.check.rdns, checked.check.fault],
    [false, true, NAME, `${LOCAL} is not an address of this machine`],
  )
  assert.equal(await addressOf(service, LOCAL), undefined)
  for (const ip of [undefined, PUBLIC]) {
    const sent = await service.send({ to: `a@${DOMAIN}`, ...(ip && { 'o:sending-ip': ip }) })
    assert.equal(sent.status, 200, sent.text)
  }
  const refused = await service.send({ to: `a@${DOMAIN}`, 'o:sending-ip': LOCAL })
  assert.equal(refused.status, 403, 'the local address is none that mail is sent from')
  const messages = await sink.waitFor(2)
  assert.deepEqual(new Set(messages.map(({ remoteAddress }) => remoteAddress)), new Set([LOCAL]))
  assert.deepEqual(new Set(messages.map(({ helo }) => helo)), new Set([NAME]))
  assert.equal(lastHeader(sink), PUBLIC)
  const events = await eventually('both events', async () => {
    const found = await delivered(service)
    return found.length === 2 ? found : null
  })
  assert.deepEqual(new Set(events.map(({ ip }) => ip)), new Set([PUBLIC]))
})

test('through SOCKS5 the receiver sees the proxy, STARTTLS included; while it is down others send, and nothing is counted', async (t) => {
  const internet = await createInternet(t)
  const sink = await internet.site([DOMAIN], { tls: selfSigned([`mx.${DOMAIN}`]) })
  const options = { host: ownAddress(), from: '127.0.70.9', login: { user: 'sender', password: 'a,b@c' } }
  const socks = await createSocksServer(t, options)
  const clock = createTestClock()
  const ticking = setInterval(() => void clock.advance(10), 5)
  t.after(() => clearInterval(ticking))
  const service = await startTestService(
    t,
    {
      ...internet.env,
      SENDWRIGHT_IPS: `${PROXIED},${LOCAL}`,
      SENDWRIGHT_EGRESS: `${PROXIED}=socks5://sender:a%2Cb%40c@${socks.host}`,
    },
    { clock },
  )
  const send = async (count: number, form: Record<string, string> = {}) => {
    const to = Array.from({ length: count }, (_, at) => `user${at}@${DOMAIN}`)
    const sent = await service.send({ to, ...form })
    assert.equal(sent.status, 200, sent.text)
    return sent.body.id as string
  }
  await send(1, { 'o:sending-ip': PROXIED, 'o:skip-verification': 'yes' })
  const [first] = await sink.waitFor(1)
  assert.deepEqual([first?.remoteAddress, first?.tls], [options.from, true])
  assert.equal(lastHeader(sink), PROXIED)
  assert.deepEqual(new Set(socks.targets), new Set([`${sink.host}:${internet.port}`]))
  assert.deepEqual(
    await eventually('its event', async () => {
      const found = await delivered(service)
      return found.length === 1 ? found : null
    }),
    [{ recipient: `user0@${DOMAIN}`, ip: PROXIED, tls: true }],
  )
  const { proxy, local_ip: localIp, check } = await addressOf(service, PROXIED)
  assert.deepEqual([proxy, localIp, check.bound], [`socks5://${socks.host}:1080`, null, null])
  assert.ok(!JSON.stringify(await addressOf(service, PROXIED)).includes('a,b'), 'no password')

  await socks.close()
  const waiting = await send(1, { 'o:sending-ip': PROXIED })
  const item = await eventually('it waits', async () => {
    const [found] = await itemsOf(service, waiting)
    return found && ['proxy-down', 'local-fault'].includes(found.reason.code) ? found : null
  })
  assert.deepEqual([item.state, item.attempts], ['queued', 0])
  await send(20)
  const messages = await sink.waitFor(21)
  assert.deepEqual(
    new Set(messages.slice(1).map(({ remoteAddress }) => remoteAddress)),
    new Set([LOCAL]),
    'its share of the mail leaves from the other address',
  )
  await eventually('the gate is named', async () => {
    const [found] = await itemsOf(service, waiting)
    return found?.reason.code === 'proxy-down' && found.attempts === 0
  })

  await createSocksServer(t, options)
  await sink.waitFor(22)
  assert.equal(sink.messages.at(-1)?.remoteAddress, options.from, 'it left as soon as the proxy worked')
  assert.equal((await delivered(service)).length <= 22, true)
})

test('a relay on this machine is not asked of a proxy, whatever its loopback address', async (t) => {
  const socks = await createSocksServer(t, { host: ownAddress(), from: '127.0.70.9' })
  const relay = await createSink({ host: ownAddress() })
  t.after(() => relay.close())
  const service = await startTestService(t, {
    SENDWRIGHT_DELIVERY: `smtp://user:secret@${relay.host}:${relay.port}`,
    SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
    SENDWRIGHT_IPS: PROXIED,
    SENDWRIGHT_EGRESS: `${PROXIED}=socks5://${socks.host}`,
  })
  relay.on('EHLO', '250-sink.test\r\n250 AUTH PLAIN')
  relay.on('AUTH', '235 2.7.0 welcome')
  await service.send({ to: 'a@example.net' })
  await relay.waitFor(1)
  assert.deepEqual(socks.targets, [])
})

test('a target that the proxy cannot reach is a counted attempt, as without a proxy', async (t) => {
  const internet = await createInternet(t)
  internet.host(DOMAIN, `mx.${DOMAIN}`, '127.255.255.3')
  const socks = await createSocksServer(t, { host: ownAddress(), from: '127.0.70.9' })
  const service = await startTestService(t, {
    ...internet.env,
    SENDWRIGHT_IPS: PROXIED,
    SENDWRIGHT_EGRESS: `${PROXIED}=socks5://${socks.host}:1080`,
  })
  const { id } = (await service.send({ to: `a@${DOMAIN}` })).body
  const item = await eventually('one attempt', async () => {
    const [found] = await itemsOf(service, id)
    return found?.attempts === 1 ? found : null
  })
  assert.match(item.reason.sentence, /connection refused \(reply 5 of socks5:/)
})

test('private addresses stay out of reach through a proxy', async (t) => {
  const internet = await createInternet(t)
  internet.host(DOMAIN, `mx.${DOMAIN}`, '10.0.0.8')
  const socks = await createSocksServer(t, { host: ownAddress(), from: '127.0.70.9' })
  const service = await startTestService(t, {
    ...internet.env,
    SENDWRIGHT_IPS: PROXIED,
    SENDWRIGHT_EGRESS: `${PROXIED}=socks5://${socks.host}:1080`,
  })
  const { id } = (await service.send({ to: `a@${DOMAIN}` })).body
  await eventually('it was tried', async () => {
    const [found] = await itemsOf(service, id)
    return (found?.attempts ?? 0) > 0 || found?.state === 'bounced'
  })
  assert.deepEqual(socks.targets, [])
})

test('HAProxy learns from which address to which server, in its own protocol', async (t) => {
  const internet = await createInternet(t)
  const sink = await internet.site([DOMAIN])
  const haproxy = await transparentProxy(t, '127.0.70.9')
  const service = await startTestService(t, {
    ...internet.env,
    SENDWRIGHT_IPS: `${PROXIED}=shared@${NAME}`,
    SENDWRIGHT_EGRESS: `${PROXIED}=haproxy://${haproxy.host}:2600`,
  })
  await service.send({ to: `a@${DOMAIN}` })
  const [message] = await sink.waitFor(1)
  assert.deepEqual([message?.remoteAddress, message?.helo], ['127.0.70.9', NAME])
  assert.deepEqual(haproxy.sources, [PROXIED])
})

/** As HAProxy with `accept-proxy`, `source 0.0.0.0 usesrc clientip` and a server at the target of the header. */
async function transparentProxy(t: TestContext, from: string) {
  const host = ownAddress()
  const sources: (string | undefined)[] = []
  const open = new Set<Socket>()
  const server = createServer((client) => {
    open.add(client)
    client.once('data', (bytes: Buffer) => {
      const read = readProxyHeader(bytes)
      if (read.kind !== 'header') return client.destroy()
      sources.push(read.client?.address)
      const target = { host: [...bytes.subarray(20, 24)].join('.'), port: bytes.readUInt16BE(26) }
      const onward = connect({ ...target, localAddress: from })
      open.add(onward)
      onward.write(bytes.subarray(read.length))
      client.pipe(onward).pipe(client)
    })
  })
  await new Promise<void>((resolve) => server.listen(2600, host, resolve))
  t.after(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return { host, sources }
}
