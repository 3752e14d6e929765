/** DMARC reports that we write, and the records that ask for them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AggregateReader } from './aggregate-report.ts'
import { aggregateReceivers, confirmedReceivers, confirmingName, publishedPolicy } from './policy-record.ts'
import { aggregateReport } from './write-report.ts'

test('whom a record asks to send reports to', () => {
  const cases: [record: string, receivers: [address: string, bytesMax: number | null][]][] = [
    ['v=DMARC1; p=none; rua=mailto:a@b.example', [['a@b.example', null]]],
    ['v=DMARC1;p=none;rua=mailto:a@b.example!10m;', [['a@b.example', 10_485_760]]],
    [
      'v=DMARC1; rua = mailto:a%2Bb@c.example!500 , mailto:x@y.example!2K',
      [
        ['a+b@c.example', 500],
        ['x@y.example', 2_048],
      ],
    ],
    ['v=DMARC1; rua=mailto:a@b.example?subject=x!1g', [['a@b.example', 1_073_741_824]]],
    [
      'v=DMARC1; rua=https://b.example/,ftp://x,mailto:no address@b.example,mailto:c@d.example',
      [['c@d.example', null]],
    ],
    ['v=DMARC1; rua=mailto:a@b.example,mailto:a@b.example', [['a@b.example', null]]],
    [
      'v=DMARC1; rua=mailto:a@b.c,mailto:b@b.c,mailto:c@b.c,mailto:d@b.c',
      [
        ['a@b.c', null],
        ['b@b.c', null],
        ['c@b.c', null],
      ],
    ],
    ['v=DMARC1; rua=mailto:a@localhost,mailto:%0d%0aBcc:x@b.example,mailto:%zz@b.example', []],
    ['v=DMARC1; p=none', []],
    ['', []],
  ]
  for (const [record, expected] of cases)
    assert.deepEqual(
      aggregateReceivers(record).map(({ address, bytesMax }) => [address, bytesMax]),
      expected,
      record,
    )
})

test('a receiver in another domain says itself that it takes the reports', () => {
  const [receiver] = aggregateReceivers('v=DMARC1; rua=mailto:a@red.example')
  assert.ok(receiver)
  const cases: [records: string[], addresses: string[]][] = [
    [[], []],
    [['v=spf1 -all'], []],
    [['v=DMARC1'], ['a@red.example']],
    [['v=DMARC1;', 'v=spf1 -all'], ['a@red.example']],
    [['v=DMARC1; rua=mailto:b@red.example'], ['b@red.example']],
    [['v=DMARC1; rua=mailto:b@blue.example'], []],
    [['v=DMARC1; rua=mailto:b@red.example,mailto:c@blue.example'], []],
    [['v=DMARC12'], []],
  ]
  for (const [records, addresses] of cases)
    assert.deepEqual(
      confirmedReceivers(receiver, records).map(({ address }) => address),
      addresses,
      records.join(),
    )
  assert.equal(confirmingName('blue.example', 'red.example'), 'blue.example._report._dmarc.red.example')
  assert.equal(confirmingName(`${'a.'.repeat(120)}example`, 'red.example'), null)
})

test('a policy has defaults for what its record does not say', () => {
  const defaults = { p: 'none', sp: 'none', np: 'none', adkim: 'r', aspf: 'r', fo: '0', testing: false }
  const cases: [record: string, policy: object][] = [
    ['v=DMARC1', {}],
    ['v=DMARC1; p=Reject', { p: 'reject', sp: 'reject', np: 'reject' }],
    ['v=DMARC1; p=reject; sp=none', { p: 'reject' }],
    [
      'v=DMARC1; p=none; np=reject; t=y; adkim=s; aspf=S; fo=1:d',
      { np: 'reject', testing: true, adkim: 's', aspf: 's', fo: '1:d' },
    ],
    ['v=DMARC1; p=<x>; fo=</fo>', {}],
  ]
  for (const [record, policy] of cases)
    assert.deepEqual(publishedPolicy(record), { ...defaults, ...policy }, record)
})

test('nothing that a sender writes leaves its element', () => {
  const evil = '</feedback>&\0<x>\ud800'
  const xml = aggregateReport({
    ...{ organization: evil, contact: 'a@b.example', id: '1', day: '2026-06-01', domain: evil },
    policy: publishedPolicy('v=DMARC1'),
    rows: [
      {
        messages: 1,
        row: {
          ...{ sourceIp: evil, disposition: 'none', dkim: false, spf: true, reason: null },
          ...{ headerFrom: evil, envelopeFrom: evil },
          dkimResults: [{ domain: evil, selector: evil, result: evil }],
          spfResult: { domain: evil, result: evil },
        },
      },
    ],
  })
  const reader = new AggregateReader()
  reader.push(xml)
  const report = reader.end()
  const shown = '</feedback>&<x>\ufffd'
  assert.deepEqual([report.organization, report.domain], [shown, shown])
  assert.deepEqual(report.rows[0]?.dkimResults, [{ domain: shown, selector: shown, result: 'none' }])
  assert.deepEqual(report.rows[0]?.spfResults, [{ domain: shown, result: 'none' }])
})
