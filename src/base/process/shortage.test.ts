import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectionFaultOf, shortageOf } from './shortage.ts'

const fault = (code: string, more: object = {}) => Object.assign(new Error(code), { code, ...more })
const HOME = [
  { family: 4, internal: true },
  { family: 4, internal: false },
]

test('a shortage is found in an error, its causes and those of several tries', () => {
  assert.match(shortageOf(fault('EMFILE')) ?? '', /open files of this process .*EMFILE/)
  assert.match(
    shortageOf(new Error('no', { cause: new Error('no', { cause: fault('ENOBUFS') }) })) ?? '',
    /ENOBUFS/,
  )
  assert.match(shortageOf(new AggregateError([fault('ENFILE')])) ?? '', /ENFILE/)
  assert.equal(shortageOf(fault('ECONNREFUSED')), null)
  assert.equal(shortageOf('EMFILE'), null)
  const circle = new Error('round')
  circle.cause = circle
  assert.equal(shortageOf(circle), null)
})

test('what failed before anything left this machine is told from what the peer or the way to it did', () => {
  const local = (code: string, more: object = {}, addresses = HOME) =>
    connectionFaultOf(fault(code, more), () => addresses)
  assert.match(
    local('EADDRNOTAVAIL', { syscall: 'bind', address: '192.0.2.1' }) ?? '',
    /source address 192\.0\.2\.1/,
  )
  assert.match(local('EADDRINUSE', { syscall: 'bind', address: '192.0.2.1' }) ?? '', /no free port/)
  assert.match(local('EADDRNOTAVAIL', { syscall: 'connect', address: '192.0.2.9' }) ?? '', /no free port/)
  assert.equal(local('EADDRNOTAVAIL', { syscall: 'connect', address: '2001:db8::1' }), null)
  assert.match(local('EPERM') ?? '', /firewall/)
  assert.match(local('ENETDOWN') ?? '', /down/)
  assert.equal(local('ENETUNREACH'), null)
  assert.match(local('ENETUNREACH', {}, [{ family: 4, internal: true }]) ?? '', /no network/)
  for (const code of ['ECONNREFUSED', 'ETIMEDOUT', 'EHOSTUNREACH', 'ECONNRESET'])
    assert.equal(local(code), null)
})
