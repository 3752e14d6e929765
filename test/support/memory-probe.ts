/**
 * Measures what JavaScript of a service's main thread holds at most, in its heap and outside: garbage is collected before
 * each reading. The process imports it before anything else (`PROBING`); it writes the peak to `memoryFile`. A peak starts
 * anew when the file is removed.
 */
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread } from 'node:worker_threads'

const FILE = process.env['SENDWRIGHT_TEST_MEMORY']
const EVERY_MS = 100

/** For `env` of `startProcess`. */
export const memoryProbe = (memoryFile: string) => ({
  NODE_OPTIONS: `--import=${import.meta.filename}`,
  SENDWRIGHT_TEST_MEMORY: memoryFile,
})

/** The peak in bytes while `run` works. */
export async function peakHeldBytes(memoryFile: string, run: () => Promise<void>): Promise<number> {
  rmSync(memoryFile, { force: true })
  await run()
  for (;;) {
    const text = await readFile(memoryFile, 'utf8').catch(() => '')
    if (text !== '') return Number(text)
    await sleep(EVERY_MS)
  }
}

if (FILE !== undefined && isMainThread) {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  let peak = 0
  const read = () => {
    if (!existsSync(FILE)) peak = 0
    const startedAt = performance.now()
    collect()
    // A collection takes long while the machine is busy; the service has to go on.
    setTimeout(read, Math.max(EVERY_MS, 5 * (performance.now() - startedAt))).unref()
    const { heapUsed, external } = process.memoryUsage()
    if (heapUsed + external <= peak) return
    peak = heapUsed + external
    writeFileSync(`${FILE}.new`, String(peak))
    renameSync(`${FILE}.new`, FILE)
  }
  read()
}
