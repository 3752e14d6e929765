/** Numbers of what figures belong to: a domain, or an account as a whole, whose name is empty. */
import type { Statement, Store } from '../store/store.ts'
import { createScope, WAIT_FOR_COUNTING } from './figure-rows.ts'
import type { Places } from './places.ts'

export interface ScopeName {
  accountId: string
  domainName: string
}

/** Null: it was deleted, and is not counted for. */
export type NumberOfScope = (accountId: string, domainName: string) => number | null

/** Numbers that are remembered: 10 MB. */
const REMEMBERED_MAX = 50_000

/**
 * Remembers numbers, and creates scopes in transactions of their own: one that is not used is harmless. Who uses them makes sure that no scope was removed meanwhile (`unmoved` in places.ts): rows of a
 * removed one would be found by nobody, or be another's.
 */
export class Scopes {
  readonly #store: Store
  #numbers = new Map<string, Map<string, number>>()
  #size = 0
  #removals = -1

  constructor(store: Store) {
    this.#store = store
  }

  /** Creates what is absent and not deleted. */
  async numbersOf(
    names: readonly ScopeName[],
    { removals, arePacked }: Pick<Places, 'removals' | 'arePacked'>,
  ): Promise<NumberOfScope> {
    // Until packs are written, nodes of an earlier release may run, which count no removals.
    if (!arePacked || removals !== this.#removals || this.#size > REMEMBERED_MAX) this.#forget(removals)
    const isUnknown = ({ accountId, domainName }: ScopeName) => this.#numberOf(accountId, domainName) === null
    await this.#read(new Set(names.filter(isUnknown).map(({ accountId }) => accountId)))
    const absent = names.filter(isUnknown)
    const created: Statement[] = absent.map(({ accountId, domainName }) => createScope(accountId, domainName))
    if (created.length > 0) {
      await this.#store.commit([{ sql: WAIT_FOR_COUNTING, values: [] }, ...created])
      await this.#read(new Set(absent.map(({ accountId }) => accountId)))
    }
    return (accountId, domainName) => this.#numberOf(accountId, domainName)
  }

  #numberOf(accountId: string, domainName: string): number | null {
    return this.#numbers.get(accountId)?.get(domainName) ?? null
  }

  #forget(removals: number): void {
    this.#numbers = new Map()
    this.#size = 0
    this.#removals = removals
  }

  async #read(accountIds: ReadonlySet<string>): Promise<void> {
    for (const accountId of accountIds) {
      const sql = 'SELECT no, domain_name FROM figure_scopes WHERE account_id = ?'
      const rows = await this.#store.read({ sql, values: [accountId] })
      const numbers = new Map(rows.map(({ no, domain_name }) => [String(domain_name), Number(no)]))
      this.#size += numbers.size - (this.#numbers.get(accountId)?.size ?? 0)
      this.#numbers.set(accountId, numbers)
    }
  }
}
