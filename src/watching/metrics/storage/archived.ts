/**
 * Counts copies that an archive took (metrics-logs.md section 3). They are no events, so each is counted once by being in
 * the transaction that removes its task.
 */
import { StaleWrite, type Statement, type Store } from '../../../platform/store/store.ts'
import type { PlainValues } from '../counters.ts'
import { WAIT_FOR_COUNTING } from './figure-rows.ts'
import { placesOf, unmoved } from './places.ts'
import { Scopes } from './scopes.ts'
import { SPLITS } from './splits.ts'
import { createTally } from './tally.ts'

export interface ArchivedCopy {
  accountId: string
  /** Empty: not known, it counts for the account alone. */
  domainName: string
  /** When the mail was delivered; Unix milliseconds. */
  at: number
}

/** A roll-up moves the places once a day; a scope is removed with its domain. */
const TRIES_MAX = 3
const OF_BOTH = SPLITS.filter(({ name }) => name === 'none')
const OF_ACCOUNT = OF_BOTH.map((split) => ({ ...split, ofDomain: [] }))
const NO_VALUES: PlainValues = {
  recipient_domain: '',
  provider: '',
  ip: '',
  pool: '',
  country: '',
  device: '',
  bot: '',
}

/** Commits both, or neither if the removal finds no row: then the copy is counted elsewhere. */
export async function countArchived(
  store: Store,
  copy: ArchivedCopy,
  removal: Statement,
  scopes = new Scopes(store),
): Promise<void> {
  for (let left = TRIES_MAX; ; left--) {
    const places = await placesOf(store)
    const tally = createTally(places, copy.domainName === '' ? OF_ACCOUNT : OF_BOTH)
    tally.add({ ...copy, tags: [], values: NO_VALUES, counters: ['archived'] })
    const numberOf = await scopes.numbersOf(tally.scopes())
    const checks = [unmoved(places), scopes.stillThere(tally.scopes(), numberOf)]
    const counts = tally.statements(numberOf)
    try {
      await store.commit([{ sql: WAIT_FOR_COUNTING, values: [] }, ...checks, removal, ...counts])
      return
    } catch (error) {
      if (!(error instanceof StaleWrite)) throw error
      if (error.statement === removal) return
      scopes.forget()
      if (left === 1) throw error
    }
  }
}
