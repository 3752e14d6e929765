/** R50, and a queue of good and bad destinations: their effect on each other, and what is reported. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Misbehaviour } from '../support/dns-server.ts'
import { createInternet, type Internet } from '../support/internet.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { activeDomain, callAs, createSubaccount, sendFrom, startOpened } from '../support/subaccounts.ts'

interface Item {
  id: string
  recipient: string
  state: string
  attempts: number
  next_attempt_at: string | null
  reason: { code: string; sentence: string }
  lane: string | null
  last_reply: { code: number; text: string } | null
}

async function deliveriesOf(service: TestService, id: string): Promise<Item[]> {
  const path = `/sendwright/v1/messages/${encodeURIComponent(id)}/deliveries?limit=1000`
  return ((await service.call('GET', path)).body as { items: Item[] }).items
}

const settled = (service: TestService, id: string) =>
  eventually('first attempts', async () => {
    const items = await deliveriesOf(service, id)
    return items.every(({ attempts, state }) => attempts > 0 && state !== 'sending') ? items : null
  })

/** Fourteen kinds of DNS failure; `state` after the first attempt. */
const TROUBLE: Record<
  string,
  { set(internet: Internet, domain: string, sink: string): void; state: string }
> = {
  servfail: { set: spoil('servfail'), state: 'queued' },
  refused: { set: spoil('refused'), state: 'queued' },
  garbage: { set: spoil('garbage'), state: 'queued' },
  truncated: {
    set(internet, domain, sink) {
      internet.host(domain, `mx.${domain}`, sink)
      internet.dns.misbehave(domain, 'truncate')
    },
    state: 'delivered',
  },
  'no-edns': {
    set(internet, domain, sink) {
      internet.host(domain, `mx.${domain}`, sink)
      internet.dns.misbehave(domain, 'no-edns')
    },
    state: 'delivered',
  },
  'null-mx': { set: ({ dns }, domain) => dns.set(domain, 'MX', [[0, '.']]), state: 'bounced' },
  nxdomain: { set: () => {}, state: 'bounced' },
  'no-address': { set: ({ dns }, domain) => dns.set(domain, 'TXT', ['hello']), state: 'queued' },
  'implicit-mx': { set: ({ dns }, domain, sink) => dns.set(domain, 'A', [sink]), state: 'delivered' },
  'private-mx': {
    set: (internet, domain) => internet.host(domain, `mx.${domain}`, '10.1.2.3'),
    state: 'queued',
  },
  'hundred-mx': {
    set(internet, domain, sink) {
      for (let n = 0; n < 100; n++) internet.host(domain, `mx${n}.${domain}`, sink, n)
    },
    state: 'delivered',
  },
  'cname-loop': {
    set({ dns }, domain) {
      dns.set(domain, 'CNAME', [`loop.${domain}`])
      dns.set(`loop.${domain}`, 'CNAME', [domain])
    },
    state: 'queued',
  },
  'mx-is-alias': {
    set({ dns }, domain, sink) {
      dns.set(domain, 'MX', [[10, `alias.${domain}`]])
      dns.set(`alias.${domain}`, 'CNAME', [`real.${domain}`])
      dns.set(`real.${domain}`, 'A', [sink])
    },
    state: 'delivered',
  },
  'first-mx-down': {
    set(internet, domain, sink) {
      internet.host(domain, `down.${domain}`, '127.255.255.1', 1)
      internet.host(domain, `up.${domain}`, sink, 2)
    },
    state: 'delivered',
  },
}

function spoil(how: Misbehaviour) {
  return ({ dns }: Internet, domain: string) => dns.misbehave(domain, how)
}

test('DNS failures: the right class in each of fourteen cases', async (t) => {
  const internet = await createInternet(t)
  const sink = await internet.site(['good.example'])
  const domainOf = (name: string) => `${name}.example`
  for (const [name, { set }] of Object.entries(TROUBLE)) set(internet, domainOf(name), sink.host)
  const service = await startTestService(t, internet.env)
  const to = Object.keys(TROUBLE).map((name) => `user@${domainOf(name)}`)
  const sent = await service.send({ to })
  const items = await settled(service, sent.body.id)
  for (const [name, { state }] of Object.entries(TROUBLE)) {
    await t.test(name, () => {
      const item = items.find(({ recipient }) => recipient === `user@${domainOf(name)}`)
      assert.equal(item?.state, state, item?.reason.sentence)
      if (state !== 'delivered') assert.equal(item?.last_reply?.code, 498)
    })
  }
})

test('bad destinations delay no others, and each delivery says why it has not been sent', async (t) => {
  const internet = await createInternet(t)
  const healthy = await internet.site(['healthy.example'])
  const silent = await internet.site(['silent.example'])
  silent.on('CONNECT', null)
  const grey = await internet.site(['grey.example'])
  grey.on('RCPT TO', '451 4.7.1 greylisted, try later')
  const busy = await internet.site(['busy.example'])
  busy.on('MAIL', '421 4.7.0 too many messages, slow down')
  internet.host('dead.example', 'mx.dead.example', '127.255.255.2')
  const opened = await startOpened(t, internet.env)
  const { service } = opened
  const bad = ['silent', 'grey', 'busy', 'dead']
  const ids = new Map<string, string>()
  for (const name of bad) {
    const to = Array.from({ length: 100 }, (_, index) => `user${index}@${name}.example`)
    ids.set(name, (await service.send({ to })).body.id)
  }
  const good = await service.send({ to: Array.from({ length: 50 }, (_, n) => `user${n}@healthy.example`) })
  await healthy.waitFor(50)
  assert.equal(silent.messages.length, 0)
  const items = async (name: string) => deliveriesOf(service, ids.get(name) as string)

  await t.test('the healthy ones are delivered', async () => {
    const all = await eventually('delivered', async () => {
      const found = await deliveriesOf(service, good.body.id)
      return found.every(({ state }) => state === 'delivered') ? found : null
    })
    assert.equal(all[0]?.reason.code, 'delivered')
  })
  await t.test('a server that never greets: its connections are busy, the rest waits', async () => {
    const found = await eventually('10 connections', async () => {
      const all = await items('silent')
      return all.filter(({ reason }) => reason.code === 'sending').length === 10 ? all : null
    })
    const waiting = found.filter(({ reason }) => reason.code === 'lane-busy')
    assert.equal(waiting.length, 90)
    assert.match(
      waiting[0]?.reason.sentence ?? '',
      /one of the 10 connections of lane any\/mx\.silent\.example/,
    )
  })
  await t.test('greylisted', async () => {
    const found = await eventually('all tried', async () => {
      const all = await items('grey')
      return all.every(({ reason }) => reason.code === 'greylisted') ? all : null
    })
    assert.match(found[0]?.reason.sentence ?? '', /greylisted, try later"; the next one follows at 20/)
  })
  await t.test('asked to slow down', async () => {
    const found = await eventually('slowed down', async () => {
      const all = await items('busy')
      return all.some(({ reason }) => reason.code === 'lane-slowed') ? all : null
    })
    const slowed = found.find(({ reason }) => reason.code === 'lane-slowed')
    assert.match(slowed?.reason.sentence ?? '', /since a server said "4\.7\.0 too many messages, slow down"/)
  })
  await t.test('dead: all are deferred quickly, most without waiting for the host again', async () => {
    const found = await eventually('all tried', async () => {
      const all = await items('dead')
      return all.every(({ reason }) => reason.code === 'deferred') ? all : null
    })
    assert.ok(found.some(({ last_reply }) => /not tried again within a minute/.test(last_reply?.text ?? '')))
  })
  await t.test('the lanes report the same', async () => {
    const { body } = await service.call('GET', '/sendwright/v1/queue/lanes')
    const lanes = body.items as {
      site: string
      connections: number
      backed_off_why: string | null
      queued: number
    }[]
    const lane = (name: string) => lanes.find(({ site }) => site === `mx.${name}.example`)
    assert.equal(lane('silent')?.connections, 10)
    assert.match(lane('busy')?.backed_off_why ?? '', /slow down/)
    const domains = (await service.call('GET', '/sendwright/v1/queue/domains')).body
    assert.equal(
      domains.recipient.find((row: { domain: string }) => row.domain === 'grey.example').deferred,
      100,
    )
  })
  await t.test('another account on the same lane sees no text of a reply to others', async () => {
    const call = callAs(service, await createSubaccount(service, 'tenant'))
    await activeDomain(opened.core, call, 'tenant.example')
    const sent = await sendFrom(call, 'tenant.example', { to: 'x@busy.example' })
    assert.equal(sent.status, 200, sent.text)
    const lane = await eventually('its mail waits', async () => {
      const { items } = (await call('GET', '/sendwright/v1/queue/lanes')).body
      return items.find(({ queued }: { queued: number }) => queued > 0)
    })
    assert.deepEqual([lane.site, lane.queued, lane.backed_off_why], ['mx.busy.example', 1, '4.7.0'])
  })
  await t.test('transcripts of failed attempts are kept', async () => {
    const [item] = await items('grey')
    const { body } = await service.call('GET', `/sendwright/v1/deliveries/${item?.id}/transcript`)
    const lines = body.items[0].lines as { direction: string; line: string }[]
    assert.ok(lines.some(({ line }) => line === '451 4.7.1 greylisted, try later'))
    assert.ok(
      lines.some(({ direction, line }) => direction === 'sent' && line.startsWith('MAIL FROM:<bounce+')),
    )
  })
})

test('denied mail hosts get nothing: others of the domain do, and a domain without any bounces at once', async (t) => {
  const internet = await createInternet(t)
  const sink = await internet.site(['good.example'])
  const denied = await internet.site(['bad.example'])
  internet.host('mixed.example', 'MX1.Pool.bad.example', denied.host, 10)
  internet.host('mixed.example', 'mx.mixed.example', sink.host, 20)
  internet.host('byname.example', 'mx1.pool.bad.example', denied.host)
  internet.host('byaddress.example', 'mx.byaddress.example', denied.host)
  const SENDWRIGHT_MX_DENY = `mx?.*.bad.example,${denied.host}/32`
  const service = await startTestService(t, { ...internet.env, SENDWRIGHT_MX_DENY })
  const to = ['mixed', 'byname', 'byaddress', 'good'].map((name) => `user@${name}.example`)
  const sent = await service.send({ to })
  const items = await settled(service, sent.body.id)
  const shown = items.map(({ recipient, state, last_reply: reply }) => [recipient, state, reply?.code])
  assert.deepEqual(shown.sort(), [
    ['user@byaddress.example', 'bounced', 498],
    ['user@byname.example', 'bounced', 498],
    ['user@good.example', 'delivered', 250],
    ['user@mixed.example', 'delivered', 250],
  ])
  assert.equal(denied.connections.total, 0)
  const failed = JSON.stringify(await service.events('?event=failed'))
  assert.match(failed, /Mail to the mail hosts of byname\.example is not allowed here/)
  assert.match(failed, /its mail hosts are denied: mx1\.pool\.bad\.example/)
  const listed = await service.call('GET', `/v3/${service.domain}/bounces/user@byname.example`)
  assert.equal(listed.status, 404, 'the address is not to blame')
})
