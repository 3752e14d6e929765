/** Which branches of a plan to read first for a page over many of them. */
import type { Store } from '../../../platform/store/store.ts'
import type { Scan } from './key-search.ts'
import type { Branch } from './plan.ts'

/** Ranges of an owner and a name of event; those of tags have the tag as well. */
export type OwnedBranch = Extract<Branch, { by: 'account' | 'event' | 'tag' }>
/** With the time of its first event, in microseconds. */
type BranchHead = OwnedBranch & { headUs: number }

export const isOwned = (branch: Branch | undefined): boolean =>
  branch?.by === 'account' || branch?.by === 'event' || branch?.by === 'tag'

/**
 * The scan's branches that have an event after its gap, in the order of their first ones. So a page over a thousand
 * accounts reads pages of few of them.
 */
export async function branchHeads(store: Store, scan: Scan): Promise<BranchHead[]> {
  const { request, lowUs, highUs, gap } = scan
  const branches = scan.plan.branches as readonly OwnedBranch[]
  const gapUs = gap?.in === 'settled' ? gap.us : request.up ? lowUs : highUs
  const range = request.up ? [Math.max(lowUs, gapUs), highUs] : [lowUs, Math.min(highUs, gapUs)]
  const kind = branches[0]?.by ?? 'account'
  const lists = [
    [...new Set(branches.map(ownerOf))],
    [...new Set(branches.map(({ event }) => event))],
    ...(kind === 'tag'
      ? [[...new Set(branches.map((branch) => (branch.by === 'tag' ? branch.tag : '')))]]
      : []),
  ].map((list) => JSON.stringify(list))
  // Unindexed events first: one that is indexed meanwhile is found twice instead of missed.
  const rows: Record<string, unknown>[] = []
  if (store.kind === 'sqlite') {
    rows.push(...(await store.read({ sql: unindexedHeads(kind, request.up), values: [...range, ...lists] })))
  }
  rows.push(
    ...(await store.read({ sql: indexedHeads(store, kind, request.up), values: [...range, ...lists] })),
  )
  return earliest(branches, rows, request.up)
}

export const ownerOf = (branch: OwnedBranch) =>
  branch.by === 'account' ? branch.accountId : branch.domainName
const nameOf = (owner: string, event: string, tag: string) => `${owner}\n${event}\n${tag}`

function earliest(
  branches: readonly OwnedBranch[],
  rows: readonly Record<string, unknown>[],
  up: boolean,
): BranchHead[] {
  const times = new Map<string, number>()
  for (const row of rows) {
    const name = nameOf(String(row['owner']), String(row['event']), String(row['tag'] ?? ''))
    const us = Number(row['head'])
    const known = times.get(name)
    times.set(name, known === undefined ? us : up ? Math.min(us, known) : Math.max(us, known))
  }
  const heads = branches.flatMap((branch): BranchHead[] => {
    const headUs = times.get(nameOf(ownerOf(branch), branch.event, branch.by === 'tag' ? branch.tag : ''))
    return headUs === undefined ? [] : [{ ...branch, headUs }]
  })
  return heads.sort((a, b) => (up ? a.headUs - b.headUs : b.headUs - a.headUs))
}

export const OWNER = { account: 'account_id', event: 'domain_name', tag: 'domain_name' } as const

/** A step in an index for each branch. */
function indexedHeads({ kind: database }: Store, kind: OwnedBranch['by'], up: boolean): string {
  const isSqlite = database === 'sqlite'
  const table = kind === 'tag' ? 'event_tags' : isSqlite ? 'event_index' : 'events'
  const list = isSqlite ? 'json_each(?)' : 'json_array_elements_text(?::json)'
  const isTag = kind === 'tag'
  return `SELECT * FROM (
    SELECT owners.value AS owner, names.value AS event${isTag ? ', tags.value AS tag' : ''},
      (SELECT timestamp_us FROM ${table} AS keys
        WHERE keys.${OWNER[kind]} = owners.value AND keys.event = names.value ${isTag ? 'AND keys.tag = tags.value' : ''}
          AND timestamp_us BETWEEN ? AND ?
        ORDER BY timestamp_us ${up ? 'ASC' : 'DESC'} LIMIT 1) AS head
    FROM ${list} AS owners CROSS JOIN ${list} AS names ${isTag ? `CROSS JOIN ${list} AS tags` : ''}) AS heads
  WHERE head IS NOT NULL`
}

function unindexedHeads(kind: OwnedBranch['by'], up: boolean): string {
  const isTag = kind === 'tag'
  return `SELECT ${OWNER[kind]} AS owner, event${isTag ? ', tags.value AS tag' : ''},
      ${up ? 'min' : 'max'}(timestamp_us) AS head
    FROM events ${isTag ? 'CROSS JOIN json_each(tags_json) AS tags' : ''}
    WHERE seq > (SELECT seq FROM event_index_place) AND timestamp_us BETWEEN ? AND ?
      AND ${OWNER[kind]} IN (SELECT value FROM json_each(?)) AND event IN (SELECT value FROM json_each(?))
      ${isTag ? 'AND tags.value IN (SELECT value FROM json_each(?))' : ''}
    GROUP BY owner, event ${isTag ? ', tag' : ''}`
}
