// Both databases: actions on the queue change rows that other nodes claim.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'
import { createSink } from '../../../test/support/smtp-sink.ts'

const BASE = '/sendwright/v1'

async function rig(
  t: test.TestContext,
  database: 'sqlite' | 'postgres' = 'sqlite',
  env: Record<string, string> = {},
) {
  const sink = await createSink()
  t.after(() => sink.close())
  sink.on('RCPT TO', '451 4.3.0 not now')
  const service = await startTestService(
    t,
    { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`, ...env },
    { database },
  )
  return { sink, service }
}

/** Of a paging link. */
const pathOf = (link: string) => link.slice(new URL(link).origin.length)

const act = async (service: TestService, json: unknown) =>
  service.call('POST', `${BASE}/queue/actions`, { json })

async function items(service: TestService, id: string) {
  const { body } = await service.call('GET', `${BASE}/messages/${encodeURIComponent(id)}/deliveries`)
  return body.items as {
    id: string
    recipient: string
    state: string
    reason: { code: string }
    attempts: number
  }[]
}

const deferred = (service: TestService, id: string) =>
  eventually('deferred', async () => {
    const found = await items(service, id)
    return found.every(({ reason }) => reason.code === 'deferred') ? found : null
  })

eachDatabase((database) => {
  test('pause, resume, retry and drop what a filter matches', async (t) => {
    const { sink, service } = await rig(t, database)
    const to = ['a@one.example', 'b@two.example', 'c@two.example']
    const { id } = (await service.send({ to, 'o:tag': 'News' })).body
    await deferred(service, id)

    const filter = { recipient_domain: 'two.example' }
    const counted = await act(service, { action: 'pause', filter, dry_run: true })
    assert.deepEqual(counted.body, { matched: 2, changed: 0 })
    assert.deepEqual((await act(service, { action: 'pause', filter })).body, { matched: 2, changed: 2 })
    const codes = async () => (await items(service, id)).map(({ reason }) => reason.code)
    assert.deepEqual((await codes()).sort(), ['deferred', 'paused', 'paused'])
    assert.deepEqual((await act(service, { action: 'pause', filter })).body, { matched: 0, changed: 0 })
    const { recipient } = (await service.call('GET', `${BASE}/queue/domains`)).body
    const paused = recipient.map((row: { domain: string; paused: number }) => [row.domain, row.paused])
    assert.deepEqual(paused.sort(), [
      ['one.example', 0],
      ['two.example', 2],
    ])

    const byTag = await act(service, { action: 'resume', filter: { tag: 'news' } })
    assert.deepEqual(byTag.body, { matched: 2, changed: 2 })

    const dropped = await act(service, {
      action: 'drop',
      filter: { recipient_domain: 'one.example', older_than: '1h' },
    })
    assert.deepEqual(dropped.body, { matched: 0, changed: 0 }, 'younger than an hour')
    const drop = await act(service, {
      action: 'drop',
      filter: { message_id: id, recipient_domain: 'one.example' },
    })
    assert.deepEqual(drop.body, { matched: 1, changed: 1 })
    assert.equal(
      (await items(service, id)).find(({ recipient }) => recipient === 'a@one.example')?.state,
      'cancelled',
    )

    sink.clearRules()
    const again = await act(service, {
      action: 'retry',
      filter: { lane: 'any/relay:default', domain: service.domain },
    })
    assert.deepEqual(again.body, { matched: 2, changed: 2 })
    await sink.waitFor(2)
    assert.deepEqual(sink.messages.flatMap(({ envelope }) => envelope.to).sort(), to.slice(1))
  })
})

eachDatabase((database) => {
  test('what waits is listed by filter and reason, and expires on request as old mail', async (t) => {
    const { sink, service } = await rig(t, database)
    const to = ['a@one.example', 'b@two.example', 'c@two.example']
    const { id } = (await service.send({ to })).body
    await deferred(service, id)
    const list = async (query: string) => {
      const { status, body } = await service.call('GET', `${BASE}/queue/deliveries?${query}`)
      assert.equal(status, 200)
      return body as {
        items: { id: string; recipient: string; domain: string; message_id: string }[]
        paging: { next: string; previous: string }
      }
    }
    const recipients = async (query: string) => (await list(query)).items.map(({ recipient }) => recipient)
    assert.deepEqual(await recipients(''), to)
    assert.deepEqual(await recipients('recipient_domain=two.example&reason=deferred'), to.slice(1))
    assert.deepEqual(await recipients('lane=any/relay:default&reason=paused'), [])
    assert.deepEqual(await recipients('older_than=1h'), [])
    const first = await list('limit=2')
    assert.deepEqual(
      first.items.map(({ domain, message_id: message }) => [domain, message]),
      Array(2).fill([service.domain, id.replace(/[<>]/g, '')]),
    )
    const next = await service.call('GET', pathOf(first.paging.next))
    assert.deepEqual(
      next.body.items.map((item: { recipient: string }) => item.recipient),
      to.slice(2),
    )
    const back = await service.call('GET', pathOf(next.body.paging.previous))
    assert.deepEqual(
      back.body.items.map((item: { recipient: string }) => item.recipient),
      to.slice(0, 2),
    )
    assert.equal((await service.call('GET', `${BASE}/queue/deliveries?older_than=soon`)).status, 400)

    const attempts = sink.commands.filter(([, line]) => line.startsWith('RCPT')).length
    const filter = { recipient_domain: 'two.example', reason: 'deferred' }
    assert.deepEqual((await act(service, { action: 'expire', filter })).body, { matched: 2, changed: 2 })
    const failed = await eventually('both failed', async () => {
      const events = await service.events('?event=failed&severity=permanent')
      return events.length === 2 ? events : null
    })
    assert.deepEqual(
      failed.map(({ reason }) => reason),
      ['old', 'old'],
    )
    assert.equal(
      sink.commands.filter(([, line]) => line.startsWith('RCPT')).length,
      attempts,
      'no further attempt',
    )
    assert.deepEqual(await recipients(''), to.slice(0, 1))
  })
})

eachDatabase((database) => {
  test('what is moved to the shared pool leaves from there, whatever it asked for', async (t) => {
    const { sink, service } = await rig(t, database, { SENDWRIGHT_IPS: '127.0.0.2,127.0.0.4=shared' })
    const to = ['a@one.example', 'b@two.example']
    const { id } = (await service.send({ to, 'o:sending-ip': '127.0.0.2' })).body
    await deferred(service, id)
    const order = { action: 'move', pool: 'shared', filter: { recipient_domain: 'two.example' } }
    assert.deepEqual((await act(service, { ...order, dry_run: true })).body, { matched: 1, changed: 0 })
    assert.deepEqual((await act(service, order)).body, { matched: 1, changed: 1 })
    assert.deepEqual(
      (await items(service, id)).map(({ reason }) => reason.code),
      ['deferred', 'deferred'],
      'moved, not hurried',
    )
    sink.clearRules()
    await act(service, { action: 'retry', filter: { message_id: id } })
    await sink.waitFor(2)
    const sources = sink.messages.map(({ envelope, remoteAddress }) => [envelope.to[0], remoteAddress])
    assert.deepEqual(sources.sort(), [
      ['a@one.example', '127.0.0.2'],
      ['b@two.example', '127.0.0.4'],
    ])
    assert.match(
      sink.messages.find(({ remoteAddress }) => remoteAddress === '127.0.0.4')?.raw.toString() ?? '',
      /^X-Service-Sending-Ip: 127\.0\.0\.4\r$/m,
    )
  })
})

test('what an action refuses', async (t) => {
  const { service } = await rig(t)
  const cases: [unknown, string][] = [
    [{ filter: { tag: 'x' } }, 'Missing mandatory parameter: action'],
    [{ action: 'burn', filter: { tag: 'x' } }, `'burn' is not a valid value for action`],
    [{ action: 'drop' }, 'Missing mandatory parameter: filter'],
    [{ action: 'drop', filter: {} }, 'Missing mandatory parameter: filter'],
    [{ action: 'drop', filter: { colour: 'red' } }, 'Unknown filter: colour'],
    [
      { action: 'drop', filter: { older_than: 'long' } },
      'Invalid format for parameter filter.older_than: long',
    ],
    [{ action: 'move', filter: { tag: 'x' } }, 'Missing mandatory parameter: pool'],
    // No address is configured as shared here.
    [
      { action: 'move', filter: { tag: 'x' }, pool: 'shared', dry_run: true },
      `shared is not a valid IP pool (value of 'pool')`,
    ],
    [{ action: 'move', filter: { tag: 'x' }, pool: 'p1' }, `p1 is not a valid IP pool (value of 'pool')`],
  ]
  for (const [json, message] of cases) {
    const answer = await act(service, json)
    assert.equal(answer.status, 400, message)
    assert.deepEqual(answer.body, { message })
  }
  const unknown = await service.call('GET', `${BASE}/messages/nobody@example.org/deliveries`)
  assert.equal(unknown.status, 404)
  assert.equal((await service.call('GET', `${BASE}/deliveries/nothing/transcript`)).status, 404)
})
