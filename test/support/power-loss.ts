/**
 * A data folder after a power loss: its files with zeros in place of every write without a later successful sync.
 * strace reports the writes and syncs.
 *
 * Synced data counts as on the disk, everything else as lost, which is harsher than most disks. File names are kept.
 */
import {
  closeSync,
  cpSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  writeFileSync,
} from 'node:fs'
import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { attachStrace, type Strace } from './strace.ts'

type Range = readonly [start: number, end: number]

const CALLS = 'trace=write,writev,pwrite64,pwritev,fsync,fdatasync,rename,ftruncate'
const WRITE =
  /^\d+ +(?:write|writev|pwrite64|pwritev)\(\d+<([^>]+)>, (?:""\.*|\[.*\]), (\d+)(?:, (\d+))?(?:\)| <unfinished)/
const SYNC_BEGUN = /^(\d+) +f(?:data)?sync\(\d+<([^>]+)>/
const SYNC_DONE = /^(\d+) +(?:f(?:data)?sync\(\d+<[^>]+>|<\.\.\. f(?:data)?sync resumed>)\) += 0/
const RENAME = /^\d+ +rename\("([^"]+)", "([^"]+)"/
/** Time for strace's log to settle once the process is stopped. */
const SETTLE_MS = 15

export class WriteLog {
  readonly #file: string
  readonly #strace: Strace
  #read = 0
  /** Written but not synced, by file. */
  readonly #dirty = new Map<string, Range[]>()
  /** By thread: the file, and the writes to it that preceded the sync. */
  readonly #syncing = new Map<string, { file: string; ranges: ReadonlySet<Range> }>()

  private constructor(file: string, strace: Strace) {
    this.#file = file
    this.#strace = strace
  }

  /** Records from now on. `log`: file for the output of strace. */
  static async attach(pid: number, log: string): Promise<WriteLog> {
    const strace = await attachStrace(pid, ['-y', '-s', '0', '-e', CALLS, '-o', log])
    return new WriteLog(log, strace)
  }

  detach(): Promise<void> {
    return this.#strace.detach()
  }

  /** Copies `folder` of the stopped process as after a power loss. Resolves the number of bytes lost. */
  async image(folder: string, target: string): Promise<number> {
    await this.#settled()
    cpSync(folder, target, {
      recursive: true,
      // The index of the log is memory; the lock and the socket belong to another process.
      filter: (path) => !/(?:-shm|lock\.db.*|service\.sock|strace\.log)$/.test(path),
    })
    let lost = 0
    for (const [file, ranges] of this.#dirty) {
      const path = relative(folder, file)
      if (path.startsWith('..')) continue
      lost += eraseRanges(join(target, path), ranges)
    }
    return lost
  }

  async #settled(): Promise<void> {
    for (let size = -1; size !== this.#read; ) {
      size = this.#read
      await sleep(SETTLE_MS)
      this.#take()
    }
  }

  #take(): void {
    const log = openSync(this.#file, 'r')
    try {
      const bytes = Buffer.alloc(fstatSync(log).size - this.#read)
      readSync(log, bytes, 0, bytes.length, this.#read)
      const end = bytes.lastIndexOf(10) + 1
      this.#read += end
      for (const line of bytes.toString('latin1', 0, end).split('\n')) this.#note(line)
    } finally {
      closeSync(log)
    }
  }

  #note(line: string): void {
    const write = WRITE.exec(line)
    if (write) {
      const [, file, length, offset] = write as unknown as [string, string, string, string | undefined]
      // The offset of `write` is not reported: it may be anywhere in the file.
      const range: Range =
        offset === undefined ? [0, Infinity] : [Number(offset), Number(offset) + Number(length)]
      this.#dirty.set(file, [...(this.#dirty.get(file) ?? []), range])
      return
    }
    const begun = SYNC_BEGUN.exec(line)
    if (begun) {
      const [, thread, file] = begun as unknown as [string, string, string]
      this.#syncing.set(thread, { file, ranges: new Set(this.#dirty.get(file)) })
    }
    const done = SYNC_DONE.exec(line)
    if (done) {
      const sync = this.#syncing.get(done[1] as string)
      if (!sync) return
      const left = (this.#dirty.get(sync.file) ?? []).filter((range) => !sync.ranges.has(range))
      this.#dirty.set(sync.file, left)
    }
    const rename = RENAME.exec(line)
    if (rename) {
      const [, from, to] = rename as unknown as [string, string, string]
      this.#dirty.set(to, this.#dirty.get(from) ?? [])
      this.#dirty.delete(from)
    }
  }
}

/** Zeros in the file, up to its end. */
function eraseRanges(file: string, ranges: readonly Range[]): number {
  if (ranges.length === 0) return 0
  let bytes: Buffer
  try {
    bytes = readFileSync(file)
  } catch {
    return 0 // removed meanwhile
  }
  let lost = 0
  for (const [start, end] of ranges) {
    const to = Math.min(end, bytes.length)
    if (to <= start) continue
    bytes.fill(0, start, to)
    lost += to - start
  }
  writeFileSync(file, bytes)
  return lost
}

/** The files below a folder. */
export function filesBelow(folder: string): string[] {
  mkdirSync(folder, { recursive: true })
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}
