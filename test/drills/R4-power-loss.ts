/** Images of a running service's data after a power loss: nothing acknowledged is missing. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DrillReport } from '../../scripts/drill.ts'
import { losePower } from '../support/power-loss-rig.ts'

export const title = 'R4: what a power loss leaves, in 200 images (needs strace)'

const ROUNDS = 5
/** Per round, each with its own data: an image is a copy of all of it. */
const IMAGES = 40

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  try {
    let [accepted, missing, lostBytes] = [0, 0, 0]
    for (let round = 1; round <= ROUNDS; round++) {
      const own = join(folder, `round-${round}`)
      await mkdir(own)
      const figures = await losePower(own, IMAGES)
      accepted += figures.accepted
      missing += figures.missing
      lostBytes += figures.lostBytes
      report.note(`round ${round}: ${figures.accepted} acknowledged, ${figures.missing} missing`)
      await rm(own, { recursive: true, force: true })
    }
    report.figure('images', ROUNDS * IMAGES)
    report.figure('acknowledged', accepted, 'messages')
    report.figure('missing', missing, 'messages')
    report.figure('not synced, all images', lostBytes / 1024, 'KB')
    assert.ok(lostBytes > 0, 'something had not been synced')
    assert.equal(missing, 0)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
