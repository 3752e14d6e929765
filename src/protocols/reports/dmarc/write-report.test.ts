/** DMARC reports that we write, and who gets them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AggregateReader } from './aggregate-report.ts'
import { aggregateReceivers, confirmedReceivers, confirmingName } from './receivers.ts'
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
    // However many records there are: each would be a mail.
    [
      ['a', 'b', 'a', 'c', 'd'].map((name) => `v=DMARC1; rua=mailto:${name}@red.example`),
      ['a@red.example', 'b@red.example', 'c@red.example'],
    ],
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

test('nothing that a sender writes leaves its element', () => {
  const evil = '</feedback>&\0<x>\ud800'
  const xml = aggregateReport({
    ...{ organization: evil, contact: 'a@b.example', id: '1', day: '2026-06-01', domain: evil },
    policy: { p: 'none', sp: 'none', np: 'none', adkim: 'r', aspf: 'r', testing: false },
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
