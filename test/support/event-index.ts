/** For tests of readers of events: SQLite finds them in its index, and in the rows after it (decision 45). */
import { test } from 'node:test'
import type { Store } from '../../src/platform/store/store.ts'
import { indexEvents } from '../../src/watching/events/search/indexing.ts'
import { eachStore, openNewSqlite } from './stores.ts'

/** Like `eachStore`, plus two runs on SQLite: with every event indexed, and with those of every other commit. */
export function eachIndexing(name: string, run: (store: Store) => Promise<void>): void {
  eachStore(name, run)
  for (const [how, everyth] of [
    ['indexed', 1],
    ['half indexed', 2],
  ] as const) {
    test(`${name} (sqlite, ${how})`, async (t) => {
      const store = await openNewSqlite(t)
      let commits = 0
      let indexed = Promise.resolve()
      const commit: Store['commit'] = async (unit, order) => {
        const results = await store.commit(unit, order)
        if (++commits % everyth === 0) indexed = indexed.then(() => indexEvents(store))
        await indexed
        return results
      }
      try {
        await run({ ...store, commit })
      } finally {
        await store.close()
      }
    })
  }
}
