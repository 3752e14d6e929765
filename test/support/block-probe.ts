/**
 * How long the main thread of a service's process was busy without a break. Imported by that process before anything
 * else (`startProcess`, `probe`), it writes its findings to the file that SENDWRIGHT_TEST_PROBE names.
 *
 * It measures the thread's processor time between two turns of its event loop and not the time of day: a machine that
 * runs other things meanwhile makes the one longer, not the other. Garbage collection counts, waiting does not.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'

/** The longest block so far, in milliseconds of processor time, and how often the process was asked to begin anew. */
export interface Blocks {
  longestMs: number
  resets: number
}

const TURN_MS = 5
const FILE = process.env['SENDWRIGHT_TEST_PROBE']

/** What the probe wrote last; null before its first finding. */
export async function readBlocks(file: string): Promise<Blocks | null> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text === '' ? null : (JSON.parse(text) as Blocks)
}

/** Forgets what was found so far (the start, say); resolves once the process has done so. */
export async function resetBlocks(pid: number, file: string): Promise<void> {
  const before = (await readBlocks(file))?.resets ?? 0
  process.kill(pid, 'SIGUSR2')
  while (((await readBlocks(file))?.resets ?? 0) === before) await sleep(TURN_MS)
}

function measure(file: string): void {
  let found: Blocks = { longestMs: 0, resets: 0 }
  let last = process.threadCpuUsage()
  const write = () => {
    writeFileSync(`${file}.new`, JSON.stringify(found))
    renameSync(`${file}.new`, file)
  }
  setInterval(() => {
    const now = process.threadCpuUsage()
    const busyMs = (now.user + now.system - last.user - last.system) / 1000
    last = now
    if (busyMs <= found.longestMs) return
    found.longestMs = busyMs
    write()
  }, TURN_MS).unref()
  process.on('SIGUSR2', () => {
    found = { longestMs: 0, resets: found.resets + 1 }
    last = process.threadCpuUsage()
    write()
  })
}

if (FILE !== undefined && isMainThread) measure(FILE)
