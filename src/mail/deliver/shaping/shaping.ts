/**
 * The shaping in force in this process, and its change without a restart.
 *
 * 1. Without an operator's file it is ours.
 * 2. The file is read again when it has changed, by a job that looks at its time and size, and on SIGHUP.
 * 3. A file with a fault changes nothing: what was in force stays so. So that this is true over a restart as well, the last
 *    good file is copied into the data folder.
 */
import { readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Core } from '../../../core.ts'
import { createJob } from '../../../platform/jobs/job.ts'
import { FILE_BYTES_MAX, readShapingFile, ShapingFileError } from './shaping-file.ts'
import { readShipped, shapingTable, shippedShaping } from './shaping-table.ts'

export type Shaping = Awaited<ReturnType<typeof openShaping>>

interface ShapingState {
  /** The operator's; null: none. */
  file: string | null
  /** Unix milliseconds. */
  loadedAt: number
  /** Why the newest file is not in force; none if it is. */
  faults: readonly string[]
}

interface ShapingParts extends Pick<Core, 'clock' | 'log'> {
  file: string | null
  dataFolder: string
}

const LOOK_EVERY_MS = 5_000
const COPY_NAME = 'shaping-last-good.json'

export async function openShaping({ file, dataFolder, clock, log }: ShapingParts) {
  const copy = join(dataFolder, COPY_NAME)
  const listeners: (() => void)[] = []
  let table = shippedShaping()
  let text: string | null = null
  let state: ShapingState = { file, loadedAt: clock.now(), faults: [] }
  let seen = ''
  /** One at a time. */
  let reading = Promise.resolve()

  /** @throws ShapingFileError, or that of reading it */
  async function take(from: string): Promise<void> {
    const read = await readText(from)
    const next = shapingTable(readShipped(), readShapingFile(read, readShipped()))
    if (read === text) return
    table = next
    text = read
    state = { ...state, loadedAt: clock.now() }
  }

  async function load(from: string): Promise<void> {
    const before = table
    const stamp = await stampOf(from)
    try {
      await take(from)
      state = { ...state, faults: [] }
      if (table === before) return
      log.info({ file, version: table.version }, 'shaping file in force')
      await keepCopy()
      for (const listener of listeners) listener()
    } catch (error) {
      const faults =
        error instanceof ShapingFileError ? error.faults : [`it cannot be read: ${(error as Error).message}`]
      state = { ...state, faults }
      log.warn(
        { file, faults, inForce: table.version },
        'the shaping file has faults; the limits stay as they were',
      )
    } finally {
      seen = stamp
    }
  }

  /** Losing it costs the limits only if the file is bad at the next start. */
  async function keepCopy(): Promise<void> {
    try {
      await writeFile(`${copy}.new`, text ?? '', { mode: 0o600 })
      await rename(`${copy}.new`, copy)
    } catch (error) {
      log.warn({ err: error }, 'cannot keep a copy of the shaping file')
    }
  }

  if (file !== null) {
    await load(file)
    if (text === null)
      await take(copy).then(
        () => log.warn({ version: table.version }, 'the last good shaping file is in force'),
        () => {},
      )
  }

  const queued = (run: () => Promise<void>) => {
    reading = reading.then(run)
    return reading
  }
  return {
    /** Another object after each change. */
    current: () => table,
    state: () => state,
    /** Calls `listener` after each change. */
    onChange: (listener: () => void) => void listeners.push(listener),
    /** Reads the file again, whether it has changed or not. Never rejects. */
    reload: () => queued(async () => (file === null ? undefined : load(file))),
    /** Looks for changes of the file; null without one. */
    job:
      file === null
        ? null
        : createJob({
            name: 'shaping-file',
            everyMs: LOOK_EVERY_MS,
            // Each process has a file of its own.
            scope: 'process',
            work: () =>
              queued(async () => {
                if ((await stampOf(file)) !== seen) await load(file)
              }),
          }),
  }
}

/** @throws when it cannot be read, or is too large to be one */
async function readText(file: string): Promise<string> {
  if ((await stat(file)).size > FILE_BYTES_MAX)
    throw new Error(`it is larger than ${FILE_BYTES_MAX / 1024} KB`)
  return readFile(file, 'utf8')
}

/** Changes with the content; '' while there is no file. */
async function stampOf(file: string): Promise<string> {
  try {
    const { mtimeMs, size, ino } = await stat(file)
    return `${mtimeMs} ${size} ${ino}`
  } catch {
    return ''
  }
}
