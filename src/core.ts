/** What every area is built from. Types only; `open-core.ts` opens it. */
import type { Logger } from 'pino'
import type { AccountDirectory } from './accounts/account-directory.ts'
import type { ByteBudget } from './base/byte-budget.ts'
import type { Clock } from './base/clock.ts'
import type { Cidr } from './base/ip.ts'
import type { MemorySizes } from './base/memory-sizes.ts'
import type { Config } from './config.ts'
import type { Resolver } from './dns/resolver.ts'
import type { DomainDirectory } from './domains/directory.ts'
import type { EventRecorder } from './events/event-recorder.ts'
import type { AccountLimits } from './http/account-limits.ts'
import type { Limiter } from './http/rate-limit.ts'
import type { HttpClient } from './http-posts/http-client.ts'
import type { Nodes } from './nodes/node.ts'
import type { BlobStore } from './store/blobs.ts'
import type { FreeSpace } from './store/free-space.ts'
import type { Sealer } from './store/sealing.ts'
import type { Store } from './store/store.ts'
import type { Tracing } from './traces/tracing.ts'

export interface Core {
  config: Config
  /** By `config.memory`. */
  sizes: MemorySizes
  log: Logger
  clock: Clock
  random: () => number
  store: Store
  blobs: BlobStore
  /** For bytes from outside: it ends at the floor of free space. */
  spool: Pick<BlobStore, 'spool'>
  space: FreeSpace
  sealer: Sealer
  accounts: AccountDirectory
  domains: DomainDirectory
  /** The one way to write events. */
  recorder: EventRecorder
  resolver: Resolver
  /** Posts to URLs that callers name. */
  httpClient: HttpClient
  /** Private networks that callers' URLs and mail hosts may be in. */
  allow: readonly Cidr[]
  limiter: Limiter
  accountLimits: AccountLimits
  firstAccountId: string
  /** The processes on this database. */
  nodes: Nodes
  /** Names this process in leases; `nodes.id`. */
  leaseOwner: string
  /** Memory for large bodies on their way in, and for those on their way out. */
  bodiesIn: ByteBudget
  bodiesOut: ByteBudget
  /** Lines of the log that this process could not write. */
  lostLogLines: () => number
  /** Absent: nothing is traced. */
  tracing?: Tracing
}
