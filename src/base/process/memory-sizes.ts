/**
 * What the process reserves or keeps, by `SENDWRIGHT_MEMORY` (decision 147). V8's own limits have to be there before Node
 * starts; `bin/node-settings.sh` has them. Large bodies have a bound of their own.
 */
import { availableParallelism, totalmem } from 'node:os'

export const MEMORY_KINDS = ['small', 'normal'] as const
export type MemoryKind = (typeof MEMORY_KINDS)[number]

export interface MemorySizes {
  sqlite: SqliteSizes
  /** Threads that render templates. */
  templateThreads: number
  /** Contents of accepted messages that are kept for their deliveries, together. */
  rememberedBytes: number
}

export interface SqliteSizes {
  /** Page cache of each connection; the system's file cache serves the rest. */
  cacheKb: { writer: number; reader: number }
  /** Young generation of each connection's thread. */
  youngMb: number
}

const MIB = 1024 * 1024

const SIZES: Record<MemoryKind, MemorySizes> = {
  normal: {
    sqlite: {
      // With 32 MB each, memory grew by another 40 MB while the caches filled, and a batch of 1,000 was sent no faster
      // (decision 25).
      cacheKb: { writer: 12_000, reader: 6_000 },
      // Rows and replies are short-lived. By default V8 lets each thread's young generation grow to 32 MB over time and
      // keeps it there with 10 MB in use.
      youngMb: 9,
    },
    // Rendering 10 KB takes about 20 µs, so two are enough for any sender.
    templateThreads: Math.min(2, availableParallelism()),
    // A large newsletter with inline files is a few hundred kilobytes.
    rememberedBytes: 64 * MIB,
  },
  small: {
    // A third: the pages that every transaction touches, the upper levels of the indexes, still fit.
    sqlite: { cacheKb: { writer: 4_000, reader: 2_000 }, youngMb: 6 },
    // Each may take 64 MB.
    templateThreads: 1,
    // A backlog is read from the database again sooner, eight messages in a query.
    rememberedBytes: 16 * MIB,
  },
}

/** The sizes of a process with this setting. */
export const sizesFor = (memory: MemoryKind): MemorySizes => SIZES[memory]

const MB = 1_048_576

/** Memory of the service under load without large bodies, rounded up. */
const REST_BYTES = 320 * MB
/** A body of 18 MB takes less than its own size in flight, garbage included. */
const SHARE = 1 / 4
/** Two bodies of 18 MB, even where memory is tight. */
const BODIES_BYTES_MIN = 40 * MB
/** More at a time is no faster. */
const BODIES_BYTES_MAX = 1_024 * MB

/** Memory of the machine, or of the control group that the process is in. */
export function memoryBytes(): number {
  const total = totalmem()
  const group = process.constrainedMemory()
  return group > 0 && group < total ? group : total
}

/** Bytes of large bodies that may be in flight at a time, in either direction, with that much memory. */
export const bodiesBytes = (memory: number): number =>
  Math.min(BODIES_BYTES_MAX, Math.max(BODIES_BYTES_MIN, (memory - REST_BYTES) * SHARE))
