/**
 * Writes the records of a domain at its DNS provider, and takes that back.
 *
 * 1. `plan` reads what stands at the names of the domain's records, and decides (`plan.ts`).
 * 2. The changes, with what stood there, are committed as a row in state `writing`. One change of a domain at a time.
 * 3. The provider is asked, zone by zone. Most make all changes of a zone or none.
 * 4. The row becomes `done`. After a failure the names are read again, and the row says of each set whether it was written.
 *
 * A process that dies in between leaves the row in state `writing`: the next call for the domain reads what became of it. A
 * further apply writes what is missing, and an undo takes back what stands.
 */
import { failPoint } from '../../base/flow/fail-point.ts'
import { BadRequest, Conflict, NotFound } from '../../base/process/errors.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { DnsChangeRow, DnsProviderRow } from '../../platform/store/schema.ts'
import type { Domain } from '../domains/domain.ts'
import { changesIn, type createChangeRows } from './change-rows.ts'
import type { KnownProviders } from './known-providers.ts'
import {
  digestOf,
  isWritten,
  type Plan,
  planRecords,
  planUndo,
  type StoredChange,
  type Wanted,
  type WrittenPurpose,
} from './plan.ts'
import { type DnsProvider, ProviderFault, type RecordSet, setKey, type Zone } from './provider.ts'

/** Limits of requests to providers. */
type Limits = Parameters<KnownProviders['open']>[1]

export interface ChangeParts extends Pick<Core, 'clock' | 'log'> {
  rows: ReturnType<typeof createChangeRows>
  providers: KnownProviders
  wantedOf(domain: Domain): Promise<Wanted[]>
  includeHost: string
}

/** What one operation came to. `row`: null where nothing was written. */
export interface Outcome {
  provider: string
  undoes: string | null
  plan: Plan
  row: DnsChangeRow | null
}

export interface ApplyRequest {
  provider: string | undefined
  replace: readonly WrittenPurpose[]
  isDryRun: boolean
  digest: string | undefined
}

/** What is asked before something is written, of all providers together; as long again to write. */
const OPERATION_MAX_MS = MINUTE_MS
/** Nobody writes any more: the operation has ended, or its process has died. */
const ABANDONED_MS = 3 * MINUTE_MS
/** Each waits for somebody else's server, with its answers in memory. */
const PER_ACCOUNT_MAX = 4
/** Names of one domain: its records, and a key or more. */
const NAMES_MAX = 60

export type Changes = ReturnType<typeof createChanges>

export function createChanges({ clock, log, rows, providers, wantedOf, includeHost }: ChangeParts) {
  const alone = createTurns()

  const limitsOf = (signal: AbortSignal): Limits => ({
    signal,
    untilMs: clock.monotonic() + OPERATION_MAX_MS,
  })

  /** @throws NotFound */
  async function found(domain: Domain, id: string): Promise<DnsChangeRow> {
    const row = await rows.one(domain.id, id)
    if (row === undefined) throw new NotFound('DNS change not found')
    return row
  }

  /** @throws Conflict while another change is being written */
  async function settleAbandoned(domain: Domain, limits: Limits): Promise<void> {
    const row = await rows.writing(domain.id)
    if (row === undefined) return
    if (clock.now() - Number(row.updated_at) < ABANDONED_MS) throw inProgress()
    const provider = await providers.one(domain.accountId, row.provider).catch(() => null)
    const opened = provider && providers.open(provider, limits)
    await rows.end(
      row,
      'failed',
      await lookedAt(opened, changesIn(row)),
      'The service ended while it was written.',
    )
  }

  async function write(
    domain: Domain,
    provider: DnsProviderRow,
    undoes: string | null,
    plan: Plan,
    sets: ReadonlyMap<string, RecordSet>,
  ): Promise<DnsChangeRow> {
    const row = await rows.begin(domain, provider.name, undoes, plan.changes)
    if (row === null) throw inProgress()
    failPoint('dns-before-write')
    // What has begun goes on although the caller has left.
    const writer = providers.open(provider, limitsOf(AbortSignal.timeout(OPERATION_MAX_MS)))
    const facts = { domain: domain.name, provider: provider.name, sets: plan.changes.length }
    try {
      for (const changes of Map.groupBy(plan.changes, ({ zone }) => zone.name).values()) {
        const [first] = changes as [StoredChange]
        await writer.write(
          first.zone,
          changes.map((change) => ({ change, current: sets.get(setKey(change)) })),
        )
        failPoint('dns-after-write')
      }
    } catch (error) {
      if (!(error instanceof ProviderFault)) throw error
      log.warn({ ...facts, reason: error.message }, 'DNS records were not all written')
      const again = providers.open(provider, limitsOf(AbortSignal.timeout(OPERATION_MAX_MS)))
      return rows.end(row, 'failed', await lookedAt(again, plan.changes), error.message)
    }
    log.info(facts, undoes === null ? 'DNS records written' : 'DNS records taken back')
    const written = plan.changes.map((change) => ({ ...change, written: true }))
    return rows.end(row, 'done', written, null)
  }

  return {
    /** @throws NotFound, BadRequest, Conflict */
    apply: (domain: Domain, request: ApplyRequest, signal: AbortSignal): Promise<Outcome> =>
      alone(domain, async () => {
        if (domain.type === 'sandbox') throw new BadRequest('The sandbox domain has no records')
        const limits = limitsOf(signal)
        await settleAbandoned(domain, limits)
        const chosen = await choose(providers, domain, request.provider, limits)
        const wanted = await wantedOf(domain)
        const standing = await read(chosen.opened, namesOf(wanted))
        const written = await rows.written(domain.id)
        const plan = planRecords(wanted, standing, {
          includeHost,
          written,
          replace: new Set(request.replace),
        })
        const outcome = { provider: chosen.row.name, undoes: null, plan, row: null }
        if (request.digest !== undefined && request.digest !== digestOf(chosen.row.name, plan.changes))
          throw new Conflict('DNS has changed since this was shown: look at it again')
        if (request.isDryRun || plan.changes.length === 0) return outcome
        return { ...outcome, row: await write(domain, chosen.row, null, plan, standing.sets) }
      }),

    /** @throws NotFound, BadRequest, Conflict */
    async undo(domain: Domain, id: string, isDryRun: boolean, signal: AbortSignal): Promise<Outcome> {
      // Whether there is one does not depend on what else is done.
      await found(domain, id)
      return alone(domain, async () => {
        const limits = limitsOf(signal)
        await settleAbandoned(domain, limits)
        const row = await found(domain, id)
        if (row.undoes !== null || row.state === 'undone')
          throw new BadRequest('There is nothing to take back: it was undone, or is an undo itself')
        const provider = await providers.one(domain.accountId, row.provider)
        const changes = changesIn(row)
        const standing = await read(providers.open(provider, limits), namesOf(changes))
        const plan = planUndo(changes, standing)
        const outcome = { provider: provider.name, undoes: id, plan, row: null }
        if (isDryRun || plan.changes.length === 0) return outcome
        return { ...outcome, row: await write(domain, provider, id, plan, standing.sets) }
      })
    },
  }
}

/** The one that was named, else the one whose zone is the longest. @throws NotFound, BadRequest, ProviderFault */
async function choose(providers: KnownProviders, domain: Domain, name: string | undefined, limits: Limits) {
  if (name !== undefined) {
    const row = await providers.one(domain.accountId, name)
    return { row, opened: providers.open(row, limits) }
  }
  const known = await providers.list(domain.accountId)
  if (known.length === 0)
    throw new BadRequest('There is no DNS provider: make one with PUT /sendwright/v1/dns-providers/{name}')
  let best: { row: DnsProviderRow; opened: DnsProvider; length: number } | null = null
  let fault: unknown
  for (const row of known) {
    const opened = providers.open(row, limits)
    try {
      const zone = await opened.zoneOf(domain.name)
      if (zone && zone.name.length > (best?.length ?? 0)) best = { row, opened, length: zone.name.length }
    } catch (error) {
      if (!(error instanceof ProviderFault)) throw error
      fault = error
    }
  }
  if (best) return best
  throw fault ?? new ProviderFault('refused', `No DNS provider of the account has a zone for ${domain.name}.`)
}

/** Runs the operations of a domain one at a time, and few of an account. @throws Conflict */
function createTurns() {
  /** Domains that something is done for, and their accounts. */
  const busy = new Map<string, string>()
  return async <T>(domain: Domain, work: () => Promise<T>): Promise<T> => {
    const ofAccount = [...busy.values()].filter((accountId) => accountId === domain.accountId)
    if (busy.has(domain.id) || ofAccount.length >= PER_ACCOUNT_MAX) throw inProgress()
    busy.set(domain.id, domain.accountId)
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof ProviderFault)) throw error
      const { retrySeconds } = error
      throw new Conflict(error.message, { cause: error, ...(retrySeconds !== undefined && { retrySeconds }) })
    } finally {
      busy.delete(domain.id)
    }
  }
}

const inProgress = () =>
  new Conflict('A change of the domain, or of several others, is being written', {
    retrySeconds: ABANDONED_MS / 1_000,
  })

/** @param names without repetition */
async function read(opened: DnsProvider, names: readonly string[]) {
  const zones = new Map<string, Zone | null>()
  const sets = new Map<string, RecordSet>()
  if (names.length > NAMES_MAX) throw new ProviderFault('refused', `More than ${NAMES_MAX} names.`)
  for (const name of names) {
    const zone = await opened.zoneOf(name)
    zones.set(name, zone)
    for (const set of zone ? await opened.read(zone, name) : []) sets.set(setKey(set), set)
  }
  return { zones, sets }
}

const namesOf = (list: readonly { name: string }[]) => [...new Set(list.map(({ name }) => name))]

/** The changes, each with whether it stands. Never rejects because of the provider. */
async function lookedAt(
  opened: DnsProvider | null,
  changes: readonly StoredChange[],
): Promise<StoredChange[]> {
  try {
    const sets = opened && (await read(opened, namesOf(changes))).sets
    return changes.map((change) => {
      const values = sets?.get(setKey(change))?.values ?? []
      return { ...change, written: sets && isWritten(change, values) }
    })
  } catch (error) {
    if (!(error instanceof ProviderFault)) throw error
    return changes.map((change) => ({ ...change, written: null }))
  }
}
