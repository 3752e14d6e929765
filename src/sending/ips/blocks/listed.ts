/**
 * Addresses that are left for a provider because a blocklist that it uses has them (ips-pools.md section 6, decision 201). They are rows
 * of `ip_blocks` with `listed_by`. Whoever watches the lists says again and again which they are: without that they end by
 * themselves, so that mail never avoids an address because of a list that nobody asks any more.
 */
import { HOUR_MS } from '../../../base/time/durations.ts'
import type { IpBlockRow } from '../../../platform/store/schema.ts'
import type { Store, Tx } from '../../../platform/store/store.ts'
import { blockKey } from '../address-book.ts'
import type { KnownAddresses } from '../known-addresses.ts'

export interface ListedAddress {
  ip: string
  /** As in the names of lanes. */
  site: string
  provider: string
  /** The lists, for people. */
  by: string
  /** Unix milliseconds. */
  since: number
}

/** As long as nobody confirms it. */
const KEPT_MS = 24 * HOUR_MS
/** A row is written again when less is left. */
const RENEWED_MS = 12 * HOUR_MS

export const isListed = ({ listed_by }: Pick<IpBlockRow, 'listed_by'>): boolean => listed_by !== null

/** What to write, and which keys to end. Pure. `rows`: all, also those that ended lately. */
export function listedChanges(
  rows: readonly IpBlockRow[],
  wanted: readonly ListedAddress[],
  now: number,
): { written: IpBlockRow[]; ended: IpBlockRow[] } {
  const byKey = new Map(rows.map((row) => [blockKey(row.ip, row.site), row]))
  const keys = new Set(wanted.map(({ ip, site }) => blockKey(ip, site)))
  const written = wanted.filter((one) => isDue(byKey.get(blockKey(one.ip, one.site)), one, now))
  const ended = rows.filter(
    (row) => isListed(row) && row.cleared_at === null && !keys.has(blockKey(row.ip, row.site)),
  )
  return { written: written.map((one) => rowOf(one, now)), ended }
}

function isDue(row: IpBlockRow | undefined, { by, since }: ListedAddress, now: number): boolean {
  if (row === undefined) return true
  // The provider has taken mail since, or the operator has decided so.
  if (row.cleared_at !== null) return Number(row.cleared_at) < since
  // Its own replies say more.
  if (!isListed(row)) return false
  return row.listed_by !== by || Number(row.until_at) < now + RENEWED_MS
}

const rowOf = ({ ip, site, provider, by, since }: ListedAddress, now: number): IpBlockRow => ({
  ...{ ip, site, provider, reply: `listed by ${by}`, listed_by: by },
  ...{ since_at: since, until_at: now + KEPT_MS, pause_ms: KEPT_MS, times: 1, cleared_at: null },
})

/** Makes these the addresses that are left because of blocklists, and no others. Nothing is locked where nothing changes. */
export async function writeListed(
  known: KnownAddresses,
  store: Store,
  wanted: readonly ListedAddress[],
  now: number,
): Promise<void> {
  if (wanted.length === 0 && ![...known.book().blocks.values()].some(isListed)) return
  const changesOf = async (db: Store['db'] | Tx) =>
    listedChanges(await db.selectFrom('ip_blocks').selectAll().execute(), wanted, now)
  const { written, ended } = await changesOf(store.db)
  if (written.length + ended.length === 0) return
  await known.change(async (tx) => {
    // Again, under the lock: a reply may have closed one meanwhile.
    const changes = await changesOf(tx)
    for (const { ip, site } of [...changes.written, ...changes.ended])
      await tx.deleteFrom('ip_blocks').where('ip', '=', ip).where('site', '=', site).execute()
    for (const row of changes.written) await tx.insertInto('ip_blocks').values(row).execute()
  })
}
