/**
 * One measured flow: load goes in, mail comes out at the sink. End to end is from the first acceptance to the
 * last message at the sink; what fails makes the figure void and is an error.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Helper } from './helper-process.ts'
import { startHelper } from './helper-process.ts'
import type { LoadAmount, LoadResult } from './load.ts'
import { cpuSeconds, type Memory, watchMemory } from './processes.ts'
import type { Rig } from './rig.ts'
import type { SinkQuestion, SinkStats } from './sink.ts'

export type Sink = Helper<SinkQuestion, SinkStats> & { port: number }

/** The hosts share one port. */
export async function startSink(rig: Rig, hosts: string[] = ['127.0.0.1']): Promise<Sink> {
  const helper = startHelper<SinkQuestion, SinkStats>(rig, 'sink.ts')
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
  /** Sends and resolves when all is accepted. */
  load(amount: LoadAmount, record?: boolean): Promise<LoadResult>
  /** Recipients of one request. */
  recipients: number
  stop(): Promise<void>
}

/** An answer of the sink takes microseconds; on a crowded machine it may have to wait for its turn. */
export const ASK_LIMIT_MS = 30_000
/** Without a new message for so long, the rest is not coming. */
const STALL_LIMIT_MS = 60_000
/** No load is meant to last longer. */
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

/** Waits until so many recipients came. @throws when nothing more comes */
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
