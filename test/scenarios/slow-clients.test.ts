/** Clients that hold connections and unread responses: memory of the process, and other calls meanwhile. */
// Slow: it sends a whole process more than anyone does, and measures it meanwhile.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { longestBlock } from '../support/block-probe.ts'
import { residentBytes } from '../support/process-memory.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { temporaryFolder } from '../support/stores.ts'

const MIB = 2 ** 20
const SOCKETS = 40
const PIPELINED = 99
const GROWTH_MAX_BYTES = 100 * MIB
/**
 * Other responses are held up to 128 MB in all (platform/http/listening/connection.ts), and making them takes as much again. All of
 * them would be 3.2 GB.
 */
const HELD_MAX_BYTES = 2 * 128 * MIB
const BLOCK_MAX_MS = 200
/** Of the default of SENDWRIGHT_HTTP_MAX_CONNECTIONS_PER_IP. */
const PER_ADDRESS_MAX = 1_000
const HTTPS_PORT = 8443

interface World {
  service: ServiceProcess
  host: string
  pid: number
  probe: string
}

async function start(t: TestContext): Promise<World> {
  const host = ownAddress()
  const folder = await temporaryFolder(t)
  const probe = join(folder, 'blocks.json')
  const env = { SENDWRIGHT_DATA: join(folder, 'data'), SENDWRIGHT_HTTPS_PORT: String(HTTPS_PORT) }
  const service = await startProcess(host, env, { probe })
  t.after(() => service.end('SIGKILL'))
  return { service, host, pid: service.child.pid as number, probe }
}

/** Calls of another client, one after the other, until stopped; resolves their number. */
/** Asks one thing after another until it is stopped, which waits for the first answer. */
function goodClient({ service }: World): { stop(): Promise<void> } {
  let stopped = false
  const served = Promise.withResolvers<void>()
  const run = async () => {
    while (!stopped) {
      const answer = await fetch(`${service.url}/v4/domains`, { headers: { authorization: AUTHORIZATION } })
      assert.equal(answer.status, 200)
      await answer.arrayBuffer()
      served.resolve()
    }
  }
  const running = run()
  running.catch(() => {}) // awaited at the end
  return {
    async stop() {
      await Promise.race([served.promise, running])
      stopped = true
      await running
    },
  }
}

/** A message whose stored form is 0.8 MB of JSON in the response. */
async function storeLargeMessage({ service }: World): Promise<string> {
  const { url, domain } = service
  const headers = { authorization: AUTHORIZATION }
  const form = new FormData()
  const fields = {
    from: `a@${domain}`,
    to: 'b@example.org',
    subject: 'Large',
    text: 'long text '.repeat(40_000),
  }
  for (const [name, value] of Object.entries(fields)) form.append(name, value)
  const sent = await fetch(`${url}/v3/${domain}/messages`, { method: 'POST', headers, body: form })
  assert.equal(sent.status, 200)
  const listed = await fetch(`${url}/v3/${domain}/events`, { headers })
  const { items } = (await listed.json()) as { items: { storage: { key: string } }[] }
  return `/v3/domains/${domain}/messages/${items[0]?.storage.key}`
}

async function open(world: World, secure: boolean): Promise<Socket> {
  const socket = secure
    ? connectTls({ host: world.host, port: HTTPS_PORT, rejectUnauthorized: false })
    : createConnection(8080, world.host)
  socket.on('error', () => {})
  await once(socket, secure ? 'secureConnect' : 'connect')
  return socket
}

/** Sends requests without reading; resolves the highest growth of the process's memory. */
async function askUnread(
  world: World,
  path: string,
  secure: boolean,
  growthMaxBytes: number,
): Promise<number> {
  const sockets = await Promise.all(Array.from({ length: SOCKETS }, () => open(world, secure)))
  // As many clients that do read: making the responses takes memory as well.
  const headers = { authorization: AUTHORIZATION }
  const read = async () => (await fetch(world.service.url + path, { headers })).arrayBuffer()
  for (let count = 0; count < 5; count++) await Promise.all(sockets.map(read))
  const before = await residentBytes(world.pid)
  const good = goodClient(world)
  const request = `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${AUTHORIZATION}\r\n\r\n`
  for (const socket of sockets) socket.write(request.repeat(PIPELINED))
  let peak = before
  const until = performance.now() + 3_000
  while (performance.now() < until && peak - before <= growthMaxBytes) {
    peak = Math.max(peak, await residentBytes(world.pid))
    await sleep(20)
  }
  await good.stop()
  for (const socket of sockets) socket.destroy()
  assert.ok(peak - before <= growthMaxBytes, `memory grew by ${Math.round((peak - before) / MIB)} MB`)
  return (peak - before) / MIB
}

for (const secure of [false, true]) {
  const how = secure ? 'over TLS' : 'in plain text'
  test(`40 clients with 99 requests each that read no response take hardly any memory, ${how}`, async (t) => {
    const world = await start(t)
    let grownMb = 0
    const longestMs = await longestBlock(world, BLOCK_MAX_MS, async () => {
      grownMb = await askUnread(world, '/openapi.json', secure, GROWTH_MAX_BYTES)
    })
    t.diagnostic(`grew by ${Math.round(grownMb)} MB, longest block ${Math.round(longestMs)} ms`)
    assert.ok(longestMs < BLOCK_MAX_MS, `${longestMs} ms without a break`)
    const stored = await storeLargeMessage(world)
    const heldMb = await askUnread(world, stored, secure, GROWTH_MAX_BYTES + HELD_MAX_BYTES)
    t.diagnostic(`grew by ${Math.round(heldMb)} MB with answers of 0.8 MB`)
  })
}

test('one address cannot take all connections: it gets the reason, others can connect', async (t) => {
  const world = await start(t)
  const connectFrom = (localAddress: string) => {
    const socket = createConnection({ host: world.host, port: 8080, localAddress })
    socket.on('error', () => {})
    return socket
  }
  const good = goodClient(world)
  const refused: Promise<string>[] = []
  let open = 0
  const sockets: Socket[] = []
  t.after(() => {
    for (const socket of sockets) socket.destroy()
  })
  const greedy = '127.254.0.1'
  for (let count = 0; count < PER_ADDRESS_MAX + 50; count++) {
    const socket = connectFrom(greedy)
    sockets.push(socket)
    await once(socket, 'connect')
    if (count >= PER_ADDRESS_MAX) refused.push(text(socket))
    else open += 1
  }
  assert.equal(open, PER_ADDRESS_MAX)
  for (const answer of await Promise.all(refused)) {
    assert.match(answer, /^HTTP\/1\.1 503 .*\r\nRetry-After: \d+\r\nConnection: close\r\n/s)
    assert.match(answer, /\r\n\r\n\{"message":"[^"]+"\}$/)
  }
  const other = connectFrom('127.254.0.2')
  other.write('GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  assert.match(await text(other), /^HTTP\/1\.1 200 /)
  // Exactly one for each one that has ended.
  sockets[0]?.destroy()
  const next = async () => {
    const socket = connectFrom(greedy)
    sockets.push(socket)
    socket.write('GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n')
    const [bytes] = (await once(socket, 'data')) as [Buffer]
    return bytes.toString()
  }
  while (!(await next()).startsWith('HTTP/1.1 200 ')) await sleep(10)
  assert.match(await next(), /^HTTP\/1\.1 503 /)
  await good.stop()
})

test('a second Host field, and Transfer-Encoding in HTTP/1.0, end the connection with 400', async (t) => {
  const world = await start(t)
  const smuggled = 'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n'
  for (const request of [
    'GET /health/live HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
    'POST /sendwright/v1/session HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ]) {
    for (const secure of [false, true]) {
      const socket = await open(world, secure)
      socket.write(request + smuggled)
      const answer = await text(socket)
      assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n.*\{"message":"Bad Request"\}$/s)
      assert.equal(answer.match(/HTTP\/1\.1/g)?.length, 1)
    }
  }
})
