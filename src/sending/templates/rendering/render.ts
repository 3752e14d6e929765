/**
 * Renders templates in worker threads, so that no template can block the service: each thread has 64 MB,
 * and is ended and replaced when a job has used its processor time (templates.md rule 25, R40).
 *
 * Jobs wait per account and accounts are served in turn (job-queue.ts), so that one account's slow templates do not starve
 * another's. A thread gets many small jobs in one message.
 */
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { Unavailable } from '../../../base/process/errors.ts'
import { sizesFor } from '../../../base/process/memory-sizes.ts'
import { createJobQueue, type WaitingJob } from './job-queue.ts'
import type {
  RenderFailure,
  RenderResult,
  TemplateSource,
  WorkerBatch,
  WorkerJob,
  WorkerResults,
} from './render-messages.ts'

export interface RenderRequest {
  /** Accounts are served in turn. */
  accountId: string
  template: TemplateSource
  /** Plain JSON data. */
  variables: Readonly<Record<string, unknown>>
  /** Also make plain text of the rendered HTML. Default no. */
  text?: boolean
  /** Also list the names that were written out and are not in the variables. Default no. */
  missing?: boolean
  /** Also write where they were, as `{{name}}`. Default no. */
  marked?: boolean
}

export interface Renderer {
  /** @throws Unavailable when closed or when too many jobs wait */
  render(request: RenderRequest): Promise<RenderResult>
  /** Compiles without rendering: why the template cannot be stored, or null. @throws Unavailable as above */
  check(accountId: string, template: TemplateSource): Promise<string | null>
  /** Ends the threads; waiting jobs fail with Unavailable. */
  close(): Promise<void>
}

/** 64 MB in all. */
const MEMORY = { maxOldGenerationSizeMb: 48, maxYoungGenerationSizeMb: 16 }
/** Only the recursion of the parser needs stack; templates nest 100 levels. */
const STACK_MB = 4
/** Jobs in one message: shares the cost of a message, and few jobs are repeated when a thread is ended. */
const BATCH_JOBS_MAX = 100
/** Senders wait for their own results, so only very many of them reach this. */
const WAITING_MAX = 100_000
/** 500 ms in all, checked at intervals. Rendering stops itself earlier (program.ts); the parser cannot. */
const JOB_CPU_MS_MAX = 390
const WATCH_EVERY_MS = 50
/** Making text of 500,000 characters takes up to half a second; HTML cannot make it loop. */
const TEXT_CPU_MS_MAX = 2_000
/**
 * When a thread gets hardly any processor time, the job is given this many looks, two minutes; so is the thread's start. A
 * process that stands still does not look.
 */
const LOOKS_MAX = 2_400

const OUT_OF_MEMORY = 'ERR_WORKER_OUT_OF_MEMORY'

interface RenderJob extends WaitingJob {
  template: TemplateSource
  work:
    | { kind: 'check' }
    | { kind: 'render'; variables: unknown; text: boolean; missing: boolean; marked: boolean }
  resolve(result: RenderResult): void
  reject(error: Error): void
}

interface Slot {
  worker: Worker
  progress: Int32Array
  batch: RenderJob[]
  batchNumber: number
  /** Results received of the batch. */
  done: number
  watched: Watched
}

/** A job while it runs. */
interface Watched {
  position: string
  looks: number
  /** Processor time of the thread at the first look that got an answer. */
  cpuMs: number | null
  /** A look waits for its answer, which the thread gives when it runs. */
  looking: boolean
}

const watchedAt = (position: string): Watched => ({ position, looks: 0, cpuMs: null, looking: false })

/** Threads start with the first job. `close` must be called. */
export function createRenderer({ workersMax = sizesFor('normal').templateThreads } = {}): Renderer {
  const waiting = createJobQueue<RenderJob>(BATCH_JOBS_MAX)
  const slots = new Set<Slot>()
  let closed = false
  let pumping = false
  let watch: NodeJS.Timeout | null = null

  /** Deferred, so that jobs of one turn of the event loop share a message. */
  function pump(): void {
    if (pumping) return
    pumping = true
    queueMicrotask(() => {
      pumping = false
      while (waiting.count > 0 && !closed) {
        const slot = [...slots].find((candidate) => candidate.batch.length === 0) ?? startSlot()
        if (!slot) return
        give(slot, waiting.nextBatch())
      }
    })
  }

  function startSlot(): Slot | null {
    if (slots.size >= workersMax) return null
    const progress = new Int32Array(new SharedArrayBuffer(8))
    const worker = new Worker(join(import.meta.dirname, 'render-worker.ts'), {
      workerData: { progress },
      env: {},
      execArgv: [],
      resourceLimits: { ...MEMORY, stackSizeMb: STACK_MB },
    })
    const slot: Slot = { worker, progress, batch: [], batchNumber: 0, done: 0, watched: watchedAt('') }
    slots.add(slot)
    let fault: NodeJS.ErrnoException | null = null
    worker.on('message', (message: WorkerResults) => received(slot, message))
    worker.on('error', (error: NodeJS.ErrnoException) => {
      fault = error
    })
    worker.on('exit', () => died(slot, fault))
    return slot
  }

  function give(slot: Slot, batch: RenderJob[]): void {
    slot.batch = batch
    slot.batchNumber++
    slot.done = 0
    watch ??= setInterval(watchSlots, WATCH_EVERY_MS)
    try {
      slot.worker.postMessage(toMessage(slot.batchNumber, batch))
    } catch (error) {
      // Some variables cannot be copied, such as lists nested too deeply: the jobs are tried one by one.
      slot.batch = []
      if (batch.length === 1) batch[0]?.resolve({ kind: 'failed', cause: 'depth', detail: String(error) })
      else for (const job of batch.toReversed()) waiting.putBack(Object.assign(job, { alone: true }))
    }
  }

  function received(slot: Slot, { batch, results }: WorkerResults): void {
    if (batch !== slot.batchNumber) return
    for (const result of results) slot.batch[slot.done++]?.resolve(result)
    if (slot.done < slot.batch.length) return
    slot.batch = []
    stopWatchWhenIdle()
    pump()
  }

  /** Ends the job that ended the thread; the others are repeated by another thread. */
  function died(slot: Slot, fault: NodeJS.ErrnoException | null): void {
    slots.delete(slot)
    const at = Atomics.load(slot.progress, 0) - 1
    const guilty = slot.batch[at >= 0 ? at : slot.batch.length === 1 ? 0 : -1]
    for (const job of slot.batch.slice(slot.done).toReversed()) {
      if (closed) job.reject(new Unavailable())
      else if (job === guilty) endJob(job, fault, at >= 0)
      else waiting.putBack(guilty ? job : Object.assign(job, { alone: true }))
    }
    slot.batch = []
    stopWatchWhenIdle()
    pump()
  }

  function watchSlots(): void {
    for (const slot of slots) if (slot.batch.length > 0) void watchSlot(slot)
  }

  function stopWatchWhenIdle(): void {
    if (!watch || [...slots].some((slot) => slot.batch.length > 0)) return
    clearInterval(watch)
    watch = null
  }

  function submit(job: Omit<RenderJob, 'alone' | 'resolve' | 'reject'>): Promise<RenderResult> {
    if (closed || waiting.count >= WAITING_MAX) return Promise.reject(new Unavailable())
    return new Promise((resolve, reject) => {
      waiting.add({ ...job, alone: false, resolve, reject })
      pump()
    })
  }

  return {
    render: ({ accountId, template, variables, text = false, missing = false, marked = false }) =>
      submit({ accountId, template, work: { kind: 'render', variables, text, missing, marked } }),
    async check(accountId, template) {
      const result = await submit({ accountId, template, work: { kind: 'check' } })
      return result.kind === 'failed' ? describeFailure(result) : null
    },
    async close() {
      closed = true
      for (const job of waiting.clear()) job.reject(new Unavailable())
      await Promise.all([...slots].map((slot) => slot.worker.terminate()))
      if (watch) clearInterval(watch)
      watch = null
    },
  }
}

/** Without a fault, the watch ended the thread. Any fault except memory is our own, and so is a thread that did not begin. */
function endJob(job: RenderJob, fault: NodeJS.ErrnoException | null, begun: boolean): void {
  if (fault === null && !begun) job.reject(new Unavailable())
  else if (fault === null) job.resolve({ kind: 'failed', cause: 'time', detail: '' })
  else if (fault.code === OUT_OF_MEMORY) job.resolve({ kind: 'failed', cause: 'memory', detail: '' })
  else job.reject(fault)
}

const positionOf = ({ batchNumber, progress }: Slot) => `${batchNumber} ${progress.join(' ')}`

/** Ends the thread of a job that has used its time, counted from the first look that saw it. */
async function watchSlot(slot: Slot): Promise<void> {
  const { worker, progress } = slot
  const position = positionOf(slot)
  if (position !== slot.watched.position) slot.watched = watchedAt(position)
  const { watched } = slot
  if (++watched.looks > LOOKS_MAX) return void (await worker.terminate())
  if (watched.looking) return
  watched.looking = true
  const usage = await worker.cpuUsage().catch(() => null)
  watched.looking = false
  // The thread may have gone on meanwhile: the next job must not end for this one.
  if (!usage || positionOf(slot) !== position) return
  const cpuMs = (usage.user + usage.system) / 1000
  watched.cpuMs ??= cpuMs
  const [job = 0, phase] = progress
  if (job > 0 && cpuMs - watched.cpuMs > (phase === 1 ? TEXT_CPU_MS_MAX : JOB_CPU_MS_MAX))
    await worker.terminate()
}

/** Each template once, however many jobs share it. */
function toMessage(batch: number, jobs: readonly RenderJob[]): WorkerBatch {
  const indexes = new Map<string, number>()
  const templates: TemplateSource[] = []
  const indexOf = ({ key, content, headers }: TemplateSource) => {
    const known = indexes.get(key)
    if (known !== undefined) return known
    indexes.set(key, templates.length)
    return templates.push({ key, content, headers }) - 1
  }
  const workerJobs = jobs.map(({ template, work }): WorkerJob => ({ ...work, template: indexOf(template) }))
  return { batch, templates, jobs: workerJobs }
}

const LIMIT_TEXTS: Readonly<Record<Exclude<RenderFailure['cause'], 'syntax'>, string>> = {
  depth: 'nested too deeply',
  output: 'the output is over 5 MB',
  time: 'takes over 500 ms',
  memory: 'takes over 64 MB of memory',
}

/** One sentence for people. */
export function describeFailure({ cause, detail }: RenderFailure): string {
  return cause === 'syntax' ? detail : LIMIT_TEXTS[cause]
}
