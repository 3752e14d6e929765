/** Guessing of keys and passwords through the whole service: the effect on the attacker and on the owner. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createTestClock } from '../support/clock.ts'
import { eachDatabase } from '../support/databases.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { Dialogue, plainLogin } from '../support/smtp-dialogue.ts'

const PASSWORD = 'long enough'
const CONNECTIONS = 100
const CHECKED_MAX = 10

/** A service that exempts no address, with two SMTP logins. */
async function start(t: TestContext, database: 'sqlite' | 'postgres') {
  const env = { SENDWRIGHT_SMTP_PORT: '0', SENDWRIGHT_SMTP_MAX_CONNECTIONS_PER_IP: '1000' }
  const service = await startTestService(t, env, { database, isExempt: () => false })
  for (const login of ['app', 'late']) {
    const path = `/v3/domains/${service.domain}/credentials`
    const made = await service.call('POST', path, { form: { login, password: PASSWORD } })
    assert.equal(made.status, 200, made.text)
  }
  return service
}

/** The reply to one login on a separate connection. */
async function logIn(
  { config, service }: TestService,
  localAddress: string,
  user: string,
  password: string,
): Promise<string | null> {
  const dialogue = await Dialogue.open({ host: config.smtpHost, port: service.smtp.port, localAddress })
  try {
    await dialogue.reply()
    await dialogue.say('EHLO app.example')
    return await dialogue.say(`AUTH PLAIN ${plainLogin(user, password)}`)
  } finally {
    dialogue.destroy()
  }
}

const codeOf = (reply: string | null) => reply?.slice(0, 9) ?? 'none'
const RIGHT = '235 2.7.0'
const WRONG = '535 5.7.8'
const NOT_CHECKED = '421 4.7.0'

eachDatabase((database) => {
  test(`guesses over ${CONNECTIONS} SMTP connections: ${CHECKED_MAX} are checked, the owner can log in`, async (t) => {
    const service = await start(t, database)
    const [app, late] = [`app@${service.domain}`, `late@${service.domain}`]
    const [here, elsewhere] = ['127.77.1.1', '127.78.1.1']
    const guesses = async (count: number) => {
      const users = [`nobody@${service.domain}`, late]
      const replies = await Promise.all(
        Array.from({ length: count }, (_, n) => logIn(service, here, users[n % 2] as string, `guess ${n}`)),
      )
      return replies.map(codeOf)
    }
    assert.equal(codeOf(await logIn(service, here, app, PASSWORD)), RIGHT)
    const codes = await guesses(CONNECTIONS)
    assert.equal(codes.filter((code) => code === WRONG).length, CHECKED_MAX)
    assert.equal(codes.filter((code) => code === NOT_CHECKED).length, CONNECTIONS - CHECKED_MAX)

    assert.equal(codeOf(await logIn(service, here, app, PASSWORD)), RIGHT, 'known here')
    assert.equal(codeOf(await logIn(service, elsewhere, late, PASSWORD)), RIGHT, 'nobody guessed there')
    assert.equal(
      codeOf(await logIn(service, here, late, PASSWORD)),
      NOT_CHECKED,
      'new, where somebody guesses',
    )
    const key = await service.call('GET', '/v1/keys')
    assert.equal(key.status, 200, 'a right key counts anywhere')

    await service.restart()
    assert.equal((await guesses(20)).filter((code) => code === WRONG).length, CHECKED_MAX)
    assert.equal(codeOf(await logIn(service, here, app, PASSWORD)), RIGHT, 'also after a restart')
  })
})

test('wrong keys at the session operation are delayed and counted like all others; a right one is not', async (t) => {
  const clock = createTestClock()
  const service = await startTestService(t, { SENDWRIGHT_TRUSTED_PROXIES: '127.0.0.0/8' }, { clock })
  const from = (address: string) => ({ 'x-forwarded-for': address })
  const signIn = async (key: string, address = '192.0.2.7') => {
    const answer = await service.call('POST', '/sendwright/v1/session', {
      key: null,
      form: { key },
      headers: from(address),
    })
    return answer
  }
  const statusOf = async (key: string, address?: string) => (await signIn(key, address)).status
  const later = async (answer: Promise<number>) => {
    let done = false
    const status = answer.finally(() => {
      done = true
    })
    while (!done) {
      await clock.advance(1_000)
      // The clock must not run ahead of the service on a busy machine.
      await service.call('GET', '/health')
    }
    return status
  }
  // Half of them as Basic credentials: both ways of signing in count together.
  const basic = async (key: string) =>
    (await service.call('GET', '/v4/domains', { key, headers: from('192.0.2.7') })).status
  for (let n = 0; n < 9; n++) assert.equal(await (n % 2 ? basic : statusOf)(`guess ${n}`), 401)
  let answered = false
  const tenth = statusOf('guess 10').finally(() => {
    answered = true
  })
  for (let n = 0; n < 5; n++) assert.equal(await statusOf(service.key), 200, 'a right key is not delayed')
  assert.equal(await statusOf('guess', '192.0.2.8'), 401, 'another address is not delayed')
  assert.equal(answered, false)
  assert.equal(await later(tenth), 401)

  for (let n = 10; n < 50; n++) assert.equal(await later(statusOf(`guess ${n}`)), 401)
  const beyond = await signIn('guess 51')
  assert.equal(beyond.status, 429)
  assert.ok(Number(beyond.headers.get('retry-after')) > 3_600)
  assert.equal(await basic('guess 52'), 429)
  assert.equal(await statusOf(service.key), 200)
  assert.equal(await basic(service.key), 200)
  assert.equal(await statusOf('guess', '198.51.100.9'), 401, 'another network has its own budget')
})

test('a session that has ended does not count as a guess', async (t) => {
  const service = await startTestService(t, {}, { isExempt: () => false })
  const headers = { cookie: `sendwright_session=${'x'.repeat(43)}` }
  for (let n = 0; n < 60; n++) {
    assert.equal((await service.call('GET', '/v4/domains', { key: null, headers })).status, 401)
  }
})
