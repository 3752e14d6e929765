import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigError, readConfig } from './config.ts'

test('settings that are on or off take the same words, in any case', () => {
  for (const [words, on] of [
    [['yes', 'true', 'on', '1', 'YES', 'True'], true],
    [['no', 'false', 'off', '0', 'No', 'OFF'], false],
  ] as const) {
    for (const word of words) {
      const config = readConfig({
        SENDWRIGHT_TRACKING_TLS_EXTERNAL: word,
        SENDWRIGHT_WEBHOOK_RETRY_DELIVERED: word,
        SENDWRIGHT_SMTP_AUTH_WITHOUT_TLS: word,
      })
      assert.equal(config.trackingTlsExternal, on, word)
      assert.equal(config.webhookRetryDelivered, on, word)
      assert.equal(config.smtpAuthWithoutTls, on ? 'anyone' : 'nobody', word)
    }
  }
  assert.throws(
    () => readConfig({ SENDWRIGHT_TRACKING_TLS_EXTERNAL: 'maybe' }),
    (error: unknown) => error instanceof ConfigError && /"maybe" is neither yes nor no/.test(error.message),
  )
})
