/** Numbers of what figures belong to: a domain, or an account as a whole, whose name is empty. */
import type { Store } from '../store/store.ts'
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

type Numbers = Map<string, Map<string, number>>

/**
 * Remembers numbers, and creates scopes in transactions of their own: one that is not used is harmless. Who uses them makes
 * sure that no scope was removed meanwhile (`unmoved` in places.ts): rows of a removed one would be found by nobody, or be
 * another's.
 */
export class Scopes {
  readonly #store: Store
  /** Calls at the same time each keep the one that they began with, to which numbers are only added. */
  #numbers: Numbers = new Map()
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
    if (!arePacked || removals !== this.#removals || sizeOf(this.#numbers) > REMEMBERED_MAX) {
      this.#numbers = new Map()
      this.#removals = removals
    }
    const numbers = this.#numbers
    const numberOf: NumberOfScope = (accountId, domainName) => numbers.get(accountId)?.get(domainName) ?? null
    const unknown = () =>
      names.filter(({ accountId, domainName }) => numberOf(accountId, domainName) === null)
    await this.#read(numbers, unknown())
    const absent = unknown()
    if (absent.length > 0) {
      const created = absent.map(({ accountId, domainName }) => createScope(accountId, domainName))
      await this.#store.commit([{ sql: WAIT_FOR_COUNTING, values: [] }, ...created])
      await this.#read(numbers, absent)
    }
    return numberOf
  }

  /** All of the accounts of these. */
  async #read(numbers: Numbers, names: readonly ScopeName[]): Promise<void> {
    for (const accountId of new Set(names.map((name) => name.accountId))) {
      const sql = 'SELECT no, domain_name FROM figure_scopes WHERE account_id = ?'
      const rows = await this.#store.read({ sql, values: [accountId] })
      const known = numbers.get(accountId) ?? new Map<string, number>()
      for (const { no, domain_name } of rows) known.set(String(domain_name), Number(no))
      numbers.set(accountId, known)
    }
  }
}

const sizeOf = (numbers: Numbers): number => [...numbers.values()].reduce((sum, { size }) => sum + size, 0)
