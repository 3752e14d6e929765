/**
 * Which URLs an event goes to, answered from memory: the question comes with every event, on the way of every
 * message. All registrations are held (some hundred bytes each) and read again after every change here, and
 * within POLL_MS after one on another node.
 */
import type { Kysely, Transaction } from 'kysely'
import type { Logger } from 'pino'
import type { Clock, Timer } from '../base/clock.ts'
import { laneOf } from '../outgoing/post-rows.ts'
import type { Schema } from '../store/schema.ts'
import type { Sealer } from '../store/sealing.ts'
import type { Store } from '../store/store.ts'
import type { WebhookType } from './types.ts'
import { openUserInfo } from './webhook-url.ts'

/** One URL that an event goes to. */
export interface Target {
  /** The secret part of its user info masked. */
  url: string
  /** `user:password` of the URL; null without any. */
  userInfo: string | null
  lane: string
  /** The account that registered it: the event's own, or its parent. */
  ownerId: string
}

export interface Registry {
  /** Each distinct URL once: the domain's, the account's, its parent's (rule 11). */
  targets(accountId: string, domainName: string, type: WebhookType): readonly Target[]
  /** The target of one masked URL, or null; asks the database before saying no: another node may know more. */
  target(accountId: string, domainName: string, type: WebhookType, url: string): Promise<Target | null>
  /** A change of registrations, one at a time in the whole cluster; in force here when it resolves (rule 7). */
  change<T>(run: (tx: Transaction<Schema>) => Promise<T>): Promise<T>
  /** Reads everything again: after a subaccount was made, so that its parent's webhooks see its first event. */
  refresh(): Promise<void>
  start(): Promise<void>
  stop(): void
}

/** How late a change on another node is in force here. */
const POLL_MS = 3_000

interface Snapshot {
  /** By account, domain and type, separated by blanks, which none of them holds. */
  domains: Map<string, Target[]>
  /** By account and type. */
  accounts: Map<string, Target[]>
  parents: Map<string, string>
  version: string
}

const NOTHING: readonly Target[] = []

export function createRegistry(store: Store, sealer: Sealer, clock: Clock, log: Logger): Registry {
  let snapshot: Snapshot = { domains: new Map(), accounts: new Map(), parents: new Map(), version: '' }
  let timer: Timer | null = null
  let stopped = false
  /** Reads follow each other, so that an older one never replaces a newer. */
  let reading: Promise<void> = Promise.resolve()

  function refresh(): Promise<void> {
    reading = reading
      .catch(() => {})
      .then(async () => {
        snapshot = await readSnapshot(store.db, sealer)
      })
    return reading
  }

  async function poll(): Promise<void> {
    try {
      if ((await readVersion(store.db)) !== snapshot.version) await refresh()
    } catch (error) {
      log.error({ err: error }, 'cannot read the webhooks')
    }
    if (!stopped) timer = clock.setTimer(POLL_MS, () => void poll())
  }

  function targets(accountId: string, domainName: string, type: WebhookType): readonly Target[] {
    const { domains, accounts, parents } = snapshot
    if (domains.size + accounts.size === 0) return NOTHING
    const parent = parents.get(accountId)
    const lists = [
      domains.get(`${accountId} ${domainName} ${type}`),
      accounts.get(`${accountId} ${type}`),
      parent === undefined ? undefined : accounts.get(`${parent} ${type}`),
    ].filter((list) => list !== undefined)
    if (lists.length === 0) return NOTHING
    if (lists.length === 1) return lists[0] as Target[]
    const distinct = new Map<string, Target>()
    for (const target of lists.flat()) if (!distinct.has(target.url)) distinct.set(target.url, target)
    return [...distinct.values()]
  }

  const known = (accountId: string, domainName: string, type: WebhookType, url: string) =>
    targets(accountId, domainName, type).find((target) => target.url === url)

  return {
    targets,
    async target(accountId, domainName, type, url) {
      const found = known(accountId, domainName, type, url)
      if (found) return found
      if ((await readVersion(store.db)) === snapshot.version) return null
      await refresh()
      return known(accountId, domainName, type, url) ?? null
    },
    async change(run) {
      const result = await store.transaction(async (tx) => {
        // First, for its lock: what follows may count before it writes.
        await tx
          .updateTable('webhook_changes')
          .set((of) => ({ version: of('version', '+', 1) }))
          .where('id', '=', 1)
          .execute()
        return run(tx)
      })
      await refresh()
      return result
    },
    refresh,
    async start() {
      await refresh()
      timer = clock.setTimer(POLL_MS, () => void poll())
    },
    stop() {
      stopped = true
      timer?.cancel()
    },
  }
}

/** Changes with every registration and with every account. */
async function readVersion(db: Kysely<Schema>): Promise<string> {
  const row = await db
    .selectFrom('webhook_changes')
    .select((of) => [
      'version',
      of
        .selectFrom('accounts')
        .select((accounts) => accounts.fn.countAll<number>().as('count'))
        .as('accounts'),
    ])
    .where('id', '=', 1)
    .executeTakeFirstOrThrow()
  return `${row.version} ${row.accounts}`
}

/** The version is read first: what changes meanwhile is read once more at the next poll. */
async function readSnapshot(db: Kysely<Schema>, sealer: Sealer): Promise<Snapshot> {
  const version = await readVersion(db)
  const [ofDomains, ofAccounts, children] = await Promise.all([
    db.selectFrom('domain_webhooks').selectAll().orderBy('position').execute(),
    db.selectFrom('account_webhooks').selectAll().orderBy('created_at').orderBy('id').execute(),
    db.selectFrom('accounts').select(['id', 'parent_id']).where('parent_id', 'is not', null).execute(),
  ])
  const domains = new Map<string, Target[]>()
  for (const row of ofDomains) {
    add(domains, `${row.account_id} ${row.domain_name} ${row.event_type}`, targetOf(row, sealer))
  }
  const accounts = new Map<string, Target[]>()
  for (const row of ofAccounts) {
    const types = JSON.parse(row.event_types_json) as string[]
    const target = targetOf(row, sealer)
    for (const type of types) add(accounts, `${row.account_id} ${type}`, target)
  }
  const parents = new Map(children.map((row) => [row.id, row.parent_id as string]))
  return { domains, accounts, parents, version }
}

function targetOf(
  row: { url: string; account_id: string; credentials_sealed: Uint8Array | null },
  sealer: Sealer,
): Target {
  const userInfo = openUserInfo(sealer, row.credentials_sealed)
  return { url: row.url, userInfo, lane: laneOf(row.url), ownerId: row.account_id }
}

function add(map: Map<string, Target[]>, key: string, target: Target): void {
  const list = map.get(key) ?? []
  list.push(target)
  map.set(key, list)
}
