/**
 * What waits in a lane, in fair order: accounts take turns, within an account its sending domains do, and
 * within those the first in is the first out. One tenant's (or newsletter's) thousands delay another's
 * single message by one turn.
 */
import { PassingMap } from '../base/passing.ts'

export interface Shared {
  account_id: string
  domain_id: string
}

export class FairQueue<T extends Shared> {
  /** A map is also the ring: the account whose turn it is stands first, and goes to the end. */
  private readonly accounts = new PassingMap<string, PassingMap<string, T[]>>()
  private count = 0

  get size(): number {
    return this.count
  }

  push(item: T): void {
    const domains = this.accounts.get(item.account_id) ?? new PassingMap<string, T[]>()
    this.accounts.set(item.account_id, domains)
    const items = domains.get(item.domain_id)
    if (items) items.push(item)
    else domains.set(item.domain_id, [item])
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

  /** Takes everything out. */
  drain(): T[] {
    const all = [...this.accounts.values()].flatMap((domains) => [...domains.values()].flat())
    this.accounts.clear()
    this.count = 0
    return all
  }
}
