/** Members that are asked, on both databases and with a clock of the test: mails, limits, ends and the trail. */
import assert from 'node:assert/strict'
import pino from 'pino'
import { createTestClock } from '../../../test/support/clock.ts'
import { createTestList, LIST_TIME } from '../../../test/support/lists.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { Forbidden } from '../../base/process/errors.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import type { AskingMail } from '../../mail/messages/confirmation-mail.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import type { Store } from '../../platform/store/store.ts'
import type { Domain } from '../domains/domain.ts'
import { type Cause, MAILS_PER_DAY_MAX } from '../lists/consent.ts'
import { type ReadAddress, readAddress } from '../lists/list.ts'
import { createLists } from '../lists/service.ts'
import { TRAIL_PER_ADDRESS_MAX } from '../lists/trail.ts'
import { createTokens } from '../tracking/links/tokens.ts'
import { createConfirmations } from './confirmations.ts'
import { createFormLimits, PER_ACCOUNT_MAX, PER_RECIPIENT_DOMAIN_MAX } from './form-limits.ts'

const VISITOR = { ip: '192.0.2.1', userAgent: 'Firefox' }
const ALICE = 'alice@example.org'
const addressOf = (text: string) => readAddress(text) as ReadAddress

async function rigOf(store: Store) {
  const { lists, list } = await createTestList(store)
  const clock = createTestClock(LIST_TIME)
  const domain = { accountId: 'account', name: list.domainName } as Domain
  const domains = { byName: async () => domain, byId: async () => domain, changed: () => {} }
  const sealer = createSealer('secret of the test')
  const tokens = createTokens(sealer)
  const digest = (text: string) => sealer.mac('form-mails', text).toString('base64url')
  const sent: AskingMail[] = []
  let fails: Error | null = null
  const confirmations = createConfirmations({
    ...{ store, lists, domains, clock, tokens, log: pino({ level: 'silent' }) },
    pageBase: async () => 'https://mail.example.com',
    formLimits: createFormLimits(store, digest),
    async sendMail(mail, statements) {
      if (fails) throw fails
      await store.commit(statements)
      sent.push(mail)
    },
  })
  const rules = createLists({ lists, domains, clock })
  const cause = (source: Cause['source'] = 'api'): Cause => ({ source, at: clock.now(), calledBy: 'key' })
  const trail = async (key = ALICE) => {
    const rows = await store.db
      .selectFrom('consent_trail')
      .selectAll()
      .where('address_key', '=', key)
      .orderBy('id')
      .execute()
    return rows.map(({ action, source }) => `${action} ${source}`)
  }
  return {
    ...{ lists, list, clock, confirmations, rules, sent, trail, cause, tokens },
    refuse(error: Error | null) {
      fails = error
    },
    linkOf(mail: AskingMail | undefined) {
      const text = mail && 'text' in mail.body ? mail.body.text : ''
      return /\/confirm\/([\w-]+)/.exec(text)?.[1] ?? ''
    },
    member: (key = ALICE) => lists.member('list-id', key),
    ask: (address = ALICE, more: object = {}) =>
      rules.addMember(list, { address, confirm: true, ...more }, true, cause()),
  }
}

eachStore(
  'a member that does not answer is asked once and is removed; a link that is too old is void',
  async (store) => {
    const rig = await rigOf(store)
    const { confirmations, clock } = rig
    const added = await rig.ask()
    assert.deepEqual([added.subscribed, added.pending], [false, true])
    await confirmations.sendDue()
    await confirmations.sendDue()
    assert.equal(rig.sent.length, 1)
    const token = rig.linkOf(rig.sent[0])
    assert.equal((await confirmations.find(token))?.address, ALICE)
    assert.equal(await confirmations.find(`${token}x`), null)
    clock.leap(7 * DAY_MS - 1)
    await confirmations.endDue()
    assert.equal((await rig.member())?.pending, true)
    clock.leap(1)
    assert.equal(await confirmations.find(token), null)
    assert.equal(await confirmations.answer(token, true, VISITOR), null)
    await confirmations.endDue()
    assert.equal(await rig.member(), null)
    assert.equal((await rig.lists.byId('list-id'))?.membersCount, 0)
    assert.deepEqual(await rig.trail(), ['pending api', 'expired api'])
    clock.leap(90 * DAY_MS)
    await confirmations.endDue()
    assert.deepEqual(await rig.trail(), [], 'nothing is kept of an address that never agreed')
  },
)

eachStore(
  'what led to an agreement is kept; an unsubscribed member that does not confirm stays one',
  async (store) => {
    const rig = await rigOf(store)
    const { confirmations, clock } = rig
    await rig.ask()
    await confirmations.sendDue()
    const asked = await confirmations.answer(rig.linkOf(rig.sent[0]), true, VISITOR)
    assert.equal(asked?.address, ALICE)
    assert.equal((await rig.member())?.subscribed, true)
    await rig.rules.updateMember(rig.list, ALICE, 'devs', { subscribed: false }, rig.cause())
    clock.leap(2 * DAY_MS)
    await rig.ask(ALICE)
    assert.equal((await rig.member())?.pending, true)
    clock.leap(8 * DAY_MS)
    await confirmations.endDue()
    assert.deepEqual(await rig.member(), { address: ALICE, name: '', vars: {}, subscribed: false })
    clock.leap(100 * DAY_MS)
    await confirmations.endDue()
    const trail = ['pending api', 'confirmed mail', 'unsubscribed api']
    assert.deepEqual(await rig.trail(), trail, 'the question that was not answered is gone')
  },
)

eachStore('a list mails an address once a day, whatever is removed in between', async (store) => {
  const rig = await rigOf(store)
  const { confirmations, clock } = rig
  await rig.ask()
  await confirmations.sendDue()
  await rig.rules.removeMember(rig.list, ALICE, 'devs', rig.cause())
  await rig.ask()
  await confirmations.sendDue()
  assert.equal(rig.sent.length, 1)
  await confirmations.join(rig.list, addressOf(ALICE), VISITOR)
  clock.leap(DAY_MS)
  await confirmations.sendDue()
  assert.equal(rig.sent.length, 2, 'the second call was kept for the next day')
  assert.equal(await confirmations.find(rig.linkOf(rig.sent[0])), null)
  assert.notEqual(await confirmations.find(rig.linkOf(rig.sent[1])), null)
})

eachStore('forms of all lists together write to an address five times a day', async (store) => {
  const rig = await rigOf(store)
  const { confirmations, lists } = rig
  const base = await store.db.selectFrom('lists').selectAll().executeTakeFirstOrThrow()
  for (let n = 0; n < 8; n++) {
    const address = `list${n}@mg.example.com`
    await lists.create({ ...base, id: `list-${n}`, address, address_key: address })
    const list = await lists.byId(`list-${n}`)
    assert.ok(list)
    await confirmations.join(list, addressOf(ALICE), VISITOR)
  }
  while (await confirmations.sendDue());
  assert.equal(rig.sent.length, 5)
})

eachStore('forms at once, and with tags after a plus, are one mailbox', async (store) => {
  const rig = await rigOf(store)
  const { confirmations, lists, clock } = rig
  const base = await store.db.selectFrom('lists').selectAll().executeTakeFirstOrThrow()
  const posts: Promise<void>[] = []
  for (let n = 0; n < 12; n++) {
    const address = `list${n}@mg.example.com`
    await lists.create({ ...base, id: `list-${n}`, address, address_key: address })
    const list = await lists.byId(`list-${n}`)
    assert.ok(list)
    posts.push(confirmations.join(list, addressOf(n % 2 ? `ali.ce+${n}@example.org` : ALICE), VISITOR))
  }
  await Promise.all(posts)
  while (await confirmations.sendDue());
  assert.equal(rig.sent.length, 5)
  clock.leap(DAY_MS)
  await confirmations.join(rig.list, addressOf('alice+new@example.org'), VISITOR)
  await confirmations.sendDue()
  assert.equal(rig.sent.length, 6, 'the next day has room')
  await confirmations.endDue()
  const { count } = await store.db
    .selectFrom('form_mails')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  assert.equal(Number(count), 3, 'counts of earlier days are removed')
})

eachStore('forms of an account are limited in all, and for one domain of recipients', async (store) => {
  const rig = await rigOf(store)
  const { confirmations, clock } = rig
  const isAsked = async (address: string) => {
    await confirmations.join(rig.list, addressOf(address), VISITOR)
    return (await rig.member(address)) !== null
  }
  const used = (mails: number) =>
    store.commit([{ sql: 'UPDATE form_mails SET mails = ? WHERE mails > 0', values: [mails] }])
  assert.ok(await isAsked('one@example.org'))
  await used(PER_RECIPIENT_DOMAIN_MAX - 1)
  assert.ok(await isAsked('two@example.org'))
  assert.ok(!(await isAsked('three@example.org')), 'the domain has had its mails')
  assert.ok(await isAsked('three@example.net'), 'others have not')
  await used(PER_ACCOUNT_MAX)
  assert.ok(!(await isAsked('four@example.com')))
  clock.leap(DAY_MS)
  assert.ok(await isAsked('four@example.com'))
})

eachStore('a list asks for so many mails a day, the form for fewer', async (store) => {
  const rig = await rigOf(store)
  const { confirmations, clock } = rig
  const used = (count: number) =>
    store.commit([
      {
        sql: 'UPDATE lists SET mails_day = ?, mails_count = ?',
        values: [Math.floor(clock.now() / DAY_MS), count],
      },
    ])
  await used(999)
  await confirmations.join(rig.list, addressOf('one@example.org'), VISITOR)
  await confirmations.join(rig.list, addressOf('two@example.org'), VISITOR)
  assert.equal((await rig.member('one@example.org'))?.pending, true)
  assert.equal(await rig.member('two@example.org'), null)
  await used(MAILS_PER_DAY_MAX - 1)
  await rig.ask('three@example.org')
  await assert.rejects(rig.ask('four@example.org'), { name: 'TooManyRequests' })
  await rig.ask('five@example.org', { confirm: false })
  clock.leap(DAY_MS)
  await rig.ask('four@example.org')
})

eachStore('a mail that is refused waits, and a list that is gone ends the waiting', async (store) => {
  const rig = await rigOf(store)
  const { confirmations, clock } = rig
  await rig.ask()
  rig.refuse(new Forbidden('Domain is disabled'))
  await confirmations.sendDue()
  rig.refuse(null)
  await confirmations.sendDue()
  assert.equal(rig.sent.length, 0, 'not tried again at once')
  clock.leap(HOUR_MS)
  await confirmations.sendDue()
  assert.equal(rig.sent.length, 1)
  await rig.ask('bob@example.org')
  await store.commit([{ sql: 'DELETE FROM lists', values: [] }])
  await confirmations.sendDue()
  assert.deepEqual(await rig.lists.duePending('pending_mail_at', clock.now(), 10), [])
  clock.leap(30 * DAY_MS)
  await confirmations.endDue()
  assert.deepEqual(await rig.lists.duePending('pending_until', clock.now(), 10), [])
})

eachStore('a pending member whose address changes is asked at the new one only', async (store) => {
  const rig = await rigOf(store)
  const { confirmations } = rig
  await rig.ask()
  await confirmations.sendDue()
  await rig.rules.updateMember(rig.list, ALICE, 'devs', { address: 'new@example.org' }, rig.cause())
  assert.equal(await confirmations.answer(rig.linkOf(rig.sent[0]), true, VISITOR), null)
  await confirmations.sendDue()
  assert.equal(rig.sent[1]?.to, 'new@example.org')
  await confirmations.answer(rig.linkOf(rig.sent[1]), true, VISITOR)
  assert.equal((await rig.member('new@example.org'))?.subscribed, true)
  assert.deepEqual(await rig.trail(), ['pending api', 'removed api'])
})

eachStore(
  'a failure between the answer and its trail leaves neither, and the link works again',
  async (store) => {
    const rig = await rigOf(store)
    const { confirmations } = rig
    await rig.ask()
    await confirmations.sendDue()
    const token = rig.linkOf(rig.sent[0])
    // The row of the trail cannot be written: the member must stay as it was.
    const table = { sql: 'ALTER TABLE consent_trail RENAME TO consent_trail_away', values: [] }
    await store.commit([table])
    await assert.rejects(confirmations.answer(token, true, VISITOR))
    await store.commit([{ sql: 'ALTER TABLE consent_trail_away RENAME TO consent_trail', values: [] }])
    assert.equal((await rig.member())?.pending, true)
    assert.notEqual(await confirmations.answer(token, true, VISITOR), null)
    assert.deepEqual(await rig.trail(), ['pending api', 'confirmed mail'])
  },
)

eachStore('the trail of an address has its newest rows', async (store) => {
  const rig = await rigOf(store)
  await rig.ask(ALICE, { confirm: false })
  for (let n = 0; n < TRAIL_PER_ADDRESS_MAX + 10; n++) {
    const fields = { subscribed: n % 2 === 1, confirm: false }
    await rig.rules.updateMember(rig.list, ALICE, 'devs', fields, rig.cause())
  }
  const trail = await rig.trail()
  assert.equal(trail.length, TRAIL_PER_ADDRESS_MAX)
  assert.equal(trail.at(-1), 'resubscribed api')
  assert.ok(!trail.includes('added api'))
})
