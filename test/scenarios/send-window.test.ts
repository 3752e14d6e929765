/** Mail that is sent in certain hours only: new mail, retries, and what its domain says. */
// Own process: it steps a clock through days.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../support/clock.ts'
import { eachDatabase } from '../support/databases.ts'
import { eventually, startTestService } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'
import { invite } from '../support/users.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

const hourOf = (time: number) => new Date(time).toISOString().slice(11, 16)

eachDatabase((database) =>
  test('mail waits for the hours in which it may be sent', async (t) => {
    const clock = createTestClock()
    const sink = await createSink()
    t.after(() => sink.close())
    const env = { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}`, SENDWRIGHT_RETRY_SCHEDULE: '10m,10m' }
    const service = await startTestService(t, env, { clock, database })
    const { domain } = service
    const settings = `/v4/domains/${domain}`
    const after = (hours: number) => Math.ceil(clock.now() / MINUTE_MS) * MINUTE_MS + hours * HOUR_MS
    const [opensAt, closesAt] = [after(3), after(4)]
    const send_window = `${hourOf(opensAt)}-${hourOf(closesAt)}`

    const bad = await service.call('PUT', settings, { form: { send_window: '9 to 5' } })
    assert.equal(bad.status, 400, bad.text)
    const set = await service.call('PUT', settings, { form: { send_window } })
    assert.equal(set.status, 200, set.text)
    assert.equal((await service.call('GET', settings)).body.domain.send_window, send_window)

    /** Their outcome is written: the clock may go on. */
    const arrived = async () =>
      (await service.events('?event=delivered'))
        .map(({ recipient }) => String(recipient).split('@')[0])
        .toSorted()
    const advanceTo = async (time: number, what: string) => {
      clock.leap(time - clock.now())
      await eventually(what, async () => {
        await clock.advance(50)
        return (await arrived()).includes(what)
      })
    }
    for (const [name, options] of [
      ['waits', {}],
      ['at-once', { 'o:send-window': 'always' }],
      ['own', { 'o:send-window': `${hourOf(after(1))}-${hourOf(after(2))}` }],
      // Within the window.
      ['later', { 'o:deliverytime': new Date(opensAt + 30 * MINUTE_MS).toUTCString() }],
    ] as const) {
      const sent = await service.send({ to: `${name}@example.org`, ...options })
      assert.equal(sent.status, 200, sent.text)
    }
    const refused = await service.send({ 'o:send-window': 'Mon-Fri' })
    assert.equal(refused.body.message, "Mon-Fri is not a valid send window (value of 'o:send-window')")
    const [scheduled] = await service.events('?event=accepted&recipient=waits@example.org')
    assert.equal(
      (scheduled as { message: { 'scheduled-for': number } }).message['scheduled-for'],
      opensAt / 1000,
    )

    // Mail of the service itself leaves from this domain, too, and does not wait for its hours.
    const invited = 'invited@example.org'
    await invite(service, invited)
    await eventually('the invitation', async () => {
      await clock.advance(50)
      return sink.messages.some(({ envelope }) => envelope.to[0] === invited)
    })
    const ownOpensAt = after(1)
    await advanceTo(clock.now(), 'at-once')
    assert.deepEqual(await arrived(), ['at-once'])
    await advanceTo(ownOpensAt + 1_000, 'own')
    assert.deepEqual(await arrived(), ['at-once', 'own'])
    sink.on('RCPT TO:<late@example.org>', '451 4.3.0 not now')
    await advanceTo(opensAt + 1_000, 'waits')
    await advanceTo(opensAt + 31 * MINUTE_MS, 'later')
    assert.deepEqual(await arrived(), ['at-once', 'later', 'own', 'waits'])

    // It is refused at the end of the window; its retries would follow after it, and its eight hours would end before the next.
    clock.leap(closesAt - 5 * MINUTE_MS - clock.now())
    await service.send({ to: 'late@example.org' })
    const tries = () => sink.commands.filter(([, line]) => line.includes('late@example.org')).length
    await eventually('the first try', async () => {
      await clock.advance(50)
      return (await service.events('?event=failed')).length === 1
    })
    const waiting = async () => {
      const [item] = (await service.call('GET', '/sendwright/v1/queue/deliveries')).body.items
      return item?.reason?.code === 'send-window' ? item : null
    }
    clock.leap(HOUR_MS)
    const item = await eventually('the wait', async () => {
      await clock.advance(50)
      return waiting()
    })
    assert.equal(Date.parse(item.next_attempt_at), opensAt + 24 * HOUR_MS)
    assert.equal(tries(), 1)
    sink.on('RCPT TO:<late@example.org>', '250 2.1.5 now')
    await advanceTo(opensAt + 24 * HOUR_MS + 1_000, 'late')
    assert.equal(tries(), 2)

    await service.call('PUT', settings, { form: { send_window: '' } })
    assert.equal((await service.call('GET', settings)).body.domain.send_window, undefined)
    clock.leap(2 * HOUR_MS)
    await service.send({ to: 'free@example.org' })
    await advanceTo(clock.now(), 'free')
  }),
)
