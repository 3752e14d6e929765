/** What accounts may make the service look up: domains whose DNS does not answer, many at once, and of domains that are gone. */
import assert from 'node:assert/strict'
import { jobContext } from '../../../test/support/job-context.ts'
import { eventually } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { systemClock } from '../../base/time/clock.ts'
import { insert, insertMany, type Store } from '../../platform/store/store.ts'
import type { Resolver } from '../../protocols/dns/resolver.ts'
import { createMonitoredDomains } from './monitored-domains.ts'

const ACCOUNT = {
  ...{ id: 'a', parent_id: null, name: 'A', signing_key_sealed: new Uint8Array(0), created_at: 1 },
}

/** Only `honest.com` answers, with the text of its row. */
function monitored(store: Store, published: () => string = () => '') {
  const asked: string[] = []
  const resolver = {
    async query(name: string, type: string, { signal }: { signal?: AbortSignal } = {}) {
      asked.push(name)
      if (name === 'honest.com') return { kind: 'records', records: [published()], asked: { name, type } }
      return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
    },
  } as unknown as Resolver
  return { asked, ...createMonitoredDomains({ store, clock: systemClock, resolver, changed() {} }, 300) }
}

eachStore('domains that do not answer hold up no other', async (store, t) => {
  const row = (name: string, next_look_at: number) => ({
    ...{ account_id: 'a', name, is_removed: 0 as const, txt_record: `of ${name}`, verified_at: null },
    ...{ next_look_at, looked_until: Date.now() + 1e6, created_at: 1 },
  })
  const silent = Array.from({ length: 120 }, (_, n) => row(`silent${n}.com`, n))
  await store.commit(insertMany('monitored_domains', [...silent, row('honest.com', 1_000)]))
  const { job, one } = monitored(store, () => 'of honest.com')
  t.after(() => job.stop())
  job.start(jobContext(store))
  await eventually('the domain is verified', async () => {
    const { added } = await one('a', 'honest.com')
    return added?.verified_at !== null
  })
})

eachStore('an account adds 100 domains, however many at once', async (store) => {
  await store.commit([insert('accounts', ACCOUNT)])
  const { add, list } = monitored(store)
  const adding = Array.from({ length: 130 }, (_, n) => add('a', `domain${n}.com`))
  const results = await Promise.allSettled(adding)
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 100)
  assert.equal((await list(['a'], { limit: 1_000 })).length, 100)
})
