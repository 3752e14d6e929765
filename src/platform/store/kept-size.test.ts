// Both databases: the functions of lengths and the numbers of averages differ.
import assert from 'node:assert/strict'
import { eachStore } from '../../../test/support/stores.ts'
import { removeBeyond, type SizedTable } from './kept-size.ts'
import { insertMany } from './store.ts'

const TABLE: SizedTable = {
  ...{ name: 'transcripts', key: 'delivery_id, attempt', age: 'started_at' },
  ...{ texts: ['lines_json', 'mx_host'], rowBytes: 200 },
}

eachStore('the oldest rows go until the rest fits, and none where all fits', async (store) => {
  const rows = Array.from({ length: 3_000 }, (_, at) => ({
    ...{ delivery_id: `d${at}`, attempt: 1, account_id: 'a', started_at: at, mx_host: '' },
    // Two bytes each.
    lines_json: 'ü'.repeat(400),
  }))
  await store.commit(insertMany('transcripts', rows))
  const kept = async () => {
    const sql = 'SELECT min(started_at) AS low, count(*) AS rows FROM transcripts'
    const [found] = await store.read({ sql, values: [] })
    return [Number(found?.['low']), Number(found?.['rows'])]
  }
  await removeBeyond(store, TABLE, null)
  await removeBeyond(store, TABLE, 3_000_000)
  assert.deepEqual(await kept(), [0, 3_000])
  await removeBeyond(store, TABLE, 2_000_000, undefined, { sql: 'started_at < ?', value: 600 })
  assert.deepEqual(await kept(), [600, 2_400], 'what the condition keeps stays')
  await removeBeyond(store, TABLE, 2_000_000)
  assert.deepEqual(await kept(), [1_000, 2_000])
  await removeBeyond(store, TABLE, 2_000_000)
  assert.deepEqual(await kept(), [1_000, 2_000])
  await removeBeyond(store, TABLE, 1_000_000, AbortSignal.abort())
  assert.deepEqual(await kept(), [1_000, 2_000], 'a run that must end removes nothing')
})
