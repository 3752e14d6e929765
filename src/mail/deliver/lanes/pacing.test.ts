import assert from 'node:assert/strict'
import { test } from 'node:test'
import { siteOfHosts } from '../connect/routing.ts'
import { shippedShaping } from '../shaping/shaping-table.ts'
import { Lanes } from './lanes.ts'
import { asksFor, Pace } from './pacing.ts'

/** From the shipped file. */
const RECOVERY_MS = 15 * 60_000

const limits = (messagesPerSecond: number | null) => ({
  connections: 20,
  messagesPerConnection: 100,
  messagesPerSecond,
})

/** Starts of attempts in one window, if there is always something to send and the timer is late. */
function starts(pace: Pace, from: number, forMs: number, lateMs = 0): number[] {
  const begun: number[] = []
  for (let now = from; now < from + forMs; ) {
    const wait = pace.waitMs(now)
    if (wait > 0) {
      now += wait + lateMs
      continue
    }
    pace.begin(now)
    begun.push(now)
  }
  return begun
}

test('a rate is kept in every window, without a burst at its start, and lateness does not add up', () => {
  const begun = starts(new Pace(limits(10)), 0, 60_000, 3)
  assert.ok(Math.abs(begun.length - 600) <= 2, `${begun.length}`)
  for (let from = 0; from < 59_000; from += 137) {
    const inWindow = begun.filter((at) => at >= from && at < from + 1_000).length
    assert.ok(inWindow <= 11, `${inWindow} in the second from ${from}`)
  }
})

test('a complaint halves rate and connections; they recover in fifteen minutes', () => {
  const pace = new Pace(limits(10))
  assert.equal(pace.slowDown(0, 'slow down'), true)
  assert.deepEqual(
    { ...pace.state(0) },
    { connections: 10, messagesPerSecond: 5, backedOffMs: RECOVERY_MS, why: 'slow down' },
  )
  assert.equal(pace.slowDown(4_000, 'the same cause'), false)
  assert.ok((pace.state(RECOVERY_MS * 0.8).messagesPerSecond ?? 0) >= 9 - 1e-9)
  assert.deepEqual(pace.state(RECOVERY_MS), {
    connections: 20,
    messagesPerSecond: 10,
    backedOffMs: 0,
    why: null,
  })
})

test('a lane without a rate gets half of what it did', () => {
  const pace = new Pace(limits(null))
  for (let now = 0; now < 10_000; now += 10) pace.finished(now)
  pace.slowDown(10_000, '421 too many')
  const rate = pace.state(10_000).messagesPerSecond ?? 0
  assert.ok(rate > 45 && rate < 55, `${rate}`)
  assert.equal(pace.state(10_000 + RECOVERY_MS).messagesPerSecond, null)
})

test('too many connections: fewer of them, no lower rate, until a complaint about the rate comes', () => {
  const why = '421 4.7.0 relay.example Error: too many connections from 192.0.2.1'
  const free = new Pace(limits(null))
  assert.equal(free.slowDown(0, why, 'fewer-connections'), true)
  assert.deepEqual(free.state(0), {
    connections: 10,
    messagesPerSecond: null,
    backedOffMs: RECOVERY_MS,
    why,
  })
  const paced = new Pace(limits(10))
  paced.slowDown(0, '421 4.7.0 Too many concurrent SMTP connections', 'fewer-connections')
  assert.deepEqual([paced.state(0).connections, paced.state(0).messagesPerSecond], [10, 10])
  for (let now = 0; now < 6_000; now += 10) free.finished(now)
  free.slowDown(6_000, '421 4.7.0 Connection rate limit exceeded')
  const { connections, messagesPerSecond } = free.state(6_000)
  assert.ok(connections <= 6 && messagesPerSecond !== null, `${connections}, ${messagesPerSecond}`)
})

test('what replies ask for, by the shipped file', () => {
  const cases: [number, string, string | null][] = [
    [421, '4.7.28 Gmail has detected an unusual rate of unsolicited mail', 'slow-down'],
    [421, 'Service not available, closing transmission channel', 'slow-down'],
    [451, '4.7.500 Server busy. Please try again later', 'slow-down'],
    [450, '4.2.1 The user is receiving mail too quickly: Rate Limit', 'slow-down'],
    [421, '4.7.0 [TSS04] Messages from 1.2.3.4 temporarily deferred due to unexpected volume', 'slow-down'],
    [421, '4.7.0 relay.example Error: too many connections from 192.0.2.1', 'fewer-connections'],
    [421, '4.7.0 Connection rate limit exceeded', 'slow-down'],
    [450, '4.2.0 Greylisted, too many new senders', 'ignore'],
    [421, '4.2.0 Greylisted', 'ignore'],
    [452, '4.2.2 Mailbox full', null],
    [550, '5.7.1 rate limit', null],
  ]
  for (const [code, text, expected] of cases)
    assert.equal(asksFor(shippedShaping().default, code, text), expected, text)
})

test('providers by their MX hosts', () => {
  const cases: [string, string, string, string][] = [
    ['gmail.com', 'gmail-smtp-in.l.google.com', 'google', 'Gmail'],
    ['company.example', 'aspmx.l.google.com', 'google', 'Google Workspace'],
    ['new.example', 'smtp.google.com', 'google', 'Google Workspace'],
    ['hotmail.com', 'hotmail-com.olc.protection.outlook.com', 'outlook-consumer', 'Outlook US'],
    ['hotmail.fr', 'eur.olc.protection.outlook.com', 'outlook-consumer', 'Outlook EU'],
    ['firm.example', 'firm-example.mail.protection.outlook.com', 'outlook-365', 'Outlook 365'],
    ['yahoo.com', 'mta5.am0.yahoodns.net', 'yahoo', 'Yahoo US'],
    ['yahoo.de', 'mx-eu.mail.am0.yahoodns.net', 'yahoo', 'Yahoo EU'],
    ['icloud.com', 'mx01.mail.icloud.com', 'apple', 'Apple'],
    ['gmx.de', 'mx00.emig.gmx.net', 'united-internet', 'German'],
    ['proton.me', 'mail.protonmail.ch', 'proton', 'Proton'],
    ['a.example', 'us-smtp-inbound-1.mimecast.com', 'mimecast', 'Other US'],
    ['b.example', 'mx07-0012ab01.pphosted.com', 'proofpoint', 'Other US'],
    ['c.example', 'd1.ess.barracudanetworks.com', 'barracuda', 'Other US'],
    ['qq.com', 'mx3.qq.com', 'qq', 'Chinese'],
  ]
  for (const [domain, mx, site, name] of cases) {
    const provider = shippedShaping().siteOf(mx)
    assert.equal(provider?.site, site, mx)
    assert.equal(provider?.displayName(domain, mx), name, domain)
  }
  assert.equal(shippedShaping().siteOf('notgoogle.com'), null)
  assert.equal(shippedShaping().siteOf('google.com.evil.example'), null)
  assert.equal(siteOfHosts(['b.example', 'a.example']), 'a.example,b.example')
  assert.equal(shippedShaping().default.connections, 10)
})

test('processes divide the limits of a lane, the first ones have the remainder, and each has a connection', () => {
  const limits = { connections: 8, messagesPerConnection: 100, messagesPerSecond: 9 }
  const paces = [0, 1, 2].map((index) => new Pace(limits, () => ({ index, count: 3 })))
  assert.deepEqual(
    paces.map((pace) => pace.connections(0)),
    [3, 3, 2],
  )
  assert.equal(
    paces.reduce((sum, pace) => sum + (pace.state(0).messagesPerSecond ?? 0), 0),
    9,
  )
  const small = [0, 1, 2].map((index) => new Pace({ ...limits, connections: 2 }, () => ({ index, count: 3 })))
  assert.deepEqual(
    small.map((pace) => pace.connections(0)),
    [1, 1, 1],
  )
})

test('a lane that another process slowed down is slow here too, also before it is known', () => {
  const lanes = new Lanes(
    () => false,
    () => 1,
  )
  const info = (site: string) => ({
    ...{ name: `any/${site}`, source: null, site, relay: null, provider: 'Other' },
    limits: { connections: 8, messagesPerConnection: 100, messagesPerSecond: null },
  })
  const known = lanes.lane(info('known'))
  for (const name of ['any/known', 'any/later'])
    lanes.slowDown(name, { at: 0, why: 'too many connections', how: 'fewer-connections' })
  const later = lanes.lane(info('later'))
  for (const lane of [known, later]) assert.equal(lane.pace.state(1).connections, 5)
  assert.equal(lanes.lane(info('other')).pace.state(1).connections, 8)
})
