/** What every area is built from. Types only; `open-core.ts` opens it. */

import type { Logger } from 'pino'
import type { ByteBudget } from './base/flow/byte-budget.ts'
import type { Cidr } from './base/net/ip.ts'
import type { MemorySizes } from './base/process/memory-sizes.ts'
import type { Clock } from './base/time/clock.ts'
import type { AccountDirectory } from './people/accounts/account-directory.ts'
import type { Config } from './platform/config/config.ts'
import type { AccountLimits, Limiter } from './platform/http/limits/rate-limit.ts'
import type { Nodes } from './platform/nodes/node.ts'
import type { HttpClient } from './platform/posts/http-client.ts'
import type { BlobStore } from './platform/store/blobs/blobs.ts'
import type { FreeSpace } from './platform/store/blobs/free-space.ts'
import type { Sealer } from './platform/store/secrets/sealing.ts'
import type { Store } from './platform/store/store.ts'
import type { Tracing } from './platform/traces/tracing.ts'
import type { Resolver } from './protocols/dns/resolver.ts'
import type { DomainDirectory } from './sending/domains/names/directory.ts'
import type { EventRecorder } from './watching/events/event.ts'

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
