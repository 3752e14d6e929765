/** What a day of made-up domains may cost: the bounds of counts for DMARC reports. */
import assert from 'node:assert/strict'
import { pino } from 'pino'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachStore } from '../../../test/support/stores.ts'
import type { ReportedRow } from '../../protocols/reports/dmarc/write-report.ts'
import { createDmarcResults } from './results.ts'

const ROW: ReportedRow = {
  ...{ sourceIp: '192.0.2.1', disposition: 'none', dkim: false, spf: false, reason: null },
  ...{ headerFrom: 'a.example', envelopeFrom: '', dkimResults: [], spfResult: null },
}
const RECORD = 'v=DMARC1; p=none; rua=mailto:a@a.example'

eachStore('a wildcard of one owner takes few domains, and one domain few rows', async (store) => {
  const clock = createTestClock()
  const parts = { store, clock, log: pino({ level: 'silent' }) }
  const bounds = { domainsPerDay: 6, domainsPerRoot: 3, rowsPerDay: 10, rowsPerDomain: 4 }
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
