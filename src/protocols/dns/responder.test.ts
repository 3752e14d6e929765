import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { systemClock } from '../../base/time/clock.ts'
import { createResolver } from './resolver.ts'
import { startResponder } from './responder.ts'

const KEY = `k=rsa; p=${'Ab9+'.repeat(98)}`
const texts = new Map<string, readonly string[]>([
  ['pdk1._domainkey.7.dkim.example', [KEY]],
  ['_domainkey.7.dkim.example', []],
  ['many.dkim.example', Array.from({ length: 8 }, (_, n) => `${n}${KEY}`)],
])
const responder = await startResponder(
  { host: '127.0.0.1', port: 0 },
  {
    zone: 'dkim.example',
    nameServer: 'ns.service.example',
    async lookUp(name) {
      if (name === 'broken.dkim.example') throw new Error('the database is away')
      return texts.get(name) ?? null
    },
  },
)
const server = { host: '127.0.0.1', port: responder.port }
const resolver = createResolver({ servers: [server], clock: systemClock, attempts: 1 })
after(async () => {
  resolver.close()
  await responder.close()
})

test('keys are returned, whatever the letter case of the query', async () => {
  const answer = await resolver.query('PDK1._DomainKey.7.dkim.example', 'TXT')
  assert.deepEqual([answer.kind, answer.records], ['records', [KEY]])
  const apex = await resolver.query('dkim.example', 'NS')
  assert.deepEqual(apex.records, ['ns.service.example'])
  assert.equal((await resolver.query('dkim.example', 'SOA')).records[0]?.primary, 'ns.service.example')
})

test('names without records, unknown names, names of other zones and failures are distinguished', async () => {
  const kinds = async (name: string, type: 'TXT' | 'A') => (await resolver.query(name, type)).kind
  assert.equal(await kinds('_domainkey.7.dkim.example', 'TXT'), 'nodata')
  assert.equal(await kinds('pdk1._domainkey.7.dkim.example', 'A'), 'nodata')
  assert.equal(await kinds('pdk1._domainkey.8.dkim.example', 'TXT'), 'nxdomain')
  assert.equal(await kinds('other.example', 'TXT'), 'refused')
  assert.equal(await kinds('broken.dkim.example', 'TXT'), 'servfail')
})

test('an answer too large for a datagram is sent over TCP', async () => {
  const answer = await resolver.query('many.dkim.example', 'TXT')
  assert.equal(answer.records.length, 8)
})

test('a response, a truncated and an over-long message get no reply, and invalid input never stops the server', async () => {
  const socket = createSocket('udp4')
  socket.on('message', () => assert.fail('answered a response'))
  const response = Buffer.alloc(12)
  response.writeUInt16BE(0x8000, 2)
  for (const packet of [response, Buffer.alloc(3), Buffer.alloc(2000)])
    socket.send(packet, server.port, server.host)
  socket.removeAllListeners('message')
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 200 }), (bytes) => {
      socket.send(bytes, server.port, server.host)
    }),
    { seed: 1035, numRuns: 200 },
  )
  const tcp = connect(server.port, server.host)
  tcp.on('error', () => {})
  tcp.write(Buffer.from([0xff, 0xff, 1, 2, 3]))
  await once(tcp, 'close')
  const answer = await resolver.query('pdk1._domainkey.7.dkim.example', 'TXT', { fresh: true })
  assert.equal(answer.kind, 'records')
  socket.close()
})
