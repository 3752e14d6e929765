/** Servers that reply twice to one command, or positively where content is to be sent first. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually, startTestService } from '../support/service.ts'
import { createSink, DEFAULT_EXTENSIONS } from '../support/smtp-sink.ts'

const SURPLUS = '250 2.0.0 and once more'

/** Event, the usual reply to it with another one after it; null: the reply instead. */
const CASES: [event: string, usual: string | null][] = [
  ['CONNECT', '220 sink.test ESMTP'],
  ['EHLO', '250-sink.test\r\n250 8BITMIME'],
  ['MAIL', '250 2.1.0 Ok'],
  ['RCPT', '250 2.1.5 Ok'],
  ['DATA', '354 go on'],
  ['DATA', null],
]

for (const extensions of [DEFAULT_EXTENSIONS, ['8BITMIME'], [...DEFAULT_EXTENSIONS, 'CHUNKING']]) {
  test(`a surplus reply is named in the event, and delivers nothing (${extensions.at(-1)})`, async (t) => {
    const sink = await createSink({ extensions })
    t.after(() => sink.close())
    const service = await startTestService(t, {
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
      SENDWRIGHT_RETRY_SCHEDULE: '1h',
    })
    for (const [event, usual] of CASES) {
      if (extensions.includes('CHUNKING') && event === 'DATA') continue
      sink.clearRules()
      sink.on(event, usual === null ? SURPLUS : `${usual}\r\n${SURPLUS}`)
      const label = `${event} ${usual}`
      const { body } = await service.send({ to: 'alice@example.net' })
      const id = String(body.id).slice(1, -1)
      const failed = await eventually(`the event: ${label}`, async () => {
        const events = await service.events(`?message-id=${encodeURIComponent(id)}`)
        return events.find(({ event }) => event !== 'accepted')
      })
      if (failed.event === 'delivered') {
        // Nothing shows it before the server has the message: then it is no lie.
        assert.equal(sink.messages.length, 1, label)
        sink.messages.length = 0
        continue
      }
      const { code, message } = failed['delivery-status'] as { code: number; message: string }
      assert.equal(failed.severity, 'temporary', label)
      assert.equal(code, 499, label)
      assert.match(message, /(unsolicited|invalid) reply: (250 2\.0\.0 and once more|354 go on|250 )/, label)
      assert.equal(sink.messages.length, 0, label)
    }
  })
}
