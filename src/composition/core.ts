/** What every part of the service is built from. */
import type { Logger } from 'pino'
import type { ByteBudget } from '../base/byte-budget.ts'
import type { Clock } from '../base/clock.ts'
import type { Config } from '../config.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import type { SendingParts } from '../messages/sending.ts'
import type { BlobStore } from '../store/blobs.ts'
import type { FreeSpace } from '../store/free-space.ts'
import type { Sealer } from '../store/sealing.ts'
import type { Store } from '../store/store.ts'

export interface Core {
  config: Config
  log: Logger
  clock: Clock
  random: () => number
  store: Store
  blobs: BlobStore
  /** For what comes from outside: it ends at the floor of free space. */
  spool: Pick<BlobStore, 'spool'>
  space: FreeSpace
  sealer: Sealer
  domains: DomainDirectory
  firstAccountId: string
  /** Memory for large bodies on their way in, and for those on their way out. */
  bodiesIn: ByteBudget
  bodiesOut: ByteBudget
}

/** What is open, closed from the last to the first. */
export type Closers = (() => Promise<void> | void)[]

/** Areas as sending sees them, which tests replace. */
export type SendingOverrides = Partial<
  Pick<SendingParts, 'templates' | 'renderer' | 'tracker' | 'habits' | 'lists' | 'queuedMax' | 'accepted'>
>
