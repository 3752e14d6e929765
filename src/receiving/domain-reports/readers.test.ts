/** Whatever the bytes, a reader gives a report or says why not. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { NoReport } from '../../protocols/message/report-mail.ts'
import { AggregateReader } from '../../protocols/reports/dmarc/aggregate-report.ts'
import { readTlsReport } from '../../protocols/reports/tls/report.ts'
import { readZip } from './zip.ts'

function orNoReport(read: () => unknown): void {
  try {
    read()
  } catch (error) {
    assert.ok(error instanceof NoReport, String(error))
  }
}

const TAGS = ['feedback', 'record', 'row', 'count', 'auth_results', 'dkim', 'report_metadata', '__proto__']
const piece = fc.oneof(
  ...[fc.constantFrom(...TAGS).map((tag) => `<${tag}>`), fc.constantFrom(...TAGS).map((tag) => `</${tag}>`)],
  ...[
    fc.string(),
    fc.constantFrom('<!--', '<![CDATA[', ']]>', '&lt;', '&#x110000;', '<?', '<!DOCTYPE a [', '7'),
  ],
)

test('XML of any kind', () => {
  fc.assert(
    fc.property(fc.array(piece), (pieces) =>
      orNoReport(() => {
        const reader = new AggregateReader()
        reader.push('<feedback>')
        for (const text of pieces) reader.push(text)
        reader.end()
      }),
    ),
    { seed: 20261128 },
  )
})

test('JSON of any kind', () => {
  const policies = fc.array(fc.object({ key: fc.constantFrom('policy', 'summary', 'failure-details', 'x') }))
  const range = { 'start-datetime': '2026-06-01T00:00:00Z', 'end-datetime': '2026-06-02T00:00:00Z' }
  const reports = policies.map((given) => ({ 'report-id': 'r', 'date-range': range, policies: given }))
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        reports.map((report) => JSON.stringify(report)),
      ),
      (text) => orNoReport(() => readTlsReport(text)),
    ),
    { seed: 20261128 },
  )
})

test('archives of any kind', () => {
  const end = fc
    .uint8Array({ minLength: 18, maxLength: 18 })
    .map((bytes) => Buffer.concat([Buffer.from('PK\x05\x06'), bytes]))
  const archives = fc.tuple(fc.uint8Array({ maxLength: 80 }), end).map((parts) => Buffer.concat(parts))
  fc.assert(
    fc.property(archives, (archive) => orNoReport(() => readZip(archive))),
    { seed: 20261128 },
  )
})
