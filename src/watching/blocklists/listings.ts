/** What is listed now, of the lists that are watched. */
import type { Core } from '../../core.ts'
import type { BlocklistCheckRow } from '../../platform/store/schema.ts'
import { blocklistKind } from '../../protocols/dns/blocklist.ts'
import type { Blocks } from '../../sending/ips/blocks/blocks.ts'
import { writeListed } from '../../sending/ips/blocks/listed.ts'
import type { KnownAddresses } from '../../sending/ips/known-addresses.ts'
import type { ListUsers } from './list-users.ts'
import type { Blocklist } from './lists.ts'
import { addressesToLeave, isLastOfSet } from './pools.ts'

export interface Listing {
  /** The address or registrable domain. */
  subject: string
  list: Blocklist
  /** Unix milliseconds. */
  since: number
  lastSeen: number
  code: string
}

/** What a listed address means for its mail: names of providers. */
export interface Leaving {
  /** They get it from other addresses. */
  left: string[]
  /** They get it from there all the same: no other address is left. */
  kept: string[]
}

interface ListingParts extends Pick<Core, 'store' | 'clock'> {
  lists: readonly Blocklist[]
  users: ListUsers
  known: KnownAddresses
  blocks: Pick<Blocks, 'stateOf'>
}

export function createListings({ store, clock, known, lists, users, blocks }: ListingParts) {
  const byZone = new Map(lists.map((list) => [list.zone, list]))

  async function listedRows(): Promise<BlocklistCheckRow[]> {
    if (lists.length === 0) return []
    const rows = await store.db
      .selectFrom('blocklist_checks')
      .selectAll()
      .where('listed_since', 'is not', null)
      .where('list', 'in', [...byZone.keys()])
      .orderBy('listed_since')
      .orderBy('subject')
      .execute()
    return rows
  }

  async function addressRows(): Promise<BlocklistCheckRow[]> {
    return (await listedRows()).filter(({ subject }) => blocklistKind(subject) !== 'domain')
  }

  return {
    /** Oldest first. */
    async list(kind: 'ip' | 'domain'): Promise<Listing[]> {
      return (await listedRows())
        .filter(({ subject }) => (blocklistKind(subject) === 'domain') === (kind === 'domain'))
        .map((row) => ({
          ...{ subject: row.subject, list: byZone.get(row.list) as Blocklist, code: row.code },
          ...{ since: Number(row.listed_since), lastSeen: Number(row.listed_at) },
        }))
    },
    /** Leaves listed addresses for the providers that refuse mail by those lists. */
    async leave(): Promise<void> {
      const left = addressesToLeave(await addressRows(), lists, await users.read())
      await writeListed(known, store, left, Math.floor(clock.now()))
    },
    /** By address. */
    async leaving(): Promise<Map<string, Leaving>> {
      const found = new Map<string, Leaving>()
      for (const { ip, site, provider } of addressesToLeave(await addressRows(), lists, await users.read())) {
        // A reply, or the operator, says otherwise.
        if (blocks.stateOf(ip, site) !== 'listed') continue
        const isLast = isLastOfSet(known.book(), ip, (other) => blocks.stateOf(other, site) === 'open')
        const entry = found.get(ip) ?? { left: [], kept: [] }
        found.set(ip, entry)
        const names = isLast ? entry.kept : entry.left
        names.push(provider === 'Other' ? site : provider)
      }
      return found
    },
  }
}

export type Listings = ReturnType<typeof createListings>
