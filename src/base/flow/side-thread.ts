/**
 * Long computations off the main thread: one call after the other in a worker thread.
 *
 * The thread starts with the first call and ends when idle, which returns all its memory. It has no environment. A call
 * that takes too long, or too much memory, ends the thread and fails; the next call gets a new one. The thread's own file
 * calls `serve` with its functions.
 */
import { parentPort, Worker } from 'node:worker_threads'
import { Unavailable } from '../process/errors.ts'

/** Functions of plain data; a result may also be a promise. Byte arrays in a result are transferred, not copied. */
type SideFunctions = Record<string, (...args: never[]) => unknown>

interface SideThread<Functions extends SideFunctions> {
  /**
   * Calls a function in the thread.
   * @param makeArgs called when the call starts: waiting calls hold no arguments
   * @param transfer buffers of the arguments to transfer; the others are copied
   * @throws Unavailable when too many wait, when closed, and for a call that took too long or too much memory
   */
  call<Name extends keyof Functions & string>(
    name: Name,
    makeArgs: () => Parameters<Functions[Name]> | Promise<Parameters<Functions[Name]>>,
    transfer?: (args: Parameters<Functions[Name]>) => ArrayBuffer[],
  ): Promise<Awaited<ReturnType<Functions[Name]>>>
  /** Ends the thread; waiting calls fail with Unavailable. */
  close(): Promise<void>
}

export interface SideThreadOptions {
  /** Time for one call. Default 60 s: the longest one measured takes three on a free processor. */
  callMsMax?: number
  /** Idle time after which the thread ends; default 10 s. */
  idleMs?: number
}

const CALL_MS_MAX = 60_000
const IDLE_MS = 10_000
/** Waiting calls hold hardly any memory; a client further back gives up before its call starts. */
const WAITING_MAX = 1_000
/**
 * Never reached by work that is linear in a message of 25 MB: some allocations over the limit end the process, not only the
 * thread.
 */
const MEMORY = { maxOldGenerationSizeMb: 2_048, maxYoungGenerationSizeMb: 32 }

interface Call {
  name: string
  makeArgs: () => unknown
  transfer: ((args: never) => ArrayBuffer[]) | undefined
  resolve(value: never): void
  reject(error: unknown): void
}

type Outcome = { value: unknown } | { error: { name: string; message: string; stack: string | undefined } }

/** An error that a function threw in the thread, with its own name. */
export class SideError extends Error {}

/** @param file absolute path of the thread's module */
export function createSideThread<Functions extends SideFunctions>(
  file: string,
  { callMsMax = CALL_MS_MAX, idleMs = IDLE_MS }: SideThreadOptions = {},
): SideThread<Functions> {
  const waiting: Call[] = []
  let worker: Worker | null = null
  let running: Call | null = null
  let idleTimer: NodeJS.Timeout | undefined
  let closed = false

  function start(): Worker {
    const started = new Worker(file, { env: {}, execArgv: [], resourceLimits: MEMORY })
    started.unref()
    const end = () => {
      if (worker !== started) return
      worker = null
      finish((call) => call.reject(new Unavailable()))
    }
    started.on('message', (outcome: Outcome) => {
      if (worker !== started) return
      finish((call) => {
        if ('value' in outcome) call.resolve(outcome.value as never)
        else call.reject(Object.assign(new SideError(outcome.error.message), outcome.error))
      })
    })
    started.on('error', end)
    started.on('exit', end)
    return started
  }

  function finish(settle: (call: Call) => void): void {
    const call = running
    running = null
    if (call) settle(call)
    void next()
  }

  async function next(): Promise<void> {
    if (running || closed) return
    const call = waiting.shift()
    if (!call) {
      clearTimeout(idleTimer)
      idleTimer = setTimeout(end, idleMs).unref()
      return
    }
    clearTimeout(idleTimer)
    running = call
    try {
      const args = await call.makeArgs()
      if (running !== call) return
      worker ??= start()
      worker.postMessage([call.name, args], call.transfer?.(args as never) ?? [])
      limit(call)
    } catch (error) {
      if (running === call) finish(({ reject }) => reject(error))
    }
  }

  function limit(call: Call): void {
    const timer = setTimeout(end, callMsMax).unref()
    const { resolve, reject } = call
    call.resolve = (value) => {
      clearTimeout(timer)
      resolve(value)
    }
    call.reject = (error) => {
      clearTimeout(timer)
      reject(error)
    }
  }

  function end(): Promise<unknown> {
    return worker?.terminate() ?? Promise.resolve()
  }

  return {
    call(name, makeArgs, transfer) {
      if (closed || waiting.length >= WAITING_MAX) return Promise.reject(new Unavailable())
      return new Promise((resolve, reject) => {
        waiting.push({ name, makeArgs, transfer, resolve, reject })
        void next()
      })
    },
    async close() {
      closed = true
      clearTimeout(idleTimer)
      for (const call of waiting.splice(0)) call.reject(new Unavailable())
      await end()
      if (running) running.reject(new Unavailable())
      running = null
    },
  }
}

/** In the thread: answers the calls of its creator with these functions. */
export function serve(functions: SideFunctions): void {
  parentPort?.on('message', ([name, args]: [string, never[]]) => {
    void answer(functions[name] as (...args: never[]) => unknown, args)
  })
}

async function answer(run: (...args: never[]) => unknown, args: never[]): Promise<void> {
  try {
    const value = owned(await run(...args))
    parentPort?.postMessage({ value } satisfies Outcome, buffersOf(value))
  } catch (error) {
    const { name, message, stack } = error as Error
    parentPort?.postMessage({ error: { name, message, stack } } satisfies Outcome)
  }
}

/** Bytes in the result, itself or a member, each in memory of its own, so that it can be transferred. */
function owned(value: unknown): unknown {
  if (value instanceof Uint8Array) {
    return value.byteLength === value.buffer.byteLength ? value : new Uint8Array(value)
  }
  if (!hasMembers(value)) return value
  const bytes = Object.entries(value).filter(([, member]) => member instanceof Uint8Array)
  return bytes.length === 0
    ? value
    : { ...value, ...Object.fromEntries(bytes.map(([key, member]) => [key, owned(member)])) }
}

function buffersOf(value: unknown): ArrayBuffer[] {
  const members = value instanceof Uint8Array ? [value] : hasMembers(value) ? Object.values(value) : []
  const found = members.filter((member) => member instanceof Uint8Array)
  return [...new Set(found.map(({ buffer }) => buffer as ArrayBuffer))]
}

const hasMembers = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
