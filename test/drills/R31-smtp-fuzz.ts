/**
 * Random SMTP clients for some minutes. The dialogue alone is fuzzed with coverage guidance: lines that reach a new block
 * of its code are kept, and others are derived from them. Whole sessions over sockets follow, without guidance.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { type Profiler, Session } from 'node:inspector/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DrillReport } from '../../scripts/drill.ts'
import { seededNumbers } from '../support/random.ts'
import {
  converse,
  mutatedLines,
  type Random,
  randomLines,
  sessionPieces,
  speak,
} from '../support/smtp-fuzz.ts'
import { startFuzzRig } from '../support/smtp-fuzz-rig.ts'

export const title = 'R31: random SMTP clients, guided by coverage: no crash, no content without a recipient'

/** Sets the minutes: `R31_MINUTES=60 npm run drill -- R31`. */
const MINUTES = Number(process.env['R31_MINUTES'] ?? 2)
/** Dialogues between two coverage readings, which take some milliseconds. */
const PER_LOOK = 20
const CORPUS_MAX = 2_000
const AT_A_TIME = 20
const GUIDED = /\/src\/(?:smtp\/server-|mime\/address)/

export async function run(report: DrillReport): Promise<void> {
  const seed = Date.now() % 1_000_000
  report.figure('seed', seed)
  const random = seededNumbers(seed)
  await fuzzDialogues(report, random, performance.now() + MINUTES * 30_000)
  await fuzzSessions(report, random, performance.now() + MINUTES * 30_000)
}

async function fuzzDialogues(report: DrillReport, random: Random, until: number): Promise<void> {
  const coverage = await startCoverage()
  const corpus: Buffer[][] = []
  const totals = { dialogues: 0, lines: 0, contents: 0 }
  try {
    while (performance.now() < until) {
      const tried: Buffer[][] = []
      for (let at = 0; at < PER_LOOK; at++) {
        const parent = corpus[Math.floor(random() * corpus.length * 1.2)]
        const lines = parent ? mutatedLines(parent, random) : randomLines(random)
        tried.push(lines)
        const { lines: count, contents } = speak(lines, random)
        totals.dialogues++
        totals.lines += count
        totals.contents += contents
      }
      if (corpus.length < CORPUS_MAX && (await coverage.grew())) corpus.push(...tried)
    }
  } finally {
    coverage.stop()
  }
  report.figure('dialogues', totals.dialogues)
  report.figure('lines', totals.lines)
  report.figure('content asked for', totals.contents)
  report.figure('blocks reached', coverage.blocks())
  assert.ok(totals.contents > 0)
}

async function fuzzSessions(report: DrillReport, random: Random, until: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const rig = await startFuzzRig(folder)
  let sessions = 0
  try {
    while (performance.now() < until) {
      const clients = Array.from({ length: AT_A_TIME }, () => sessionPieces(random))
      await Promise.all(clients.map((pieces) => converse(rig, pieces)))
      sessions += clients.length
    }
    report.figure('sessions', sessions)
    report.figure('messages taken', rig.taken)
    report.figure('taken without a recipient or a login', rig.wrong)
    report.figure('faults inside, unhandled rejections', rig.faults.length)
    for (const fault of rig.faults.slice(0, 5)) report.note(fault)
    assert.equal(rig.wrong, 0)
    assert.equal(rig.faults.length, 0)
    assert.deepEqual(await rig.spooled(), [])
  } finally {
    await rig.close()
    await rm(folder, { recursive: true, force: true })
  }
}

interface Coverage {
  /** Whether new blocks were reached since the last reading. */
  grew(): Promise<boolean>
  blocks(): number
  stop(): void
}

async function startCoverage(): Promise<Coverage> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  const reached = new Set<string>()
  return {
    async grew() {
      const { result } = (await session.post(
        'Profiler.takePreciseCoverage',
      )) as Profiler.TakePreciseCoverageReturnType
      const before = reached.size
      for (const { url, functions } of result) {
        if (!GUIDED.test(url)) continue
        for (const { ranges } of functions)
          for (const { startOffset, endOffset, count } of ranges)
            if (count > 0) reached.add(`${url} ${startOffset}-${endOffset}`)
      }
      return reached.size > before
    },
    blocks: () => reached.size,
    stop: () => session.disconnect(),
  }
}
