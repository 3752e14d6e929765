/**
 * Where figures are kept. Nothing outside of this folder knows rows, packs, splits and places (see splits.ts): counting
 * adds steps, queries are read, and a job keeps what is stored small.
 */
import type { Statement, Store } from '../../../platform/store/store.ts'
import type { PagedFigures } from '../figures.ts'
import { type ArchivedCopy, countArchived } from './archived.ts'
import { createFigures } from './figure-reader.ts'
import { keepPacks, SmallPacks } from './packing.ts'
import type { DayOfScope } from './packs.ts'
import { placesOf, startPacks, unmoved } from './places.ts'
import { removeFiguresOf, removeOldCounters } from './removal.ts'
import { rollUp } from './roll-up.ts'
import { Scopes } from './scopes.ts'
import { type Addition, createTally } from './tally.ts'

/** Hands in what a step counts. `add` returns how many rows the step writes so far. */
type Step = (add: (addition: Addition) => number) => Promise<void>

export type FigureStore = ReturnType<typeof createFigureStore>

export function createFigureStore(store: Store) {
  const scopes = new Scopes(store)
  const smallPacks = new SmallPacks()
  /** Packs of the last step, until it is known whether it was committed. */
  let packed: DayOfScope[] = []
  const settle = () => {
    smallPacks.note(packed)
    packed = []
  }
  const figures: PagedFigures = createFigures(store)

  return {
    ...figures,

    /** What adds a step's counts. Committed before the next step is added, else `forget` is called. */
    async add(step: Step): Promise<Statement[]> {
      settle()
      const places = await placesOf(store)
      const tally = createTally(places)
      await step((addition) => {
        tally.add(addition)
        return tally.size
      })
      const numberOf = await scopes.numbersOf(tally.scopes())
      packed = tally.days(numberOf)
      const checks = [unmoved(places), scopes.stillThere(tally.scopes(), numberOf)]
      return [...checks, ...tally.statements(numberOf)]
    },

    /** The statements of the last step were stale. */
    forget(): void {
      packed = []
      scopes.forget()
    },

    /** After a step: merges small packs that it and earlier ones have written. */
    async tidy(signal: AbortSignal): Promise<void> {
      settle()
      await smallPacks.merge(store, signal)
    },

    /** See archived.ts. */
    countArchived: (copy: ArchivedCopy, removal: Statement) => countArchived(store, copy, removal, scopes),

    /** Makes longer units of what is over, and removes what is too old. `now`: Unix milliseconds. */
    async keep(now: number, signal: AbortSignal): Promise<void> {
      await rollUp(store, now, signal)
      await removeOldCounters(store, now, signal)
      await store.commit([startPacks])
      await keepPacks(store, now, signal)
    },

    /** Removes the figures of a domain; without a name those of the account as a whole. */
    remove: (of: { accountId: string; name?: string }) => removeFiguresOf(store, of),
  }
}
