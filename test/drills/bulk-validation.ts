/**
 * Validation of 100,000 addresses in 100,000 domains against a DNS server, killed twice on its way: every address is in the
 * results once and was looked up twice at most, memory is flat, and progress is true to 1 %.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DrillReport } from '../../scripts/drill.ts'
import { judgeBulk, runBulk } from '../support/bulk-validation.ts'
import { createDnsServer } from '../support/dns-server.ts'

export const title = 'A validation job of 100,000 addresses, killed twice'

const ADDRESSES = 100_000
/** The cache of domains fills up meanwhile: 25,000 entries. */
const GROWTH_MAX_MB = 40

export async function run(report: DrillReport): Promise<void> {
  const dns = await createDnsServer()
  const dataFolder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  try {
    const begun = performance.now()
    const note = (text: string) => report.note(text)
    const outcome = await runBulk({ addresses: ADDRESSES, kills: [0.25, 0.5], dataFolder, dns, note })
    const seconds = (performance.now() - begun) / 1_000
    report.figure('validated', Math.round(ADDRESSES / seconds), '/s')
    report.figure('most lookups of one address', outcome.queriesMax)
    report.figure('addresses looked up twice', outcome.repeated)
    const [rest, peak] = [outcome.restBytes / 2 ** 20, outcome.peakBytes / 2 ** 20]
    report.figure('peak RSS until 75 %', Math.round(rest), 'MB')
    report.figure('peak RSS after that', Math.round(peak), 'MB')
    report.figure('reads of the progress', outcome.progress.length)
    judgeBulk(outcome, ADDRESSES)
    assert.ok(peak - rest < GROWTH_MAX_MB, `memory has grown by ${Math.round(peak - rest)} MB`)
  } finally {
    await dns.close()
    await rm(dataFolder, { recursive: true, force: true })
  }
}
