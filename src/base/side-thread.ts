/**
 * Long computations beside the main thread, which must never stand still: one call after the other in a worker thread.
 *
 * The thread starts with the first call and ends after a rest, which gives back all memory that it took. It has no
 * network, files or settings. A call that takes too long, or too much memory, costs the thread and fails; the next
 * call gets a new one. The thread's own file calls `serve` with its functions.
 */
import { parentPort, Worker } from 'node:worker_threads'
import { Unavailable } from './errors.ts'

/** Functions of plain data; a result may also be a promise. Byte arrays in a result are handed over, not copied. */
export type SideFunctions = Record<string, (...args: never[]) => unknown>

export interface SideThread<Functions extends SideFunctions> {
  /**
   * Calls a function in the thread.
   * @param makeArgs called when its turn has come: what waits holds no arguments
   * @param transfer buffers of the arguments that the caller gives up; the others are copied
   * @throws Unavailable when too many wait, when closed, and for a call that took too long or too much memory
   */
  call<Name extends keyof Functions & string>(
    name: Name,
    makeArgs: () => Parameters<Functions[Name]> | Promise<Parameters<Functions[Name]>>,
    transfer?: (args: Parameters<Functions[Name]>) => ArrayBuffer[],
  ): Promise<Awaited<ReturnType<Functions[Name]>>>
  /** Ends the thread; what waits fails with Unavailable. */
  close(): Promise<void>
}

export interface SideThreadOptions {
  /** Of one call. Default 60 s: the longest one measured takes three on a free processor. */
  callMsMax?: number
  /** Default 10 s. */
  restMs?: number
}

const CALL_MS_MAX = 60_000
const REST_MS = 10_000
/** They hold hardly anything; a client has gone away before its turn comes further back. */
const WAITING_MAX = 1_000
/**
 * Never reached by what is linear in a message of 25 MB: some allocations over the limit end the process and not the
 * thread alone.
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

/** An error that a function threw in the thread, under its own name. */
export class SideError extends Error {}

/** @param file the thread's own, absolute */
export function createSideThread<Functions extends SideFunctions>(
  file: string,
  { callMsMax = CALL_MS_MAX, restMs = REST_MS }: SideThreadOptions = {},
): SideThread<Functions> {
  const waiting: Call[] = []
  let worker: Worker | null = null
  let running: Call | null = null
  let resting: NodeJS.Timeout | undefined
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
      clearTimeout(resting)
      resting = setTimeout(end, restMs).unref()
      return
    }
    clearTimeout(resting)
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
      clearTimeout(resting)
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

/** Bytes in the result, itself or a member, each in memory of its own, so that the memory can change hands. */
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
