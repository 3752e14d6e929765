/**
 * Clean-up after a measurement: a temporary folder, and closers that run in reverse order however it ends, each
 * for a bounded time. Processes are started with `startKept` or `startHelper`, which end with this process even
 * when it is killed.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Rig {
  /** Accessible to other users than root: databases and Postfix run under their own users. */
  readonly folder: string
  /** Runs at the end, in reverse order; errors are printed, not thrown. */
  defer(what: string, close: () => Promise<unknown> | unknown): void
}

/** A stop that takes longer has failed; the supervising shell kills the process that it waits for. */
const CLOSE_LIMIT_MS = 60_000

const open = new Set<() => Promise<void>>()

/** Runs with a rig below `parent` and closes it. */
export async function withRig<T>(parent: string, run: (rig: Rig) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(parent, 'sendwright-bench-'))
  chmodSync(folder, 0o711)
  const closers: { what: string; close: () => Promise<unknown> | unknown }[] = []
  let closing: Promise<void> | undefined
  const closeAll = () => {
    closing ??= runClosers(closers, folder)
    return closing
  }
  open.add(closeAll)
  try {
    return await run({ folder, defer: (what, close) => void closers.push({ what, close }) })
  } finally {
    await closeAll()
    open.delete(closeAll)
  }
}

/** Closes all rigs, for termination by a signal. */
export async function closeRigs(): Promise<void> {
  await Promise.all([...open].map((close) => close()))
}

async function runClosers(
  closers: { what: string; close: () => Promise<unknown> | unknown }[],
  folder: string,
): Promise<void> {
  for (const { what, close } of closers.reverse()) {
    await within(CLOSE_LIMIT_MS, what, Promise.resolve().then(close)).catch((error: unknown) =>
      console.error(`closing ${what}: ${error}`),
    )
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
}

/** The promise, or an error after `limitMs`. */
export async function within<T>(limitMs: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not done after ${limitMs} ms`)), limitMs)
  })
  try {
    return await Promise.race([promise, limit])
  } finally {
    clearTimeout(timer)
  }
}

/** Polls until `condition` holds. @throws after `limitMs`, or what `condition` throws */
export async function until(
  what: string,
  limitMs: number,
  condition: () => Promise<boolean> | boolean,
  everyMs = 20,
): Promise<void> {
  const end = performance.now() + limitMs
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`${what}: not within ${limitMs} ms`)
    await sleep(everyMs)
  }
}
