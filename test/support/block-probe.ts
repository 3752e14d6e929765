/**
 * Measures the longest time for which the main thread of a service's process is busy without a break. The process imports
 * it before anything else (`startProcess`, `probe`); it writes its results to the file named by SENDWRIGHT_TEST_PROBE.
 *
 * It measures the thread's processor time between two turns of its event loop, not wall-clock time, which grows with
 * other load on the machine. Garbage collection counts, waiting does not. The time is divided by how much longer than on the
 * machine that the limits were set on the same work takes at the moment: other load doubles processor time too, as it
 * takes caches away.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'

/** The longest block so far, in milliseconds of processor time, and how often the process was asked to reset it. */
export interface Blocks {
  longestMs: number
  resets: number
}

const TURN_MS = 5
const WRITE_MS = 50
const FILE = process.env['SENDWRIGHT_TEST_PROBE']

/** The last result; null before the first one. */
export async function readBlocks(file: string): Promise<Blocks | null> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text === '' ? null : (JSON.parse(text) as Blocks)
}

/** Resets the result (after the start, say); resolves once the process has done so. */
export async function resetBlocks(pid: number, file: string): Promise<void> {
  const before = (await readBlocks(file))?.resets ?? 0
  process.kill(pid, 'SIGUSR2')
  while (((await readBlocks(file))?.resets ?? 0) === before) await sleep(TURN_MS)
}

/** A long block is measured again so often before it counts. */
const MEASUREMENTS_MAX = 3

/** Processor time of `work` on the machine that the limits were set on. */
const WORK_MS = 4
const WORK_SAMPLES = 9
const ROWS = Array.from({ length: 2_000 }, (_, id) => ({ id, name: `name ${id}`, text: 'x'.repeat(id % 50) }))

/** Parses, allocates and collects, as most of what blocks a thread does. */
function work(): void {
  const text = JSON.stringify(ROWS)
  for (let round = 0; round < 3; round++) {
    const rows = JSON.parse(text) as typeof ROWS
    new Map(rows.map((row) => [row.name, JSON.stringify(row)]))
  }
}

/** How many times as long as on the machine that limits were set on the same work takes now; at least 1. */
function slowness(): number {
  const samples = Array.from({ length: WORK_SAMPLES }, () => {
    const before = process.threadCpuUsage()
    work()
    return busyMs(before)
  })
  return Math.max(1, (samples.sort((a, b) => a - b)[WORK_SAMPLES >> 1] as number) / WORK_MS)
}

function busyMs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(since)
  return (user + system) / 1000
}

/**
 * The longest block of a process, in milliseconds, while `run` works. One that reaches `maxMs` is measured again, and the
 * shortest counts: work of the process takes its time in each run, but what the host takes from a virtual processor also
 * appears as time of the thread that it interrupts.
 */
export const longestBlock = (
  process: { pid: number; probe: string },
  maxMs: number,
  run: () => Promise<void>,
): Promise<number> =>
  shortest(maxMs, async () => {
    await resetBlocks(process.pid, process.probe)
    await run()
    // The probe writes its result in the turn after the response.
    await sleep(WRITE_MS)
    return (await readBlocks(process.probe))?.longestMs ?? 0
  })

/** The same for this thread. */
export const longestBlockHere = (maxMs: number, run: () => Promise<void>): Promise<number> =>
  shortest(maxMs, async () => {
    const watch = watchBlocks()
    await run().finally(() => watch.stop())
    return watch.longestMs
  })

async function shortest(maxMs: number, measure: () => Promise<number>): Promise<number> {
  let shortestMs = Number.POSITIVE_INFINITY
  for (let count = 0; count < MEASUREMENTS_MAX && shortestMs >= maxMs; count++)
    shortestMs = Math.min(shortestMs, (await measure()) / slowness())
  return shortestMs
}

interface BlockWatch {
  /** In milliseconds of processor time. */
  longestMs: number
  stop(): void
}

/** Measures this thread from now on. Calls `grown` with every longer block. */
function watchBlocks(grown: (longestMs: number) => void = () => {}): BlockWatch {
  let last = process.threadCpuUsage()
  const timer = setInterval(() => {
    const longMs = busyMs(last)
    last = process.threadCpuUsage()
    if (longMs <= watch.longestMs) return
    watch.longestMs = longMs
    grown(longMs)
  }, TURN_MS)
  timer.unref()
  const watch = { longestMs: 0, stop: () => clearInterval(timer) }
  return watch
}

function report(file: string): void {
  let resets = 0
  const write = (longestMs: number) => {
    writeFileSync(`${file}.new`, JSON.stringify({ longestMs, resets } satisfies Blocks))
    renameSync(`${file}.new`, file)
  }
  let watch = watchBlocks(write)
  process.on('SIGUSR2', () => {
    watch.stop()
    resets++
    watch = watchBlocks(write)
    write(0)
  })
}

if (FILE !== undefined && isMainThread) report(FILE)
