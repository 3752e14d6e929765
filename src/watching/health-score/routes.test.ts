/** Health scores of real mail: delivered, refused, complained about (health-score.md). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNoonClock } from '../../../test/support/clock.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { eventually, ownAddress, startTestService } from '../../../test/support/service.ts'
import { createSink } from '../../../test/support/smtp-sink.ts'

const PATH = '/v1/maverick-score'
const NONE = { bounce_rate: 0, complaint_rate: 0, trap_rate: 0, full_mailbox_rate: 0, bad_failure_rate: 0 }

eachDatabase((database) => {
  test('a score by domain, address, account and day', async (t) => {
    const sink = await createSink({ host: ownAddress() })
    t.after(() => sink.close())
    sink.on('RCPT TO:<full@example.org>', '552 5.2.2 mailbox full')
    sink.on('RCPT TO:<gone@example.org>', '550 5.1.1 no such user')
    const clock = createNoonClock()
    const service = await startTestService(
      t,
      { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` },
      { database, clock },
    )
    const { domain } = service
    const { accountId } = service.service.first
    const get = async (rest: string) => (await service.call('GET', `${PATH}${rest}`)).body
    assert.deepEqual(await get('/total'), { score: 100, rates: NONE, counters: { delivered: 0 } })
    assert.deepEqual(await get('/grouped'), { items: [], total: 0 })

    const people = Array.from({ length: 38 }, (_, at) => `person${at}@example.org`)
    await service.send({ to: [...people, 'full@example.org', 'gone@example.org'] })
    // 2 of 40 bounced, 1 does not exist, 1 is full: 12.5, 7.5 and 5 points.
    const rates = { ...NONE, bounce_rate: 13, full_mailbox_rate: 5, bad_failure_rate: 8 }
    const score = { score: 74, rates, counters: { delivered: 38 } }
    await eventually('all outcomes', async () => {
      const { counters, rates: found } = await get('/total')
      return counters.delivered === 38 && found.bounce_rate === 13
    })
    assert.deepEqual(await get('/total'), score)
    const one = (key: string) => ({ items: [{ group_key: key, account_id: accountId, ...score }], total: 1 })
    assert.deepEqual(await get('/grouped'), one(domain))
    assert.deepEqual(await get('/grouped?group=subaccount&sort=score:asc'), one(accountId))
    const today = new Date(clock.now()).toISOString().slice(0, 10)
    for (const group of ['timestamp', 'ip']) {
      const { items, total } = await get(`/grouped?group=${group}&limit=5`)
      assert.deepEqual([total, items[0].counters, items[0].account_id], [1, { delivered: 38 }, undefined])
      if (group === 'timestamp') assert.equal(items[0].group_key, today)
    }
    for (const [query, total] of [
      [`term=domain:${domain}`, 1],
      [`term=domain:${domain}&term=domain:other.example`, 1],
      ['term=domain:other.example', 0],
      [`query=domain:${domain.slice(2, 9)}`, 1],
      ['query=domain:nothing', 0],
      [`term=account_id:${accountId}`, 1],
      ['term=account_id:other', 0],
    ] as const)
      assert.equal((await get(`/grouped?${query}`)).total, total, query)
    assert.deepEqual((await get('/grouped?skip=1')).items, [])
    for (const [query, message] of [
      ['term=city:x', 'invalid filter: city:x'],
      ['query=domain', 'invalid filter: domain'],
      ['sort=name:asc', 'invalid sort: name:asc'],
      ['sort=score:up', 'invalid sort: score:up'],
    ]) {
      const answer = await service.call('GET', `${PATH}/grouped?${query}`)
      assert.deepEqual([answer.status, answer.body], [400, { message }], query)
    }

    await service.call('POST', `/v3/${domain}/complaints`, { form: { address: 'person1@example.org' } })
    assert.deepEqual(await get('/total'), score, 'an entry of a list is no complaint')
  })
})
