/**
 * Where the service's log goes: a file, a pipe or a terminal, which may fail, go away or stop taking more. The service
 * goes on without it.
 *
 * 1. Lines wait in memory and are written one chunk at a time by a thread of Node's pool: a slow disk delays no request. The next
 *    chunk follows GATHER_MS later: a write for each line took 4 % of what a message costs.
 * 2. A write that fails is repeated every second: a disk may have room again, a FIFO a reader, a pipe space.
 * 3. At HELD_MAX further lines are dropped and counted, until all that waits is written. Then `onLost` reports the gap.
 */
import { constants, fstatSync, openSync, write, writeSync } from 'node:fs'

/** Characters that wait: some thousand lines, a burst that a reader catches up with. */
const HELD_MAX = 1_000_000
/** Unseen by who reads along. */
const GATHER_MS = 50
const RETRY_MS = 1_000
/** A full pipe is emptied by a reader that works. */
const FULL_RETRY_MS = 50
/** How long the end of the process may wait for the last lines. */
const FINISH_MAX_MS = 1_000

export interface LostLines {
  lines: number
  since: Date
  /** Code of the last write that failed, such as ENOSPC; null: writing was too slow. */
  reason: string | null
}

/** `onLost` is called when lines were dropped and the output works again; it may write. */
export function openLogOutput(fd: number, onLost: (lost: LostLines) => void) {
  const file = withoutBlocking(fd)
  let waiting: string[] = []
  /** Being written, or what is left of it after a write that failed. */
  let chunk: Buffer | null = null
  /** Characters in `waiting` and of `chunk`. */
  let held = 0
  let state: 'idle' | 'writing' | 'pausing' = 'idle'
  let gap: LostLines | null = null
  let failure: string | null = null
  let lost = 0
  let finished = false
  let settled = () => {}

  function pump(): void {
    const next = nextChunk()
    if (state !== 'idle' || finished || next === null) return
    state = 'writing'
    write(file, next, (error, count) => {
      if (finished) return
      if (error !== null || count === 0) return retry(error?.code ?? null)
      advance(next, count)
      if (held === 0) caughtUp()
      pumpAfter(chunk === null ? GATHER_MS : 0)
    })
  }

  function nextChunk(): Buffer | null {
    if (chunk !== null || waiting.length === 0) return chunk
    chunk = Buffer.from(waiting.join(''))
    waiting = []
    return chunk
  }

  function advance(written: Buffer, count: number): void {
    chunk = count < written.byteLength ? written.subarray(count) : null
    if (chunk !== null) return
    held = waiting.reduce((sum, text) => sum + text.length, 0)
  }

  function retry(code: string | null): void {
    failure = code
    if (!isFull(code)) settled()
    pumpAfter(isFull(code) ? FULL_RETRY_MS : RETRY_MS)
  }

  function pumpAfter(ms: number): void {
    state = 'pausing'
    const again = () => {
      state = 'idle'
      pump()
    }
    setTimeout(again, ms).unref()
  }

  function caughtUp(): void {
    settled()
    const ended = gap
    gap = null
    if (ended !== null) onLost({ ...ended, reason: failure })
    failure = null
  }

  return {
    /** Takes one line or more. Never waits, never throws. */
    write(text: string): void {
      if (gap !== null || (held > 0 && held + text.length > HELD_MAX)) {
        gap ??= { lines: 0, since: new Date(), reason: null }
        gap.lines++
        lost++
        return
      }
      waiting.push(text)
      held += text.length
      pump()
    },
    /** How many `write`s were dropped since the start. */
    lost: () => lost,
    /** Resolves when all is written, or writing fails or takes longer than a second. Nothing is written after that. */
    async finish(): Promise<void> {
      if (held > 0 && (failure === null || isFull(failure))) {
        const { promise, resolve } = Promise.withResolvers<void>()
        settled = resolve
        setTimeout(resolve, FINISH_MAX_MS)
        await promise
      }
      finished = true
    },
    /** Writes what it can of what waits; for a process that ends at once. */
    flushSync(): void {
      if (finished) return
      finished = true
      const until = performance.now() + FINISH_MAX_MS
      // What a thread is writing is on its way.
      if (state === 'writing') chunk = null
      for (let next = nextChunk(); next !== null && performance.now() < until; next = nextChunk()) {
        try {
          advance(next, writeSync(file, next))
        } catch (error) {
          if (!isFull((error as NodeJS.ErrnoException).code)) return
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_RETRY_MS)
        }
      }
    },
  }
}

const isFull = (code: string | null | undefined) => code === 'EAGAIN'

/**
 * A descriptor of the same file whose writes fail with EAGAIN instead of waiting for a reader: a thread that waits would
 * also keep the process from ending. Node's own streams have made pipes and sockets so; a terminal, whose output a user may
 * have stopped, has to be opened anew. A regular file always takes more, and others may write at its present position.
 */
function withoutBlocking(fd: number): number {
  try {
    if (fstatSync(fd).isFile()) return fd
    const { O_WRONLY, O_APPEND, O_NONBLOCK, O_NOCTTY } = constants
    return openSync(`/proc/self/fd/${fd}`, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY)
  } catch {
    return fd
  }
}
