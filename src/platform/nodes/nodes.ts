/**
 * The processes on one PostgreSQL, as each of them sees it.
 *
 * 1. A process registers itself, and gives a sign of life every BEAT_MS by the database's time, over the connection that it
 *    listens on (link.ts).
 * 2. A process that has given none for DEAD_AFTER_MS is dead. Any other one removes its row and returns what it had under
 *    a lease, in one unit. Its later writes name tokens that no row has any more: they are refused.
 * 3. A process stops handing mail over when its own last sign of life is older than CURRENT_MS, so before anybody may
 *    consider it dead. One that finds its row removed forgets what it held and registers again.
 * 4. After an outage of the database all are silent for as long. A process considers another one dead only after it has
 *    itself seen the same sign of life for DEAD_AFTER_MS, with beats of its own in between.
 */
import type { Logger } from 'pino'
import { commitUnlessStale } from '../store/commits.ts'
import type { SqlValue, Statement, Store } from '../store/store.ts'
import { type Announcements, channelOf, commonChannel, createAnnouncements } from './announcements.ts'
import type { Link } from './link.ts'
import type { NodeFacts, NodeReport, Nodes, Role } from './node.ts'

const BEAT_MS = 1_000
/** With two beats more, what a dead process held is back in the queue within nine seconds. */
const DEAD_AFTER_MS = 6_000
/** A second below: the last check before a message is handed over, and the handing over itself, lie in between. */
const CURRENT_MS = 5_000
/** One that has been silent for longer is not waited for: it is about to be dead. */
const HEARD_MS = 3_000
/** Where notifications do not arrive, everything is considered changed this often. */
const ASK_EVERY_MS = 2_000

interface NodeParts {
  store: Store
  url: string
  facts: NodeFacts
  log: Logger
}

/** Registers this process. @throws StoreUnavailable */
export async function openNodes(parts: NodeParts): Promise<Nodes> {
  const nodes = new SharedNodes(parts)
  await nodes.open()
  return nodes
}

class SharedNodes implements Nodes {
  readonly #parts: NodeParts
  readonly #announcements: Announcements
  #link: Link | null = null
  #state: NodeReport['state'] = 'running'
  #closed = false
  #timer: NodeJS.Timeout | undefined
  #beating: Promise<void> = Promise.resolve()
  /** On the monotonic clock, before the statement of the last sign of life was sent. */
  #lastBeatAt = Number.NEGATIVE_INFINITY
  #lastAskAt = 0
  #others: readonly NodeReport[] = []
  #share = { index: 0, count: 1 }
  /** The last sign of life of each other process, and since when this one has seen it unchanged. */
  readonly #seen = new Map<string, { lastSeenAt: number; since: number }>()
  readonly #takenOver: (() => Promise<void> | void)[] = []
  readonly #returned: (() => void)[] = []

  constructor(parts: NodeParts) {
    this.#parts = parts
    const { store, facts, log } = parts
    this.#announcements = createAnnouncements({
      id: facts.id,
      channel: commonChannel(store.pod),
      hub: store.changes,
      log,
      others: () => this.#others.filter(({ silentMs }) => silentMs < HEARD_MS).map(({ id }) => id),
      notify: async (notes) => this.#link?.notify(notes),
    })
  }

  get addresses(): readonly string[] {
    return this.#parts.facts.addresses
  }

  get id(): string {
    return this.#parts.facts.id
  }

  async open(): Promise<void> {
    const { url, log, store, facts } = this.#parts
    const { openLink } = await import('./link.ts')
    this.#link = await openLink({
      url,
      pod: store.pod,
      channels: [commonChannel(store.pod), channelOf(facts.id)],
      log,
      onNote: (_, payload) => this.#announcements.received(payload),
      onMissed: () => this.#missed(),
      onServer: (server) => store.endUnanswered?.(server),
    })
    try {
      const sentAt = performance.now()
      await this.#link.query(REGISTER, registerValues(facts, this.#state))
      this.#lastBeatAt = sentAt
      await this.#beat()
      store.changes.attach(this.#announcements)
      store.changes.follow(RETURNED_TOPIC, () => this.#tellReturned())
      store.changes.follow(JOINED_TOPIC, () => this.#beat())
      await this.#announceJoined()
    } catch (error) {
      await this.#link.close()
      throw error
    }
    this.#beatLater()
  }

  isCurrent(): boolean {
    return performance.now() - this.#lastBeatAt < CURRENT_MS
  }

  list(): Promise<NodeReport[]> {
    return readNodes(this.#parts.store)
  }

  others(): readonly NodeReport[] {
    return this.#others
  }

  deliveryShare(): { index: number; count: number } {
    return this.#share
  }

  onTakenOver(run: () => Promise<void> | void): void {
    this.#takenOver.push(run)
  }

  onReturned(run: () => void): void {
    this.#returned.push(run)
  }

  async stopping(): Promise<void> {
    this.#state = 'stopping'
    const values = [this.#state, this.id]
    await this.#link?.query('UPDATE nodes SET state = $1 WHERE id = $2', values).catch(() => {})
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#beating
    this.#parts.store.changes.attach(null)
    await this.#link?.query('DELETE FROM nodes WHERE id = $1', [this.id]).catch(() => {})
    await this.#link?.close()
  }

  #beatLater(): void {
    if (this.#closed) return
    this.#timer = setTimeout(() => {
      this.#beating = this.#beat()
        .catch((error: unknown) => {
          // While the database is away nobody's silence means anything.
          this.#seen.clear()
          this.#parts.log.debug({ err: error }, 'no sign of life could be given')
        })
        .then(() => this.#beatLater())
    }, BEAT_MS)
  }

  async #beat(): Promise<void> {
    if (this.#closed) return
    const link = this.#link as Link
    const sentAt = performance.now()
    const rows = await link.query(BEAT, [this.id])
    const isKnown = rows.some((row) => Number(row['is_known']) === 1)
    const all = rows.map(reportOf)
    this.#noteShare(all)
    this.#noteOthers(all.filter(({ id }) => id !== this.id))
    if (isKnown) this.#lastBeatAt = sentAt
    else await this.#registerAgain(link)
    await this.#removeDead()
    if (!link.hears() && sentAt - this.#lastAskAt > ASK_EVERY_MS) {
      this.#lastAskAt = sentAt
      this.#missed()
    }
  }

  /** Another process considered this one dead: what it held belongs to others by now. */
  async #registerAgain(link: Link): Promise<void> {
    const { facts, log } = this.#parts
    log.warn('other nodes took this one for dead; what it held was returned to the queue')
    for (const run of this.#takenOver)
      await Promise.resolve(run()).catch((error: unknown) =>
        log.error({ err: error }, 'cannot forget what this node held'),
      )
    const sentAt = performance.now()
    await link.query(REGISTER, registerValues(facts, this.#state))
    await this.#announceJoined()
    this.#lastBeatAt = sentAt
  }

  /** The others reduce their shares of limits before this process uses any. */
  async #announceJoined(): Promise<void> {
    if (this.#others.length > 0) await this.#parts.store.changes.announce(JOINED_TOPIC, this.id)
  }

  /** In the order of their starts, which is the same for all. A row of one's own that is not there yet is the last. */
  #noteShare(all: readonly NodeReport[]): void {
    const delivering = all.filter(({ id, roles }) => id !== this.id && roles.includes('delivery'))
    const own = all.findIndex(({ id }) => id === this.id)
    const before = own < 0 ? delivering.length : delivering.filter((node) => all.indexOf(node) < own).length
    this.#share = { index: before, count: delivering.length + 1 }
  }

  #noteOthers(reports: readonly NodeReport[]): void {
    const now = performance.now()
    const left = new Set(this.#seen.keys())
    for (const { id, lastSeenAt } of reports) {
      left.delete(id)
      if (this.#seen.get(id)?.lastSeenAt !== lastSeenAt) this.#seen.set(id, { lastSeenAt, since: now })
    }
    for (const id of left) this.#seen.delete(id)
    this.#others = reports
    this.#announcements.othersChanged()
  }

  async #removeDead(): Promise<void> {
    const { store, log } = this.#parts
    const now = performance.now()
    for (const other of this.#others) {
      const { since = now } = this.#seen.get(other.id) ?? {}
      if (other.silentMs < DEAD_AFTER_MS || now - since < DEAD_AFTER_MS) continue
      if (!(await commitUnlessStale(store, removalOf(other)))) continue
      log.warn({ node: other.id, host: other.host }, 'a node is dead; what it held was returned to the queue')
      this.#seen.delete(other.id)
      this.#others = this.#others.filter(({ id }) => id !== other.id)
      this.#announcements.othersChanged()
      this.#tellReturned()
      void store.changes.announce(RETURNED_TOPIC, other.id)
    }
  }

  #tellReturned(): void {
    for (const run of this.#returned) run()
  }

  #missed(): void {
    const { store, log } = this.#parts
    store.changes.missed().catch((error: unknown) => {
      log.warn({ err: error }, 'cannot apply what other nodes may have announced')
    })
  }
}

const RETURNED_TOPIC = 'leases-returned'
const JOINED_TOPIC = 'node-joined'

const COLUMNS = 'id, host, roles_json, addresses_json, version, state, started_at, last_seen_at'

export const REGISTER = `INSERT INTO nodes (${COLUMNS})
  VALUES ($1, $2, $3, $4, $5, $6, time_from_now(0), time_from_now(0))
  ON CONFLICT (id) DO UPDATE SET last_seen_at = excluded.last_seen_at`

export const registerValues = (facts: NodeFacts, state: NodeReport['state']) => [
  ...[facts.id, facts.host, JSON.stringify(facts.roles), JSON.stringify(facts.addresses)],
  ...[facts.version, state],
]

const READ = `SELECT ${COLUMNS}, time_from_now(0) - last_seen_at AS silent_ms FROM nodes ORDER BY started_at, id`

/** Notes a sign of life and reads all rows, as they were before; `is_known` of each: this process still has its row. */
export const BEAT = `WITH own AS (
    UPDATE nodes SET last_seen_at = time_from_now(0) WHERE id = $1 RETURNING id)
  SELECT ${COLUMNS}, time_from_now(0) - last_seen_at AS silent_ms, (SELECT count(*) FROM own) AS is_known
  FROM nodes ORDER BY started_at, id`

export function reportOf(row: Record<string, unknown>): NodeReport {
  return {
    id: String(row['id']),
    host: String(row['host']),
    roles: JSON.parse(String(row['roles_json'])) as Role[],
    addresses: JSON.parse(String(row['addresses_json'])) as string[],
    version: String(row['version']),
    state: row['state'] as NodeReport['state'],
    startedAt: Number(row['started_at']),
    lastSeenAt: Number(row['last_seen_at']),
    silentMs: Math.max(0, Number(row['silent_ms'])),
  }
}

export async function readNodes(store: Store): Promise<NodeReport[]> {
  return (await store.read({ sql: READ, values: [] })).map(reportOf)
}

/** The last value of each is the id of the dead process. */
const RETURNED = [
  `UPDATE deliveries SET state = 'queued', lease_owner = NULL, lease_token = NULL, lease_until = NULL,
      updated_at = time_from_now(0)
    WHERE state = 'sending' AND lease_owner = ?`,
  // A run that was cut off is due again at once.
  `UPDATE jobs SET lease_owner = '', lease_until = 0, next_run_at = LEAST(next_run_at, time_from_now(0))
    WHERE lease_owner = ?`,
  'DELETE FROM outgoing_leases WHERE owner = ?',
  `UPDATE list_uploads SET lease_until = 0 WHERE state = 'running' AND lease_owner = ?`,
  `UPDATE list_expansions SET lease_until = 0 WHERE state = 'running' AND lease_owner = ?`,
  'UPDATE suppression_imports SET lease_until = 0 WHERE lease_owner = ?',
  'UPDATE exports SET lease_until = 0 WHERE lease_owner = ?',
  `UPDATE person_tasks SET lease_until = 0 WHERE state IN ('queued', 'running') AND lease_owner = ?`,
  `UPDATE validation_jobs SET lease_until = 0 WHERE status IN ('created', 'processing') AND lease_owner = ?`,
]

/**
 * Removes a dead process and returns what it had under a lease, in one unit. It fails if the process has given a sign of
 * life since `lastSeenAt`, or another one was faster.
 */
export function removalOf({ id, lastSeenAt }: NodeReport): Statement[] {
  const values: SqlValue[] = [id]
  return [
    {
      sql: 'DELETE FROM nodes WHERE id = ? AND last_seen_at = ?',
      values: [id, lastSeenAt],
      expectRows: 1,
    },
    ...RETURNED.map((sql) => ({ sql, values })),
  ]
}
