/** What a day of made-up domains may cost: the bounds of counts for DMARC reports. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachStore } from '../../../test/support/stores.ts'
import type { ReportedRow } from '../../protocols/reports/dmarc/write-report.ts'
import { observedMail } from './observed.ts'
import { BOUNDS, createDmarcResults } from './results.ts'

const ROW: ReportedRow = {
  ...{ sourceIp: '192.0.2.1', disposition: 'none', dkim: false, spf: false, reason: null },
  ...{ headerFrom: 'a.example', envelopeFrom: '', dkimResults: [], spfResult: null },
}
const RECORD = 'v=DMARC1; p=none; rua=mailto:a@a.example'

eachStore('a wildcard of one owner takes few domains, and one domain few rows', async (store) => {
  const clock = createTestClock()
  const parts = { store, clock, log: pino({ level: 'silent' }) }
  const bounds = {
    ...{ domainsPerDay: 6, domainsPerRoot: 3, domainsPerNetwork: 5 },
    ...{ rowsPerDay: 10, rowsPerDomain: 4, firstRows: 2 },
  }
  const counts = async () => {
    const policies = await store.read({
      sql: 'SELECT domain FROM dmarc_policies ORDER BY domain',
      values: [],
    })
    const rows = await store.read({
      sql: 'SELECT domain, count(*) AS n, sum(messages) AS m FROM dmarc_results GROUP BY domain ORDER BY domain',
      values: [],
    })
    return [
      policies.map(({ domain }) => domain),
      rows.map(({ domain, n, m }) => [domain, Number(n), Number(m)]),
    ]
  }
  // Twice, as by two nodes or with a restart in between.
  for (let round = 0; round < 2; round++) {
    const results = createDmarcResults(parts, bounds)
    for (let n = 0; n < 1_000; n++)
      results.record({
        domain: `d${n}.attacker.example`,
        record: RECORD,
        row: { ...ROW, sourceIp: '192.0.2.9' },
      })
    await results.close()
  }
  const wildcard = ['d0.attacker.example', 'd1.attacker.example', 'd2.attacker.example']
  assert.deepEqual(await counts(), [wildcard, wildcard.map((domain) => [domain, 1, 2])])

  const results = createDmarcResults(parts, bounds)
  for (let n = 0; n < 100; n++) {
    for (let times = 0; times < 3; times++)
      results.record({ domain: 'honest.example', record: RECORD, row: { ...ROW, sourceIp: `192.0.2.${n}` } })
  }
  await results.close()
  const again = createDmarcResults(parts, bounds)
  again.record({
    domain: 'honest.example',
    record: 'v=DMARC1; p=reject',
    row: { ...ROW, sourceIp: '192.0.2.3' },
  })
  again.record({
    domain: 'honest.example',
    record: 'v=DMARC1; p=reject',
    row: { ...ROW, sourceIp: '192.0.2.50' },
  })
  await again.close()
  const [, rows] = await counts()
  assert.deepEqual(rows?.at(-1), ['honest.example', 4, 13], 'a known row is counted on, a new one is not')
})

eachStore('invented domains and rows of one network leave room for others', async (store) => {
  const sizes: number[] = []
  const counting: typeof store = Object.assign(Object.create(store), {
    commit(statements: Parameters<typeof store.commit>[0]) {
      sizes.push(statements.length)
      return store.commit(statements)
    },
  })
  const parts = { store: counting, clock: createTestClock(), log: pino({ level: 'silent' }) }
  const results = createDmarcResults(parts)
  const mail = (domain: string, sourceIp: string, selector = 's') =>
    results.record({
      ...{ domain, record: RECORD },
      row: { ...ROW, sourceIp, dkimResults: [{ domain, selector, result: 'fail' }] },
    })
  for (let n = 0; n < 2_000; n++) mail(`invented${n}.example`, `2001:db8:1:${n.toString(16)}::1`)
  for (let n = 0; n < 25_000; n++) mail(`invented${n % 40}.example`, '2001:db8:1::1', `s${n}`)
  mail('honest.example', '192.0.2.1')
  await results.close()
  const rows = await store.read({
    sql: 'SELECT domain, count(*) AS n FROM dmarc_results GROUP BY domain ORDER BY domain',
    values: [],
  })
  assert.deepEqual(rows.map(({ n, domain }) => ({ n: Number(n), domain }))[0], {
    n: 1,
    domain: 'honest.example',
  })
  assert.equal(rows.length, 1 + BOUNDS.domainsPerNetwork)
  assert.ok(Math.max(...sizes) <= 201, `${Math.max(...sizes)} statements in a commit`)
})

eachStore('rows that are known use up no room of new ones', async (store) => {
  const bounds = { ...BOUNDS, rowsPerDomain: 4 }
  const parts = { store, clock: createTestClock(), log: pino({ level: 'silent' }) }
  for (let round = 0; round < 2; round++) {
    const results = createDmarcResults(parts, bounds)
    for (let n = 0; n < 2 + round; n++)
      results.record({ domain: 'a.example', record: RECORD, row: { ...ROW, sourceIp: `192.0.2.${n}` } })
    await results.close()
  }
  const [row] = await store.read({
    sql: 'SELECT count(*) AS n, sum(messages) AS m FROM dmarc_results',
    values: [],
  })
  assert.deepEqual([Number(row?.['n']), Number(row?.['m'])], [3, 5])
})

test('what a sender writes makes no row of a report long', () => {
  const label = 'a'.repeat(60)
  const long = `${label}.${label}.${label}.example`
  const result = { signingDomain: long, selector: `${label}.${label}`, status: { result: 'fail' } }
  const finding = {
    spf: { domain: long, status: { result: 'fail' } },
    dkim: { results: Array.from({ length: 10 }, () => result) },
    dmarc: {
      ...{ rr: RECORD, policyDomain: 'a.example', policy: 'none', p: 'none', testMode: false },
      status: { result: 'fail', header: { from: long } },
      alignment: { dkim: {}, spf: {} },
    },
  }
  const mail = { sender: `x@${long}`, remoteAddress: '192.0.2.1', headers: [] }
  const row = observedMail(mail, finding as unknown as Parameters<typeof observedMail>[1])?.row
  assert.ok(JSON.stringify(row).length <= 1_200)
  assert.equal(row?.dkimResults[0]?.selector, 'invalid')
})

eachStore(
  'two processes that count the same mail in another order lock its rows in one order',
  async (store) => {
    const keys: string[][] = []
    const watched: typeof store = Object.assign(Object.create(store), {
      commit(statements: Parameters<typeof store.commit>[0]) {
        keys.push(statements.map(({ sql, values }) => [sql, ...values.slice(0, 3)].join(' ')))
        return store.commit(statements)
      },
    })
    const parts = { store: watched, clock: createTestClock(), log: pino({ level: 'silent' }) }
    const mail = ['b', 'a', 'c'].flatMap((name) =>
      [3, 1, 2].map((host) => ({
        domain: `${name}.example`,
        record: RECORD,
        row: { ...ROW, sourceIp: `192.0.2.${host}` },
      })),
    )
    for (const seen of [mail, mail.toReversed()]) {
      const results = createDmarcResults(parts)
      for (const one of seen) results.record(one)
      await results.close()
    }
    assert.equal(keys[0]?.length, 3 + 9)
    assert.deepEqual(keys[0], keys[1])
  },
)
