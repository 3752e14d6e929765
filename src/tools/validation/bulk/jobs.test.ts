import assert from 'node:assert/strict'
import { eachStore, temporaryFolder } from '../../../../test/support/stores.ts'
import { NotFound } from '../../../base/process/errors.ts'
import { systemClock } from '../../../base/time/clock.ts'
import { openBlobs } from '../../../platform/store/blobs/blobs.ts'
import { insert, type Statement, type Store } from '../../../platform/store/store.ts'
import { noCounts } from './job.ts'
import { findJob } from './job-store.ts'
import { createJobs } from './jobs.ts'

const PREVIEW = {
  ...{ id: 'one', account_id: 'account', kind: 'preview', list_id: 'sample', mailing_list_id: null },
  ...{ blob: 'file', status: 'preview_failed', quantity: 0, read_up_to: '', addresses: 0, done: 0 },
  ...{ done_up_to: -1, tries: 0, counts_json: JSON.stringify(noCounts()), lease_token: null },
  ...{ lease_owner: null, lease_until: 0, stepped_at: 1, created_at: 1, ended_at: 1 },
  dropping: 0,
} as const

eachStore('a preview whose removal has begun keeps its file', async (store, t) => {
  const blobs = await openBlobs(await temporaryFolder(t))
  const jobs = createJobs({ store, blobs, clock: systemClock, wake() {}, wakeRemoval() {} })
  await store.commit([insert('validation_jobs', { ...PREVIEW, dropping: 1 })])
  await assert.rejects(jobs.promote('account', 'sample'), NotFound)
  assert.equal((await findJob(store, 'account', 'preview', 'sample'))?.blob, 'file')
  assert.equal(await findJob(store, 'account', 'bulk', 'sample'), undefined)

  await store.commit([{ sql: 'UPDATE validation_jobs SET dropping = 0', values: [] }])
  await jobs.promote('account', 'sample')
  assert.equal((await findJob(store, 'account', 'bulk', 'sample'))?.blob, 'file')
})

eachStore('a preview that ends while it is promoted is promoted', async (store, t) => {
  const blobs = await openBlobs(await temporaryFolder(t))
  const running = { ...PREVIEW, status: 'processing', ended_at: null }
  await store.commit([insert('validation_jobs', running)])
  const endsFirst: Store = Object.create(store, {
    commit: {
      async value(statements: readonly Statement[]) {
        await store.commit([{ sql: "UPDATE validation_jobs SET status = 'preview_complete'", values: [] }])
        Object.defineProperty(endsFirst, 'commit', { value: store.commit.bind(store) })
        return store.commit(statements)
      },
      configurable: true,
    },
  })
  const jobs = createJobs({ store: endsFirst, blobs, clock: systemClock, wake() {}, wakeRemoval() {} })
  await jobs.promote('account', 'sample')
  assert.equal((await findJob(store, 'account', 'bulk', 'sample'))?.blob, 'file')
})
