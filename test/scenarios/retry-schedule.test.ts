/** R18: when deferred mail is retried, and when it is given up. */
// Slow: it steps a clock through days of attempts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../support/clock.ts'
import { eventually, startTestService } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'

const MINUTE_MS = 60_000
const WAITS_MIN = [10, 15, 30, 60, 120, 240]

type Failed = Record<string, unknown> & {
  severity: string
  reason: string
  'delivery-status': Record<string, number | string>
}

test('attempts follow after 10, 15, 30 minutes, 1, 2 and 4 hours; then the message is too old', async (t) => {
  const clock = createTestClock()
  const sink = await createSink()
  t.after(() => sink.close())
  sink.on('RCPT TO', '451 4.3.0 not now')
  const service = await startTestService(
    t,
    { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` },
    { clock },
  )
  await service.send({})
  /** Advances the clock a little with each poll, because timers may be set after it was advanced. */
  const failures = async (count: number) => {
    await clock.advance(50)
    const found = (await service.events('?event=failed')) as Failed[]
    const failed = found.filter(({ event }) => event === 'failed')
    return failed.length >= count ? failed : null
  }
  const rcpts = () => sink.commands.filter(([, line]) => line.startsWith('RCPT TO')).length
  for (const [index, wait] of WAITS_MIN.entries()) {
    const [last] = await eventually(`attempt ${index + 1}`, () => failures(index + 1))
    assert.equal(last?.severity, 'temporary')
    const retryMs = Number(last?.['delivery-status']['retry-seconds']) * 1000
    assert.ok(retryMs >= wait * MINUTE_MS * 0.95 - 1000 && retryMs <= wait * MINUTE_MS, `${wait}: ${retryMs}`)
    const due = (last?.['timestamp'] as number) * 1000 + retryMs
    await clock.advance(due - 2_000 - clock.now())
    assert.equal(rcpts(), index + 1, 'nothing is tried early')
    await clock.advance(4_000)
  }
  const [end] = await eventually('the end', () => failures(WAITS_MIN.length + 1))
  assert.equal(end?.severity, 'permanent')
  assert.equal(end?.reason, 'old')
  assert.equal(end?.['delivery-status']['code'], 602)
  assert.equal(end?.['delivery-status']['message'], 'Too old')
  assert.equal(end?.['delivery-status']['last-code'], 451)
  assert.equal(rcpts(), WAITS_MIN.length + 1)
})

const WINDOWS: [name: string, schedule: string, within: string, attempts: number][] = [
  ['shorter than the next wait', '10m', '5m', 1],
  ['longer than all retries', '1m,2m', '20m', 3],
]
for (const [name, schedule, within, attempts] of WINDOWS) {
  test(`o:deliver-within ${name}: the message fails at the end of its window, not before`, async (t) => {
    const clock = createTestClock()
    const sink = await createSink()
    t.after(() => sink.close())
    sink.on('RCPT TO', '451 4.3.0 not now')
    const service = await startTestService(
      t,
      { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`, SENDWRIGHT_RETRY_SCHEDULE: schedule },
      { clock },
    )
    const startedAt = clock.now()
    await service.send({ 'o:deliver-within': within })
    const windowMs = Number.parseInt(within, 10) * MINUTE_MS
    const end = await eventually('the end', async () => {
      const found = (await service.events('?event=failed')) as Failed[]
      const last = found.find(({ severity }) => severity === 'permanent')
      if (!last) await clock.advance(15_000)
      return last
    })
    const at = (end['timestamp'] as number) * 1000 - startedAt
    assert.ok(at >= windowMs && at <= windowMs + MINUTE_MS, `failed after ${at} ms of ${windowMs}`)
    assert.deepEqual(
      [end.reason, end['delivery-status']['code'], end['delivery-status']['last-code']],
      ['old', 602, 451],
    )
    assert.equal(sink.commands.filter(([, line]) => line.startsWith('RCPT TO')).length, attempts)
  })
}
