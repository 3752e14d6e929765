/** `kill -9` at random moments within the polling interval of counting, over several databases, each with its own seed. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DrillReport } from '../../scripts/drill.ts'
import { killWhileCounting } from '../support/counters-kill.ts'
import { seededNumbers } from '../support/random.ts'

export const title = 'Counters agree with the events, however often the process is killed while it counts'

const SEEDS = [1, 2, 3]
const KILLS = 8
const MESSAGES_PER_ROUND = 150
/** The interval of counting, and a bit. */
const PAUSE_MAX_MS = 1_300

export async function run(report: DrillReport): Promise<void> {
  let [kills, accepted, delivered] = [0, 0, 0]
  for (const seed of SEEDS) {
    const random = seededNumbers(seed)
    const pausesMs = Array.from({ length: KILLS }, () => Math.floor(random() * PAUSE_MAX_MS))
    const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
    try {
      const plan = { folder, pausesMs, messagesPerRound: MESSAGES_PER_ROUND }
      const { logged, counted } = await killWhileCounting(plan)
      report.note(`seed ${seed}: ${KILLS} kills, ${logged.accepted} accepted, ${counted.accepted} counted`)
      assert.ok(logged.accepted >= KILLS, 'hardly any mail was accepted')
      assert.deepEqual(counted, logged)
      kills += KILLS
      accepted += logged.accepted
      delivered += logged.delivered
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }
  report.figure('kills', kills)
  report.figure('accepted, each counted once', accepted)
  report.figure('delivered, each counted once', delivered)
}
