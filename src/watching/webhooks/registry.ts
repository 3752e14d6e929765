/**
 * The URLs that each event is sent to. Every event looks them up, on the hot path of every message, so all registrations
 * are kept in memory (a few hundred bytes each). They are read again after every change, on all nodes before it is answered;
 * a node that cannot be told learns of it within POLL_MS.
 */
import type { Kysely, Transaction } from 'kysely'
import type { Logger } from 'pino'
import type { Clock, Timer } from '../../base/time/clock.ts'
import { laneOf } from '../../platform/posts/post-rows.ts'
import type { Schema } from '../../platform/store/schema.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import type { Store } from '../../platform/store/store.ts'
import type { WebhookType } from './types.ts'
import { openUserInfo } from './webhook-url.ts'

/** One URL that an event is sent to. */
export interface Target {
  /** With the secret part of its user info masked. */
  url: string
  /** `user:password` of the URL; null without any. */
  userInfo: string | null
  lane: string
  /** The account that registered it: the event's own, or its parent. */
  ownerId: string
}

export type Registry = ReturnType<typeof createRegistry>

/** How long a change on another node takes to become effective here. */
const POLL_MS = 3_000
const TOPIC = 'webhooks'

interface Snapshot {
  /** By account, domain and type, separated by spaces, which none of them contains. */
  domains: Map<string, Target[]>
  /** By account and type. */
  accounts: Map<string, Target[]>
  /** Parents of subaccounts, where the parent has webhooks. */
  parents: Map<string, string>
  version: string
}

const NO_TARGETS: readonly Target[] = []

export function createRegistry(store: Store, sealer: Sealer, clock: Clock, log: Logger) {
  let snapshot: Snapshot = { domains: new Map(), accounts: new Map(), parents: new Map(), version: '' }
  let timer: Timer | null = null
  let stopped = false
  /** Reads are serialised, so that an older snapshot never replaces a newer one. */
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
    const parent = parents.get(accountId)
    const lists = [
      domains.get(`${accountId} ${domainName} ${type}`),
      accounts.get(`${accountId} ${type}`),
      parent === undefined ? undefined : accounts.get(`${parent} ${type}`),
    ].filter((list) => list !== undefined)
    if (lists.length === 0) return NO_TARGETS
    if (lists.length === 1) return lists[0] as Target[]
    const distinct = new Map<string, Target>()
    for (const target of lists.flat()) if (!distinct.has(target.url)) distinct.set(target.url, target)
    return [...distinct.values()]
  }

  store.changes.follow(TOPIC, refresh)

  const find = (accountId: string, domainName: string, type: WebhookType, url: string) =>
    targets(accountId, domainName, type).find((target) => target.url === url)

  return {
    /** Nothing is registered in any account. */
    isEmpty: () => snapshot.domains.size + snapshot.accounts.size === 0,
    /** The distinct URLs of the domain, the account and its parent (rule 11). */
    targets,
    /** The target of one masked URL, or null. Queries the database before returning null: another node may have added it. */
    async target(
      accountId: string,
      domainName: string,
      type: WebhookType,
      url: string,
    ): Promise<Target | null> {
      const found = find(accountId, domainName, type, url)
      if (found) return found
      if ((await readVersion(store.db)) === snapshot.version) return null
      await refresh()
      return find(accountId, domainName, type, url) ?? null
    },
    /**
     * Changes registrations, or adds a subaccount, whose parent's webhooks get its first event. One change at a time in
     * the whole cluster; effective when it resolves (rule 7), on nodes that do not answer within POLL_MS.
     */
    async change<T>(run: (tx: Transaction<Schema>) => Promise<T>): Promise<T> {
      const result = await store.transaction(async (tx) => {
        // First, for its row lock: `run` may count rows before it writes.
        await tx
          .updateTable('webhook_changes')
          .set((eb) => ({ version: eb('version', '+', 1) }))
          .where('id', '=', 1)
          .execute()
        return run(tx)
      })
      await refresh()
      await store.changes.announce(TOPIC, '')
      return result
    },
    /** Reads everything again. */
    refresh,
    async start(): Promise<void> {
      await refresh()
      timer = clock.setTimer(POLL_MS, () => void poll())
    },
    stop(): void {
      stopped = true
      timer?.cancel()
    },
  }
}

/** Changes with every registration and with every new subaccount. */
async function readVersion(db: Kysely<Schema>): Promise<string> {
  const query = db.selectFrom('webhook_changes').select('version').where('id', '=', 1)
  return String((await query.executeTakeFirstOrThrow()).version)
}

/** Reads the version first: a change made meanwhile is read again at the next poll. */
async function readSnapshot(db: Kysely<Schema>, sealer: Sealer): Promise<Snapshot> {
  const version = await readVersion(db)
  const [domainRows, accountRows, children] = await Promise.all([
    db.selectFrom('domain_webhooks').selectAll().orderBy('position').execute(),
    db.selectFrom('account_webhooks').selectAll().orderBy('created_at').orderBy('id').execute(),
    db
      .selectFrom('accounts')
      .select(['id', 'parent_id'])
      .where('parent_id', 'in', db.selectFrom('account_webhooks').select('account_id'))
      .where('status', '<>', 'closed')
      .execute(),
  ])
  const domains = new Map<string, Target[]>()
  for (const row of domainRows) {
    add(domains, `${row.account_id} ${row.domain_name} ${row.event_type}`, targetOf(row, sealer))
  }
  const accounts = new Map<string, Target[]>()
  for (const row of accountRows) {
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
