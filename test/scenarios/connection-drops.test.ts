/** R19: the connection breaks at each stage of the dialogue. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuthority } from '../support/certificates.ts'
import { createInternet } from '../support/internet.ts'
import { eventually, startTestService } from '../support/service.ts'
import type { Sink } from '../support/smtp-sink.ts'

interface Stage {
  spoil(sink: Sink): void
  /** Copies that the server finally accepted. */
  copies: number
  /** Temporary failures before it was delivered. */
  failures: number
  tls?: boolean
}

const once = { times: 1 } as const
const drop = (event: string): Stage => ({ spoil: (sink) => sink.dropAt(event, once), copies: 1, failures: 1 })
const reset = (event: string): Stage => ({
  spoil: (sink) => sink.dropAt(event, { ...once, reset: true }),
  copies: 1,
  failures: 1,
})

/** Twelve stages. Only a break after the final dot can repeat a message, and does so once. */
const STAGES: Record<string, Stage> = {
  'before the greeting': drop('CONNECT'),
  'reset before the greeting': reset('CONNECT'),
  'at EHLO': drop('EHLO'),
  'at STARTTLS (plain text is used)': { ...drop('STARTTLS'), failures: 0, tls: true },
  'at EHLO inside TLS': {
    spoil(sink) {
      let greetings = 0
      sink.on('EHLO', (session) => {
        if (session.secure && greetings++ === 0) session.drop()
        return '250-sink.test\r\n250-PIPELINING\r\n250 STARTTLS'
      })
    },
    copies: 1,
    failures: 1,
    tls: true,
  },
  'at MAIL': drop('MAIL'),
  'at RCPT': drop('RCPT'),
  'at DATA': drop('DATA'),
  'in the content': drop('BODY'),
  'reset in the content': reset('BODY'),
  'at the final dot, not taken': drop('DATA-DOT'),
  'at the final dot, taken': {
    spoil: (sink) => sink.dropAt('DATA-DOT', { ...once, accept: true, reset: true }),
    copies: 2,
    failures: 1,
  },
}

test('a broken connection defers the message; only after the final dot can it arrive twice', async (t) => {
  const internet = await createInternet(t)
  const authority = createAuthority()
  const sites = await Promise.all(
    Object.entries(STAGES).map(async ([name, stage], index) => {
      const domain = `stage${index}.example`
      const tls = stage.tls ? { tls: authority.issue([`mx.${domain}`]) } : {}
      const sink = await internet.site([domain], tls)
      stage.spoil(sink)
      return { name, stage, sink, domain }
    }),
  )
  const service = await startTestService(t, { ...internet.env, SENDWRIGHT_RETRY_SCHEDULE: '1s,1s,1s' })
  for (const { domain } of sites) await service.send({ to: `user@${domain}`, 'o:skip-verification': 'yes' })
  for (const { name, stage, sink, domain } of sites) {
    await t.test(name, async () => {
      const events = await eventually('delivered', async () => {
        const mine = (await service.events('?limit=300')).filter(
          (event) => event['recipient'] === `user@${domain}`,
        )
        return mine.some((event) => event['event'] === 'delivered') ? mine : null
      })
      const failed = events.filter((event) => event['event'] === 'failed')
      assert.equal(failed.length, stage.failures)
      for (const failure of failed) {
        assert.equal(failure['severity'], 'temporary')
        assert.equal((failure['delivery-status'] as { code: number }).code, 499)
      }
      assert.equal(sink.messages.length, stage.copies)
      const ids = new Set(sink.messages.map(({ raw }) => /^message-id: *(.*)$/im.exec(raw.toString())?.[1]))
      assert.equal(ids.size, 1, 'every copy has the same Message-Id')
    })
  }
})
