/** How much waits per lane, per sending domain and per recipient domain (own-operations.md section 3). */
import { type Cache, createCache } from '../../base/flow/cache.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { Store } from '../../platform/store/store.ts'
import type { Blocks } from '../../sending/ips/blocks/blocks.ts'
import { blockView } from '../../sending/ips/operator-routes.ts'
import { ANY_ADDRESS, RELAY_SITES } from '../../sending/relays/engine-relays.ts'
import type { Delivery, LaneState } from '../deliver/contract.ts'
import type { Overrides } from '../deliver/overrides/overrides.ts'
import type { LaneView, QueueDomains } from './shapes.ts'
import { limitsView, overrideView } from './shaping-routes.ts'
import { sharedBlock, sharedLane, sharedOverride } from './shared-lanes.ts'

/** Waiting deliveries of one sending domain to one recipient domain from one source. */
interface GroupTotal {
  accountId: string
  domainId: string
  domainName: string
  recipientDomain: string
  sourceKey: string
  queued: number
  due: number
  deferred: number
  paused: number
  /** Unix milliseconds. */
  oldestCreatedAt: number
  oldestDueAt: number
}

type GroupKey = 'accountId' | 'domainId' | 'recipientDomain' | 'sourceKey'

export type QueueTotals = ReturnType<typeof createQueueTotals>

const GROUPS = (account: string) => `SELECT d.account_id, d.domain_id, d.recipient_domain, d.source_key,
    count(*) AS queued,
    sum(CASE WHEN d.due_at <= ? THEN 1 ELSE 0 END) AS due,
    sum(CASE WHEN d.attempts > 0 THEN 1 ELSE 0 END) AS deferred,
    sum(CASE WHEN d.reason = 'paused' THEN 1 ELSE 0 END) AS paused,
    min(d.created_at) AS oldest_created_at, min(d.due_at) AS oldest_due_at
  FROM deliveries d WHERE d.state IN ('scheduled', 'queued') ${account}
  GROUP BY d.account_id, d.domain_id, d.recipient_domain, d.source_key`

/** A count over a million rows takes about a second: dashboards that poll every second share one. */
const REMEMBER_MS = 2_000
const ACCOUNTS_MAX = 100
/** Parallel look-ups of lanes whose sites are not known yet. */
const LOOK_UPS_AT_A_TIME = 50

export function createQueueTotals(
  store: Store,
  delivery: Delivery,
  clock: Clock,
  blocks: Pick<Blocks, 'find'>,
  overrides: Pick<Overrides, 'find'>,
) {
  const remembered: Cache<GroupTotal[]> = createCache({
    clock,
    ttlMs: REMEMBER_MS,
    entriesMax: ACCOUNTS_MAX,
    load: (key) => loadGroups(store, clock, key === '' ? null : key),
  })
  /** `accountId` null: of all accounts. */
  const groups = async (accountId: string | null) => remembered.get(accountId ?? '')
  return {
    groups,
    /** Drops cached counts. */
    forget: () => remembered.forget(),
    /** For one account without what others' mail on the same lanes says (shared-lanes.ts). */
    async lanes(accountId: string | null): Promise<LaneView[]> {
      const total = await groups(accountId)
      const names = await laneNames(delivery, total)
      const known = new Map(delivery.lanes().map((lane) => [lane.info.name, lane]))
      const byLane = Map.groupBy(total, (group) => names.get(group)?.lane ?? '')
      // A lane whose deliveries are all held by the engine has none waiting in the database; their account is unknown.
      if (accountId === null) for (const name of known.keys()) if (!byLane.has(name)) byLane.set(name, [])
      return [...byLane].map(([name, laneGroups]) => {
        const [first] = laneGroups
        const { site = '', provider = '' } = (first && names.get(first)) ?? {}
        const view = accountId === null ? laneView : sharedLaneView
        return view({ name, site, provider }, laneGroups, known.get(name), { blocks, overrides })
      })
    },
    async domains(accountId: string | null): Promise<QueueDomains> {
      const total = await groups(accountId)
      return {
        sending: domainViews(total, ({ domainName }) => domainName),
        recipient: domainViews(total, ({ recipientDomain }) => recipientDomain),
      }
    },
  }
}

async function loadGroups(store: Store, clock: Clock, accountId: string | null): Promise<GroupTotal[]> {
  const rows = await store.read({
    sql: GROUPS(accountId === null ? '' : 'AND d.account_id = ?'),
    values: [Math.round(clock.now()), ...(accountId === null ? [] : [accountId])],
  })
  const names = new Map(
    (await store.db.selectFrom('domains').select(['id', 'name']).execute()).map(({ id, name }) => [id, name]),
  )
  return rows.map((row) => ({
    accountId: String(row['account_id']),
    domainId: String(row['domain_id']),
    domainName: names.get(String(row['domain_id'])) ?? '',
    recipientDomain: String(row['recipient_domain']),
    sourceKey: String(row['source_key']),
    queued: Number(row['queued']),
    due: Number(row['due']),
    deferred: Number(row['deferred']),
    paused: Number(row['paused']),
    oldestCreatedAt: Number(row['oldest_created_at']),
    oldestDueAt: Number(row['oldest_due_at']),
  }))
}

/** The lane of each group: the last one it used, else the one that it would use now. */
export async function laneNames<Group extends Pick<GroupTotal, GroupKey>>(
  delivery: Delivery,
  groups: readonly Group[],
): Promise<Map<Group, { lane: string; site: string; provider: string }>> {
  const names = new Map<Group, { lane: string; site: string; provider: string }>()
  const look = async (group: Group) => {
    const { accountId: account_id, domainId: domain_id, recipientDomain: recipient_domain } = group
    const key = { account_id, domain_id, recipient_domain, source_key: group.sourceKey }
    const { name: lane, site, provider } = delivery.laneOfGroup(key)?.info ?? (await delivery.laneFor(key))
    names.set(group, { lane, site, provider })
  }
  for (let from = 0; from < groups.length; from += LOOK_UPS_AT_A_TIME)
    await Promise.all(groups.slice(from, from + LOOK_UPS_AT_A_TIME).map(look))
  return names
}

const sum = (groups: readonly GroupTotal[], count: (group: GroupTotal) => number) =>
  groups.reduce((total, group) => total + count(group), 0)

const oldest = (groups: readonly GroupTotal[], time: (group: GroupTotal) => number) =>
  groups.length === 0 ? null : new Date(Math.min(...groups.map(time))).toISOString()

function laneView(
  { name, site, provider }: { name: string; site: string; provider: string },
  groups: readonly GroupTotal[],
  state: LaneState | undefined,
  { blocks, overrides }: { blocks: Pick<Blocks, 'find'>; overrides: Pick<Overrides, 'find'> },
): LaneView {
  const source = name.slice(0, name.indexOf('/'))
  const laneSite = state?.info.site ?? site
  // A relay is closed for all addresses.
  const block = blocks.find(laneSite.startsWith(RELAY_SITES) ? ANY_ADDRESS : source, laneSite)
  const override = overrides.find(state?.info.site ?? site)
  const dueGroups = groups.filter(({ due }) => due > 0)
  return {
    lane: name,
    source,
    site: state?.info.site ?? site,
    provider: state?.info.provider ?? provider,
    queued: sum(groups, ({ queued }) => queued) + (state?.waiting ?? 0),
    due: sum(groups, ({ due }) => due) + (state?.waiting ?? 0),
    deferred: sum(groups, ({ deferred }) => deferred),
    paused: sum(groups, ({ paused }) => paused),
    connections: state?.running ?? 0,
    limits: {
      connections: state?.connectionsMax ?? null,
      messages_per_connection: state?.info.limits.messagesPerConnection ?? null,
      messages_per_second: state?.messagesPerSecond ?? null,
    },
    set_limits: state ? limitsView(state.info.limits) : null,
    backed_off_until: state?.backedOffUntil ? new Date(state.backedOffUntil).toISOString() : null,
    backed_off_why: state?.why ?? null,
    blocked: block && blockView(block),
    override: override && overrideView(override),
    oldest_due: oldest(dueGroups, ({ oldestDueAt }) => oldestDueAt),
  }
}

/** As accounts other than the first see it. */
function sharedLaneView(...[lane, groups, state, { blocks, overrides }]: Parameters<typeof laneView>) {
  return laneView(lane, groups, state && sharedLane(state), {
    blocks: {
      find: (source, site) => {
        const found = blocks.find(source, site)
        return found && sharedBlock(found)
      },
    },
    overrides: {
      find: (site) => {
        const found = overrides.find(site)
        return found && sharedOverride(found)
      },
    },
  })
}

function domainViews(groups: readonly GroupTotal[], nameOf: (group: GroupTotal) => string) {
  return [...Map.groupBy(groups, nameOf)]
    .map(([domain, ofDomain]) => ({
      domain,
      queued: sum(ofDomain, ({ queued }) => queued),
      deferred: sum(ofDomain, ({ deferred }) => deferred),
      paused: sum(ofDomain, ({ paused }) => paused),
      oldest: oldest(ofDomain, ({ oldestCreatedAt }) => oldestCreatedAt),
    }))
    .sort((a, b) => b.queued - a.queued || (a.domain < b.domain ? -1 : 1))
}
