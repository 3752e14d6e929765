/** The process dies while relays fail and others take their messages: nothing is lost, and what may repeat. */
// By name: it kills processes of the service among mail through relays, for most of a minute.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import type { FailPoint } from '../../src/base/flow/fail-point.ts'
import { selfSigned } from '../support/certificates.ts'
import { judge, post, queueTotals } from '../support/crash-rig.ts'
import { call } from '../support/nodes.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink, type Sink, type SinkOptions } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

const ACCOUNT = { user: 'user', password: 'relay-secret' }
const LOGIN = { username: ACCOUNT.user, password: ACCOUNT.password }
const MESSAGES = 30
/** Messages that the relay takes before it answers 421. */
const BEFORE_FAILURE = 3
/** Of each relay. */
const CONNECTIONS = 2

async function rig(t: TestContext) {
  const sinkFor = async (options: SinkOptions = {}): Promise<Sink> => {
    const sink = await createSink({ host: ownAddress(), ...options })
    t.after(() => sink.close())
    return sink
  }
  const wrong = await sinkFor({ tls: selfSigned(['other.example']), auth: ACCOUNT })
  const dying = await sinkFor({ auth: ACCOUNT })
  const busy = await sinkFor({ auth: ACCOUNT })
  const good = await sinkFor({ auth: ACCOUNT })
  const relays = [dying, busy, good]
  /** Messages of each relay at each death. */
  const deaths: number[][] = []
  // Every other message, so that it is never closed: three failures in a row do that.
  let broken = 0
  dying.on('RCPT TO', (session) => {
    if (broken++ % 2 === 0) return '250 2.1.5 Ok'
    session.drop(true)
    return null
  })
  // After some in each life, and then for ever: 421 slows mail down until the relay is closed.
  busy.on('MAIL FROM', (session) => {
    const before = deaths.at(-1)?.[relays.indexOf(busy)] ?? 0
    if (busy.messages.length - before < BEFORE_FAILURE) return '250 2.1.0 Ok'
    session.write('421 4.3.2 going down\r\n')
    session.drop()
    return null
  })
  const host = ownAddress()
  const folder = await temporaryFolder(t)
  const env = {
    SENDWRIGHT_DATA: folder,
    SENDWRIGHT_DELIVERY: 'direct',
    SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
    SENDWRIGHT_RETRY_SCHEDULE: '1s,1s,1s,1s,1s,1s',
  }
  const ledger = new Set<string>()
  let posted = 0

  async function start(more: Record<string, string> = {}): Promise<ServiceProcess> {
    const service = await startProcess(host, { ...env, ...more })
    t.after(() => service.end('SIGKILL'))
    return service
  }
  /** Posts messages one after the other, as long as the process lives. */
  async function postSome(service: ServiceProcess, count: number): Promise<void> {
    for (let left = count; left > 0; left--) {
      const number = posted++
      const fields = { to: `user${number}@example.org`, subject: `message ${number}.`, text: 'Hi.' }
      const answer = await post(service, fields)
      if ('id' in answer) ledger.add(answer.id)
      else if (answer.status === null) return
      else assert.fail(`refused with ${answer.status}`)
    }
  }
  /** After a death. The pause of the relay that is closed is over, so that the next process tries it too. */
  function died(): void {
    deaths.push(relays.map(({ messages }) => messages.length))
    const database = new DatabaseSync(join(folder, 'sendwright.db'))
    database.exec('DELETE FROM ip_blocks')
    database.close()
  }
  /** Empties the queue and compares what arrived with what was accepted. */
  async function judgeAll(service: ServiceProcess): Promise<void> {
    await eventually('an empty queue', async () => (await queueTotals(service)) === 0)
    const messages = relays.flatMap((sink) => sink.messages)
    const { lost, repeated } = judge(ledger, { messages })
    assert.deepEqual(lost, [])
    const ids = new Map<string, Set<string>>()
    for (const { raw } of messages) {
      const [, subject = ''] = /^subject: *(.+)$/im.exec(raw.toString()) ?? []
      const [, id = ''] = /^message-id: *(.+)$/im.exec(raw.toString()) ?? []
      ids.set(subject, (ids.get(subject) ?? new Set()).add(id))
    }
    assert.ok(
      [...ids.values()].every(({ size }) => size === 1),
      'a repeat has the Message-Id of the first',
    )
    assertRepeats(repeated)
    assert.ok(
      relays.every((sink) => sink.messages.length > 0),
      'each relay took some',
    )
    for (const [, line] of wrong.commands) assert.doesNotMatch(line, /^(?:AUTH|MAIL)/)
    assert.ok(wrong.connections.total > 2, 'the relay with the wrong certificate was tried again')
  }
  /** Where each of these first arrived: at most one for each connection at a death. */
  function assertRepeats(repeated: readonly string[]): void {
    const counts = new Map<string, number>()
    for (const id of repeated) {
      const places = relays.flatMap(({ messages }, relay) =>
        messages.flatMap(({ raw }, index) => {
          const death = deaths.findIndex((sizes) => index < (sizes[relay] as number))
          return raw.includes(id) ? [{ relay, life: death === -1 ? deaths.length : death }] : []
        }),
      )
      const lives = places.map(({ life }) => life)
      assert.equal(new Set(lives).size, lives.length, `${id}: twice in one life`)
      const first = Math.min(...lives)
      const place = `life ${first}, relay ${places[lives.indexOf(first)]?.relay}`
      counts.set(place, (counts.get(place) ?? 0) + 1)
    }
    for (const [place, count] of counts) assert.ok(count <= CONNECTIONS, `${count} repeated: ${place}`)
  }

  const first = await start()
  for (const [name, sink, tls] of [
    ['wrong', wrong, 'starttls'],
    ['dying', dying, 'none'],
    ['busy', busy, 'none'],
    ['good', good, 'none'],
  ] as const) {
    const { host, port } = sink
    const relay = { name, host, port, tls, login: LOGIN, limits: { connections: CONNECTIONS } }
    await call(first, 'POST', '/sendwright/v1/relays', undefined, relay)
  }
  const levels = ['wrong', 'dying', 'busy', 'good'].map((relay) => [{ relay }])
  await call(first, 'PUT', '/sendwright/v1/relay-rules', undefined, { items: [{ match: {}, levels }] })
  await first.end('SIGTERM')
  return { relays, start, postSome, died, judgeAll }
}

/** Each is reached when some relays have failed messages. */
const POINTS: [point: FailPoint, times: number][] = [
  ['claim-after-commit', 2],
  ['connect-after', 3],
  ['attempt-before', 8],
  ['dot-before', 5],
  ['attempt-after', 7],
  ['settle-before-commit', 6],
  ['settle-after-commit', 9],
]

test('a service that dies at each step while relays fail loses nothing, and repeats one message per connection', async (t) => {
  const { start, postSome, died, judgeAll } = await rig(t)
  for (const [point, times] of POINTS) {
    const service = await start({ SENDWRIGHT_TEST_FAIL_POINT: `${point}:${times}` })
    const death = once(service.child, 'exit')
    const isDead = () => service.child.signalCode !== null || service.child.exitCode !== null
    for (let round = 0; round < 40 && !isDead(); round++) await postSome(service, 5)
    // What waits for its relays is sent when they are open again.
    await eventually(`${point} is reached`, async () => isDead())
    await death
    assert.equal(service.child.signalCode, 'SIGKILL', point)
    died()
  }
  await judgeAll(await start())
})

test('kill -9 after some messages, again and again, while relays break off and answer 421', async (t) => {
  const { relays, start, postSome, died, judgeAll } = await rig(t)
  const arrived = () => relays.reduce((sum, { messages }) => sum + messages.length, 0)
  for (const count of [2, MESSAGES / 4, MESSAGES / 2]) {
    const service = await start()
    const target = arrived() + count
    const posting = postSome(service, MESSAGES)
    await eventually(`${target} messages`, async () => arrived() >= target)
    await service.end('SIGKILL')
    await posting
    died()
  }
  await judgeAll(await start())
})
