import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../../platform/config/config.ts'
import { type Answers, presentHost, presentWay, settingsFor } from './plan.ts'

const ANSWERS: Answers = {
  host: 'mail.example.com',
  https: 'acme',
  acmeEmail: null,
  tls: null,
  trustedProxies: '',
  delivery: 'direct',
  smtpPort: 25,
  dataFolder: null,
  databaseUrl: null,
}

/** The values after the settings are applied. */
function applied(answers: Answers, values: Record<string, string>): Record<string, string> {
  const all = { ...values }
  for (const [name, value] of settingsFor(answers, values))
    if (value === null) delete all[name]
    else all[name] = value
  return all
}

const WAYS: [answers: Answers, listens: [string, number, number | null], publicUrl: string][] = [
  [ANSWERS, ['0.0.0.0', 80, 443], 'https://mail.example.com'],
  [
    { ...ANSWERS, https: 'files', tls: { certificate: '/c.pem', key: '/k.pem' } },
    ['0.0.0.0', 80, 443],
    'https://mail.example.com',
  ],
  [
    { ...ANSWERS, https: 'proxy', trustedProxies: '127.0.0.1/32' },
    ['127.0.0.1', 8080, null],
    'https://mail.example.com',
  ],
  [{ ...ANSWERS, https: 'off' }, ['0.0.0.0', 80, null], 'http://mail.example.com'],
]

for (const [answers, [host, port, httpsPort], publicUrl] of WAYS)
  test(`HTTPS by ${answers.https}, from any other way, and again without a change`, () => {
    for (const [from] of [[null], ...WAYS] as const) {
      const before = from === null ? {} : applied(from, {})
      const values = applied(answers, before)
      const config = readConfig(values)
      assert.deepEqual([config.host, config.port, config.httpsPort], [host, port, httpsPort])
      assert.equal(config.publicUrl, publicUrl)
      assert.equal(config.smtpHost, '0.0.0.0')
      assert.equal(config.smtpPort, 25)
      assert.equal(config.acme !== null, answers.https === 'acme')
      assert.equal(presentHost(values), 'mail.example.com')
      assert.equal(presentWay(values), answers.https)
      assert.deepEqual([...settingsFor(answers, values)], [])
    }
  })

test('what an operator has set for the listeners stays while the way to https does', () => {
  const values = { ...applied(ANSWERS, {}), SENDWRIGHT_PORT: '8080', SENDWRIGHT_HTTPS_PORT: '8443' }
  assert.deepEqual(
    [...settingsFor({ ...ANSWERS, delivery: 'capture' }, values)],
    [['SENDWRIGHT_DELIVERY', 'capture']],
  )
})
