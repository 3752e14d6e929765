/** Every address with what decides who may send from it, as one value that is replaced at each change. Pure. */
import { isPublicAddress } from '../../base/net/ip.ts'
import type { FcrdnsRule, SourceAddress } from '../../platform/config/sending.ts'
import type {
  DynamicPoolMemberRow,
  DynamicPoolRow,
  IpBlockRow,
  IpPoolDelegationRow,
  IpPoolMemberRow,
  IpPoolRow,
  IpRow,
  IpWarmupRow,
} from '../../platform/store/schema.ts'
import { proxyName } from '../../protocols/proxy/dialling.ts'

/** The contract's name for the shared addresses, wherever it takes a pool or an address (ips-pools.md section 2). */
export const SHARED = 'shared'

export interface Address {
  ip: string
  isDedicated: boolean
  /** Null: shared, or dedicated and given to no account. */
  accountId: string | null
  /** In use by some process, not switched off, and confirmed by DNS where that is required. */
  isEnabled: boolean
  /** In the configuration of this process. */
  isLocal: boolean
  /** IPv6 without a confirmed name: only where no other address of the set reaches the destination. */
  isDoubtful: boolean
  /** Name for EHLO; null: the service's own. */
  helo: string | null
  /** The address of this machine behind NAT; null: `ip` itself, or none here. */
  localIp: string | null
  /** Name of the proxy that it is reached through; null: none. */
  proxy: string | null
  /** The confirmed reverse name, or ''. */
  rdns: string
  /** A pool of either kind: an address is in one at most. */
  poolId: string | null
  isWarming: boolean
}

export interface Pool {
  id: string
  accountId: string
  name: string
  addresses: readonly Address[]
}

export interface AddressBook {
  version: string
  /** In the order of the text. */
  addresses: readonly Address[]
  byIp: ReadonlyMap<string, Address>
  shared: readonly Address[]
  dedicatedOf: ReadonlyMap<string, readonly Address[]>
  /** Pools that have addresses. */
  pools: ReadonlyMap<string, Pool>
  /** All of them; `name` is the band. Domains are enrolled in them, and neither linked nor does a message request one. */
  dynamicPools: ReadonlyMap<string, Pool>
  /** The pool that a subaccount has inherited. */
  inherited: ReadonlyMap<string, string>
  withoutShared: ReadonlySet<string>
  warmups: ReadonlyMap<string, IpWarmupRow>
  /** Addresses that a provider blocks, by `blockKey`. */
  blocks: ReadonlyMap<string, IpBlockRow>
}

export interface BookRows {
  version: string
  ips: readonly IpRow[]
  pools: readonly Pick<IpPoolRow, 'id' | 'account_id' | 'name'>[]
  members: readonly IpPoolMemberRow[]
  dynamicPools: readonly DynamicPoolRow[]
  dynamicMembers: readonly DynamicPoolMemberRow[]
  delegations: readonly IpPoolDelegationRow[]
  exclusions: readonly { account_id: string }[]
  warmups: readonly IpWarmupRow[]
  blocks: readonly IpBlockRow[]
}

interface BookSettings {
  configured: readonly SourceAddress[]
  requireFcrdns: FcrdnsRule
  /** Unix milliseconds: addresses that no process has named since are out of use. */
  seenSince: number
}

export function createBook(rows: BookRows, settings: BookSettings): AddressBook {
  const local = new Map(settings.configured.map((address) => [address.ip, address]))
  const members = [...rows.members, ...rows.dynamicMembers]
  const poolOf = new Map(members.map((member) => [member.ip, member.pool_id]))
  const warmups = new Map(rows.warmups.map((row) => [row.ip, row]))
  const addresses = rows.ips.map((row): Address => {
    const configured = local.get(row.ip)
    const isSeen = configured !== undefined || Number(row.seen_at) >= settings.seenSince
    const isConfirmed = Number(row.is_confirmed ?? 0) === 1
    const { requireFcrdns } = settings
    return {
      ip: row.ip,
      isDedicated: Number(row.is_dedicated) === 1,
      accountId: row.account_id,
      isEnabled: isSeen && (isConfirmed || requireFcrdns !== 'all') && Number(row.is_enabled) === 1,
      isLocal: configured !== undefined,
      isDoubtful: requireFcrdns === 'ipv6' && !isConfirmed && row.ip.includes(':') && isPublicAddress(row.ip),
      helo: configured?.helo ?? null,
      localIp: configured?.localIp ?? null,
      proxy: configured?.proxy ? proxyName(configured.proxy) : null,
      rdns: row.rdns,
      poolId: poolOf.get(row.ip) ?? null,
      isWarming: warmups.has(row.ip),
    }
  })
  const byIp = new Map(addresses.map((address) => [address.ip, address]))
  const dedicated = addresses.filter(({ isDedicated, accountId }) => isDedicated && accountId !== null)
  const inPools = addresses.filter(({ poolId }) => poolId !== null)
  const byPool = Map.groupBy(inPools, ({ poolId }) => poolId as string)
  const poolOfRow = (id: string, accountId: string, name: string): [string, Pool] => [
    id,
    { id, accountId, name, addresses: byPool.get(id) ?? [] },
  ]
  return {
    version: rows.version,
    addresses,
    byIp,
    shared: addresses.filter(({ isDedicated }) => !isDedicated),
    dedicatedOf: Map.groupBy(dedicated, ({ accountId }) => accountId as string),
    pools: new Map(rows.pools.map((row) => poolOfRow(row.id, row.account_id, row.name))),
    dynamicPools: new Map(rows.dynamicPools.map((row) => poolOfRow(row.id, row.account_id, row.band))),
    inherited: new Map(rows.delegations.map((row) => [row.subaccount_id, row.pool_id])),
    withoutShared: new Set(rows.exclusions.map((row) => row.account_id)),
    warmups,
    blocks: new Map(rows.blocks.map((row) => [blockKey(row.ip, row.site), row])),
  }
}

export const blockKey = (ip: string, site: string): string => `${ip}/${site}`

/** The shared addresses, if the account may send from them. */
export const sharedFor = (book: AddressBook, accountId: string): readonly Address[] =>
  book.withoutShared.has(accountId) ? [] : book.shared

/** Dedicated addresses of an account. */
export const dedicatedTo = (book: AddressBook, accountId: string): readonly Address[] =>
  book.dedicatedOf.get(accountId) ?? []

/** A pool with addresses that the account may send from: its own, an inherited one or `shared`; null: there is none. */
export function poolFor(book: AddressBook, accountId: string, id: string): readonly Address[] | null {
  if (id === SHARED) return book.withoutShared.has(accountId) ? null : book.shared
  const pool = book.pools.get(id)
  const isUsable = pool?.accountId === accountId || book.inherited.get(accountId) === id
  return pool && isUsable ? pool.addresses : null
}

/** Whether the account may send from the address: its own, one of its inherited pool, or a shared one. */
export function mayUse(book: AddressBook, accountId: string, ip: string): boolean {
  const address = book.byIp.get(ip)
  if (address === undefined) return false
  if (!address.isDedicated) return !book.withoutShared.has(accountId)
  if (address.accountId === accountId) return true
  return address.poolId !== null && book.inherited.get(accountId) === address.poolId
}
