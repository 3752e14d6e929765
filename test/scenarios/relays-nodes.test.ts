/** Relays on several nodes of one database: what one changes, uses up or finds out counts on the other. */
// Slow: it starts several whole processes on one database.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { clockAhead, createNoonClock } from '../support/clock.ts'
import { post, queueTotals } from '../support/crash-rig.ts'
import { call, type TestNode, testNodes } from '../support/nodes.ts'
import { eventually } from '../support/service.ts'
import { createSink, type Sink, type SinkOptions } from '../support/smtp-sink.ts'

const PATH = '/sendwright/v1/relays'
const ACCOUNT = { user: 'user', password: 'relay-secret' }

async function sinkFor(t: TestContext, options: SinkOptions = {}): Promise<Sink> {
  const sink = await createSink(options)
  t.after(() => sink.close())
  return sink
}

async function pair(t: TestContext) {
  const nodes = await testNodes(t, {
    ...{ SENDWRIGHT_DELIVERY: 'direct', SENDWRIGHT_SANDBOX_RECIPIENTS: '*' },
    ...clockAhead(createNoonClock().aheadMs),
  })
  return { one: await nodes.start(), two: await nodes.start() }
}

/** The body of a relay, and its name where it is added. */
const bodyOf = ({ host, port }: Sink, more: object = {}) => ({ host, port, tls: 'none', ...more })

const add = (node: TestNode, name: string, sink: Sink, more?: object) =>
  call(node, 'POST', PATH, undefined, { name, ...bodyOf(sink, more) })

const setOrder = (node: TestNode, ...names: string[]) => {
  const items = names.length === 0 ? [] : [{ match: {}, levels: names.map((relay) => [{ relay }]) }]
  return call(node, 'PUT', '/sendwright/v1/relay-rules', undefined, { items })
}

async function send(node: TestNode, to: string, count = 1): Promise<void> {
  for (let number = 0; number < count; number++) {
    const answer = await post(node, { to: `${to}${number}@example.org`, subject: to, text: 'Hi.' })
    assert.ok('id' in answer, JSON.stringify(answer))
  }
}

const arrived = (sink: Sink, count: number) =>
  eventually(`${count} messages`, async () => sink.messages.length >= count)

const recipientsOf = ({ messages }: Sink) => messages.map(({ envelope }) => envelope.to[0]?.split('@')[0])

test('a relay that one node adds, changes, pauses or removes is so on the other', async (t) => {
  const { one, two } = await pair(t)
  const [first, second, third] = [await sinkFor(t), await sinkFor(t), await sinkFor(t)]
  await add(one, 'first', first)
  await add(one, 'second', second)
  await setOrder(one, 'first', 'second')
  await send(two, 'added')
  await arrived(first, 1)
  const state = async () => (await call(two, 'GET', `${PATH}/first`)) as Record<string, unknown>

  await call(one, 'PUT', `${PATH}/first`, undefined, bodyOf(third))
  assert.equal((await state())['port'], third.port)
  await send(two, 'changed')
  await arrived(third, 1)

  await call(one, 'PUT', `${PATH}/first/pause`)
  assert.notEqual((await state())['pause'], null)
  await send(two, 'paused')
  await arrived(second, 1)
  // Whichever node made it.
  await call(two, 'DELETE', `${PATH}/first/pause`)
  await send(one, 'resumed')
  await arrived(third, 2)

  await setOrder(two, 'second')
  await call(two, 'DELETE', `${PATH}/first`)
  await assert.rejects(call(one, 'GET', `${PATH}/first`), /404/)
  await send(one, 'removed')
  await arrived(second, 2)
  assert.deepEqual([first, second, third].map(recipientsOf), [
    ['added0'],
    ['paused0', 'removed0'],
    ['changed0', 'resumed0'],
  ])
})

test('both nodes together pass no limit of the day', async (t) => {
  const { one, two } = await pair(t)
  const [limited, other] = [await sinkFor(t), await sinkFor(t)]
  const LIMIT = 30
  await add(one, 'limited', limited, { limits: { messages_per_day: LIMIT } })
  await add(one, 'other', other)
  await setOrder(two, 'limited', 'other')
  await Promise.all([send(one, 'a', 40), send(two, 'b', 40)])
  await eventually('all', async () => limited.messages.length + other.messages.length === 80)
  await eventually('an empty queue', async () => (await queueTotals(one)) === 0)
  assert.deepEqual([limited.messages.length, other.messages.length], [LIMIT, 80 - LIMIT])
  for (const node of [one, two])
    assert.equal(((await call(node, 'GET', `${PATH}/limited`)) as { used_today: number }).used_today, LIMIT)
})

test('a relay that one node closes is closed on the other, and opened by it', async (t) => {
  const { one, two } = await pair(t)
  const [locked, other] = [await sinkFor(t, { auth: ACCOUNT }), await sinkFor(t)]
  const login = { username: ACCOUNT.user, password: 'wrong-secret' }
  await add(one, 'locked', locked, { login })
  await add(one, 'other', other)
  await setOrder(one, 'locked', 'other')
  await send(one, 'first')
  await arrived(other, 1)
  const wordOn = async (node: TestNode) =>
    ((await call(node, 'GET', `${PATH}/locked`)) as { state: { word: string } }).state.word
  await eventually('closed on both', async () =>
    [await wordOn(one), await wordOn(two)].every((word) => word === 'closed'),
  )
  const tried = () => locked.commands.filter(([, line]) => line.startsWith('AUTH')).length
  const before = tried()
  await Promise.all([send(one, 'a', 10), send(two, 'b', 10)])
  await arrived(other, 21)
  assert.equal(tried(), before, 'nobody logs in at a closed relay')

  await call(
    two,
    'PUT',
    `${PATH}/locked`,
    undefined,
    bodyOf(locked, { login: { ...login, password: ACCOUNT.password } }),
  )
  const trial = { from: `sender@${two.domain}`, to: 'trial@example.org' }
  const { accepted } = await call(two, 'POST', `${PATH}/locked/test`, undefined, trial)
  assert.equal(accepted, true)
  await eventually('open on both', async () =>
    [await wordOn(one), await wordOn(two)].every((word) => word === 'open'),
  )
  await send(one, 'again')
  await arrived(locked, 2)
})
