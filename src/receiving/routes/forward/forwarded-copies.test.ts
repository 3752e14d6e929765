import assert from 'node:assert/strict'
import { createTestClock } from '../../../../test/support/clock.ts'
import { jobContext } from '../../../../test/support/job-context.ts'
import { eventually } from '../../../../test/support/service.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import { StaleWrite } from '../../../platform/store/store.ts'
import { bareAddress, parseMailbox } from '../../../protocols/mime/address.ts'
import { COPIES_MAX, createForwardedCopies } from './forwarded-copies.ts'

const DAY_MS = 86_400_000
const forwardsTo = (...addresses: string[]) =>
  addresses.map((address) => ({ mailbox: parseMailbox(address), routeId: 'r' }))
const shown = (forwards: readonly { mailbox: ReturnType<typeof parseMailbox> }[]) =>
  forwards.map(({ mailbox }) => bareAddress(mailbox))

eachStore('a mail has one copy to each address within a day, whoever claims it first', async (store) => {
  const clock = createTestClock()
  const copies = createForwardedCopies(store, clock)
  const first = await copies.claim('m1', forwardsTo('a@x.example', 'b@x.example', 'A@X.example'))
  assert.deepEqual(shown(first.fresh), ['a@x.example', 'b@x.example', 'A@x.example'])
  const meanwhile = await copies.claim('m1', forwardsTo('b@x.example', 'c@x.example'))
  await store.commit(first.statements)
  await assert.rejects(
    store.commit(meanwhile.statements),
    (error) => error instanceof StaleWrite && meanwhile.statements.includes(error.statement),
  )
  const again = await copies.claim('m1', forwardsTo('b@x.example', 'c@x.example'))
  assert.deepEqual(shown(again.fresh), ['c@x.example'])
  assert.deepEqual(
    shown((await copies.claim('m2', forwardsTo('b@x.example'))).fresh),
    ['b@x.example'],
    'another mail',
  )
  clock.leap(DAY_MS)
  const later = await copies.claim('m1', forwardsTo('a@x.example', 'b@x.example'))
  assert.deepEqual(shown(later.fresh), ['a@x.example', 'b@x.example'])
  await store.commit(later.statements)
  assert.deepEqual((await copies.claim('m1', forwardsTo('a@x.example'))).fresh, [])
})

eachStore('a mail has a thousand copies at most, and old rows go', async (store) => {
  const clock = createTestClock()
  const copies = createForwardedCopies(store, clock)
  const addresses = (from: number, count: number) =>
    Array.from({ length: count }, (_, at) => `u${from + at}@x.example`)
  for (const from of [0, 500]) {
    const { fresh, statements } = await copies.claim('m', forwardsTo(...addresses(from, 499)))
    assert.equal(fresh.length, 499)
    await store.commit(statements)
  }
  const last = await copies.claim('m', forwardsTo(...addresses(1_000, 4)))
  assert.deepEqual([last.fresh.length, last.tooMany.length], [COPIES_MAX - 998, 2])
  clock.leap(DAY_MS)
  const count = async () =>
    Number((await store.read({ sql: 'SELECT count(*) AS n FROM forwarded_copies', values: [] }))[0]?.['n'])
  assert.equal(await count(), 998)
  copies.job.start(jobContext(store, { clock }))
  await eventually('the old rows are gone', async () => (await count()) === 0)
  await copies.job.stop()
})
