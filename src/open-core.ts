/** Opens what every area is built from: files, database, DNS, the first account. */

import { hostname, uptime } from 'node:os'
import type { Logger } from 'pino'
import { createByteBudget } from './base/flow/byte-budget.ts'
import { newId } from './base/ids.ts'
import { bindable } from './base/net/host-addresses.ts'
import { parseCidr } from './base/net/ip.ts'
import { bodiesBytes, memoryBytes, sizesFor } from './base/process/memory-sizes.ts'
import { VERSION } from './base/process/version.ts'
import { type Clock, createSteadyClock, systemClock } from './base/time/clock.ts'
import type { Core } from './core.ts'
import { ensureFirstAccount, type FirstAccount } from './people/access/first-start.ts'
import { createAccountDirectory } from './people/accounts/account-directory.ts'
import { createKeys, type Keys } from './people/keys/api-keys.ts'
import type { Config } from './platform/config/config.ts'
import {
  type AccountLimits,
  createRateLimiter,
  type Limiter,
  limitsOf,
  openAccountLimits,
  type RateLimiterOptions,
} from './platform/http/limits/rate-limit.ts'
import { createSharedRateLimiter, createTokenLeases } from './platform/http/limits/shared-rate-limit.ts'
import { aloneNode, type Nodes, OWN_BLOBS } from './platform/nodes/node.ts'
import { openNodes } from './platform/nodes/nodes.ts'
import { createHostNames, createHttpClient } from './platform/posts/http-client.ts'
import { type BlobStore, openBlobs } from './platform/store/blobs/blobs.ts'
import { type FreeSpace, watchFreeSpace } from './platform/store/blobs/free-space.ts'
import { exposureSentence, makePrivate } from './platform/store/blobs/private-files.ts'
import { createS3Client } from './platform/store/blobs/s3-client.ts'
import { createSharedBlobs } from './platform/store/blobs/shared-blobs.ts'
import { boundedSpool, spaceOf } from './platform/store/blobs/spool-space.ts'
import { openInstallation } from './platform/store/installation.ts'
import type { SqliteOptions } from './platform/store/sqlite/sqlite.ts'
import type { UpgradeCopy } from './platform/store/sqlite/upgrade-copy.ts'
import { ownLeaseTimes, type Store } from './platform/store/store.ts'
import type { Tracing } from './platform/traces/tracing.ts'
import { createResolver } from './protocols/dns/resolver.ts'
import { systemServers } from './protocols/dns/system-servers.ts'
import { createSandbox } from './sending/domains/create-domain.ts'
import { createDomainDirectory } from './sending/domains/names/directory.ts'
import { createEventRecorder, type EventInterest } from './watching/events/event.ts'

/** What tests replace. */
export interface CoreOverrides {
  clock?: Clock
  random?: () => number
  /** Free bytes of the disk that the data folder is on. */
  freeBytes?: () => Promise<number>
  /** Memory of the machine, or of the control group. */
  memoryBytes?: number
  /** As `connect` of `openSqlite`. */
  connectSqlite?: SqliteOptions['connect']
  /** Default: none is lost. */
  lostLogLines?: () => number
}

/** What is open, closed from the last to the first. */
export type Closers = (() => Promise<void> | void)[]

interface OpenCore {
  core: Core
  /** Areas add theirs before the first event is written. */
  interests: EventInterest[]
  keys: Keys
  first: FirstAccount
  /** Secret of the sealed values, for backups. */
  secret: string
}

/** A host that is set up with no name server has one of its own, resolv.conf(5). */
const LOCAL_DNS = { host: '127.0.0.1', port: 53 }

/** Adds to `open` what it opens, also when it fails. */
export async function openCore(
  config: Config,
  log: Logger,
  overrides: CoreOverrides,
  open: Closers,
): Promise<OpenCore> {
  const clock = steadyClock(log, overrides.clock)
  const sizes = sizesFor(config.memory)
  await keepFilesPrivate(config.dataFolder, log)
  const { store, sealer, secret } = await openInstallation(config, {
    // A test's clock moves while the database's does not.
    ...(overrides.clock && { leaseTimes: ownLeaseTimes }),
    onClashes: (clashes) =>
      log.error({ clashes }, 'other pods have names that this one has: requests for them do not arrive here'),
    onFault: (fault) => log.error({ err: fault }, fault.detail),
    onUpgradeCopy: config.backupBeforeUpgrade ? (copy) => reportUpgradeCopy(log, copy) : undefined,
    sizes: sizes.sqlite,
    connect: overrides.connectSqlite,
  })
  open.push(() => store.close())
  const nodes = await joinNodes(config, log, store)
  open.push(() => nodes.close())
  const tracing = await tracingOf(config, log, nodes.id, open)
  const blobs = await openBlobStore(config, log, open)
  warnOfOwnBlobs(config, nodes, log)
  const space = await watchSpace(config, log, { clock, store, freeBytes: overrides.freeBytes })
  open.push(() => space.close())
  const keys = createKeys(store, sealer, clock)
  const sandboxOf = (id: string, name: string) => createSandbox({ store, sealer, clock }, id, name)
  const first = await ensureFirstAccount(
    { store, sealer, keys, clock, createSandbox: sandboxOf },
    config.apiKey,
  )
  const servers = config.dnsServers ?? systemServers()
  const resolver = createResolver({ servers: servers.length > 0 ? servers : [LOCAL_DNS], clock })
  open.push(() => resolver.close())
  const allow = config.allowNetworks.flatMap((network) => parseCidr(network) ?? [])
  const httpClient = createHttpClient({ resolve: createHostNames(resolver, clock), allow, clock })
  open.push(() => httpClient.close())
  const memory = overrides.memoryBytes ?? memoryBytes()
  const interests: EventInterest[] = []
  const accountLimits = await openAccountLimits(store)
  const core: Core = {
    config,
    sizes,
    log,
    clock,
    random: overrides.random ?? Math.random,
    store,
    blobs,
    spool: boundedSpool(blobs, spaceOf(config.dataFolder, config.freeSpaceMinBytes)),
    space,
    sealer,
    accounts: createAccountDirectory(store, clock),
    domains: createDomainDirectory(store, clock),
    recorder: createEventRecorder(interests),
    resolver,
    httpClient,
    allow,
    accountLimits,
    limiter: limiterOf(config, { store, clock, accountLimits }, open),
    firstAccountId: first.accountId,
    nodes,
    leaseOwner: nodes.id,
    bodiesIn: createByteBudget(bodiesBytes(memory), clock),
    bodiesOut: createByteBudget(bodiesBytes(memory), clock),
    lostLogLines: overrides.lostLogLines ?? (() => 0),
    ...(tracing && { tracing }),
  }
  return { core, interests, keys, first, secret }
}

/** The libraries of traces take 8 MB in a release: they are loaded only where there is a collector. */
async function tracingOf(
  { traces }: Config,
  log: Logger,
  instance: string,
  open: Closers,
): Promise<Tracing | undefined> {
  if (traces === null) return undefined
  const { openTracing } = await import('./platform/traces/open-telemetry.ts')
  const tracing = openTracing({ ...traces, instance, log })
  open.push(() => tracing.close())
  return tracing
}

const TRIM_EVERY_MS = 600_000

async function openBlobStore(config: Config, log: Logger, open: Closers): Promise<BlobStore> {
  const files = await openBlobs(config.dataFolder)
  if (config.blobs === null) return files
  const { prefix, ...options } = config.blobs
  const folder = config.dataFolder
  const shared = createSharedBlobs({ files, folder, client: createS3Client(options), prefix, log })
  const trimming = setInterval(() => {
    shared.trim().catch((err: unknown) => log.warn({ err }, 'cannot remove copies of blobs'))
  }, TRIM_EVERY_MS)
  open.push(() => clearInterval(trimming))
  return shared
}

function warnOfOwnBlobs(config: Config, nodes: Nodes, log: Logger): void {
  if (config.blobs === null && nodes.others().length > 0) log.warn(OWN_BLOBS)
}

/** Before anything of the database is cached here: from then on this process is told of changes. */
async function joinNodes(config: Config, log: Logger, store: Store): Promise<Nodes> {
  const facts = {
    id: newId(),
    host: hostname(),
    roles: config.roles,
    addresses: await bindable(config.sourceAddresses),
    version: VERSION,
  }
  // In real time, also where a test sets the clock: it is about processes that are gone.
  return config.databaseUrl === null
    ? aloneNode(facts, systemClock.now)
    : openNodes({ store, url: config.databaseUrl, facts, log })
}

function steadyClock(log: Logger, given: Clock | undefined): Clock {
  return createSteadyClock(
    given ?? systemClock,
    // A test's clock stands still while the machine's does not.
    () => (given ? given.monotonic() : uptime() * 1000),
    (aheadMs) => log.warn({ aheadMs }, 'the system clock was stepped; its new time counts after a restart'),
  )
}

/** Before anything in the data folder is read: logs what was open to other users, and what still is. */
async function keepFilesPrivate(folder: string, log: Logger): Promise<void> {
  const { mended, left } = await makePrivate(folder)
  for (const { path, mode } of mended)
    log.warn({ path, mode: mode.toString(8) }, 'other users had access to a file; it is private now')
  for (const file of left) log.warn({ path: file.path, mode: file.mode.toString(8) }, exposureSentence(file))
}

function watchSpace(
  config: Config,
  log: Logger,
  { clock, store, freeBytes }: { clock: Clock; store: Store; freeBytes: CoreOverrides['freeBytes'] },
): Promise<FreeSpace> {
  const floorBytes = config.freeSpaceMinBytes
  return watchFreeSpace({
    folder: config.dataFolder,
    floorBytes,
    clock,
    files: store.files,
    freeBytes,
    onChange(enough) {
      log.warn({ floor: floorBytes }, enough ? 'space is free again' : 'no space for new mail')
    },
    onError: (err) => log.warn({ err }, 'cannot look after the free space'),
  })
}

/** On PostgreSQL the processes share the limits. */
function limiterOf(
  config: Config,
  { store, clock, accountLimits }: { store: Store; clock: Clock; accountLimits: AccountLimits },
  open: Closers,
): Limiter {
  const options: RateLimiterOptions = {
    clock,
    limits: limitsOf(config),
    off: config.rateLimit === null,
    countOf: accountLimits.countOf,
  }
  if (store.kind === 'sqlite') return createRateLimiter(options)
  const limiter = createSharedRateLimiter({ ...options, exchange: createTokenLeases(store, clock) })
  open.push(() => limiter.close())
  return limiter
}

function reportUpgradeCopy(log: Logger, copy: UpgradeCopy): void {
  if (copy.file !== null) log.info(copy, 'kept a copy of the database before the upgrade')
  else log.warn(copy, 'no copy of the database before the upgrade: there is too little room')
}
