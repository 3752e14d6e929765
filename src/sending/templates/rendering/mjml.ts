/**
 * MJML is compiled to HTML once, when a version is stored (templates.md rule 26). The package is large (0.5 s and 60 MB to
 * load), so it runs in a worker thread that starts with the first document and ends after an idle time. One document at a
 * time; a thread that takes too long or too much memory is ended.
 */

import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { Unavailable } from '../../../base/process/errors.ts'
import { MINUTE_MS } from '../../../base/time/durations.ts'

export type MjmlResult = { kind: 'compiled'; html: string } | { kind: 'failed'; why: string }

export type MjmlCompiler = ReturnType<typeof createMjmlCompiler>

const WAITING_MAX = 50
/** Processor time of the thread: a newsletter takes 20 to 200 ms once it is warm. */
const COMPILE_CPU_MS_MAX = 3_000
const WATCH_EVERY_MS = 1_000
/** When the thread gets hardly any processor time; for its start, too, which reads 200 packages in half a second. */
const WALL_MS_MAX = 180_000
const IDLE_MS = MINUTE_MS
const MEMORY_MAX_MB = 256
const YOUNG_MAX_MB = 24
/** `mj-include` would read files (templates.md rule 27); mjml itself is set to ignore it, which hides it. */
const INCLUDE = /<\s*mj-include/i

type Thread = Awaited<ReturnType<typeof startThread>>

export function createMjmlCompiler() {
  let thread: Promise<Thread> | null = null
  let tail: Promise<unknown> = Promise.resolve()
  let waiting = 0
  let closed = false
  let idle: NodeJS.Timeout | null = null

  async function end(): Promise<void> {
    const ended = thread
    thread = null
    if (idle) clearTimeout(idle)
    await ended?.then(
      ({ worker }) => worker.terminate(),
      () => {},
    )
  }

  async function compileNow(source: string): Promise<MjmlResult> {
    if (closed) throw new Unavailable()
    if (idle) clearTimeout(idle)
    thread ??= startThread()
    try {
      const { compile } = await thread
      const result = await compile(source)
      idle = setTimeout(() => void end(), IDLE_MS).unref()
      return result
    } catch (error) {
      await end()
      if (error instanceof Stopped) return { kind: 'failed', why: error.message }
      throw error
    }
  }

  return {
    /** @throws Unavailable when closed or when too many wait */
    async compile(source: string): Promise<MjmlResult> {
      if (INCLUDE.test(source)) return { kind: 'failed', why: 'mj-include is not supported' }
      if (waiting >= WAITING_MAX) throw new Unavailable()
      waiting++
      const turn = tail.then(() => compileNow(source))
      tail = turn.catch(() => {})
      return turn.finally(() => waiting--)
    },
    async close(): Promise<void> {
      closed = true
      await end()
      await tail
    },
  }
}

const TOO_LONG = 'MJML takes too long'

/** The document was too much for the thread, which was ended. */
class Stopped extends Error {}

async function startThread() {
  const worker = new Worker(join(import.meta.dirname, 'mjml-worker.ts'), {
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MAX_MB, maxYoungGenerationSizeMb: YOUNG_MAX_MB },
  })
  worker.on('error', () => {}) // each wait has its own listener; this one is for the time between
  try {
    await answerOf(worker)
  } catch (error) {
    await worker.terminate()
    throw error
  }
  worker.unref()
  return {
    worker,
    async compile(source: string): Promise<MjmlResult> {
      worker.ref()
      const begunMs = await cpuMsOf(worker)
      let isOver = false
      const watch = setInterval(async () => {
        const nowMs = await cpuMsOf(worker).catch(() => begunMs)
        if (nowMs - begunMs < COMPILE_CPU_MS_MAX) return
        isOver = true
        await worker.terminate()
      }, WATCH_EVERY_MS)
      try {
        worker.postMessage(source)
        return (await answerOf(worker)) as MjmlResult
      } catch (error) {
        throw isOver ? new Stopped(TOO_LONG) : error
      } finally {
        clearInterval(watch)
        worker.unref()
      }
    },
  }
}

async function cpuMsOf(worker: Worker): Promise<number> {
  const { user, system } = await worker.cpuUsage()
  return (user + system) / 1_000
}

/** The next message of the thread. @throws Stopped over the time or the memory; the thread's own fault */
function answerOf(worker: Worker): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => settle(() => reject(new Stopped(TOO_LONG))), WALL_MS_MAX)
    const settle = (act: () => void) => {
      clearTimeout(timer)
      worker.off('message', onMessage)
      worker.off('error', onError)
      worker.off('exit', onExit)
      act()
    }
    const onMessage = (message: unknown) => settle(() => resolve(message))
    const onError = (error: NodeJS.ErrnoException) =>
      settle(() =>
        reject(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? new Stopped('MJML takes too much memory') : error),
      )
    const onExit = () => settle(() => reject(new Unavailable()))
    worker.on('message', onMessage)
    worker.on('error', onError)
    worker.on('exit', onExit)
  })
}
