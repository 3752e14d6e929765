/**
 * What waits in a lane, in fair order: accounts take turns, within an account its sending domains take turns, and each
 * domain is first in, first out. One tenant's (or newsletter's) thousands delay another's single message by one turn.
 */
import { PassingMap } from '../../../base/flow/cache.ts'

export interface Shared {
  readonly delivery: { account_id: string; domain_id: string }
}

export class FairQueue<T extends Shared> {
  /** The map's order is the ring: the account whose turn it is is first, and moves to the end. */
  private readonly accounts = new PassingMap<string, PassingMap<string, T[]>>()
  private count = 0

  get size(): number {
    return this.count
  }

  push(item: T): void {
    const { account_id: accountId, domain_id: domainId } = item.delivery
    const domains = this.accounts.get(accountId) ?? new PassingMap<string, T[]>()
    this.accounts.set(accountId, domains)
    const items = domains.get(domainId)
    if (items) items.push(item)
    else domains.set(domainId, [item])
    this.count++
  }

  shift(): T | undefined {
    const [account] = this.accounts
    if (!account) return undefined
    const [accountId, domains] = account
    const [domain] = domains
    const [domainId, items] = domain as [string, T[]]
    const item = items.shift() as T
    domains.delete(domainId)
    if (items.length > 0) domains.set(domainId, items)
    this.accounts.delete(accountId)
    if (domains.size > 0) this.accounts.set(accountId, domains)
    this.count--
    return item
  }

  /** Removes and returns everything. */
  drain(): T[] {
    const all = [...this.accounts.values()].flatMap((domains) => [...domains.values()].flat())
    this.accounts.clear()
    this.count = 0
    return all
  }
}
