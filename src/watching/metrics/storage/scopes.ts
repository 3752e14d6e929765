/** Numbers of what figures belong to: a domain, or an account as a whole, whose name is empty. */
import type { Statement, Store } from '../../../platform/store/store.ts'
import { createScope, WAIT_FOR_COUNTING } from './figure-rows.ts'

export interface ScopeName {
  accountId: string
  domainName: string
}

/** Null: it was deleted, and is not counted for. */
export type NumberOfScope = (accountId: string, domainName: string) => number | null

/** Numbers that are remembered: 10 MB. */
const REMEMBERED_MAX = 50_000

/** Rows of a list that is a parameter. */
const LISTED = { sqlite: 'json_each(?) AS v', postgres: 'jsonb_array_elements(CAST(? AS JSONB)) AS v(value)' }

/**
 * Remembers numbers, and creates scopes in transactions of their own: one that is not used is harmless. Who uses numbers
 * adds `stillThere` to its transaction, and calls `forget` when that fails.
 */
export class Scopes {
  readonly #store: Store
  /** By account, then by domain. Calls at the same time each keep the map that they began with. */
  #numbers = new Map<string, Map<string, number>>()

  constructor(store: Store) {
    this.#store = store
  }

  forget(): void {
    this.#numbers = new Map()
  }

  /** Creates what is absent and not deleted. */
  async numbersOf(names: readonly ScopeName[]): Promise<NumberOfScope> {
    if (sizeOf(this.#numbers) > REMEMBERED_MAX) this.forget()
    const numbers = this.#numbers
    const numberOf: NumberOfScope = (accountId, domainName) => numbers.get(accountId)?.get(domainName) ?? null
    const unknown = () =>
      names.filter(({ accountId, domainName }) => numberOf(accountId, domainName) === null)
    const read = async (wanted: readonly ScopeName[]) => {
      for (const { accountId, domainName, no } of await this.#read(wanted)) {
        const known = numbers.get(accountId) ?? new Map<string, number>()
        numbers.set(accountId, known.set(domainName, no))
      }
    }
    await read(unknown())
    const absent = unknown()
    if (absent.length > 0) {
      const created = absent.map(({ accountId, domainName }) => createScope(accountId, domainName))
      await this.#store.commit([{ sql: WAIT_FOR_COUNTING, values: [] }, ...created])
      await read(absent)
    }
    return numberOf
  }

  /**
   * Fails the transaction (`StaleWrite`) if one of these was removed since its number was read: rows of a removed scope would
   * be found by nobody, or be another's. The transaction has waited for the removal, as WAIT_FOR_COUNTING does.
   */
  stillThere(names: readonly ScopeName[], numberOf: NumberOfScope): Statement {
    const numbered = names.flatMap(({ accountId, domainName }) => {
      const no = numberOf(accountId, domainName)
      return no === null ? [] : [[accountId, domainName, no]]
    })
    return {
      sql: `UPDATE event_followers SET seq = seq WHERE name = 'counters' AND ? = (
        SELECT count(*) FROM ${this.#listed} AND s.no = CAST(v.value ->> 2 AS BIGINT))`,
      values: [numbered.length, JSON.stringify(numbered)],
      expectRows: 1,
    }
  }

  async #read(names: readonly ScopeName[]): Promise<(ScopeName & { no: number })[]> {
    if (names.length === 0) return []
    const list = JSON.stringify(names.map(({ accountId, domainName }) => [accountId, domainName]))
    const sql = `SELECT s.account_id, s.domain_name, s.no FROM ${this.#listed}`
    const rows = await this.#store.read({ sql, values: [list] })
    return rows.map(({ account_id, domain_name, no }) => ({
      accountId: String(account_id),
      domainName: String(domain_name),
      no: Number(no),
    }))
  }

  /** Scopes whose names are listed. */
  get #listed(): string {
    return `${LISTED[this.#store.kind]} CROSS JOIN figure_scopes AS s
      WHERE s.account_id = v.value ->> 0 AND s.domain_name = v.value ->> 1`
  }
}

const sizeOf = (numbers: Map<string, Map<string, number>>): number =>
  [...numbers.values()].reduce((sum, { size }) => sum + size, 0)
