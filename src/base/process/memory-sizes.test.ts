import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually, startTestService } from '../../../test/support/service.ts'
import type { Core } from '../../core.ts'
import { sizesFor } from './memory-sizes.ts'

test('a small service has the smaller caches, and sends', async (t) => {
  const cores: Core[] = []
  const noArea = (core: Core) => {
    cores.push(core)
    return {}
  }
  const service = await startTestService(t, { SENDWRIGHT_MEMORY: 'small' }, { areas: [noArea] })
  const [core] = cores
  assert.ok(core)
  assert.deepEqual(core.sizes, sizesFor('small'))
  const cacheSize = { sql: 'PRAGMA cache_size', values: [] }
  assert.deepEqual(await core.store.read(cacheSize), [
    { cache_size: -sizesFor('small').sqlite.cacheKb.reader },
  ])
  const { status } = await service.send({ subject: 'From a small machine' })
  assert.equal(status, 200)
  await eventually('the delivery', async () =>
    (await service.events()).some(({ event }) => event === 'delivered'),
  )
})
