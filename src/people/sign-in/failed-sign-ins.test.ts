import assert from 'node:assert/strict'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachStore } from '../../../test/support/stores.ts'
import type { Store } from '../../platform/store/store.ts'
import { createFailedSignIns } from './failed-sign-ins.ts'

const MINUTE_MS = 60_000
const log = { error: (_: unknown, text: string) => assert.fail(text) } as never

const rowsOf = async (store: Store) =>
  (await store.db.selectFrom('audit').selectAll().orderBy('id').execute()).map((row) => ({
    account: row.account_id,
    address: row.remote_address,
    subject: row.subject,
    detail: JSON.parse(row.detail_json) as { way: string; count: number; addresses?: number },
  }))

eachStore(
  'a flood from many addresses is few rows, the busiest apart, and no failure is lost',
  async (store) => {
    const clock = createTestClock()
    const failures = createFailedSignIns({ store, clock, log, firstAccountId: 'first' })
    for (let n = 0; n < 5_000; n++) failures.note({ remoteAddress: `10.1.${n >> 8}.${n & 255}`, way: 'api' })
    for (let n = 0; n < 7; n++) failures.note({ remoteAddress: '10.1.0.9', way: 'api' })
    await failures.flush()
    const rows = await rowsOf(store)
    assert.equal(rows.length, 21)
    assert.deepEqual([rows[0]?.address, rows[0]?.detail.count], ['10.1.0.9', 8])
    assert.deepEqual(rows.at(-1)?.detail, { way: 'others', count: 5_007 - 8 - 19, addresses: 980 })
    assert.equal(
      rows.reduce((sum, { detail }) => sum + detail.count, 0),
      5_007,
    )
  },
)

eachStore(
  'an attack that lasts a day stays within its rows, and the next day has room again',
  async (store) => {
    const clock = createTestClock()
    const failures = createFailedSignIns({ store, clock, log, firstAccountId: 'first' })
    const attack = async (minute: number) => {
      for (let n = 0; n < 30; n++)
        failures.note({ remoteAddress: `10.${minute >> 8}.${minute & 255}.${n}`, way: 'session' })
      clock.leap(MINUTE_MS)
      await failures.flush()
    }
    for (let minute = 0; minute < 150; minute++) await attack(minute)
    assert.equal((await rowsOf(store)).length, 2_000 + 150)
    clock.leap(86_400_000)
    await attack(200)
    assert.equal((await rowsOf(store)).length, 2_000 + 150 + 21)
  },
)

eachStore('ways, logins and accounts are counted apart; a network of IPv6 is one address', async (store) => {
  const clock = createTestClock()
  const failures = createFailedSignIns({ store, clock, log, firstAccountId: 'first' })
  failures.note({ remoteAddress: '2001:db8::1', way: 'smtp', known: { accountId: 'b', login: 'a@b.org' } })
  failures.note({ remoteAddress: '2001:db8::2', way: 'smtp', known: { accountId: 'b', login: 'a@b.org' } })
  failures.note({ remoteAddress: '2001:db8::2', way: 'smtp', known: null })
  failures.note({ remoteAddress: '2001:db8::2', way: 'api' })
  assert.deepEqual(await rowsOf(store), [])
  await failures.close()
  // Nothing is counted after close.
  failures.note({ remoteAddress: '2001:db8::2', way: 'api' })
  await failures.flush()
  const rows = await rowsOf(store)
  assert.deepEqual(
    rows.map(({ account, subject, detail }) => [account, subject, detail.way, detail.count]),
    [
      ['b', 'a@b.org', 'smtp', 2],
      ['first', '', 'smtp', 1],
      ['first', '', 'api', 1],
    ],
  )
})
