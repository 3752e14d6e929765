import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { type HeaderFault, ProxyHeaders } from './accepting.ts'
import { writeProxyHeader } from './header.ts'

const HEADER = writeProxyHeader({ address: '203.0.113.9', port: 1 }, { address: '192.0.2.1', port: 25 })

/** A server behind a balancer at `peer`, which is claimed: it cannot be an address of this machine. */
async function rig(t: TestContext, peer: string) {
  const clock = createTestClock()
  const faults: HeaderFault[] = []
  const accepted: { socket: Socket; client: string }[] = []
  let wake = () => {}
  const headers = new ProxyHeaders({
    ...{ networks: ['10.0.0.0/8', '2001:db8:1::/48', '127.0.0.1'], clock },
    onFault: (fault) => void faults.push(fault),
  })
  const taken: boolean[] = []
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    t.after(() => socket.destroy())
    taken.push(
      headers.take(socket, peer, (client) => {
        accepted.push({ socket, client })
        wake()
      }),
    )
    wake()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const open = async () => {
    const before = taken.length
    const socket = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', noDelay: true })
    t.after(() => socket.destroy())
    socket.on('error', () => {})
    while (taken.length === before) await new Promise<void>((resolve) => (wake = resolve))
    return socket
  }
  const next = async () => {
    while (accepted.length === 0) await new Promise<void>((resolve) => (wake = resolve))
    return accepted.shift() as { socket: Socket; client: string }
  }
  return { clock, faults, open, next, headers, taken }
}

const closed = async (socket: Socket) => socket.closed || once(socket.resume(), 'close')

test('what follows the header in the same segment is the first that the protocol reads, byte by byte or at once', async (t) => {
  const { open, next } = await rig(t, '10.1.2.3')
  const atOnce = await open()
  atOnce.write(Buffer.concat([HEADER, Buffer.from('EHLO one\r\n')]))
  const { socket, client } = await next()
  assert.equal(client, '203.0.113.9')
  assert.equal(String((await once(socket, 'data'))[0]), 'EHLO one\r\n')

  const slow = await open()
  for (const byte of HEADER) {
    slow.write(Buffer.of(byte))
    await new Promise((resolve) => setImmediate(resolve))
  }
  const second = await next()
  slow.write('EHLO two\r\n')
  assert.equal(String((await once(second.socket, 'data'))[0]), 'EHLO two\r\n')

  const ended = await open()
  ended.end(Buffer.concat([HEADER, Buffer.from('QUIT\r\n')]))
  const third = await next()
  assert.equal(String((await once(third.socket, 'data'))[0]), 'QUIT\r\n')
  await once(third.socket, 'end')
})

test('a peer outside of the networks is not read', async (t) => {
  const { open, taken } = await rig(t, '192.0.2.10')
  await open()
  assert.deepEqual(taken, [false])
})

test('a loopback client of a balancer elsewhere counts as the balancer; of one on this machine it is itself', async (t) => {
  const header = writeProxyHeader({ address: '127.0.0.1', port: 1 }, { address: '127.0.0.1', port: 25 })
  for (const [peer, client] of [
    ['2001:db8:1::5', '2001:db8:1::5'],
    ['127.0.0.1', '127.0.0.1'],
  ] as const) {
    const { open, next } = await rig(t, peer)
    const socket = await open()
    socket.write(header)
    assert.equal((await next()).client, client)
  }
})

test('without a header in five seconds the connection is closed; faults are reported once a minute, with their number', async (t) => {
  const { clock, faults, open, headers } = await rig(t, '10.1.2.3')
  const sockets = [await open(), await open()]
  sockets[1]?.write(HEADER.subarray(0, 20))
  await clock.advance(4_999)
  assert.deepEqual(faults, [])
  await clock.advance(1)
  await Promise.all(sockets.map(closed))
  const fault = 'there was no PROXY header within 5 s'
  assert.deepEqual(faults, [{ peer: '10.1.2.3', fault, times: 1 }])
  await clock.advance(60_000)
  const cut = await open()
  cut.end(HEADER.subarray(0, 10))
  await closed(cut)
  assert.deepEqual(faults[1], {
    peer: '10.1.2.3',
    fault: 'the connection ended within the PROXY header',
    times: 2,
  })
  const waiting = await open()
  headers.end()
  await closed(waiting)
})

test('a thousand connections of a network may wait for their headers', async (t) => {
  const { faults, headers } = await rig(t, '10.1.2.3')
  const sockets = Array.from({ length: 1_001 }, () => connect({ port: 1, host: '127.0.0.1' }).pause())
  for (const socket of sockets) headers.take(socket, '10.1.2.3', () => assert.fail())
  assert.deepEqual(
    faults.map(({ fault }) => fault),
    ['too many connections wait for their headers'],
  )
  assert.equal(sockets.filter(({ destroyed }) => destroyed).length, 1)
  headers.end()
})
