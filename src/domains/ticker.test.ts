import assert from 'node:assert/strict'
import { test } from 'node:test'
import pino from 'pino'
import { createTestClock } from '../../test/support/clock.ts'
import { createDnsServer } from '../../test/support/dns-server.ts'
import { createResolver } from '../dns/resolver.ts'
import { untilStopped } from './lookups.ts'
import { createTicker } from './ticker.ts'

const log = pino({ level: 'silent' })

test('work runs at the start, by the clock and when woken, one run at a time, and after a failure', async () => {
  const clock = createTestClock()
  let runs = 0
  const ticker = createTicker({
    name: 'test',
    everyMs: 1000,
    clock,
    log,
    async work() {
      runs += 1
      if (runs === 1) throw new Error('fails once')
    },
  })
  ticker.wake()
  assert.equal(runs, 0, 'not before the start')
  ticker.start()
  ticker.wake()
  await clock.advance(0)
  assert.equal(runs, 2, 'woken during a run: once more')
  await clock.advance(1000)
  assert.equal(runs, 3)
  await ticker.stop()
  ticker.wake()
  await clock.advance(5000)
  assert.equal(runs, 3)
})

test('a stop does not wait for a name server that keeps silent', async (t) => {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  dns.misbehave('silent.example', 'drop')
  const clock = createTestClock() // its time-outs never come
  const resolver = createResolver({ servers: [dns], clock })
  t.after(() => resolver.close())
  const ticker = createTicker({
    name: 'test',
    everyMs: 1000,
    clock,
    log,
    work: async (signal) => void (await untilStopped(resolver, signal).query('silent.example', 'TXT')),
  })
  const asked = dns.nextQuery()
  ticker.start()
  await asked
  await ticker.stop()
})
