/**
 * One measured flow from the load generator to the sink. End to end is the time from the first acceptance to the
 * last message at the sink. A failed message makes the figure void and is an error.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Helper } from './helper-process.ts'
import { startHelper } from './helper-process.ts'
import type { LoadAmount, LoadResult } from './load.ts'
import { cpuSeconds, type Memory, watchMemory } from './processes.ts'
import type { Rig } from './rig.ts'
import type { SinkQuestion, SinkStats } from './sink.ts'

export type Sink = Helper<SinkQuestion, SinkStats> & { port: number }

export type SinkFile = 'sink.ts' | 'http-sink.ts'

/** The hosts share one port. */
export async function startSink(
  rig: Rig,
  hosts: string[] = ['127.0.0.1'],
  file: SinkFile = 'sink.ts',
): Promise<Sink> {
  const helper = startHelper<SinkQuestion, SinkStats>(rig, file)
  const { port } = await helper.ask({ kind: 'listen', hosts }, ASK_LIMIT_MS)
  return { ...helper, port }
}

export interface Flow {
  /** Recipients delivered per second, from the first acceptance to the last message at the sink. */
  perSecond: number
  delivered: number
  /** Acceptances per second. */
  acceptedPerSecond: number
  load: LoadResult
  /** CPU seconds of all processes of the system, user and system. */
  cpuPerThousand: number
  peak: Memory
  /** Messages at the sink with a DKIM signature. */
  signed: number
}

export interface System {
  /** Process ids; all below them count. */
  roots: readonly number[]
  /** Sends, and resolves when everything is accepted. */
  load(amount: LoadAmount, record?: boolean): Promise<LoadResult>
  /** Recipients of one request. */
  recipients: number
  stop(): Promise<void>
}

/** The sink replies within microseconds; on a busy machine it may have to wait to be scheduled. */
export const ASK_LIMIT_MS = 30_000
/** After this time without a new message, the rest counts as lost. */
const STALL_LIMIT_MS = 60_000
/** No load lasts longer. */
export const LOAD_LIMIT_MS = 60 * 60_000
const LOOK_EVERY_MS = 50

export async function measureFlow(sink: Sink, system: System, amount: LoadAmount): Promise<Flow> {
  await sink.ask({ kind: 'reset', refuse: [], record: null }, ASK_LIMIT_MS)
  const memory = watchMemory(system.roots)
  try {
    const cpuBefore = cpuSeconds(system.roots)
    const load = await system.load(amount)
    if (load.failed > 0) throw new Error(`${load.failed} requests failed: ${load.failure}`)
    const stats = await untilDelivered(sink, load.accepted * system.recipients)
    const cpu = cpuSeconds(system.roots) - cpuBefore
    const delivered = stats.count
    return {
      perSecond: (delivered * 1_000) / (stats.lastAt - load.firstAt),
      delivered,
      acceptedPerSecond: (load.accepted * 1_000) / (load.lastAt - load.firstAt),
      load,
      cpuPerThousand: (cpu * 1_000) / delivered,
      peak: memory.stop(),
      signed: stats.signed,
    }
  } finally {
    memory.stop()
  }
}

/** Waits until this many recipients have arrived. @throws when none arrives any more */
export async function untilDelivered(sink: Sink, count: number): Promise<SinkStats> {
  let seen = -1
  let changedAt = performance.now()
  for (;;) {
    const stats = await sink.ask({ kind: 'stats' }, ASK_LIMIT_MS)
    if (stats.count >= count) return stats
    if (stats.count !== seen) {
      seen = stats.count
      changedAt = performance.now()
    }
    if (performance.now() - changedAt > STALL_LIMIT_MS)
      throw new Error(`${stats.count} of ${count} delivered, and nothing more for ${STALL_LIMIT_MS} ms`)
    await sleep(LOOK_EVERY_MS)
  }
}
