import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { TooManyWaiting } from '../../base/process/errors.ts'
import { createFailedAttempts } from '../../platform/http/limits/failed-attempts.ts'
import { createLoginGuard } from './login-guard.ts'
import { Refusal } from './replies.ts'

const LOGIN = 'app@example.com'
const PASSWORD = 'right'
const ADDRESS = '198.51.100.7'
const DAY_MS = 24 * 3_600_000

function startGuard() {
  const clock = createTestClock()
  const attempts = createFailedAttempts(clock)
  const known = new Set<string>()
  const seen = { checks: 0, atOnce: 0, atOnceMax: 0, busy: false }
  const guard = createLoginGuard({
    attempts,
    clock,
    places: {
      isKnown: async (login, network) => known.has(`${network} ${login}`),
      note: async (login, network) => void known.add(`${network} ${login}`),
    },
    async check(login, password) {
      if (seen.busy) throw new TooManyWaiting(1)
      seen.checks++
      seen.atOnceMax = Math.max(seen.atOnceMax, ++seen.atOnce)
      await new Promise((resolve) => setImmediate(resolve))
      seen.atOnce--
      return login === LOGIN && password === PASSWORD
        ? { login, accountId: 'a', domainId: 'd', changedAt: 1 }
        : null
    },
  })
  /** `right`, `wrong`, or the reply that refuses to look. Turns the clock while it waits. */
  async function tryLogin(address: string, password: string, login = LOGIN): Promise<string> {
    let answer: string | null = null
    const tried = guard.authenticate(login, password, address).then(
      (found) => {
        answer = found ? 'right' : 'wrong'
      },
      (error: unknown) => {
        assert.ok(error instanceof Refusal)
        answer = error.reply
      },
    )
    for (let turns = 0; answer === null && turns < 200; turns++) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    if (answer === null) await clock.advance(15_000)
    await tried
    return answer as unknown as string
  }
  const tryMany = (addresses: readonly string[], password: string) =>
    Promise.all(addresses.map((address) => tryLogin(address, password)))
  return { clock, attempts, seen, guard, tryLogin, tryMany }
}

const times = <T>(count: number, make: (n: number) => T) => Array.from({ length: count }, (_, n) => make(n))
const countOf = (answers: readonly string[], answer: string) =>
  answers.filter((each) => each === answer).length
const BLOCKED = '421 4.7.0 Too many failed logins from your network'

test('of a hundred wrong passwords at once from one address ten are looked at', async () => {
  const { seen, tryMany, tryLogin } = startGuard()
  const answers = await tryMany(
    times(100, () => ADDRESS),
    'wrong',
  )
  assert.deepEqual([countOf(answers, 'wrong'), countOf(answers, BLOCKED)], [10, 90])
  assert.equal(seen.checks, 10)
  assert.equal(await tryLogin('203.0.113.1', PASSWORD), 'right', 'other networks are not affected')
})

test('a network that tries from many addresses at once gets three or nine times as many', async () => {
  const one = startGuard()
  await one.tryMany(
    times(200, (n) => `198.51.100.${n}`),
    'wrong',
  )
  assert.equal(one.seen.checks, 30)
  const other = startGuard()
  await other.tryMany(
    times(400, (n) => `198.51.${96 + (n % 16)}.${n >> 4}`),
    'wrong',
  )
  assert.equal(other.seen.checks, 90)
})

test('50 wrong passwords a day are looked at, however slowly they come', async () => {
  const { clock, seen, tryLogin } = startGuard()
  for (let n = 0; n < 100; n++) {
    await tryLogin(ADDRESS, `wrong ${n}`)
    await clock.advance(10_000)
  }
  assert.equal(seen.checks, 50)
  await clock.advance(DAY_MS)
  assert.equal(await tryLogin(ADDRESS, PASSWORD), 'right')
})

test('many right logins at once from a new address all get in', async () => {
  const { tryMany } = startGuard()
  const answers = await tryMany(
    times(60, () => ADDRESS),
    PASSWORD,
  )
  assert.equal(countOf(answers, 'right'), 60)
})

test('a client that logged in from an address before still can while others guess there', async () => {
  const { seen, tryLogin, tryMany, clock } = startGuard()
  assert.equal(await tryLogin(ADDRESS, PASSWORD), 'right')
  await tryMany(
    times(190, () => ADDRESS),
    'wrong',
  )
  assert.equal(await tryLogin(ADDRESS, PASSWORD), 'right')
  assert.equal(await tryLogin(ADDRESS, 'x', 'never@example.com'), BLOCKED, 'others there are shut out')
  // But not without end: 1,000 a day, and those that were on their way with the last of them.
  for (let n = 0; n < 12; n++) {
    await clock.advance(60_000)
    await tryMany(
      times(100, () => ADDRESS),
      'wrong',
    )
  }
  assert.ok(seen.checks <= 1_100, `${seen.checks}`)
  assert.equal(await tryLogin(ADDRESS, PASSWORD), BLOCKED)
  assert.equal(await tryLogin('203.0.113.1', PASSWORD), 'right')
})

test('with too many passwords to hash a login is put off, and does not count', async () => {
  const { seen, attempts, tryLogin } = startGuard()
  seen.busy = true
  for (let n = 0; n < 20; n++) {
    assert.equal(await tryLogin(ADDRESS, PASSWORD), '454 4.7.0 Temporary authentication failure')
  }
  seen.busy = false
  assert.equal(attempts.blockedMs(ADDRESS), 0)
  assert.equal(await tryLogin(ADDRESS, PASSWORD), 'right')
})

test('loopback is exempt', async () => {
  const { seen, tryMany } = startGuard()
  await tryMany(
    times(100, () => '127.0.0.1'),
    'wrong',
  )
  assert.equal(seen.checks, 100)
})

test('a failed login waits a second; the tenth within a minute, over HTTP or SMTP, a second more', async () => {
  const { clock, attempts, guard, tryLogin } = startGuard()
  const secondsOf = async () => {
    await tryLogin(ADDRESS, 'wrong')
    let done = false
    const waiting = guard.loginFailed(ADDRESS, LOGIN).then(() => {
      done = true
    })
    let seconds = 0
    while (!done) {
      await clock.advance(1_000)
      seconds++
    }
    await waiting
    return seconds
  }
  assert.equal(await secondsOf(), 1)
  for (let count = 0; count < 8; count++) attempts.wrongKey(ADDRESS)
  assert.equal(await secondsOf(), 2)
})
