import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addAccount } from '../../../test/support/accounts.ts'
import { eventually, startTestService } from '../../../test/support/service.ts'

test('an account has some streams of captured mail open, and a place is free again when one is closed', async (t) => {
  const service = await startTestService(t)
  const aborter = new AbortController()
  t.after(() => aborter.abort())
  const open = (key: string, signal = aborter.signal) =>
    fetch(`${service.url}/sendwright/v1/inbox/stream`, {
      headers: { authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` },
      signal,
    })
  const first = new AbortController()
  const opened = [await open(service.key, first.signal)]
  while (opened.length < 20) opened.push(await open(service.key))
  assert.deepEqual([...new Set(opened.map(({ status }) => status))], [200])
  const refused = await open(service.key)
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '10'])
  assert.match(await refused.text(), /an account has at most 20, and all share 200 evenly/)
  assert.equal((await open(addAccount(service).key)).status, 200)
  first.abort()
  await eventually(
    'the place of a closed stream is free',
    async () => (await open(service.key)).status === 200,
  )
})
