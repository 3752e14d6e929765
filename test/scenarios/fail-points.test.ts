/** R2 and R12, short: the process dies at each step of a delivery, and is stopped in an orderly way under load. */
// Slow: it kills processes of the service, again and again.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import type { FailPoint } from '../../src/base/flow/fail-point.ts'
import { judge, post, queueTotals } from '../support/crash-rig.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { EndedAtStart, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

/** Those that any message passes; relay-tokens-kill.test.ts, dns-writing-kill.test.ts and move-account-kill.test.ts have the others. */
type Point = Exclude<FailPoint, 'token-before-commit' | `dns-${string}` | `move-${string}`>

const POINTS: Record<Point, { mayRepeat: boolean }> = {
  'accept-before-commit': { mayRepeat: false },
  'accept-after-commit': { mayRepeat: false },
  'claim-before-commit': { mayRepeat: false },
  'claim-after-commit': { mayRepeat: false },
  'attempt-before': { mayRepeat: false },
  'connect-before': { mayRepeat: false },
  'connect-after': { mayRepeat: false },
  'dot-before': { mayRepeat: false },
  // The only gap: the server has answered 250 and our commit is not finished.
  'attempt-after': { mayRepeat: true },
  'settle-before-commit': { mayRepeat: true },
  'settle-after-commit': { mayRepeat: false },
  'start-after-reclaim': { mayRepeat: false },
}

async function rig(t: test.TestContext) {
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const host = ownAddress()
  const env = {
    SENDWRIGHT_DATA: await temporaryFolder(t),
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
  }
  const start = (more: Record<string, string> = {}) => startProcess(host, { ...env, ...more })
  return { sink, start }
}

const ended = ({ child }: ServiceProcess) => child.exitCode !== null || child.signalCode !== null

/** Resolves once nothing is in flight, or the process has ended. */
const quietOrDead = (service: ServiceProcess) =>
  eventually(
    'an empty queue or death',
    async () => ended(service) || (await queueTotals(service).catch(() => 1)) === 0,
  )

/** Sends one message after the other, with one delivery in flight at a time, until the process dies. */
async function sendUntilDeath(service: ServiceProcess, ledger: Set<string>, point: string) {
  const death = ended(service) ? null : once(service.child, 'exit')
  await quietOrDead(service)
  for (let number = 0; !ended(service); number++) {
    assert.ok(number < 20, `${point} is not reached`)
    const answer = await post(service, { to: 'user@example.org', subject: `${point} ${number}`, text: 'Hi.' })
    if ('id' in answer) ledger.add(answer.id)
    else if (answer.status !== null) assert.fail(`refused with ${answer.status}`)
    await quietOrDead(service)
  }
  await death
}

/** Fail points one after the other on one data folder, then a normal start that empties the queue. */
async function dieAtEach(t: test.TestContext, points: readonly Point[]) {
  const { sink, start } = await rig(t)
  const ledger = new Set<string>()
  /** The point that was armed when the sink accepted its nth message. */
  const armed: Point[] = []
  for (const point of points) {
    const service = await start({ SENDWRIGHT_TEST_FAIL_POINT: `${point}:1` }).catch((error: unknown) => {
      assert.ok(error instanceof EndedAtStart, String(error))
      return null
    })
    if (service) {
      t.after(() => service.end('SIGKILL'))
      await sendUntilDeath(service, ledger, point)
      assert.equal(service.child.signalCode, 'SIGKILL', point)
    }
    while (armed.length < sink.messages.length) armed.push(point)
  }
  const service = await start()
  t.after(() => service.end('SIGKILL'))
  await eventually('an empty queue', async () => (await queueTotals(service)) === 0)
  const { lost, repeated } = judge(ledger, sink)
  assert.deepEqual(lost, [])
  for (const id of repeated) {
    const first = armed[sink.messages.findIndex(({ raw }) => raw.includes(id))]
    assert.ok(first && POINTS[first].mayRepeat, `repeated at ${first}`)
  }
}

/** Each chain is a separate service and mostly waits for its starts. */
const CHAINS = 3

test('dying at any step loses nothing, and repeats only between the 250 and our commit', {
  concurrency: CHAINS,
}, async (t) => {
  const points = Object.keys(POINTS) as Point[]
  for (let chain = 0; chain < CHAINS; chain++) {
    const own = points.filter((_, index) => index % CHAINS === chain)
    void t.test(own.join(', '), (t) => dieAtEach(t, own))
  }
})

test('SIGTERM under load ends within its time, loses nothing and repeats nothing', async (t) => {
  const { sink, start } = await rig(t)
  sink.on('DATA-DOT', async () => {
    await new Promise((resolve) => setTimeout(resolve, 20))
    return '250 2.0.0 Ok'
  })
  const ledger = new Set<string>()
  let service = await start()
  t.after(() => service.end('SIGKILL'))
  for (let stop = 0; stop < 2; stop++) {
    const running = service
    const clients = Array.from({ length: 8 }, async (_, client) => {
      for (let number = 0; !ended(running); number++) {
        const answer = await post(running, {
          to: 'user@example.org',
          subject: `${client}-${number}`,
          text: 'Hi.',
        })
        if ('id' in answer) ledger.add(answer.id)
        else if (answer.status === null) break
      }
    })
    const target = ledger.size + 60
    await eventually('some accepted', async () => ledger.size >= target)
    assert.equal(await running.end('SIGTERM'), 0)
    await Promise.all(clients)
    service = await start()
  }
  await eventually('an empty queue', async () => (await queueTotals(service)) === 0)
  assert.deepEqual(judge(ledger, sink), { lost: [], repeated: [] })
})
